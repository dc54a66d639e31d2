"""A row of the Papers page: a claim, what the paper prints, what ours is, and what counts as equal.

The verdict is worked out from numbers by `judge`; nobody writes it down.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.papers.quoted import Quoted
from fedpca_core.papers.sources import source

Word = Literal[
    "reproduced",
    "with a correction",
    "not reproduced",
    "values unreadable",
    "out of scope",
    "not run yet",
]
#: The verdicts, in the order in which the page offers them as a filter.
WORDS: tuple[Word, ...] = get_args(Word)

#: Why a row is not reproduced, in the order in which the page counts them: a short name, and what
#: it says.
KINDS: Mapping[str, str] = {
    "setting not given": "The paper does not name a setting that decides the number; ours is one "
    "reading.",
    "false as printed": "A counterexample, arithmetic or a run shows that it cannot hold as "
    "printed.",
    "differs as described": "Run as the paper describes it, it comes out otherwise here.",
    "fewer records": "Ours are fewer records than the paper's, and the method depends on them.",
    "our own check": "The paper does not claim it; it is looked at beside what it claims.",
}

#: One number a seed, from the cells of an experiment (`fedpca_core.papers.experiment`).
Ours = Callable[[pd.DataFrame], "pd.Series[float]"]


@dataclass(frozen=True)
class Agreement:
    """What counts as agreement.

    Attributes
    ----------
    sentence : str
        In words, for the page.
    holds : callable
        Published number (NaN where none is printed) and ours, one a seed; whether they agree.
    """

    sentence: str
    holds: Callable[[float, Array], bool]


def within_factor(factor: float) -> Agreement:
    """The published number lies in the range of ours, widened by a factor on both sides."""
    return Agreement(
        f"the published number lies within what our seeds span, widened {factor:g}-fold",
        lambda published, ours: bool(ours.min() / factor <= published <= ours.max() * factor),
    )


def within(distance: float) -> Agreement:
    """The published number is at most this far from the median of ours."""
    return Agreement(
        f"the published number is within {distance:g} of our median",
        lambda published, ours: bool(abs(float(np.median(ours)) - published) <= distance),
    )


def at_least(limit: float) -> Agreement:
    """Every seed of ours reaches a limit: for a claim in words."""
    return Agreement(
        f"at least {limit:g} from every seed", lambda published, ours: bool(ours.min() >= limit)
    )


def above(limit: float) -> Agreement:
    """Every seed of ours is beyond a limit, at which two are level: a tie is no lead."""
    return Agreement(
        f"more than {limit:g} from every seed", lambda published, ours: bool(ours.min() > limit)
    )


def usually_at_least(limit: float) -> Agreement:
    """The median of ours reaches a limit: for a claim about who leads, or about shapes."""
    return Agreement(
        f"at least {limit:g} in the median over the seeds",
        lambda published, ours: bool(np.median(ours) >= limit),
    )


def at_most(limit: float) -> Agreement:
    """Every seed of ours stays below a limit: for a claim in words."""
    return Agreement(
        f"at most {limit:g} from every seed", lambda published, ours: bool(ours.max() <= limit)
    )


@dataclass(frozen=True)
class Row:
    """One checkable item of a paper.

    Attributes
    ----------
    name : str
        Unique among all rows.
    source : str
        Key of the paper in `fedpca_core.papers.sources`.
    place : str
        Table, figure, theorem or section.
    claim : str
        What it says, in a sentence of ours.
    quoted : Quoted or None
        The printed number; None for a claim in words or a figure without readable values.
    experiment : str
        Key of the experiment whose cells give ours; empty where nothing is run.
    across : tuple of str
        Keys of several experiments whose cells are read together, in place of ``experiment``.
    ours : callable or None
        One number a seed from those cells (`number`, `ratio`, `averaged`).
    unit : str
        Of ours, where nothing is quoted.
    agreement : Agreement or None
    correction : str
        What we do differently from the text for ours to agree: turns "reproduced" into "with a
        correction".
    why : str
        What explains the verdict.
    kind : str
        Which of `KINDS` it is, where it is not reproduced.
    unreadable, out_of_scope : str
        The reason, where there is nothing to compare with, or nothing is run.
    scale_free : bool
        Whether the claim may also be judged at the live size, where no run at paper size is here.
    explained : str
        Name of the page that has the equation.
    demonstration : str
        Two lines of Python that show what is wrong or ambiguous in the text; printed by a notebook.
    """

    name: str
    source: str
    place: str
    claim: str
    quoted: Quoted | None = None
    experiment: str = ""
    across: tuple[str, ...] = ()
    ours: Ours | None = None
    unit: str = ""
    agreement: Agreement | None = None
    correction: str = ""
    why: str = ""
    kind: str = "differs as described"
    unreadable: str = ""
    out_of_scope: str = ""
    scale_free: bool = False
    explained: str = "converge"
    demonstration: str = ""

    def __post_init__(self) -> None:
        source(self.source)
        require(self.kind in KINDS, f"“{self.kind}” is no reason; give one of {', '.join(KINDS)}.")
        judged = self.ours is not None and self.agreement is not None
        require(
            judged or bool(self.unreadable or self.out_of_scope),
            f"The row “{self.name}” says neither how ours is computed and judged nor why not.",
        )


@dataclass(frozen=True)
class Verdict:
    """A row's verdict and what it rests on.

    Attributes
    ----------
    word : str
        One of `WORDS`.
    middle, low, high : float
        Median and range of ours over the seeds; NaN where there is none.
    seeds : int
    size : {"paper", "live", ""}
    """

    word: Word
    middle: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    seeds: int = 0
    size: str = ""


def judge(row: Row, results: Mapping[str, pd.DataFrame]) -> Verdict:
    """The verdict on a row from the cells of its experiment.

    Parameters
    ----------
    row : Row
    results : mapping of {"paper", "live"} to tidy tables of cells
        Sizes that were run; the paper's goes first. A size whose cells lack the row's number
        counts as not run.
    """
    if row.out_of_scope:
        return Verdict("out of scope")
    for size in ("paper", "live"):
        if size not in results or row.ours is None:
            continue
        ours: Array = np.asarray(row.ours(results[size]).dropna(), dtype=np.float64)
        if not len(ours):
            continue
        spread = float(np.median(ours)), float(ours.min()), float(ours.max()), len(ours), size
        if row.unreadable:
            return Verdict("values unreadable", *spread)
        if size == "live" and not row.scale_free:
            return Verdict("not run yet", *spread)
        assert row.agreement is not None
        published = float("nan") if row.quoted is None else row.quoted.value
        if not row.agreement.holds(published, ours):
            return Verdict("not reproduced", *spread)
        return Verdict("with a correction" if row.correction else "reproduced", *spread)
    return Verdict("values unreadable" if row.unreadable else "not run yet")


# ---------------------------------------------------------------- how ours is read off the cells
def number(series: str, measure: str, part: str | None = None) -> Ours:
    """A measure of one series, at one part where the experiment has several."""

    def ours(cells: pd.DataFrame) -> pd.Series[float]:
        chosen = (cells["series"] == series) & (cells["measure"] == measure) & cells["x"].isna()
        if part is not None:
            chosen &= cells["part"] == part
        return cells[chosen].groupby("seed")["result"].mean()

    return ours


def averaged(series: str, measure: str) -> Ours:
    """The mean of a measure over all parts; none for a seed of which a part is missing."""

    def ours(cells: pd.DataFrame) -> pd.Series[float]:
        chosen = (cells["series"] == series) & (cells["measure"] == measure) & cells["x"].isna()
        grouped = cells[chosen].groupby("seed")["result"]
        return grouped.mean().where(grouped.count() == cells["part"].nunique())

    return ours


def ratio(top: Ours, bottom: Ours) -> Ours:
    """One number of a seed over another of the same seed."""
    return lambda cells: top(cells) / bottom(cells)


def largest_over_parts(top: tuple[str, str], bottom: tuple[str, str]) -> Ours:
    """The largest ratio of two (series, measure) over the parts, for each seed."""
    return lambda cells: _ratios(cells, top, bottom).groupby("seed").max()


def _ratios(cells: pd.DataFrame, top: tuple[str, str], bottom: tuple[str, str]) -> pd.Series[float]:
    """A ratio for each seed and part; NaN where either number is missing."""
    numbers = cells[cells["x"].isna()].set_index(["seed", "part", "series", "measure"])["result"]
    over, under = (
        numbers[
            (numbers.index.get_level_values("series") == series)
            & (numbers.index.get_level_values("measure") == measure)
        ].droplevel(["series", "measure"])
        for series, measure in (top, bottom)
    )
    return over / under
