"""Short vectors of lattices: generators made short, reduced bases, and lists of all short vectors.

Neighbouring pixels are alike, and so are the columns of a table that belong together, so the
difference of two rows is often far shorter than either and is a whole vector again. Repeated passes
over all pairs (`sieve`) shorten a few hundred rows to a fraction of their length in milliseconds,
which is most of the work of a lattice reduction. (The pairwise step of lattice sieves; see
Micciancio and Voulgaris, 2010.) Only a shorter row is ever subtracted from a longer one, so the
rows still generate the same lattice.

More vectors than dimensions do not form a basis. Each row is therefore extended by its own small
tag (epsilon in a coordinate of its own) and the extended rows, which are independent, are reduced.
Combinations that vanish in the first coordinates leave their tags alone and come out short: they
are the relations between the rows. The others are a reduced basis of the lattice.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from flint import fmpz_mat

from fedpca_core.arrays import Array, IntArray

#: A tag is so many units of the whole numbers that are reduced, at least.
_UNITS = 16.0
#: Of the LLL condition: two thirds of the time of the usual 0.99 and 0.51, and as good here.
_DELTA, _ETA = 0.9, 0.7
#: Decimal digits to which a basis is kept.
_DIGITS = 12
#: Noise of an entry up to which subtracting goes on, in grid units.
_NOISE = 0.02
#: Passes at most; rows looked at, the smallest; a subtraction must shorten a row to this share.
_PASSES, _LARGEST, _GAIN = 4, 800, 0.95


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
    chosen = order[sizes[order] > floor][:_LARGEST].astype(np.int64)
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


class Reduced(NamedTuple):
    #: (dimension, dimension) float64: The longest reduced rows, shortest first: a basis, where
    #: there is a gap.
    basis: Array
    #: (dimension, rows) float64: Whole numbers: which rows make up each of them.
    combinations: Array
    #: Length of the shortest basis vector over that of the longest relation: far above 1 when
    #: relations and lattice are told apart.
    gap: float
    #: Noise of an entry of the rows, as the relations show it, which vanish for exact rows.
    noise: float


def reduce_generators(rows: Array, epsilon: float) -> Reduced:
    """Reduce the lattice that rows, (count, dimension), generate; they are more than dimensions.

    ``epsilon``: Length of a tag: above the rows' noise, below the inverse of the coefficients
    needed.
    """
    count, dimension = rows.shape
    scale = 2.0 ** np.ceil(np.log2(_UNITS / epsilon))
    tag = float(np.rint(scale * epsilon))
    short = reduce_whole(np.hstack([np.rint(rows * scale), tag * np.eye(count)]))
    combinations = np.rint(short[:, dimension:] / tag)
    vectors = combinations @ rows
    lengths = np.linalg.norm(vectors, axis=1)
    order = np.argsort(lengths, kind="stable")
    relations, longest = order[: count - dimension], order[count - dimension :]
    gap, noise = np.inf, 0.0
    if len(relations):
        weights = np.linalg.norm(combinations[relations], axis=1)
        noise = float(np.median(lengths[relations] / weights)) / np.sqrt(dimension)
        # Rounding in a relation of exact rows is no length.
        below = max(float(lengths[relations[-1]]), 1e-12 * float(lengths[longest[0]]))
        gap = float(lengths[longest[0]]) / max(below, float(np.finfo(float).tiny))
    return Reduced(vectors[longest], combinations[longest], gap, noise)


def reduce_basis(rows: Array) -> Array:
    """A reduced basis from independent rows, (count, dimension) float64, to `_DIGITS` digits."""
    largest = float(np.abs(rows).max())
    scale = 2.0 ** np.floor(np.log2(10.0**_DIGITS / max(largest, np.finfo(float).tiny)))
    whole = np.hstack([np.rint(rows * scale), np.eye(len(rows))])
    return np.asarray(reduce_whole(whole)[:, rows.shape[1] :] @ rows, dtype=float)


def reduce_whole(whole: Array) -> Array:
    """Independent rows of whole numbers, reduced."""
    numbers = [[int(entry) for entry in row] for row in whole.tolist()]
    reduced = fmpz_mat(numbers).lll(False, _DELTA, _ETA)
    return np.array([[int(entry) for entry in row] for row in reduced.tolist()], dtype=float)


def short_vectors(basis: Array, bound: float, nodes: int = 50_000) -> Array | None:
    """Vectors of squared length at most ``bound``, (found, dimension): one of each two opposites.

    Enumeration after Fincke and Pohst ("Improved methods for calculating vectors of short length in
    a lattice", 1985): depth first over the coordinates, the last one first, each within the
    interval that the bound leaves. None where looking at so many ``nodes`` did not suffice.

    ``basis``, (dimension, dimension) float64: Rows, best reduced.
    """
    size = len(basis)
    triangle = np.linalg.qr(basis.T, mode="r")
    diagonal = np.diag(triangle) ** 2
    ratios = triangle / np.diag(triangle)[:, None]
    found: list[Array] = []
    whole = np.zeros(size)
    # One frame a coordinate: the whole numbers still to try there, and the length left above it.
    left = np.zeros(size + 1)
    left[size] = bound
    pending: list[list[float]] = [[] for _ in range(size)]
    level = size - 1
    pending[level] = _interval(0.0, bound / diagonal[level])
    while level < size:
        if not pending[level]:
            whole[level] = 0.0
            level += 1
            continue
        nodes -= 1
        if nodes < 0:
            return None
        whole[level] = pending[level].pop()
        centre = -float(ratios[level, level + 1 :] @ whole[level + 1 :])
        left[level] = left[level + 1] - (whole[level] - centre) ** 2 * diagonal[level]
        if level:
            level -= 1
            centre = -float(ratios[level, level + 1 :] @ whole[level + 1 :])
            pending[level] = _interval(centre, left[level + 1] / diagonal[level])
        elif whole.any() and whole[np.flatnonzero(whole)[-1]] > 0:
            found.append(whole @ basis)
    return np.array(found).reshape(-1, size)


def _interval(centre: float, square: float) -> list[float]:
    reach = math.sqrt(max(square, 0.0))
    first, last = math.ceil(centre - reach), math.floor(centre + reach)
    return [float(number) for number in range(first, last + 1)]
