"""What the server holds of one client after each round, by the attack that fits its messages.

Nothing here sees private data: transcript, the method's public parameters and the public facts of
the records (their grid, the announced mean) are all there is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedpca_core.algorithms.method import Method
from fedpca_core.arrays import Array
from fedpca_core.attacks.linear import linear_rounds
from fedpca_core.attacks.low_rank import Factor, factor_of, low_rank
from fedpca_core.attacks.pooled import pooled_rounds
from fedpca_core.errors import InvalidInput
from fedpca_core.protocol.transcript import Transcript


@dataclass(frozen=True, eq=False)
class Held:
    """The server's best matrix of one client after a round.

    Attributes
    ----------
    factor : (features, directions) float64
        Directions it holds, with their sizes: a second-moment matrix is factor factorᵀ.
    whole : Factor or None
        The same where the messages determine the client's matrix, so that records can follow.
    attack : str
        Which attack it is: "low rank", "sums", "linear", "model" or "nothing".
    """

    factor: Array
    whole: Factor | None
    attack: str

    @classmethod
    def nothing(cls, features: int, attack: str = "nothing") -> Held:
        """What it holds before any message that tells something."""
        return cls(np.zeros((features, 0)), None, attack)

    @property
    def directions(self) -> int:
        """How many directions it holds; of a mask none is the client's."""
        return 0 if self.attack == "linear" else self.factor.shape[1]


def held(
    transcript: Transcript, method: Method, client: int, *, noise: float = 0.0
) -> Iterator[Held]:
    """After each round, the start first.

    Parameters
    ----------
    transcript : Transcript
    method : Method
    client : int
    noise : float
        Stated relative noise on uploads.
    """
    yield Held.nothing(transcript.features)
    if transcript.secure_aggregation:
        yield from _of_sums(transcript, client)
    elif method.key == "faps":
        yield from _of_masked(transcript, client)
    elif "linear" in method.attacks:
        yield from _of_products(transcript, client, noise)
    else:
        yield from _of_models(transcript, client)


def _of_products(transcript: Transcript, client: int, noise: float) -> Iterator[Held]:
    """Answers that are products: a factor that is complete after a few rounds."""
    last = Held.nothing(transcript.features)
    for count in range(1, len(transcript.exchanges) + 1):
        if last.whole is None:
            try:
                read = low_rank(transcript, client, count, noise=noise)
            except InvalidInput:  # it has not taken part yet, or made several steps at once
                yield last
                continue
            last = Held(read.matrix, read if read.complete else None, "low rank")
        yield last


def _of_sums(transcript: Transcript, client: int) -> Iterator[Held]:
    """Sums: the pooled matrix, or each client's where the participants change."""
    if "product" not in (transcript.exchanges[0].sums or {}):
        yield from _of_summed_models(transcript)
        return
    samples = int(transcript.samples[client])
    changing = any(
        not np.array_equal(exchange.sum_weights > 0, transcript.exchanges[0].sum_weights > 0)
        for exchange in transcript.exchanges
    )
    rounds = pooled_rounds(transcript, client)
    next(rounds)
    for estimate, rank in rounds:
        if not changing:
            yield Held(_directions(estimate)[:, :rank], None, "sums")
            continue
        found = factor_of(estimate, samples)
        yield Held(found.matrix, found, "sums")


def _of_summed_models(transcript: Transcript) -> Iterator[Held]:
    """Sums of models: the server holds the mean of all, and nothing of one."""
    n = transcript.features
    for exchange in transcript.exchanges:
        found = Held.nothing(n, "sums")
        for array in (exchange.sums or {}).values():
            if (matrix := unpacked(array, n)) is not None:
                found = Held(_directions(matrix), None, "sums")
            elif array.shape[:1] == (n,):
                found = Held(_spread(array), None, "sums")
        yield found


def _of_masked(transcript: Transcript, client: int) -> Iterator[Held]:
    """FAPS read as if its messages were products: the mask shows."""
    rounds = linear_rounds(transcript, client)
    next(rounds)
    for estimate, rank in rounds:
        yield Held(_directions(estimate)[:, :rank], None, "linear")


def _of_models(transcript: Transcript, client: int) -> Iterator[Held]:
    """Uploads that are models of the client's data: they are read as they are."""
    last = Held.nothing(transcript.features)
    for exchange in transcript.exchanges:
        rows = np.flatnonzero(exchange.participants == client)
        if len(rows) and exchange.uploads is not None:
            uploads = {name: array[rows[0]] for name, array in exchange.uploads.items()}
            last = _model(uploads, transcript, client) or last
        yield last


def unpacked(array: Array, features: int) -> Array | None:
    """The symmetric matrix that came as its upper triangle by rows; None where it is no such."""
    if array.shape != (features * (features + 1) // 2,):
        return None
    matrix = np.zeros((features, features))
    matrix[np.triu_indices(features)] = array
    return matrix + np.triu(matrix, 1).T


def _model(uploads: dict[str, Array], transcript: Transcript, client: int) -> Held | None:
    n = transcript.features
    for array in uploads.values():
        if (matrix := unpacked(array, n)) is not None:  # the matrix itself
            found = factor_of(matrix, int(transcript.samples[client]))
            return Held(found.matrix, found, "model")
    for name, array in uploads.items():
        if array.ndim == 2 and array.shape[0] == n:
            directions, samples = _spread(array), int(transcript.samples[client])
            whole = None
            if name == "scaled_eigenvectors" and array.shape[1] >= samples:
                # As many directions as records, with their sizes: the matrix itself.
                error = float(np.finfo(float).eps * np.abs(array).max())
                whole = Factor(directions[:, :samples], samples, error)
            return Held(directions, whole, "model")
    return None


def _directions(matrix: Array) -> Array:
    """Leading directions of an estimate that need not be symmetric, with their sizes."""
    values, vectors = np.linalg.eigh(0.5 * (matrix + matrix.T))
    order = np.argsort(-np.abs(values))
    return vectors[:, order] * np.sqrt(np.abs(values[order]))


def _spread(array: Array) -> Array:
    """The columns of an upload turned to its own principal directions."""
    left, sizes, _ = np.linalg.svd(array, full_matrices=False)
    return left * sizes
