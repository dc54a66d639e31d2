"""What the server believes of a client's second-moment matrix after a round."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks.low_rank import Factor
from fedpca_core.linalg.stiefel import symmetric_part
from fedpca_core.protocol.transcript import Exchange


@dataclass(frozen=True, eq=False)
class Belief:
    """A matrix, as an attack has it after some rounds."""

    #: (features, many) float64: Directions with their sizes, whose product with their transpose is
    #: the matrix; or, with ``dense``, the matrix itself, which need not be symmetric.
    given: Array
    #: How many directions of the matrix in question the messages tell. Of a mask read as if it were
    #: a product none is the client's.
    read: int = 0
    #: The matrix as a factor where the messages determine it, so that records can follow.
    whole: Factor | None = None
    #: Whether the messages are known to determine it; False where a matrix explains them and others
    #: might. The certificate of its records tells then.
    sure: bool = True
    dense: bool = False

    @classmethod
    def nothing(cls, features: int) -> Belief:
        return cls(np.zeros((features, 0)))

    @classmethod
    def of_factor(cls, found: Factor) -> Belief:
        """A factor, which is whole where the messages determine it."""
        return cls(found.matrix, found.rank, found if found.complete else None)

    @classmethod
    def of_frame(cls, frame: Array) -> Belief:
        """The columns of an upload, turned to its own principal directions."""
        left, sizes, _ = np.linalg.svd(frame, full_matrices=False)
        return cls(left * sizes, frame.shape[1])

    @cached_property
    def matrix(self) -> Array:
        """(features, features) float64."""
        return self.given if self.dense else self.given @ self.given.T

    @cached_property
    def factor(self) -> Array:
        """(features, directions) float64: leading directions with their sizes."""
        if not self.dense:
            return self.given
        values, vectors = np.linalg.eigh(symmetric_part(self.given))
        order = np.argsort(-np.abs(values))
        return np.asarray(vectors[:, order] * np.sqrt(np.abs(values[order])))


def arrived(exchange: Exchange, client: int) -> dict[str, Array]:
    """What a round brought of a client by name: its upload, or the sums where only they arrive."""
    if exchange.uploads is None:
        return dict(exchange.sums or {})
    row = np.flatnonzero(exchange.participants == client)[:1]
    return {name: array[at] for name, array in exchange.uploads.items() for at in row}


def unpacked(array: Array, features: int) -> Array | None:
    """The symmetric matrix that came as its upper triangle by rows; None where it is no such."""
    if array.shape != (features * (features + 1) // 2,):
        return None
    return mirrored(array, features, np.triu_indices(features))


def mirrored(entries: Array, size: int, at: tuple[IntArray, IntArray]) -> Array:
    """Symmetric matrices (..., size, size) from entries (..., count) at these rows and columns."""
    matrices = np.zeros((*entries.shape[:-1], size, size))
    matrices[..., at[0], at[1]] = entries
    matrices[..., at[1], at[0]] = entries
    return matrices
