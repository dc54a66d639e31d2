"""What the Papers page shows: every row with its verdict, and one experiment with its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import pandas as pd

from fedpca_core.papers.registry import EXPERIMENTS, ROWS, experiment
from fedpca_core.papers.reproduce import reproduce
from fedpca_core.papers.results import origin, shipped, summary
from fedpca_core.papers.row import KINDS, WORDS, Row, Verdict, judge
from fedpca_core.papers.sources import SOURCES
from fedpca_core.settings import Settings, because, choice, number, switch
from fedpca_core.steps import Run, Step, changed
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study

ALL = {"all": "All"}
NO_ROW = "none"
_ROWS: Mapping[str, Row] = {row.name: row for row in ROWS}


@dataclass(frozen=True)
class PapersSettings(Settings):
    """Which rows are listed, and which experiment is looked at."""

    kind: ClassVar[str] = "papers"
    family: ClassVar[str] = "papers"

    paper: str = choice(
        "all", "Paper", ALL | {key: source.name for key, source in SOURCES.items()}, view=True
    )
    verdict: str = choice(
        "all", "Verdict", ALL | {word: word.capitalize() for word in WORDS}, view=True
    )
    order: str = choice(
        "verdict",
        "Sorted by",
        {"verdict": "Verdict", "paper": "Paper", "ratio": "Furthest from print"},
        view=True,
    )
    row: str = choice(
        NO_ROW,
        "One row closely",
        {NO_ROW: "Choose a row, or type words of its claim"}
        | {
            name: f"{SOURCES[row.source].name}, {row.place}: {row.claim}"
            for name, row in _ROWS.items()
        },
        view=True,
    )
    experiment: str = choice(
        "table-1",
        "Table or figure",
        {key: f"{SOURCES[one.source].name}: {one.title}" for key, one in EXPERIMENTS.items()},
    )
    run_live: bool = switch(False, "Run it live", key="live")
    seeds: int = number(3, "Seeds", 1, 10)

    def idle(self) -> Mapping[str, str]:
        return because((not self.run_live, "Nothing is run live.", "seeds"))


@dataclass(frozen=True, eq=False)
class Judged:
    """Verdicts by the name of their row, in the registry's order (rows cannot leave a process)."""

    verdicts: Mapping[str, Verdict]

    @property
    def rows(self) -> tuple[tuple[Row, Verdict], ...]:
        """The rows with their verdicts."""
        return tuple((_ROWS[name], found) for name, found in self.verdicts.items())

    def only(self, paper: str, verdict: str) -> Judged:
        """Those of one paper or with one verdict ("all" for any)."""
        return Judged(
            {
                row.name: found
                for row, found in self.rows
                if paper in ("all", row.source) and verdict in ("all", found.word)
            }
        )

    def of(self, key: str) -> Judged:
        """Those of one experiment."""
        return Judged({row.name: found for row, found in self.rows if row.experiment == key})

    def sorted_by(self, order: str) -> Judged:
        """The same by "verdict", by "paper" as registered, or by "ratio" to the printed number."""
        keys: Mapping[str, Callable[[Row, Verdict], float]] = {
            "verdict": lambda row, found: WORDS.index(found.word),
            "paper": lambda row, found: list(SOURCES).index(row.source),
            "ratio": lambda row, found: -_factor(row, found),
        }
        rows = sorted(self.rows, key=lambda pair: keys[order](*pair))
        return Judged({row.name: found for row, found in rows})

    @property
    def counts(self) -> dict[str, int]:
        """How many rows have each verdict."""
        words = [found.word for _, found in self.rows]
        return {word: words.count(word) for word in WORDS}

    @property
    def why_not(self) -> pd.DataFrame:
        """How many rows of each paper are not reproduced, by kind: papers x (kinds, then all)."""
        table = pd.DataFrame(
            0, index=[one.name for one in SOURCES.values()], columns=[*KINDS, "all"]
        )
        for row, found in self.rows:
            if found.word == "not reproduced":
                table.loc[SOURCES[row.source].name, [row.kind, "all"]] += 1
        return table

    def table(self) -> pd.DataFrame:
        """All that is known of each row; NaN and empty where there is nothing."""
        return pd.DataFrame(
            [
                {
                    "paper": SOURCES[row.source].name,
                    "place": row.place,
                    "claim": row.claim,
                    "published": "" if row.quoted is None else str(row.quoted),
                    "ours": found.middle,
                    "low": found.low,
                    "high": found.high,
                    "unit": row.unit or ("" if row.quoted is None else row.quoted.unit),
                    "seeds": found.seeds,
                    "size": found.size,
                    "verdict": found.word,
                    "kind": row.kind if found.word == "not reproduced" else "",
                    "agreement": "" if row.agreement is None else row.agreement.sentence,
                    "why": reason(row, found),
                    "experiment": row.experiment,
                }
                for row, found in self.rows
            ]
        )


def _factor(row: Row, found: Verdict) -> float:
    """How many times ours is the printed number or the printed number ours; 0 without both."""
    ours, printed = found.middle, row.quoted.value if row.quoted else math.nan
    return max(ours / printed, printed / ours) if ours > 0 and printed > 0 else 0.0


