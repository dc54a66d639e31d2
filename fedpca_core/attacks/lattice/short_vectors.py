"""All short vectors of a lattice of moderate dimension, counted work included.

Enumeration after Fincke and Pohst ("Improved methods for calculating vectors of short length in a
lattice", 1985): depth first over the coordinates, the last one first, each within the interval
that the bound leaves.
"""

import math

import numpy as np

from fedpca_core.arrays import Array


def short_vectors(basis: Array, bound: float, nodes: int = 50_000) -> Array | None:
    """Vectors of squared length at most ``bound``, one of each pair of opposites.

    ``basis``, (dimension, dimension) float64: Rows, best reduced.
    ``nodes``: Most branches to look at.

    Returns (found, dimension) float64 or None: None where the branches did not suffice.
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
