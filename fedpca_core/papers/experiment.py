"""An experiment of a paper: cells that are run one by one, each giving a few numbers.

A cell is one part of the experiment (a value, a method) from one seed. Cells know nothing of each
other, so a run may stop after any of them and go on later.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd

from fedpca_core.settings import Settings
from fedpca_core.steps import Part

Size = Literal["paper", "live"]

#: Columns of the tidy table of cells; ``x`` is NaN for a number that is no point of a curve.
COLUMNS = ("experiment", "size", "part", "seed", "series", "measure", "x", "result")


@dataclass(frozen=True)
class Number:
    """One measured number: a point of a curve where ``x`` is given."""

    series: str
    measure: str
    result: float
    x: float = float("nan")

    @classmethod
    def each(cls, series: str, results: Mapping[str, float]) -> list[Number]:
        return [cls(series, measure, result) for measure, result in results.items()]

    @classmethod
    def curve(cls, series: str, measure: str, values: Sequence[float], most: int) -> list[Number]:
        """Those of a curve over rounds from 0, evenly spaced where there are more than ``most``."""
        kept = np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))
        return [cls(series, measure, float(values[i]), float(i)) for i in kept]


@dataclass(frozen=True)
class Cell:
    """The smallest piece of an experiment that is run."""

    #: The value that varies, or empty.
    part: str
    #: Method or curve; empty where one cell measures all of them.
    series: str
    seed: int
    #: All that the numbers depend on, as JSON has it: a cell kept from an earlier run counts only
    #: where this is the same.
    configuration: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of its file."""
        words = [word for word in (self.part, self.series, f"seed-{self.seed}") if word]
        return "".join(c if c.isalnum() or c in ".-" else "_" for c in "--".join(words))

    @property
    def described(self) -> dict[str, Any]:
        """Its identity as JSON has it."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found


#: Part and series of cells, and their configuration.
Piece = tuple[str, str, Mapping[str, Any]]


class Experiment(ABC):
    """A table or figure of a paper.

    ``key``, ``title``: ``key`` is what the command line calls it.
    ``source``: Key of the paper.
    ``measure``, ``varied``: The measure of its chart, and what it varies; no chart of numbers
        without a measure.
    ``x_title``, ``y_title``: Axes of its curves.
    ``sizes``: Those that there are.
    ``exact``: Whether nothing is drawn, so that one seed is all there is.
    ``seed_by_seed``: Whether all pieces are run from one seed before the next, as where it draws
        the data; else each piece is run from every seed before the next.
    """

    key: str
    title: str
    source: str
    x_title: ClassVar[str] = ""
    y_title: ClassVar[str] = ""
    measure: str = ""
    varied: str = ""
    sizes: tuple[Size, ...] = ("live", "paper")
    exact: ClassVar[bool] = False
    seed_by_seed: ClassVar[bool] = False

    @abstractmethod
    def pieces(self, size: Size) -> Iterable[Piece]:
        """What is run from every seed, the most telling first.

        Raises InvalidInput: there is no such size.
        """

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        pieces, drawn = list(self.pieces(size)), range(1 if self.exact else seeds)
        if self.seed_by_seed:
            return [Cell(part, series, seed, on) for seed in drawn for part, series, on in pieces]
        return [Cell(part, series, seed, on) for part, series, on in pieces for seed in drawn]

    @abstractmethod
    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        """Run one cell; yields progress."""

    @abstractmethod
    def described(self, size: Size) -> str:
        """The size in a sentence: features, records, clients, rounds."""

    def needs(self, size: Size) -> tuple[str, ...]:
        """Keys of the public data sets that it reads, whole and not as samples."""
        return ()

    def live(self) -> Settings | None:
        """Settings that open it on its own page; None where it has none."""
        return None


def tidy(experiment: Experiment, size: Size, cell: Cell, numbers: Sequence[Number]) -> pd.DataFrame:
    """A cell's numbers as rows of the table of cells."""
    rows = [
        (experiment.key, size, cell.part, cell.seed, one.series, one.measure, one.x, one.result)
        for one in numbers
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS)).astype({"x": float, "result": float})