def reason(row: Row, found: Verdict) -> str:
    """Why the verdict is what it is, in one paragraph."""
    texts = [row.out_of_scope, row.unreadable, row.correction, row.why]
    if found.word == "not run yet" and row.experiment:
        hours = EXPERIMENTS[row.experiment].hours
        long = f": about {hours:g} hour{'s' * (hours != 1)} of a processor a start" * bool(hours)
        where = (
            "Run at no size yet" if row.scale_free else "Judged at the paper's size, not run yet"
        )
        texts.insert(0, f"{where}{long}.")
    if found.word == "not reproduced":
        texts.insert(0, f"{row.kind.capitalize()}.")
    return " ".join(text for text in texts if text)


def judged(results: Mapping[str, Mapping[str, pd.DataFrame]] | None = None) -> Judged:
    """Every row with its verdict, from the shipped results or from others by experiment."""
    if results is None:
        return _of_shipped()
    return Judged({row.name: judge(row, _cells(row, results)) for row in ROWS})


@cache
def _of_shipped() -> Judged:
    """Once for a process: what is shipped does not change."""
    return judged({key: shipped(key) for key in EXPERIMENTS})


def _cells(
    row: Row, tables: Mapping[str, Mapping[str, pd.DataFrame]]
) -> Mapping[str, pd.DataFrame]:
    """The cells that a row reads, by size; of several experiments where all have that size."""
    if not row.across:
        return tables.get(row.experiment, {})
    found = [tables.get(key, {}) for key in row.across]
    common = set.intersection(*(set(one) for one in found))
    return {size: pd.concat([one[size] for one in found]) for size in common}


class PaperRows(Study[PapersSettings, Judged]):
    """Every row of every paper, judged by the results that come with the program."""

    key: ClassVar[str] = "paper-rows"
    title: ClassVar[str] = "Published numbers beside ours"
    settings: ClassVar[type[Settings]] = PapersSettings
    most: ClassVar[Cost] = Cost(megabytes=300, seconds=120)
    reads: ClassVar[frozenset[str] | None] = frozenset({"paper", "verdict"})

    def run(self, settings: PapersSettings, data: OwnData | None = None) -> Run[Judged]:
        yield Step(0.0, "Judging the rows")
        return judged()

    def tables(self, result: Judged, settings: PapersSettings) -> dict[str, pd.DataFrame]:
        return {"rows": result.only(settings.paper, settings.verdict).table()}


@dataclass(frozen=True, eq=False)
class Shown:
    """An experiment's results and the rows that rest on them.

    Attributes
    ----------
    cells : mapping of {"paper", "live"} to tidy tables
    rows : Judged
    origins : mapping of size to what the files say of their making
        Empty for a run made here.
    """

    cells: Mapping[str, pd.DataFrame]
    rows: Judged
    origins: Mapping[str, Mapping[str, Any]]

    @property
    def size(self) -> str:
        """The size that is drawn: the paper's where it was run."""
        return "paper" if "paper" in self.cells else "live" if "live" in self.cells else ""

    def summary(self, size: str) -> pd.DataFrame:
        """Medians over the seeds: part, series, then a column for each measure, and seeds."""
        return summary(self.cells[size])

    def spread(self, size: str, measure: str) -> pd.DataFrame:
        """Median and range over the seeds of one measure: part, series, middle, low, high."""
        cells = self.cells[size]
        chosen = cells[cells["x"].isna() & (cells["measure"] == measure)]
        found = chosen.groupby(["part", "series"], sort=False)["result"]
        table = found.agg(middle="median", low="min", high="max")
        return table.reset_index()

    def curves(self, size: str) -> pd.DataFrame:
        """Points of curves: part, series, measure, x, and the median over the seeds."""
        cells = self.cells[size]
        points = cells[cells["x"].notna()]
        names = ["part", "series", "measure", "x"]
        return points.groupby(names, sort=False)["result"].median().reset_index()


class PaperExperiment(Study[PapersSettings, Shown]):
    """One experiment: the results that come with the program, or a live run of it."""

    key: ClassVar[str] = "paper-experiment"
    title: ClassVar[str] = "An experiment of a paper"
    settings: ClassVar[type[Settings]] = PapersSettings
    most: ClassVar[Cost] = Cost(megabytes=300, seconds=120)
    seconds: ClassVar[float] = 300.0

    def run(self, settings: PapersSettings, data: OwnData | None = None) -> Run[Shown]:
        key = settings.experiment
        if not settings.run_live:
            yield Step(0.0, "Reading the results")
            cells = shipped(key)
            return self._shown(key, cells, {size: origin(key, size) for size in cells})

        def so_far(step: Step[pd.DataFrame]) -> Step[Shown]:
            cells = step.result
            found = None if cells is None else self._shown(key, {"live": cells}, {})
            return Step(step.fraction, step.text, found)

        running = reproduce(experiment(key), "live", settings.seeds)
        found = yield from changed(running, so_far)
        return self._shown(key, {"live": found}, {})

    def _shown(
        self,
        key: str,
        cells: Mapping[str, pd.DataFrame],
        origins: Mapping[str, Mapping[str, Any]],
    ) -> Shown:
        return Shown(cells, judged({key: cells}).of(key), origins)

    def tables(self, result: Shown, settings: PapersSettings) -> dict[str, pd.DataFrame]:
        return {
            "rows": result.rows.table(),
            **{f"cells_{size}": cells for size, cells in result.cells.items()},
        }
