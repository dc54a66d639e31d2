"""What a replay fits: a candidate client, and the entries of its matrix that are unknown."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array, IntArray


@dataclass(frozen=True)
class Candidate:
    """Everything a candidate client is made of, in the model's coordinates."""

    #: (features, features) float64, symmetric.
    matrix: Array
    #: First beta_i where it is fitted or known; None where it follows from the matrix.
    penalty: float | None = None
    #: (features, components) float64 or None: Hidden start; None: the first broadcast.
    frame: Array | None = None
    #: Inner steps in each of the client's rounds where they are not public.
    steps: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Entries:
    """Unknown entries of a symmetric matrix, as coordinates of unit Frobenius length."""

    #: rows, columns: (count,) int64: Positions, row <= column; the mirrored entry follows.
    rows: IntArray
    columns: IntArray
    #: The entries between so many leading features and the rest are known.
    known: int = 0

    @classmethod
    def of(cls, features: int, known: int = 0) -> Entries:
        """All entries, or all but the block between the first ``known`` features and the rest."""
        rows, columns = np.triu_indices(features)
        free = ~((rows < known) & (columns >= known))
        return cls(rows[free], columns[free], known)

    def __getitem__(self, some: slice) -> Entries:
        return Entries(self.rows[some], self.columns[some], self.known)

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def scale(self) -> Array:
        """c with dS = c (e_a e_b^T + e_b e_a^T): 1/2 on the diagonal, 1/sqrt(2) off it."""
        return np.where(self.rows == self.columns, 0.5, np.sqrt(0.5))

    def add(self, matrix: Array, step: Array) -> Array:
        change = np.zeros_like(matrix)
        change[self.rows, self.columns] = self.scale * step
        return matrix + change + change.T

    def coordinates(self, matrix: Array) -> Array:
        return np.asarray(2.0 * self.scale * matrix[self.rows, self.columns])

    def quadratic(self, vector: Array) -> Array:
        """Derivative of ``v^T S v`` in these coordinates."""
        return np.asarray(2.0 * self.scale * vector[self.rows] * vector[self.columns])

    def accumulate(self, into: Array, frame: Array) -> None:
        """Add ``dS V`` of every coordinate to derivatives (features, directions, columns)."""
        each = np.arange(self.count)
        into[self.rows, each] += self.scale[:, None] * frame[self.columns]
        into[self.columns, each] += self.scale[:, None] * frame[self.rows]


@dataclass(frozen=True)
class Guides:
    """What a server knows about any second-moment matrix, as extra equations for a first fit.

    A covariance has no negative eigenvalue; none exceeds ``norm`` and the largest equals it where
    the norm is known (FAPS's round 1 gives beta_i and so the norm away); the trace may be public.
    Without these the first rounds, which leave most of S open, lead the fit into matrices that no
    data could have.
    """

    norm: float | None = None
    trace: float | None = None

    def rows(self, guess: Candidate, entries: Entries, size: int) -> tuple[Array, Array]:
        """Violations and their derivatives, (guides,) and (guides, size)."""
        values, vectors = np.linalg.eigh(guess.matrix)
        violations = np.minimum(values, 0.0)
        active = values < 0
        if self.norm is not None:
            violations = np.where(values > self.norm, values - self.norm, violations)
            violations[-1] = values[-1] - self.norm
            active = active | (values > self.norm)
            active[-1] = True
        derivatives = [entries.quadratic(vectors[:, k]) for k in np.flatnonzero(active)]
        amounts = list(violations[active])
        if self.trace is not None:
            derivatives.append(np.where(entries.rows == entries.columns, 1.0, 0.0))
            amounts.append(float(np.trace(guess.matrix)) - self.trace)
        table = np.zeros((len(amounts), size))
        if derivatives:
            table[:, : entries.count] = derivatives
        return np.array(amounts), table


@dataclass(frozen=True)
class Shrinkage:
    """Pull towards a prior, for noisy uploads: ``strength * ||S - prior||_F^2`` is added."""

    prior: Array
    strength: float

    def rows(self, guess: Candidate, entries: Entries, size: int) -> tuple[Array, Array]:
        weight = float(np.sqrt(self.strength))
        table = np.zeros((entries.count, size))
        table[:, : entries.count] = weight * np.eye(entries.count)
        return weight * entries.coordinates(guess.matrix - self.prior), table


#: Extra equations beside the messages.
Extra = Guides | Shrinkage
