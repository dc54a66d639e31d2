"""What the known error of a matrix leaves open: how far off an entry may lie, and what else fits.

A factor ``B = X Q`` is known up to rounding and stated noise, so whole records X' explain it when
``X' - B R^T`` is no larger than that error, entry by entry, for a rotation R. Two explanations
differ by a rotation that is near a signed permutation P as soon as few whole combinations show it
roughly. Rows of X' that are short then have to be those of X P, because whole vectors that are less
than 1 apart are equal; these rows bind the rotation more tightly, and longer rows follow. Where
this reaches all rows, no other whole records explain the matrix.
"""

from __future__ import annotations

import numpy as np

from fedpca_core.arrays import Array, BoolArray

#: Farthest that an entry may lie off, in multiples of its expected error.
FARTHEST = 5.0
#: Subtracting a mean rounds by its size: records are below two million steps of the grid.
SUBTRACTED = 2e6 * float(np.finfo(float).eps)
#: Rounding of a product, relative to the length of a row.
_ROUNDING = 4.0 * float(np.finfo(float).eps)


def farthest(rows: Array, error: Array) -> Array:
    """How far the entries of B R^T may lie from the whole numbers behind them.

    Parameters
    ----------
    rows : (features, rank) float64
        B.
    error : (features,) float64
        Expected error of an entry of each row.

    Returns
    -------
    (features,) float64
        Also for the error of R, which was fitted to rows with this error.
    """
    smallest = float(np.linalg.svd(rows, compute_uv=False)[-1])
    turned = float(np.linalg.norm(error)) / max(smallest, float(np.finfo(float).tiny))
    return FARTHEST * (error + np.linalg.norm(rows, axis=1) * (turned + _ROUNDING))


def nothing_else_fits(rows: Array, off: Array, apart: float) -> bool:
    """Whether every explanation whose rotation is near is this one, up to order and signs.

    Parameters
    ----------
    rows : (features, rank) float64
        What explains B: whole records, less what was subtracted, times their lengths.
    off : (features,) float64
        Farthest that a row of B, turned back, lies from it.
    apart : float
        Norm of the difference between the other rotation and a signed permutation, at most.
    """
    sizes = np.linalg.norm(rows, axis=1)
    while True:
        same: BoolArray = sizes * apart + 2.0 * off < 1.0
        if same.all():
            return True
        smallest = 0.0
        if int(same.sum()) >= rows.shape[1]:
            smallest = float(np.linalg.svd(rows[same], compute_uv=False)[-1])
        if smallest <= 0.0:
            return False
        tighter = 2.0 * float(np.linalg.norm(off[same])) / smallest
        if not tighter < 0.9 * apart:
            return False
        apart = tighter
