"""What the known error of a matrix leaves open: how far off an entry may lie, and what else fits.

A factor ``B = X Q`` is known up to rounding and stated noise, so whole records X' explain it when
``X' - B R^T`` is no larger than that error, entry by entry, for a rotation R. Two explanations
differ by a rotation that is near a signed permutation P as soon as few whole combinations show it
roughly. Rows of X' that are short then have to be those of X P, because whole vectors that are less
than 1 apart are equal; these rows bind the rotation more tightly, and longer rows follow. Where
this reaches all rows, no other whole records explain the matrix.
"""

import numpy as np

from fedpca_core.arrays import Array, BoolArray
from fedpca_core.linalg.stiefel import polar

#: Farthest that an entry may lie off, in multiples of its expected error.
FARTHEST = 5.0
#: Subtracting a mean rounds by its size: records are below two million steps of the grid.
SUBTRACTED = 2e6 * float(np.finfo(float).eps)
#: Rounding of a product, relative to the length of a row.
_ROUNDING = 4.0 * float(np.finfo(float).eps)
#: Weight of the rotation itself in a refit.
_HELD = 1e-6


def refitted(whole: Array, rows: Array, turn: Array, error: Array) -> Array:
    """R refitted to rows of unequal sizes and errors: each counts by what is known of it.

    ``whole``, (features, size): What the rows turn into, less what was subtracted.
    ``rows``, (features, rank): B. ``error``, (features,): Expected error of an entry of each row.
    ``turn``, (size, rank): R so far, which holds what all rows leave open.
    """
    weights = _weights(rows, error)[:, None]
    for _ in range(2):
        turn = polar((whole * weights).T @ (rows * weights) + _HELD * turn)
    return turn


def farthest(rows: Array, error: Array) -> Array:
    """How far entries of B R^T may lie from whole numbers, R being fitted to them, (features,)."""
    weights, sizes = _weights(rows, error), np.linalg.norm(rows, axis=1)
    every = error + _ROUNDING * sizes
    values = np.linalg.svd(rows * weights[:, None], compute_uv=False)
    smallest = max(float(values[-1]), float(np.finfo(float).tiny))
    # The refit squares the rows, and rounds by the size of the longest.
    squared = _ROUNDING * (float(values[0]) / smallest) ** 2
    turned = float(np.linalg.norm(every * weights)) / smallest
    return FARTHEST * (every + sizes * (turned + squared))


def apart_by(distances: Array, rows: Array, error: Array) -> Array:
    """How far the rows of two explanations of B may lie apart, turned as they are, (features,).

    One explanation lies off B by its ``distances``, (features, size) float64; the other by no more
    than the known error of an entry, in each of as many entries.
    """
    known = error + _ROUNDING * np.linalg.norm(rows, axis=1)
    other = FARTHEST * known * np.sqrt(distances.shape[1])
    return np.asarray(np.linalg.norm(distances, axis=1) + other)


def is_exact(rows: Array, error: Array) -> bool:
    """Whether the moments of whole records, which are whole too, are known to less than a half.

    Then records that are nearly right do not explain them.
    """
    sizes = np.linalg.norm(rows, axis=1)
    known = FARTHEST * (error + _ROUNDING * sizes)
    return bool(2.0 * float(known.max(initial=0.0)) * float(sizes.max(initial=0.0)) < 0.5)


def _weights(rows: Array, error: Array) -> Array:
    known = error + _ROUNDING * np.linalg.norm(rows, axis=1)
    return np.asarray(known[known > 0].min(initial=1.0) / np.maximum(known, np.finfo(float).tiny))


def nothing_else_fits(rows: Array, off: Array, apart: float) -> bool:
    """Whether every explanation whose rotation is near is this one, up to order and signs.

    ``rows``, (features, rank): What explains B: whole records, less what was subtracted, times
        their lengths. ``off``, (features,): `apart_by` of the rows.
    ``apart``: Norm of the difference between the other rotation and a signed permutation, at most.
    """
    sizes = np.linalg.norm(rows, axis=1)
    while True:
        same: BoolArray = sizes * apart + off < 1.0
        if same.all():
            return True
        smallest = 0.0
        if int(same.sum()) >= rows.shape[1]:
            smallest = float(np.linalg.svd(rows[same], compute_uv=False)[-1])
        if smallest <= 0.0:
            return False
        tighter = float(np.linalg.norm(off[same])) / smallest
        if not tighter < 0.9 * apart:
            return False
        apart = tighter
