"""Vary one parameter: the same for every study that does.

A sweep measures the same numbers at several values of one setting, perhaps from several seeds, and
keeps all of them in one tidy table; medians and bands are read off it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Generic, TypeVar

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput
from fedpca_core.settings import Settings, Value
from fedpca_core.steps import Part, Run, Step, changed
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study

S = TypeVar("S", bound=Settings)

#: Series, then measure, then number: what is measured at one value from one seed.
Measured = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Band:
    """Median and spread over seeds along a sweep; NaN where nothing was measured.

    Attributes
    ----------
    x, middle, lower, upper : (values,) float64
        ``lower`` and ``upper`` span all seeds.
    """

    x: Array
    middle: Array
    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False)
class Swept:
    """What a sweep measured.

    Attributes
    ----------
    parameter : str
        The field that varied.
    table : pandas.DataFrame
        Columns value, seed, series, measure, result: one number a row.
    refusals : mapping of value to str
        Why nothing could be measured there.
    """

    parameter: str
    table: pd.DataFrame
    refusals: Mapping[Value, str]

    @property
    def series(self) -> list[str]:
        """Names of the series, in the order they came."""
        return list(dict.fromkeys(self.table["series"]))

    def of(self, measure: str) -> pd.DataFrame:
        """The rows of one measure, for `fedpca_core.study.panels.plot`."""
        return self.table[self.table["measure"] == measure]

    def band(self, series: str, measure: str) -> Band:
        """One series' measure over the values."""
        rows = self.of(measure)
        grouped = rows[rows["series"] == series].groupby("value", sort=True)["result"]
        spread = grouped.agg(["median", "min", "max"])
        return Band(
            spread.index.to_numpy(dtype=float),
            *(spread[name].to_numpy(dtype=float) for name in ("median", "min", "max")),
        )


class Sweep(Study[S, Swept], Generic[S]):
    """A study of one parameter; subclasses say which values and what to measure there.

    Class attributes
    ----------------
    along : tuple of str and values
        The field that varies and its values, unless the settings choose them.
    """

    along: ClassVar[tuple[str, Sequence[Value]]]

    def parameter(self, settings: S) -> str:
        """The field that varies."""
        return self.along[0]

    def values(self, settings: S) -> Sequence[Value]:
        """Its values, in the order they are computed."""
        return self.along[1]

    @abstractmethod
    def measure(self, settings: S, data: OwnData | None) -> Part[Measured]:
        """Measure at one value from one seed; yields progress of its own.

        Steps may carry what is measured so far at this value, to be shown at once.
        """

    def seeds(self, settings: S) -> Sequence[int]:
        """Seeds over which the band is taken; the settings' own by default."""
        seed: int = getattr(settings, "seed", 0)
        return (seed,)

    def at(self, settings: S, value: Value, seed: int) -> S:
        """The settings with the parameter at ``value``."""
        return replace(settings, **{self.parameter(settings): value, "seed": seed})

    def point(self, settings: S, value: Value, seed: int, data: OwnData | None) -> Part[Measured]:
        """What is done at one value from one seed: by default `measure`, with both set.

        For a sweep whose seeds are of its runs only, while the data keep the settings' own.
        """
        return self.measure(self.at(settings, value, seed), data)

    def run(self, settings: S, data: OwnData | None = None) -> Run[Swept]:
        name = self.parameter(settings)
        label = settings.parameters()[name].label
        points = [(v, s) for v in self.values(settings) for s in self.seeds(settings)]
        rows: list[dict[str, object]] = []
        refusals: dict[Value, str] = {}

        def swept(ahead: Sequence[Mapping[str, object]] = ()) -> Swept:
            return Swept(name, _table([*rows, *ahead]), dict(refusals))

        def measuring(position: int, value: Value, seed: int, text: str) -> Part[Measured]:
            def news(step: Step[Measured]) -> Step[Swept]:
                so_far = None if step.result is None else swept(listed(value, seed, step.result))
                return Step((position + step.fraction) / len(points), text, so_far)

            return changed(self.point(settings, value, seed, data), news)

        for position, (value, seed) in enumerate(points):
            text = f"{label} {settings.parameters()[name].text(value)}"
            yield Step(position / len(points), text, swept() if rows else None)
            try:
                measured = yield from measuring(position, value, seed, text)
            except InvalidInput as refusal:
                refusals[value] = str(refusal)
                continue
            rows += listed(value, seed, measured)
        if not rows and refusals:
            raise InvalidInput(next(iter(refusals.values())))
        return swept()

    def tables(self, result: Swept, settings: S) -> dict[str, pd.DataFrame]:
        return {"sweep": result.table.rename(columns={"value": result.parameter})}


def listed(value: Value, seed: int, measured: Measured) -> list[dict[str, object]]:
    """One row of the table for each number."""
    return [
        {"value": value, "seed": seed, "series": series, "measure": measure, "result": number}
        for series, numbers in measured.items()
        for measure, number in numbers.items()
    ]


def _table(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["value", "seed", "series", "measure", "result"])
    return frame.astype({"result": np.float64})
