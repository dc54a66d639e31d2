"""What is reduced to find directions: rows made short, and generators to try in turn.

Neighbouring pixels are alike, and so are the columns of a table that belong together, so the
difference of two rows is often far shorter than either and is a whole vector again. Repeated passes
over all pairs (`sieve`) shorten a few hundred rows to a fraction of their length in milliseconds,
which is most of the work of a lattice reduction. (The pairwise step of lattice sieves; see
Micciancio and Voulgaris, 2010.) Only a shorter row is ever subtracted from a longer one, so the
rows still generate the same lattice.
"""

from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array, IntArray

#: The extra coordinate in units of 1/total: longer than the vectors sought, which it must outlast.
WEIGHT = 3.0
#: Lengths of tags, relative to the vectors sought, and generators in multiples of the dimension, to
#: try in turn. Data kept as float32 lie some 1e-5 off their grid, so the first tags are well above
#: that; shorter ones reach further where the data are exact, longer ones where they are noisy.
LADDER = (
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
#: Noise of an entry up to which subtracting goes on, in grid units.
_NOISE = 0.02
#: Passes at most; rows looked at, the smallest; a subtraction must shorten a row to this share.
_PASSES, LARGEST, _GAIN = 4, 800, 0.95


@dataclass(frozen=True)
class Sieved:
    """Short combinations of rows that generate the same lattice as these."""

    #: (count, rank) float64: Shortest first.
    rows: Array
    #: (count, count) int64: How the chosen rows make them up.
    combinations: IntArray
    #: (count,) int64: Which rows these are.
    chosen: IntArray


def sieve(rows: Array, error: float, shortest: float) -> Sieved:
    """Shorten rows by subtracting others, while noise of size ``error`` an entry stays small.

    Rows below ``shortest`` are left out: they are zero up to noise.
    """
    sizes = np.linalg.norm(rows, axis=1)
    floor = max(shortest, 10.0 * error)
    order = np.argsort(sizes, kind="stable")
    chosen = order[sizes[order] > floor][:LARGEST].astype(np.int64)
    short = rows[chosen]
    made = np.eye(len(chosen))
    if len(chosen) == 0:
        return Sieved(short, made.astype(np.int64), chosen)
    position = np.arange(len(chosen))
    for _ in range(_PASSES if len(chosen) > 1 else 0):
        products = short @ short.T
        squares = np.diag(products).copy()
        after = squares[:, None] + squares - 2.0 * np.abs(products)
        shorter = (squares < squares[:, None]) | (
            (squares == squares[:, None]) & (position < position[:, None])
        )
        after[~shorter] = np.inf
        partner = after.argmin(axis=1)
        weights = (made**2).sum(axis=1)
        better = after[position, partner] < _GAIN * squares
        # Differences between a difference of records and nothing are rounding of the mean.
        left = after[position, partner]
        better &= (left > (10.0 * shortest) ** 2) | (left < (0.01 * shortest) ** 2)
        better &= np.sqrt(weights + weights[partner]) * error < _NOISE
        if not better.any():
            break
        sign = np.where(products[position, partner] < 0, -1.0, 1.0)[better, None]
        short[better], made[better] = (
            short[better] - sign * short[partner[better]],
            made[better] - sign * made[partner[better]],
        )
    # Rows that have become zero are relations and generate nothing.
    sizes = np.linalg.norm(short, axis=1)
    keep = np.argsort(sizes, kind="stable")
    keep = keep[sizes[keep] > floor]
    return Sieved(short[keep], made[keep].astype(np.int64), chosen)


@dataclass(frozen=True)
class Lattice:
    #: (count, rank) float64: B or whole combinations of its rows, in grid units, shortest first.
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
        rows = self.rows[chosen]
        if self.residues is None:
            return rows
        return np.vstack(
            [
                np.hstack([rows, WEIGHT * self.residues[chosen, None].astype(float)]),
                np.eye(1, rows.shape[1] + 1, rows.shape[1]) * WEIGHT * self.total,
            ]
        )


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
