"""Attacks that take every answer for a product with S_i: linear, symmetric, ridge.

Of the stacked broadcasts ``Z = [Z_1 .. Z_k]`` and the client's answers ``Y``,

- *linear* takes the matrix of least Frobenius norm with ``Phi Z = Y`` (FAPS, section on privacy):
  against SSI exact as soon as the broadcasts span the feature space; against FAPS, whose uploads
  are no products with S_i, worse than guessing zero on most runs and rounds;
- *symmetric* takes the smallest symmetric matrix (FedPower, reconstruction from uploads), of which
  only the block of unprobed against unprobed directions stays unknown;
- *ridge* minimises ``||S Z - Y||_F^2 + lambda ||S - S_0||_F^2`` over symmetric S around a public
  guess S_0 (FedPower, reconstruction from noisy uploads): plain least squares divides noise by the
  small singular values of the broadcasts and explodes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.baselines import scaled_identity
from fedpca_core.attacks.linear_system import (
    Decomposition,
    LinearSystem,
    check_prior,
    growing,
    read,
)
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import symmetric_part
from fedpca_core.protocol.transcript import Transcript

#: Strengths of the ridge tried when none is given, in units of the largest squared singular value.
_GRID = np.logspace(-32.0, 8.0, 161)
#: Below this total variance, in directions, nothing is left open for the trace to decide.
_OPEN = 1e-6
#: What the server believes after a round, and the directions of the feature space probed so far.
Estimate = tuple[Array, int]


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
    return smallest().of(read(transcript, client))[0]


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
    return completion(trace).of(read(transcript, client))[0]


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
    reading = shrunk(transcript.features, prior, trace, strength)
    return reading.of(read(transcript, client))[0]


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
    return LinearReading(known, lambda found: _shrunk_towards(found, known, trace, strength))


def _shrunk_towards(
    found: Decomposition, prior: Array, trace: float | None, strength: float | None
) -> Array:
    if not len(found.sigma):
        return prior
    chosen = _likeliest(found, len(prior)) if strength is None else strength
    sigma, seen = found.sigma, found.sigma > found.cutoff
    outer = np.where(seen, found.outer * (sigma / (sigma**2 + 2.0 * chosen)), 0.0)
    estimate = prior + _filtered(found, outer, chosen)
    if trace is None:
        return estimate
    # Conditioning on the trace: the correction is shared out like the posterior variance of the
    # diagonal, which is 1 on unprobed directions and lambda/(sigma^2 + lambda) on probed ones.
    known = np.where(seen, sigma**2 / (sigma**2 + chosen), 0.0)
    share = np.eye(len(prior)) - (found.left * known) @ found.left.T
    total = float(np.trace(share))
    missing = trace - float(np.trace(estimate))
    return estimate + (missing / total) * share if total > _OPEN else estimate


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
