"""Drawing one experiment of a paper: rows, a chart with the published values marked, costs."""

from collections.abc import Mapping
from itertools import cycle
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart
from dashboard.shell import layout, palette
from dashboard.shell.navigation import door
from dashboard.views.papers import rows
from fedpca_core.papers.experiment import Experiment
from fedpca_core.papers.registry import EXPERIMENTS
from fedpca_core.questions.papers.page import PapersSettings, Shown
from fedpca_core.settings import Settings, short
from fedpca_core.study.parts import names

SIZES = {"paper": "the paper's size", "live": "live size"}
#: Measures of a summary, as the page calls them; others keep their names.
TITLES = names("paper-measures")


def draw(found: Shown, settings: PapersSettings) -> None:
    """Rows, chart and costs of one experiment."""
    entry = EXPERIMENTS[settings.experiment]
    rows.small(found.rows)
    if not found.size:
        layout.sentence(
            "No results of this experiment come with the program yet; run it live, or on your own "
            f"machine: python -m fedpca_core reproduce {entry.key} --paper-size.",
            kind="note",
        )
        return
    size = found.size
    panels = [*_measured(entry, found, size), *_curves(entry, found, size)]
    if panels:
        chart(key=f"paper_{entry.key}", panels=panels)
    for one in found.cells:
        fold = st.expander(f"What every method needed, at {SIZES[one]}", expanded=one == size)
        with fold:
            table = summary(found.summary(one))
            same = table.pop("Seeds")[0] if table["Seeds"].nunique() == 1 else "the"
            figures = [str(name) for name in table if name not in ("Value", "Method")]
            layout.small_table(table, label="What every method needed", numbers=figures)
            timed = " Seconds are of one machine, beside whatever else it did."
            st.caption(
                f"{'One seed' if same == '1' else f'Medians over {same} seeds'}; "
                f"{entry.described(one)}." + timed * (TITLES["seconds"] in table)  # type: ignore[arg-type]
            )
    for one, made in found.origins.items():
        st.caption(origin(entry.key, one, made))


def origin(key: str, size: str, made: Mapping[str, Any]) -> str:
    """Where the results of an experiment come from."""
    most = made["peak_memory_mb"]
    return (
        f"Results at {SIZES[size]}: made on {made['finished'][:10]} by `python -m fedpca_core "
        f"reproduce {key}{' --paper-size' if size == 'paper' else ''}`, commit "
        f"{made['commit'] or 'unknown'}, numpy {made['versions']['numpy']}, {made['machine']}"
        + (f", at most {most:.0f} MB of memory." if most else ".")
    )


def doors(settings: PapersSettings) -> None:
    """The way to the page where this experiment can be played with, and to the formulas there."""
    live: Settings | None = EXPERIMENTS[settings.experiment].live()
    if live is not None:
        door(live, "Open it on its own page, with its formulas")


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Medians as texts, with the page's names."""
    shown = pd.DataFrame({"Method": table["series"]})
    if table["part"].astype(bool).any():
        shown.insert(0, "Value", table["part"])
    for name in table.columns.drop(["part", "series"]):
        scale = 1e-6 if name == "bytes" else 1.0
        shown[TITLES.get(name, name)] = [
            "–" if pd.isna(value) else f"{value:,.0f}" if value >= 1000 else short(value, 3)
            for value in scale * table[name]
        ]
    return shown


def _styled(table: pd.DataFrame) -> list[tuple[str, pd.DataFrame, str]]:
    """Series of a table with their rows and colours, no two alike.

    The first variant of a method has the method's own, others what these leave.
    """
    names = [str(name) for name in table["series"].unique()]
    firsts = {name.split(",")[0]: name for name in reversed(names)}
    own = {name: method for method, name in firsts.items() if palette.knows(method)}
    taken = {palette.style(method).light for method in own.values()}
    left = cycle(f"series {i}" for i, one in enumerate(palette.FALLBACKS) if one.light not in taken)
    return [(name, table[table["series"] == name], own.get(name) or next(left)) for name in names]


def _measured(entry: Experiment, found: Shown, size: str) -> list[Panel]:
    """The experiment's measure against what it varies; at its own size with the paper's values."""
    table = found.spread(size, entry.measure)
    if table.empty:
        return []
    curves = [
        Curve(
            name,
            list(part["part"].replace("", SIZES[size])),
            part["middle"],
            colour=colour,
        )
        for name, part, colour in _styled(table)
    ]
    marks = {
        f"published, {one.method or one.row}: {one.printed}": one.value
        for one, _ in found.rows.rows
        if one.kind == "number"
        and one.measure.partition(",")[0] == entry.measure
        and size == "paper"
    }
    return [
        Panel.of(
            "paper-measure",
            curves,
            key=f"{entry.key}-{entry.measure}",
            title=entry.title,
            x_title=entry.varied,
            y_title=TITLES.get(entry.measure, entry.measure).lower(),
            baselines=tuple(Baseline(label, value) for label, value in marks.items()),
            description=f"{entry.title}: medians over the seeds at {SIZES[size]}"
            + (f"; {'; '.join(marks)}." if marks else "."),
        )
    ]


def _curves(entry: Experiment, found: Shown, size: str) -> list[Panel]:
    """Curves of the experiment: a panel for each part."""
    points = found.curves(size)
    panels = []
    for part in map(str, points["part"].unique()):
        lines = [
            Curve(name, line["x"], line["result"], colour=colour)
            for name, line, colour in _styled(points[points["part"] == part])
        ]
        panels.append(
            Panel.of(
                "paper-curves",
                lines,
                key=f"{entry.key}-curves-{part}",
                title=f"{entry.varied} {part}".strip()
                or f"{entry.y_title} against {entry.x_title}".capitalize(),
                x_title=entry.x_title,
                y_title=entry.y_title,
                description=f"{entry.y_title} against {entry.x_title}, {part or entry.title}.",
            )
        )
    return panels
