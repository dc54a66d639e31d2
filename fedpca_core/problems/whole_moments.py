"""Second moments of records on a grid, in whole numbers: no rounding depends on another record.

The sum of floating-point products is rounded by what else is in it, so one record moves the last
digits of all entries. Here a clipped record is rounded to whole multiples of its clip norm over
2^20, by itself, and the products are summed without error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.problems.records import clip

#: Largest Euclidean norm of a record, in units of the grid.
LONGEST = 2**20
#: Rows whose products sum to less than 2^53, so that float64 holds them exactly.
_ROWS = 2**13
#: Rows whose products sum to less than 2^63.
_MOST_ROWS = 2**22


def unit(features: int, clip_norm: float) -> float:
    """The grid's step: room for rounding is left, so that no record is longer than `LONGEST`."""
    return clip_norm / (LONGEST - 1.0 - 0.5 * np.sqrt(features))


def on_grid(records: Array, clip_norm: float) -> Array:
    """Clipped records (rows) in whole units, (rows, features) float64."""
    step = unit(records.shape[1], clip_norm)
    return np.asarray(np.rint(clip(records.T, clip_norm).T / step))


@dataclass(frozen=True, eq=False)
class WholeMoments:
    """The sum of ``x x^T`` over a client's records in whole units."""

    #: (features, features) of whole numbers, int64 or Python's own.
    total: Any
    #: m_i.
    samples: int
    #: What one unit is; ``S_i = total unit^2 / samples``.
    unit: float

    def with_records(self, records: Array, clip_norm: float) -> WholeMoments:
        """With more records (rows)."""
        total, whole = self.total, on_grid(records, clip_norm)
        if self.samples + len(records) > _MOST_ROWS:
            total = total.astype(object)
        for begin in range(0, len(whole), _ROWS):
            part = whole[begin : begin + _ROWS]
            total = total + (part.T @ part).astype(np.int64)
        return WholeMoments(total, self.samples + len(records), self.unit)

    @classmethod
    def of_nobody(cls, features: int, clip_norm: float) -> WholeMoments:
        """Before the first record."""
        empty = np.zeros((features, features), dtype=np.int64)
        return cls(empty, 0, unit(features, clip_norm))
