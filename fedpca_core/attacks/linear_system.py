"""What a client's messages say about its S_i, as one stack of linear equations.

Every pair (Z, Y) of a transcript is read as ``S_i Z = Y``. The stack is kept small as rounds
accumulate, and diagonalised once; the attacks of `linear` are filters of that decomposition.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require
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
