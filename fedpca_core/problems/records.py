"""What one record can change: its norm is bounded, and no rounding depends on another record.

Blocks are features x samples, so records are columns here (rows in FedPower). The sum of
floating-point products is rounded by what else is in it, so one record moves the last digits of
all entries; in `WholeMoments` a clipped record is rounded to whole multiples of its clip norm over
2^20, by itself, and the products are summed without error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedpca_core.arrays import Array
from fedpca_core.errors import require, require_choice, require_positive

#: Rounding in the norm of a clipped record, relative to it.
NORM_ROUNDING = 1e-9
TREATMENTS = ("normalised", "clipped", "raw")
#: Largest Euclidean norm of a record, in units of the grid.
LONGEST = 2**20
#: Rows whose products sum to less than 2^53, so that float64 holds them exactly.
_ROWS = 2**13
#: Rows whose products sum to less than 2^63.
_MOST_ROWS = 2**22


def norms(block: Array) -> Array:
    """Euclidean norm of every record (column), (samples,)."""
    return np.asarray(np.linalg.norm(block, axis=0), dtype=float)


def normalise(block: Array, norm: float = 1.0) -> Array:
    """Scale every record to the same norm; a zero record stays zero."""
    check_clip_norm(norm)
    length = norms(block)
    return block * (norm / np.where(length > 0, length, norm))


def clip(block: Array, norm: float = 1.0) -> Array:
    """Scale the records longer than ``norm`` down to it; shorter ones are left alone."""
    check_clip_norm(norm)
    return block * (norm / np.maximum(norms(block), norm))


def treat(block: Array, treatment: str, norm: float = 1.0) -> Array:
    """Normalise, clip, or leave the records as they are ("raw": no guarantee can follow)."""
    require_choice("The treatment of records", treatment, TREATMENTS)
    if treatment == "raw":
        return block
    return normalise(block, norm) if treatment == "normalised" else clip(block, norm)


def check_clip_norm(clip_norm: float) -> None:
    """Refuse a clip norm that bounds nothing, or whose square is no number."""
    require_positive("The clip norm", clip_norm, 1)
    require(
        1e-100 <= clip_norm <= 1e100,
        f"The clip norm must be between 1e-100 and 1e+100, not {clip_norm:g}; 1 is customary.",
    )


def second_moment_sensitivity(
    samples: ArrayLike, clip_norm: float, changed: ArrayLike = 1
) -> Array:
    """Largest change of S_i, in Frobenius norm, when some of its records are replaced.

    ``sqrt(2) g C^2/m_i`` with m_i ``samples``, C the norm at which records are clipped and g of
    them ``changed``: for one, ``w w^T - v v^T`` has rank 2 and eigenvalues
    ``+-C^2 sqrt(1 - cos^2)``, and g may all change in the same way. For all it is ``sqrt(2) C^2``.
    """
    check_clip_norm(clip_norm)
    share = np.asarray(changed, dtype=float) / np.asarray(samples, dtype=float)
    return np.asarray(np.sqrt(2.0) * clip_norm**2 * share, dtype=float)


def unit(features: int, clip_norm: float) -> float:
    """The grid's step: room for rounding is left, so that no record is longer than `LONGEST`."""
    return clip_norm / (LONGEST - 1.0 - 0.5 * np.sqrt(features))


def on_grid(records: Array, clip_norm: float) -> Array:
    """Clipped records (rows) in whole units, (rows, features) float64."""
    return np.asarray(np.rint(clip(records.T, clip_norm).T / unit(records.shape[1], clip_norm)))


@dataclass(frozen=True, eq=False)
class WholeMoments:
    """The sum of ``x x^T`` over a client's records in whole units."""

    #: (features, features) of whole numbers, int64 or Python's own.
    total: Any
    #: m_i.
    samples: int
    #: What one unit is; ``S_i = total unit^2 / samples``.
    unit: float


def whole_moments(batches: Iterable[Array], clip_norm: float) -> WholeMoments:
    """Of records (rows) in batches of equal width, at least one."""
    total: Any = 0
    samples = 0
    for records in batches:
        samples, whole = samples + len(records), on_grid(records, clip_norm)
        if samples > _MOST_ROWS:
            total = np.asarray(total, dtype=object)
        for begin in range(0, len(whole), _ROWS):
            part = whole[begin : begin + _ROWS]
            total = total + (part.T @ part).astype(np.int64)
    return WholeMoments(total, samples, unit(len(total), clip_norm))
