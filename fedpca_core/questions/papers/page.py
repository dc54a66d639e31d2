"""What the Papers page shows: every number with its verdict, and one experiment with its cells."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from fedpca_core.papers import registry
from fedpca_core.papers.entries import Entry
from fedpca_core.papers.judge import WORDS, Tried, Verdict
from fedpca_core.papers.results import origin, reproduce, shipped
from fedpca_core.papers.sources import SOURCES
from fedpca_core.settings import Settings, because, choice, number, switch
from fedpca_core.steps import Run, Step, changed
from fedpca_core.study import Cost, OwnData, Study
from fedpca_core.study.panels import Curve, Panel
from fedpca_core.study.parts import Chart, Parts

#: Which series a verdict has the colour of: what is wrong is warm, what nobody knows is grey.
COLOURS = dict(zip(WORDS, (0, 8, 1, 9, 2, 4, 7), strict=True))
ALL = {"all": "All"}
NO_ROW = "none"


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
    order: str = choice("paper", "Sorted by", view=True)
    row: str = choice(
        NO_ROW,
        "One row closely",
        {NO_ROW: "Choose a row, or type words of its claim"}
        | {
            name: f"{SOURCES[one.paper].name}, {one.place}: {one.says} [{one.id}]"
            for name, one in registry.ENTRIES.items()
        },
        view=True,
    )
    experiment: str = choice(
        "table-1",
        "Table or figure",
        {
            key: f"{SOURCES[one.source].name}: {one.title}"
            for key, one in registry.EXPERIMENTS.items()
        },
    )
    run_live: bool = switch(False, "Run it live", key="live")
    seeds: int = number(3, "Seeds", 1, 10)

    def idle(self) -> Mapping[str, str]:
        return because((not self.run_live, "Nothing is run live.", "seeds"))


@dataclass(frozen=True, eq=False)
class Judged:
    """Verdicts by the name of their entry."""

    verdicts: Mapping[str, Verdict]

    @property
    def rows(self) -> tuple[tuple[Entry, Verdict], ...]:
        return tuple((registry.ENTRIES[name], found) for name, found in self.verdicts.items())

    def listed(self, paper: str = "all", verdict: str = "all", order: str = "") -> Judged:
        """Those of one paper or with one verdict ("all" for any), sorted by "verdict", by "paper"
        in the order of its text, or by "ratio" to the printed number."""
        keys: Mapping[str, Callable[[Entry, Verdict], float]] = {
            "": lambda entry, found: 0,
            "verdict": lambda entry, found: WORDS.index(found.word),
            "paper": lambda entry, found: list(SOURCES).index(entry.paper),
            "ratio": lambda entry, found: -_factor(entry, found),
        }
        found = {
            entry.name: found
            for entry, found in sorted(self.rows, key=lambda pair: keys[order](*pair))
            if paper in ("all", entry.paper) and verdict in ("all", found.word)
        }
        return Judged(found)

    @property
    def counts(self) -> pd.DataFrame:
        """Papers x verdicts; what hangs on one cause counts once for a verdict."""
        once = {(entry.paper, found.word, entry.cause or entry.name) for entry, found in self.rows}
        kinds = [(paper, word) for paper, word, _ in once]
        return pd.DataFrame(
            {word: [kinds.count((key, word)) for key in SOURCES] for word in WORDS},
            index=[one.name for one in SOURCES.values()],
        )

    def table(self) -> pd.DataFrame:
        """All that is known of each entry; NaN and empty where there is nothing."""
        return pd.DataFrame(
            [
                {
                    "name": entry.name,
                    "paper": SOURCES[entry.paper].name,
                    "place": entry.place,
                    "line": entry.line,
                    "claim": entry.says,
                    "printed": entry.printed,
                    **_figure(found),
                    "unit": entry.unit,
                    "verdict": found.word,
                    "cause": entry.cause,
                    "why": found.why,
                    "command": command(entry, found),
                }
                for entry, found in self.rows
            ]
        )


def _figure(found: Verdict) -> dict[str, Any]:
    one = found.shown or Tried("", math.nan, math.nan, math.nan, 0, "", agrees=False)
    return {key: getattr(one, key) for key in ("reading", "middle", "low", "high", "seeds", "size")}


def _factor(entry: Entry, found: Verdict) -> float:
    """How many times ours is the printed number or the printed number ours; 0 without both."""
    if found.shown is None or entry.kind != "number":
        return 0.0
    ours, printed = found.shown.middle, entry.value
    return max(ours / printed, printed / ours) if ours > 0 and printed > 0 else 0.0


def command(entry: Entry, found: Verdict) -> str:
    """What re-runs the experiment behind a row; empty where none is."""
    if found.shown is None:
        return ""
    size = " --paper-size" * (found.shown.size == "paper")
    key = entry.experiment.split(" + ")[0]
    key = key if key in registry.EXPERIMENTS else registry.keys_of(entry)[0]
    return f"python -m fedpca_core reproduce {key}{size} --seeds {max(found.shown.seeds, 1)}"


def overview(found: Judged) -> Panel:
    """A bar for each paper: how many numbers and claims have each verdict."""
    counts = found.counts
    told = "; ".join(
        f"{name}: " + ", ".join(f"{many} {word}" for word, many in row.items() if many)
        for name, row in counts.iterrows()
    )
    curves = [
        Curve(word, list(counts.index), counts[word], colour=f"series {COLOURS[word]}")
        for word in WORDS
        if counts[word].any()
    ]
    return Panel.of("papers-verdicts", curves, description=f"{told}.")


def told(found: Judged, settings: PapersSettings) -> Parts:
    panel, many = overview(found), found.counts.sum()
    counted = ", ".join(f"{number} {word}" for word, number in many.items() if number)
    yield f"**Of {many.sum()} numbers and claims of the papers: {counted}.**"
    yield panel.description
    yield Chart("verdicts", [panel])


class PaperRows(Study[PapersSettings, Judged]):
    """Every number and claim of every paper, judged by the results that come with the program."""

    key = "paper-rows"
    title = "Published numbers beside ours"
    most = Cost(megabytes=300, seconds=120)
    reads = frozenset({"paper", "verdict"})

    def run(self, settings: PapersSettings, data: OwnData | None = None) -> Run[Judged]:
        yield Step(0.0, "Judging the rows")
        return Judged(registry.verdicts())

    def tables(self, result: Judged, settings: PapersSettings) -> dict[str, pd.DataFrame]:
        return {
            "rows": result.listed(settings.paper, settings.verdict).table(),
            "counts": result.counts.reset_index(names="paper"),
        }


@dataclass(frozen=True, eq=False)
class Shown:
    """An experiment's results and the rows that rest on them."""

    #: mapping of {"paper", "live"} to tidy tables.
    cells: Mapping[str, pd.DataFrame]
    rows: Judged
    #: Empty for a run made here.
    origins: Mapping[str, Mapping[str, Any]]

    @property
    def size(self) -> str:
        """The size that is drawn: the paper's where it was run."""
        return "paper" if "paper" in self.cells else "live" if "live" in self.cells else ""

    def medians(self, size: str, measure: str) -> pd.DataFrame:
        """Over the seeds, of one measure: part, series, result."""
        cells = self.cells[size].query("x.isna() and measure == @measure")
        return cells.groupby(["part", "series"], sort=False)["result"].median().reset_index()


class PaperExperiment(Study[PapersSettings, Shown]):
    """One experiment: the results that come with the program, or a live run of it."""

    key = "paper-experiment"
    title = "An experiment of a paper"
    most = Cost(megabytes=300, seconds=120)
    seconds = 300.0

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

        running = reproduce(registry.experiment(key), "live", settings.seeds)
        found = yield from changed(running, so_far)
        return self._shown(key, {"live": found}, {})

    def _shown(
        self, key: str, cells: Mapping[str, pd.DataFrame], origins: Mapping[str, Mapping[str, Any]]
    ) -> Shown:
        tables = {one: shipped(one) for one in registry.EXPERIMENTS} | {key: cells}
        return Shown(cells, Judged(registry.verdicts_of(registry.entries_of(key), tables)), origins)

    def tables(self, result: Shown, settings: PapersSettings) -> dict[str, pd.DataFrame]:
        cells = {f"cells_{size}": cells for size, cells in result.cells.items()}
        return {"rows": result.rows.table(), **cells}
