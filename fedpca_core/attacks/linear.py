"""Attacks that take every answer for a product with S_i: linear, symmetric, ridge.

Every pair (Z, Y) of a transcript is read as ``S_i Z = Y``. The stack of these is kept small as
rounds accumulate, and diagonalised once; the attacks are filters of that decomposition. Of the
stacked broadcasts ``Z = [Z_1 .. Z_k]`` and the client's answers ``Y``,

- *linear* takes the matrix of least Frobenius norm with ``Phi Z = Y`` (FAPS, section on privacy):
  against SSI exact as soon as the broadcasts span the feature space; against FAPS, whose uploads
  are no products with S_i, worse than guessing zero on most runs and rounds;
- *symmetric* takes the smallest symmetric matrix (FedPower, reconstruction from uploads), of which
  only the block of unprobed against unprobed directions stays unknown;
- *ridge* minimises ``||S Z - Y||_F^2 + lambda ||S - S_0||_F^2`` over symmetric S around a public
  guess S_0 (FedPower, reconstruction from noisy uploads): plain least squares divides noise by the
  small singular values of the broadcasts and explodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import symmetric_part, uniform_frame
from fedpca_core.protocol.transcript import Transcript

#: Directions of the stack whose singular value is below this fraction of the largest count as
#: unseen, by the format of the messages. Rounding of an answer is magnified by the inverse of the
#: singular value; at these values the magnified rounding meets what leaving the direction out
#: costs (measured on spectra from flat to steep). In float64 the products and the decomposition
#: round as well, a few units together; float32 messages are computed in float64 and only sent
#: rounded, by a quarter of a unit on average.
CUTOFFS = {
    "float64": 4.0 * float(np.finfo(np.float64).eps),
    "float32": 0.25 * float(np.finfo(np.float32).eps),
}
#: Strengths of the ridge tried when none is given, in units of the largest squared singular value.
_GRID = np.logspace(-32.0, 8.0, 161)
#: Below this total variance, in directions, nothing is left open for the trace to decide.
_OPEN = 1e-6
#: What the server believes after a round, and the directions of the feature space probed so far.
Estimate = tuple[Array, int]


# ---------------------------------------------------------------- what the messages say of S_i
@dataclass(frozen=True)
class Decomposition:
    """Singular value decomposition of the stacked probes, with the answers in its coordinates.

    With ``probes = U diag(sigma) V^T`` and residual answers ``E = answers - prior @ probes``.
    """

    #: (features, rank) float64: U, an orthonormal basis of what was probed.
    left: Array
    #: (rank,) float64: Positive, largest first.
    sigma: Array
    #: (rank, rank) float64: ``U^T E V``: answers inside the probed space.
    inner: Array
    #: (features, rank) float64: ``(I - U U^T) E V``: answers outside it.
    outer: Array
    #: Scalar equations behind the stack, before any compression.
    equations: int
    #: Squared Frobenius norm of the answers that no matrix, symmetric or not, can produce.
    unexplained: float
    #: Absolute threshold below which a singular value counts as zero.
    cutoff: float

    @property
    def rank(self) -> int:
        """Directions of the feature space the server has probed."""
        return int((self.sigma > self.cutoff).sum())


@dataclass(frozen=True)
class LinearSystem:
    """Pairs of a client stacked side by side."""

    #: probes, answers: (features, columns) float64: Answers are S_i times probes if the client
    #: answers with plain products.
    probes: Array
    answers: Array
    #: Scalar equations stacked so far; ``columns`` may be smaller after compression.
    equations: int = 0
    #: Squared norm of what compression removed of the answers: rounding or noise.
    lost: float = 0.0
    #: Whether all messages so far travelled as float32, which the server sees from the values.
    single_precision: bool = True

    @classmethod
    def empty(cls, features: int) -> LinearSystem:
        nothing = np.zeros((features, 0))
        return cls(nothing, nothing)

    @property
    def relative_cutoff(self) -> float:
        return CUTOFFS["float32" if self.single_precision else "float64"]

    def with_pair(self, probe: Array, answer: Array) -> LinearSystem:
        """The same system and one more round.

        Once there are more columns than features they are rotated into as many columns as
        features (an LQ decomposition), which keeps every solution of the equations.
        """
        probes = np.concatenate([self.probes, probe], axis=1)
        answers = np.concatenate([self.answers, answer], axis=1)
        lost = self.lost
        if probes.shape[1] > probes.shape[0]:
            rotation, triangle = np.linalg.qr(probes.T)
            rotated = answers @ rotation
            # From the residual: a difference of squares could not see below 1e-8 of the answers.
            lost += float(np.linalg.norm(answers - rotated @ rotation.T)) ** 2
            probes, answers = triangle.T, rotated
        return LinearSystem(
            probes,
            answers,
            self.equations + answer.size,
            lost,
            # Seen from the probe: a sum of float32 uploads is not a float32 number itself.
            self.single_precision and is_single_precision(probe),
        )

    def decompose(self, prior: Array | None = None) -> Decomposition:
        """Diagonalise the stack, with the answers less those of a prior (features, features)."""
        residual = self.answers if prior is None else self.answers - prior @ self.probes
        left, sigma, right = np.linalg.svd(self.probes, full_matrices=False)
        threshold = self.relative_cutoff * float(sigma[0]) if len(sigma) else 0.0
        # Exact zeros would divide by zero later; they carry no equation in any attack.
        seen = sigma > np.finfo(np.float64).tiny
        left, sigma, right = left[:, seen], sigma[seen], right[seen]
        rotated = residual @ right.T
        inner = left.T @ rotated
        return Decomposition(
            left=left,
            sigma=sigma,
            inner=inner,
            outer=rotated - left @ inner,
            equations=self.equations,
            unexplained=self.lost + float(np.linalg.norm(residual - rotated @ right)) ** 2,
            cutoff=threshold,
        )


def is_single_precision(message: Array) -> bool:
    """Whether every entry survives a round trip through float32: the server sees the format."""
    return bool(np.array_equal(message, message.astype(np.float32)))


def read(transcript: Transcript, client: int) -> LinearSystem:
    *_, everything = growing(transcript, client)
    return everything


def growing(transcript: Transcript, client: int) -> Iterator[LinearSystem]:
    """The system after round 0 (empty), 1, 2, ...: one item more than rounds.

    Rounds with several local products are skipped as soon as a round with a single one was seen
    (LocalPower): only the latter say ``S_i Z = Y``. A method that never makes a plain product
    (FAPS) is read as if it did; the estimate then shows how far that takes a naive server.
    """
    if transcript.exchanges:  # else the answer is the prior
        check_took_part(transcript, client)
    asked = zip(transcript.seen(client), transcript.pairs(client), strict=True)
    seen = {exchange.round: pair for (exchange, _), pair in asked}
    plain = LinearSystem.empty(transcript.features)
    anything = plain
    yield plain
    for exchange in transcript.exchanges:
        if exchange.round in seen:
            probe, answer = seen[exchange.round]
            sends_probe = exchange.uploads is not None and "frame" in exchange.uploads
            if exchange.local_steps == 1 or sends_probe:
                plain = plain.with_pair(probe, answer)
            elif plain.equations == 0:
                anything = anything.with_pair(probe, answer)
        yield plain if plain.equations else anything


def check_took_part(transcript: Transcript, client: int) -> None:
    require(
        len(transcript.seen(client)) > 0,
        f"Client {client} took part in none of the {len(transcript.exchanges)} rounds, so the "
        "server holds no message of it; choose another client or read more rounds.",
    )


# Guesses that need no message at all: an attack that does not beat them has learned nothing.
def scaled_identity(features: int, trace: float) -> Array:
    """``c I`` with the stated trace: the most even guess and the default prior of the attacks."""
    require(
        bool(np.isfinite(trace)) and trace > 0,
        f"The stated trace must be a positive number, not {trace}.",
    )
    return np.eye(features) * (trace / features)


def random_subspace(
    features: int, components: int, trace: float, generator: np.random.Generator
) -> Array:
    """``c U U^T`` with the stated trace and U a uniformly random (features, components) frame."""
    require(
        1 <= components <= features,
        f"A random subspace of {components} components does not fit {features} features.",
    )
    frame = uniform_frame(generator, features, components)
    return (trace / components) * (frame @ frame.T)


def check_prior(prior: Array | None, features: int) -> Array | None:
    if prior is None:
        return None
    matrix = np.asarray(prior, dtype=float)
    require(
        matrix.shape == (features, features) and bool(np.isfinite(matrix).all()),
        f"The prior must be a finite matrix of {features} x {features} entries, not one of shape "
        f"{matrix.shape}; leave it out to start from nothing.",
    )
    return matrix


# ------------------------------------------------------------------- what is made of them
@dataclass(frozen=True)
class LinearReading:
    """What an attack makes of equations: a guess, and a matrix from what they say beyond it."""

    #: (features, features) float64 or None: Zero where there is none.
    prior: Array | None
    solve: Callable[[Decomposition], Array]

    def of(self, system: LinearSystem) -> Estimate:
        """The matrix, and the directions that the equations span."""
        found = system.decompose(self.prior)
        return self.solve(found), found.rank

    def last(self, transcript: Transcript, client: int) -> Estimate:
        """After all rounds."""
        return self.of(read(transcript, client))

    def after_each(self, transcript: Transcript, client: int) -> Iterator[Estimate]:
        """After round 0 (no message yet), 1, 2, ...; a round without news repeats the last."""
        last: LinearSystem | None = None
        for stage in growing(transcript, client):
            if stage is not last:
                found, last = self.of(stage), stage
            yield found


def linear(transcript: Transcript, client: int = 0) -> Array:
    """Reconstruction of one client's S_i, (features, features), seldom symmetric.

    Raises InvalidInput: unknown client, or the messages it needs are missing (secure aggregation,
    not recorded, uploads that are not answers to a frame).
    """
    return smallest().last(transcript, client)[0]


def smallest() -> LinearReading:
    """How `linear` reads."""

    def solve(found: Decomposition) -> Array:
        scaled = np.where(found.sigma > found.cutoff, 1.0 / found.sigma, 0.0)
        return ((found.left @ found.inner + found.outer) * scaled) @ found.left.T

    return LinearReading(None, solve)


def symmetric(transcript: Transcript, client: int = 0, *, trace: float | None = None) -> Array:
    """Symmetric reconstruction of one client's S_i, (features, features).

    ``trace``: tr S_i where it is public (for example 1 when every record is scaled to norm 1). What
        the estimate lacks of it is spread evenly over the unprobed directions.
    """
    return completion(trace).last(transcript, client)[0]


def completion(trace: float | None = None) -> LinearReading:
    """How `symmetric` reads.

    In the basis of the stacked broadcasts' singular vectors the entry (a, b) is seen twice, with
    strengths sigma_a and sigma_b; the least-squares combination of both is
    ``(E_ab sigma_b + E_ba sigma_a) / (sigma_a^2 + sigma_b^2)``. On exact messages this equals the
    closed form ``C Q^T + Q C^T - Q Q^T C Q^T``; with rounding it is far better, because a weakly
    probed direction is still seen well from every strongly probed one.
    """

    def solve(found: Decomposition) -> Array:
        seen = found.sigma > found.cutoff
        estimate = _filtered(found, np.where(seen, found.outer / found.sigma, 0.0))
        missing = len(estimate) - found.rank
        if trace is None or missing == 0:
            return estimate
        probed = found.left[:, seen]
        unprobed = np.eye(len(estimate)) - probed @ probed.T
        return estimate + (trace - np.trace(estimate)) / missing * unprobed

    return LinearReading(None, solve)


def ridge(
    transcript: Transcript,
    client: int = 0,
    prior: Array | None = None,
    *,
    trace: float | None = None,
    strength: float | None = None,
) -> Array:
    """One client's S_i from noisy messages, shrunk towards a public guess, symmetric.

    ``prior``, (features, features) float64: Public guess S_0. When left out, ``trace/features``
        times the identity, or zero if no trace is stated either.
    ``trace``: Stated tr S_i. Gives the default prior, and the estimate is conditioned on it: what
        it lacks goes to each direction in proportion to how little the messages say about it.
    ``strength``: lambda, the noise variance over the variance expected of ``S - S_0``. When left
        out it maximises the likelihood of the messages, from the transcript alone.
    """
    return shrunk(transcript.features, prior, trace, strength).last(transcript, client)[0]


def shrunk(
    features: int,
    prior: Array | None = None,
    trace: float | None = None,
    strength: float | None = None,
) -> LinearReading:
    """How `ridge` reads."""
    require(
        strength is None or strength >= 0,
        f"The strength of the ridge must be at least 0, not {strength}; "
        "leave it out to have it chosen.",
    )
    guess = check_prior(prior, features)
    if guess is None and trace is not None:
        guess = scaled_identity(features, trace)
    known = np.zeros((features, features)) if guess is None else symmetric_part(guess)

    def solve(found: Decomposition) -> Array:
        if not len(found.sigma):
            return known
        chosen = _likeliest(found, features) if strength is None else strength
        sigma, seen = found.sigma, found.sigma > found.cutoff
        outer = np.where(seen, found.outer * (sigma / (sigma**2 + 2.0 * chosen)), 0.0)
        estimate = known + _filtered(found, outer, chosen)
        if trace is None:
            return estimate
        # Conditioning on the trace: the correction is shared out like the posterior variance of the
        # diagonal, which is 1 on unprobed directions and lambda/(sigma^2 + lambda) on probed ones.
        told = np.where(seen, sigma**2 / (sigma**2 + chosen), 0.0)
        share = np.eye(features) - (found.left * told) @ found.left.T
        total = float(np.trace(share))
        missing = trace - float(np.trace(estimate))
        return estimate + (missing / total) * share if total > _OPEN else estimate

    return LinearReading(known, solve)


def _likeliest(found: Decomposition, features: int) -> float:
    """Strength of greatest marginal likelihood.

    With entries of ``S - S_0`` of variance tau^2 on the diagonal and tau^2/2 off it (what the
    Frobenius penalty means for a symmetric matrix) and noise of variance nu^2, each independent
    combination of the answers is Gaussian with variance ``nu^2 (1 + weight/lambda)`` where
    ``lambda = nu^2/tau^2``; ``weight`` is sigma_a^2 on the diagonal, (sigma_a^2 + sigma_b^2)/2 off
    it and sigma_b^2/2 towards unprobed directions.
    """
    sigma, inner = found.sigma, found.inner
    upper = np.triu_indices(len(sigma), 1)
    pair_weight = (sigma[upper[0]] ** 2 + sigma[upper[1]] ** 2) / 2.0
    seen = inner * sigma
    along = (seen[upper] + seen.T[upper]) ** 2 / (2.0 * pair_weight)
    crossed = inner * sigma[:, None]
    across = (crossed[upper] - crossed.T[upper]) ** 2 / (2.0 * pair_weight)
    outside = features - len(sigma)
    squares = np.concatenate([np.diag(inner) ** 2, along, (found.outer**2).sum(axis=0)])
    weights = np.concatenate([sigma**2, pair_weight, sigma**2 / 2.0])
    counts = np.concatenate([np.ones(len(sigma) + len(along)), np.full(len(sigma), outside)])
    pure_noise = found.unexplained + float(across.sum())
    scale = float(sigma[0]) ** 2
    growth = 1.0 + weights / (scale * _GRID[:, None])
    left = (squares / growth).sum(axis=1) + pure_noise
    volume = (counts * np.log(growth)).sum(axis=1)
    misfit = found.equations * np.log(np.maximum(left, np.finfo(np.float64).tiny))
    return scale * float(_GRID[np.argmin(misfit + volume)])


def _filtered(found: Decomposition, outer: Array, strength: float = 0.0) -> Array:
    """Symmetric matrix from both views of every probed pair, with ``outer`` towards the rest."""
    seen_twice = found.inner * found.sigma
    weights = found.sigma[:, None] ** 2 + found.sigma**2
    # Pairs that were not probed at all are left at zero whatever the strength.
    inner = (seen_twice + seen_twice.T) / (weights + 2.0 * strength)
    inner = np.where(weights > found.cutoff**2, inner, 0.0)
    half = found.left @ inner * 0.5 + outer
    return half @ found.left.T + found.left @ half.T
