"""Our figure for an entry, read off the stored cells of its experiment: one number a seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy import stats

from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.papers.entries import Entry

#: Numbers by (seed, part).
Numbers = Mapping[tuple[int, str], float]

#: How the values of all parts, in rising order, become one number.
OVER: Mapping[str, Callable[[Sequence[float]], float]] = {
    "mean": lambda values: sum(values) / len(values),
    "largest": max,
    "smallest": min,
    "range": lambda values: max(values) - min(values),
    "largest over smallest": lambda values: max(values) / min(values),
    "first over least later": lambda values: values[0] / min(values[1:]),
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

    #: By (series, measure), then by (seed, part).
    numbers: Mapping[tuple[str, str], Numbers]
    #: In rising order.
    parts: tuple[str, ...]
    #: Whether nothing is drawn, so that one seed is all there is.
    exact: bool = False

    @classmethod
    def of(cls, table: pd.DataFrame, exact: bool = False) -> Cells:
        """From a tidy table of cells; points of curves are left out."""
        numbers: dict[tuple[str, str], dict[tuple[int, str], float]] = {}
        kept = table[table["x"].isna()]
        columns = (kept[name] for name in ("series", "measure", "seed", "part", "result"))
        for series, measure, seed, part, result in zip(*columns, strict=True):
            if not math.isnan(result):
                numbers.setdefault((series, measure), {})[int(seed), str(part)] = float(result)
        return cls(numbers, tuple(sorted(kept["part"].astype(str).unique(), key=_rising)), exact)

    def take(self, series: str, measure: str, part: str) -> Numbers:
        """Numbers of a series, at one part where one is named."""
        found = self.numbers.get((series, measure), {})
        return {at: value for at, value in found.items() if part in ("", at[1])}


def measured(entry: Entry, cells: Cells) -> Mapping[int, float]:
    """One number by seed; none for a seed of which a part is missing.

    Raises InvalidInput: the entry takes parts together in a way that there is not.
    """
    require(
        entry.over in ("", *OVER),
        f"Entry “{entry.id}” takes parts together by “{entry.over}”; choose one of "
        f"{', '.join(OVER)}.",
    )
    if entry.chain:
        links = [cells.take(name, entry.measure, entry.part) for name in entry.chain]
        return {
            at[0]: min(one[at] / later[at] for one, later in pairwise(links))
            for at in _common(links)
        }
    found = [_ours(entry, cells, name) for name in (entry.each or (entry.series,))]
    worst = min if {"at_least", "above"} & entry.holds.keys() else max
    return {seed: worst(one[seed] for one in found) for seed in _common(found)}


def _ours(entry: Entry, cells: Cells, series: str) -> Mapping[int, float]:
    top = cells.take(series, entry.measure, entry.part)
    if entry.against:
        measure, part = entry.against_measure or entry.measure, entry.against_part or entry.part
        rivals: Sequence[Numbers] = [cells.take(name, measure, part) for name in entry.against]
        if entry.against_part:  # another than ours: what is compared has the seed alone
            top, *rivals = (
                {(seed, ""): value for (seed, _), value in one.items()} for one in (top, *rivals)
            )
        compared = {}
        for at in _common([top, *rivals]):
            others = [one[at] for one in rivals]
            if entry.by == "difference":
                compared[at] = top[at] - max(others)
            elif min(others) > ZERO:
                compared[at] = top[at] / min(others)
        top = compared
    by_seed: dict[int, dict[str, float]] = {}
    for (seed, part), value in top.items():
        by_seed.setdefault(seed, {})[part] = value
    if not entry.over:
        return {seed: sum(values.values()) / len(values) for seed, values in by_seed.items()}
    return {
        seed: OVER[entry.over]([values[part] for part in cells.parts])
        for seed, values in by_seed.items()
        if set(cells.parts) <= values.keys()
        and ("over" not in entry.over or min(values.values()) > ZERO)
    }


def _common(tables: Sequence[Mapping]) -> list:  # type: ignore[type-arg]
    """Keys that all have, in order."""
    return sorted(set.intersection(*(set(one) for one in tables)))


def _rising(part: str) -> tuple[float, str]:
    try:
        return float(part), part
    except ValueError:
        return math.inf, part


def interval(ours: Array, ratios: bool = True, shares: bool = False) -> tuple[float, float]:
    """Where one more run of ours is to be expected: a prediction interval, from three runs on.

    Of logarithms where all are positive, unless they are no ``ratios`` but differences; of
    ``shares`` in per cent not beyond 100. With more runs it settles and does not widen.
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
    return low, min(high, 100.0 if shares else high)
