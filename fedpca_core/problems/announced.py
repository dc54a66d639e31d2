"""What everybody knows about the records without seeing any: their grid, mean and number.

Pixels, counts, codes and ages are whole numbers of a known step. A mean that was subtracted is
announced so that clients can subtract it, and the number of records behind it comes with it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from fedpca_core.arrays import Array

#: Denominator for a mean that is no fraction of whole numbers, such as a noisy one.
FINE = 2**20
#: Most decimals that count as a grid.
DIGITS = 6


@dataclass(frozen=True, eq=False)
class PublicFacts:
    """Public facts about the records, in the units of the blocks."""

    #: (features,) float64: Step of every feature.
    grid: Array
    #: (features,) float64: What was subtracted from every record; None for nothing.
    mean: Array | None
    #: Records behind the mean, which make it a fraction; `FINE` where it is none.
    records_total: int
    #: (features,) float64: Public deviations that every feature was divided by; None for nothing.
    divisor: Array | None = None
    #: (features, 2) float64: Least and largest value that a record can have before anything was
    #: subtracted; infinite where the schema sets no bound.
    bounds: Array | None = None
    #: Whether grid and bounds were read off the records in the place of a schema, so that no
    #: epsilon covers them: a private problem announces none.
    read_off: bool = False

    @classmethod
    def of_records(cls, records: Array, mean: Array | None) -> PublicFacts:
        """What the schema of these records, (records, features), would state.

        The mean is what is subtracted from them, which the secure sums make public.
        """
        # Codes are 0 or 1, and ages, counts and amounts are not negative. The largest amount is the
        # records' own business, so other columns have no upper bound.
        codes = ((records == 0) | (records == 1)).all(axis=0)
        least = np.where((records >= 0).all(axis=0), 0.0, -np.inf)
        bounds = np.stack([least, np.where(codes, 1.0, np.inf)], axis=1)
        return cls(decimal_steps(records), mean, len(records), bounds=bounds, read_off=True)

    def scaled(self, divisor: Array) -> PublicFacts:
        """The facts after every feature was divided by a public number."""
        return replace(
            self,
            grid=self.grid / divisor,
            mean=None if self.mean is None else self.mean / divisor,
            divisor=divisor,
            bounds=None if self.bounds is None else self.bounds / divisor[:, None],
        )


def decimal_steps(records: Array) -> Array:
    """The step of every column of (records, features), as its schema would state it, (features,).

    1 for whole numbers, 0.1 for one decimal and so on; the smallest step for all others.
    """
    steps = np.full(records.shape[1], 10.0**-DIGITS)
    for places in range(DIGITS, -1, -1):
        scaled = records * 10.0**places
        off = np.abs(scaled - np.rint(scaled)).max(axis=0)
        steps[off < 1e-6 + 1e-12 * np.abs(scaled).max(axis=0)] = 10.0**-places
    return steps


def area_step(side: int, resolution: int) -> float:
    """Step of pixels averaged over areas, in steps of the pixels themselves.

    Areas overlap pixels by whole multiples of ``gcd / resolution`` along each side, so weights are
    multiples of ``(gcd / side)^2``.
    """
    return float(Fraction(int(np.gcd(side, resolution)), side) ** 2)
