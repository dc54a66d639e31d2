"""What is reduced to find directions: the lattice's generators, and the order in which to try."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array, IntArray

#: The extra coordinate in units of 1/total: longer than the vectors sought, which it must outlast.
WEIGHT = 3.0
#: Lengths of tags, relative to the vectors sought, and generators in multiples of the dimension.
_LADDER = (
    (1e-3, 1.9),
    (1e-2, 3.0),
    (1e-3, 3.0),
    (1e-2, 5.0),
    (1e-3, 5.0),
    (1e-5, 5.0),
    (1e-7, 5.0),
    (1e-10, 5.0),
    (1e-1, 5.0),
    (1e-1, 8.0),
)
#: A row is independent of others when so much of it lies outside them.
_INDEPENDENT = 0.3


@dataclass(frozen=True)
class Lattice:
    """Rows to take apart."""

    #: (count, rank) float64: B or whole combinations of its rows, in units of the grid, shortest
    #: first.
    rows: Array
    #: (count,) int64 or None: ``total mu`` in units of the grid, modulo ``total`` and next to zero;
    #: None without a mean.
    residues: IntArray | None
    #: Denominator of the mean.
    total: int
    #: Known noise of an entry.
    error: float
    #: Whether the directions sought have length 1; otherwise they are orthogonal only (records
    #: scaled to length 1, or records that occur more than once).
    same_length: bool = True

    @property
    def shifts(self) -> Array:
        """The mean of every row, next to zero; zeros without one."""
        if self.residues is None:
            return np.zeros(len(self.rows))
        return np.asarray(self.residues / self.total)

    def extended(self, chosen: IntArray) -> Array:
        """Generators from these rows."""
        rows = self.rows[chosen]
        if self.residues is None:
            return rows
        return np.vstack(
            [
                np.hstack([rows, WEIGHT * self.residues[chosen, None].astype(float)]),
                np.eye(1, rows.shape[1] + 1, rows.shape[1]) * WEIGHT * self.total,
            ]
        )


def ladder(error: float) -> Iterator[tuple[float, float]]:
    """Lengths of tags, and numbers of generators in multiples of the dimension, to try in turn.

    Data kept as float32 lie some 1e-5 off their grid, so the first tags are well above that;
    shorter ones reach further where the data are exact, longer ones where they are noisy.
    """
    for epsilon, share in _LADDER:
        if epsilon > 3.0 * error:
            yield epsilon, share


def first_rows(rows: Array, order: IntArray, count: int) -> IntArray:
    """So many rows: short ones that span the space, and others of all lengths.

    Short rows alone would do for dense images. In sparse ones they are the pixels that a single
    record lights, and generate little.
    """
    if count >= len(order):
        return order
    basis = np.zeros((0, rows.shape[1]))
    sizes = np.linalg.norm(rows, axis=1)
    spanning: list[int] = []
    for row in order.tolist():
        rest = rows[row] - basis.T @ (basis @ rows[row])
        size = float(np.linalg.norm(rest))
        if size > _INDEPENDENT * sizes[row]:
            basis = np.vstack([basis, rest / size])
            spanning.append(row)
            if len(basis) == rows.shape[1]:
                break
    others = order[~np.isin(order, spanning)]
    places = np.linspace(0, len(others) - 1, max(count - len(spanning), 0))
    both = np.concatenate([spanning, others[places.astype(np.int64)]])
    return np.unique(both.astype(np.int64))
