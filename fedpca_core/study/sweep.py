"""Vary one parameter: the same for every study that does.

A sweep measures the same numbers at several values of one setting, perhaps from several seeds, and
keeps all of them in one tidy table; medians and bands are read off it.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.settings import Settings, Value
from fedpca_core.steps import Part, Run, Step, changed
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import InPieces

S = TypeVar("S", bound=Settings)

#: A value of the parameter, and a seed.
Point = tuple[Value, int]
#: Series, then measure, then number: what is measured at one value from one seed.
Measured = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Band:
    """Median and spread over seeds along a sweep; NaN where nothing was measured."""

    #: x, middle, lower, upper: (values,) float64: ``lower`` and ``upper`` span all seeds.
    x: Array
    middle: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False)
class Swept:
    #: The field that varied.
    parameter: str
    #: Columns value, seed, series, measure, result: one number a row.
    table: pd.DataFrame
    #: Why nothing could be measured there.
    refusals: Mapping[Value, str]

    @property
    def series(self) -> list[str]:
        return list(dict.fromkeys(self.table["series"]))

    def of(self, measure: str) -> pd.DataFrame:
        """The rows of one measure, for `fedpca_core.study.panels.plot`."""
        return self.table[self.table["measure"] == measure]

    def band(self, series: str, measure: str) -> Band:
        rows = self.of(measure)
        grouped = rows[rows["series"] == series].groupby("value", sort=True)["result"]
        spread = grouped.agg(["median", "min", "max"])
        return Band(spread.index.to_numpy(dtype=float), *spread.to_numpy(dtype=float).T)


class Sweep(InPieces[S, Swept], Generic[S]):
    """A study of one parameter; subclasses say which values and what to measure there."""

    #: The field that varies and its values, ...
    along: ClassVar[tuple[str, Sequence[Value]]]
    #: ... or all of which ``settings.sweep`` chooses one.
    axes: ClassVar[Mapping[str, Sequence[Value]]] = {}

    def parameter(self, settings: S) -> str:
        chosen: Any = settings
        return chosen.sweep if self.axes else self.along[0]

    def values(self, settings: S) -> Sequence[Value]:
        return self.axes[self.parameter(settings)] if self.axes else self.along[1]

    def seeds(self, settings: S) -> Sequence[int]:
        """Seeds over which the band is taken; the settings' own by default."""
        return (getattr(settings, "seed", 0),)

    def at(self, settings: S, value: Value, seed: int) -> S:
        """The settings with the parameter at ``value``, and ``seed``.

        Where the seeds are of the runs only, a sweep leaves the settings' own.
        """
        return replace(settings, **{self.parameter(settings): value, "seed": seed})

    @abstractmethod
    def measure(self, settings: S, seed: int, data: OwnData | None) -> Part[Measured]:
        """Measure with the settings `at` one value, from one seed; yields progress of its own.

        Steps may carry what is measured so far, to be shown at once.
        """

    def pieces(self, settings: S) -> Sequence[Point]:
        return [(value, seed) for value in self.values(settings) for seed in self.seeds(settings)]

    def run_piece(self, settings: S, which: Point, data: OwnData | None) -> Run[Measured | str]:
        """What is measured at one value from one seed, or why it cannot be."""
        value, seed = which
        described = settings.parameters()[self.parameter(settings)]
        text = f"{described.label} {described.text(value)}"
        yield Step(0.0, text)
        try:
            work = self.measure(self.at(settings, value, seed), seed, data)
            return (yield from changed(work, lambda step: replace(step, text=text)))
        except InvalidInput as refusal:
            return str(refusal)

    def gathered(self, settings: S, found: Sequence[Measured | str]) -> Swept | None:
        points = self.pieces(settings)
        rows: list[dict[str, object]] = []
        refusals: dict[Value, str] = {}
        for (value, seed), measured in zip(points, found, strict=False):
            if isinstance(measured, str):
                refusals[value] = measured
            else:
                at = {"value": value, "seed": seed}
                rows += [
                    {**at, "series": series, "measure": measure, "result": number}
                    for series, numbers in measured.items()
                    for measure, number in numbers.items()
                ]
        if refusals and not rows:
            require(len(found) < len(points), next(iter(refusals.values())))
            return None
        table = pd.DataFrame(rows, columns=["value", "seed", "series", "measure", "result"])
        return Swept(self.parameter(settings), table.astype({"result": np.float64}), refusals)

    def said(self, done: int, pieces: int, doing: str) -> str:
        return doing

    def tables(self, result: Swept, settings: S) -> dict[str, pd.DataFrame]:
        return {"sweep": result.table.rename(columns={"value": result.parameter})}
