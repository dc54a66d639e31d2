"""Statements that a few lines of arithmetic settle, on data drawn anew for every seed."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.papers.experiment import Cell, Experiment, Number, Size
from fedpca_core.steps import Part, Step
from fedpca_core.streams import Streams

#: A check draws what it needs and returns its largest value, which an entry holds to a limit: the
#: ratio of an inequality's sides, or how far both sides of an identity are apart.
Check = Callable[[np.random.Generator], float]
#: Random cases over which a check takes its largest value.
DRAWS = 30


def worst(draws: int = DRAWS) -> Callable[[Check], Check]:
    """Take the largest value of a check over so many draws."""

    def repeated(check: Check) -> Check:
        return lambda generator: max(check(generator) for _ in range(draws))

    return repeated


def frame(generator: np.random.Generator, rows: int, columns: int) -> Array:
    """A random orthonormal frame."""
    return np.linalg.qr(generator.standard_normal((rows, columns)))[0]


def square(of: Array) -> float:
    return float((of**2).sum())


class Checks(Experiment):
    """The checks of a paper's statements, each a cell of its own."""

    sizes = ("live",)
    apart: ClassVar[bool] = True

    def __init__(self, source: str, checks: Mapping[str, Check], drawn: str) -> None:
        self.key, self.title, self.source = f"{source}-checks", "Statements, by arithmetic", source
        self.checks, self.drawn = checks, drawn

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        return [
            Cell("", name, seed, {"drawn": self.drawn, "draws": DRAWS})
            for name in self.checks
            for seed in range(seeds)
        ]

    def described(self, size: Size) -> str:
        return f"{self.drawn}; no size is the paper's"

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, cell.name)
        value = self.checks[cell.series](Streams(cell.seed).generator("data"))
        return [Number(cell.series, "value", float(value))]
