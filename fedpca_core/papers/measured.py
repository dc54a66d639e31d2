"""Our figure for an entry, read off the stored cells of its experiment: one number a seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.papers.entries import Entry

#: How the values of all parts, in rising order, become one number.
OVER: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: sum(values) / len(values),
    "largest": max,
    "smallest": min,
    "range": lambda values: max(values) - min(values),
    "largest over smallest": lambda values: max(values) / min(values),
    "first over least later": lambda values: values[0] / min(values[1:]),
    "last over first": lambda values: values[-1] / values[0],
    "least step down": lambda values: min(one / later for one, later in pairwise(values)),
    "largest step down": lambda values: max(one / later for one, later in pairwise(values)),
}
#: What is smaller counts as 0, by which nothing is divided.
ZERO = 1e-9
#: Share of further runs that the interval covers.
COVERED = 0.95


@dataclass(frozen=True)
class Cells:
    """Stored numbers of one experiment at one size."""

    #: (seeds, parts) float64 by (series, measure), NaN where there is none.
    numbers: Mapping[tuple[str, str], Array]
    #: seeds, parts: In rising order.
    seeds: tuple[int, ...]
    parts: tuple[str, ...]
    #: Whether nothing is drawn, so that one seed is all there is.
    exact: bool = False

    @classmethod
    def of(cls, table: pd.DataFrame, exact: bool = False) -> Cells:
        """From a tidy table of cells; points of curves are left out."""
        kept = table[table["x"].isna()].astype({"part": str})
        seeds = tuple(sorted(kept["seed"].unique().tolist()))
        parts = tuple(sorted(kept["part"].unique(), key=_rising))
        row, column = (
            pd.Index(seeds).get_indexer(kept["seed"]),
            pd.Index(parts).get_indexer(kept["part"]),
        )
        numbers: dict[Any, Array] = {}
        for key, at in kept.groupby(["series", "measure"]).indices.items():
            numbers[key] = np.full((len(seeds), len(parts)), np.nan)
            numbers[key][row[at], column[at]] = kept["result"].to_numpy()[at]
        return cls(numbers, seeds, parts, exact)

    def take(self, series: str, measure: str, part: str) -> Array:
        """Numbers (seeds, parts) of a series, of one part where one is named."""
        chosen = [part in ("", name) for name in self.parts]
        nothing = np.full((len(self.seeds), len(self.parts)), np.nan)
        return self.numbers.get((series, measure), nothing)[:, chosen]


def measured(entry: Entry, cells: Cells) -> Mapping[int, float]:
    """One number by seed; none for a seed of which a part is missing.

    Raises InvalidInput: the entry takes parts together in a way that there is not.
    """
    require(
        entry.over in ("", *OVER),
        f"Entry “{entry.id}” takes parts together by “{entry.over}”; choose one of "
        f"{', '.join(OVER)}.",
    )
    names = entry.chain or entry.each or (entry.series,)
    ours = np.array([cells.take(name, entry.measure, entry.part) for name in names])
    if entry.chain:
        ours = ours[:-1] / ours[1:]
    if entry.against:
        measure, part = entry.against_measure or entry.measure, entry.against_part or entry.part
        rivals = np.array([cells.take(name, measure, part) for name in entry.against])
        least = rivals.min(axis=0)
        ratio = entry.by == "ratio"
        ours = ours / np.where(least > ZERO, least, np.nan) if ratio else ours - rivals.max(axis=0)
    unfavourable = min if entry.chain or {"at_least", "above"} & entry.holds.keys() else max
    found = {}
    for seed, every in zip(cells.seeds, ours.swapaxes(0, 1), strict=True):
        values = [_together(entry.over, parts) for parts in every]
        if not np.isnan(values).any():
            found[seed] = unfavourable(values)
    return found


def _together(over: str, parts: Array) -> float:
    """The values of all parts as one; NaN where some are missing, or divided by nothing."""
    there = parts[~np.isnan(parts)].tolist()
    if not over:
        return sum(there) / len(there) if there else math.nan
    divides = "over" in over or "step" in over
    least = 2 if "step" in over or "later" in over else 1  # as while a live run is at its first
    whole = len(there) == len(parts) >= least and (not divides or min(there) > ZERO)
    return OVER[over](there) if whole else math.nan


def _rising(part: str) -> tuple[float, str]:
    try:
        return float(part), part
    except ValueError:
        return math.inf, part


def interval(ours: Array, ratios: bool = True, most: float = math.inf) -> tuple[float, float]:
    """Where one more run of ours is to be expected: a prediction interval, from three runs on.

    Of logarithms where all are positive, unless they are no ``ratios``; of shares, which are
    ``most`` 1 or 100, within what there is. With more runs it does not widen.
    """
    count = len(ours)
    if count < 3 or np.ptp(ours) == 0:
        return float(ours.min()), float(ours.max())
    logs = ratios and bool((ours > 0).all())
    values = np.log(ours) if logs else ours
    quantile = float(stats.t.ppf((1 + COVERED) / 2, count - 1))
    middle = float(values.mean())
    half = quantile * float(values.std(ddof=1)) * math.sqrt(1 + 1 / count)
    low, high = middle - half, middle + half
    low, high = (math.exp(low), math.exp(high)) if logs else (low, high)
    shares = most < math.inf and bool((ours >= 0).all())
    return max(low, 0.0) if shares else low, min(high, most)
