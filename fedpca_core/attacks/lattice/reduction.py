"""Short vectors of lattices: reduced bases from any generators, and lists of all short vectors.

More vectors than dimensions do not form a basis. Each row is therefore extended by its own small
tag (epsilon in a coordinate of its own) and the extended rows, which are independent, are reduced.
Combinations that vanish in the first coordinates leave their tags alone and come out short: they
are the relations between the rows. The others are a reduced basis of the lattice.
"""

import math
from typing import NamedTuple

import numpy as np
from flint import fmpz_mat

from fedpca_core.arrays import Array

#: A tag is so many units of the whole numbers that are reduced, at least.
_UNITS = 16.0
#: Of the LLL condition: two thirds of the time of the usual 0.99 and 0.51, and as good here.
_DELTA, _ETA = 0.9, 0.7
#: Decimal digits to which a basis is kept.
_DIGITS = 12


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


def work(rows: int, dimension: int) -> float:
    """Work of one reduction, in units of which the library does about 10^9 a second (measured)."""
    return float(rows) * float(dimension) ** 4


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
