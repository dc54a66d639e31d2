"""Records as pictures: the private ones, what a server holds of them, and what it received."""

import math

import numpy as np
from scipy.optimize import linear_sum_assignment

from fedpca_core.arrays import AnyArray, Array, BoolArray
from fedpca_core.attacks.lattice.records import Records
from fedpca_core.attacks.scores import above_least
from fedpca_core.problems import Problem
from fedpca_core.study.deployed import subtracted

#: Records that are shown side by side.
SHOWN = 60


def shape_of(problem: Problem) -> tuple[int, int]:
    """Of the pictures; features that are no pixels fill the most nearly square page."""
    if problem.image_shape is not None:
        return problem.image_shape
    n = problem.features
    rows = next(r for r in range(math.isqrt(n), 0, -1) if n % r == 0)
    return rows, n // rows


def tiles(records: Array, problem: Problem) -> AnyArray:
    """Records as they stand in the blocks as pictures in [0, 1], the mean added back.

    Those that are no images are grey at 0, and black or white at the largest value of any client.
    """
    low, high = 0.0, 1.0
    if problem.image_shape is None:
        assert problem.blocks is not None
        high = max(float(np.abs(block).max(initial=0.0)) for block in problem.blocks)
        low = -high
    values = (records + subtracted(problem)[:, None] - low) / (high - low)
    return np.clip(values.T.reshape(-1, *shape_of(problem)), 0.0, 1.0)


def eigen_tiles(factor: Array, shown: int, shape: tuple[int, int]) -> AnyArray:
    """Directions as pictures around grey, the largest first; grey where there is none."""
    if factor.shape[1]:
        factor, sizes = _directions(factor)
        shown_of_it = int((sizes > 1e-9 * sizes[0]).sum()) if sizes[0] > 0 else 0
        factor = factor[:, : min(shown, shown_of_it)]
    return padded(column_tiles(factor, shape), shown)


def _directions(factor: Array) -> tuple[Array, Array]:
    """Left singular vectors and singular values, the largest first.

    The columns themselves where they are at right angles already, as eigenvectors are: a picture
    asks after every message, and that decomposition would take longer than the attack.
    """
    products = factor.T @ factor
    sizes = np.sqrt(np.diag(products))
    off = np.abs(products - np.diag(sizes**2)).max(initial=0.0)
    if off > 1e-12 * sizes.max() ** 2 or not (np.diff(sizes) <= 0).all():
        left, sizes, _ = np.linalg.svd(factor, full_matrices=False)
        return left, sizes
    return factor / np.where(sizes > 0, sizes, 1.0), sizes


def column_tiles(columns: Array, shape: tuple[int, int]) -> AnyArray:
    """Columns as pictures around grey, each with its largest value at black or white."""
    peaks = np.abs(columns).max(axis=0, initial=0.0)
    return 0.5 + 0.5 * (columns / np.where(peaks > 0, peaks, 1.0)).T.reshape(-1, *shape)


def padded(pictures: AnyArray, count: int) -> AnyArray:
    """At least so many pictures: grey where there are fewer."""
    few = max(0, count - len(pictures))
    return np.pad(pictures, ((0, few), (0, 0), (0, 0)), constant_values=0.5)


def beside(taken: Records, private: Array, truth: Problem) -> tuple[Array | None, BoolArray]:
    """Certified records in the order of the private ones, and which of their values are these.

    Both (features, records); with the mean, or above the smallest value of each feature where only
    differences are known. None where nothing is certified (simulation only).
    """
    assert truth.announced is not None
    if taken.whole is None:
        return None, np.zeros(private.shape, dtype=bool)
    grid = truth.announced.grid[:, None]
    values: Array = np.asarray(taken.whole * (grid if taken.step is None else taken.step))
    own = above_least(private) if taken.differences else private + subtracted(truth)[:, None]
    orders = [in_order_of(values, own)]
    if taken.differences:  # known up to their common sign
        orders.append(in_order_of(values.max(axis=1, keepdims=True) - values, own))
    ordered = min(orders, key=lambda one: float(np.linalg.norm(one - own)))
    # The same point of the grid; pixels kept in single precision are off by 1e-4 of it.
    return ordered, np.abs(ordered - own) < 1e-3 * grid


def in_order_of(found: Array, private: Array) -> Array:
    """Recovered records, (features, records), each put where the true one stands.

    Their order is lost; this is for the eye (simulation only).
    """
    cost = ((found[:, :, None] - private[:, None, :]) ** 2).sum(axis=0)
    rows, columns = linear_sum_assignment(cost.T)
    return np.asarray(found[:, columns[np.argsort(rows)]])
