"""Shorter rows for the lattice: neighbours are subtracted from each other.

Neighbouring pixels are alike, and so are the columns of a table that belong together, so the
difference of two rows is often far shorter than either and is a whole vector again. Repeated passes
over all pairs shorten a few hundred rows to a fraction of their length in milliseconds, which is
most of the work of a lattice reduction. (The pairwise step of lattice sieves; see Micciancio and
Voulgaris, 2010.) Only a shorter row is ever subtracted from a longer one, so the rows still
generate the same lattice.
"""

from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array, IntArray

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

    def combine(self, numbers: IntArray) -> IntArray:
        """The same combinations of one whole number for every row."""
        result: IntArray = self.combinations @ numbers[self.chosen]
        return result


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
