"""Drawing the Papers page: numbers and claims with their verdicts, one experiment, the papers."""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.player import chart
from dashboard.shell import layout, palette
from dashboard.shell.controls import Controls
from dashboard.shell.document import guides
from dashboard.shell.navigation import door
from fedpca_core.papers.entries import Entry, Paper
from fedpca_core.papers.experiment import Experiment
from fedpca_core.papers.judge import STATED, WORDS, Tried, Verdict
from fedpca_core.papers.registry import EXPERIMENTS, keys_of
from fedpca_core.papers.results import origin, summary
from fedpca_core.papers.sources import SOFTWARE, SOURCES
from fedpca_core.questions.papers.page import (
    NO_ROW,
    Judged,
    PapersSettings,
    Shown,
    command,
    overview,
)
from fedpca_core.settings import Settings, plural, short
from fedpca_core.study.panels import Baseline, Curve, Panel, plot
from fedpca_core.study.parts import About, names, words

#: The page with the formulas of a paper.
FORMULAS = names("paper-pages")
MARKS = dict(zip(WORDS, "✓✓✗?⇄✗–", strict=True))
#: What the verdicts mean, in the order in which they are offered.
MEANS = names("verdicts")
SIZES = {"paper": "the paper's size", "live": "live size"}
#: Readings beyond so many scroll within a frame.
MANY = 8
#: Measures of a summary, as the page calls them; others keep their names.
TITLES = names("paper-measures")


# ---------------------------------------------------------------------- rows
def counts(found: Judged) -> None:
    chart(key="paper_verdicts", panels=[overview(found)])
    many = found.counts[list(WORDS)].astype(str).rename(columns=str.capitalize)
    table = many.rename_axis(index="Paper").reset_index()
    layout.small_table(
        table, label="How many have which verdict, by paper", numbers=list(many.columns)
    )
    means = "\n".join(f"- **{word.capitalize()}.** {says}" for word, says in MEANS.items())
    text = f"{means}\n\n" + words("papers-unknown")
    layout.about(About("What the verdicts mean, and what nobody can know", text))


def rows(found: Judged, settings: PapersSettings) -> None:
    table = texts(found.listed(settings.paper, settings.verdict, settings.order))
    if table.empty:
        layout.sentence("No row has this verdict; choose another.", kind="note")
        return
    columns = ("Place", "Claim", "Printed", "Ours", "Why")
    layout.small_table(
        table.assign(Place=table["Paper"] + ", " + table["Place"])[["Verdict", *columns]],
        label="Every number of the papers",
        wrapped=columns,
        tall=True,
    )


def closely(controls: Controls[PapersSettings], found: Judged) -> None:
    """Any row in full: those that are listed are offered first, in their order."""
    settings = controls.settings()
    listed = found.listed(settings.paper, settings.verdict, settings.order).verdicts
    name = controls.parameter("row", only=(NO_ROW, *listed, *found.verdicts))
    if name != NO_ROW:
        _one(Judged({name: found.verdicts[name]}), controls.settings())


def _one(judged: Judged, settings: PapersSettings) -> None:
    """One row in full: readings, demonstration, command, the ways to its run, BibTeX."""
    ((entry, found),), said = judged.rows, texts(judged).iloc[0]
    with st.container(border=True, key="papers_row"):
        st.markdown(
            f"**{said['Paper']}, {entry.place}"
            + f", {entry.row or entry.column}" * bool(entry.row or entry.column)
            + f" (line {entry.line} of the text).** {entry.says} {said['Verdict']}."
        )
        st.markdown(
            f"Printed: {said['Printed']}. Ours: {said['Ours']}. {said['Why']}".replace("$", r"\$")
        )
        if entry.decides:
            st.markdown(f"What decides it: {entry.decides}".replace("$", r"\$"))
        _readings(entry, found)
        if entry.demonstration:
            st.markdown("See it in two lines of Python:")
            st.code(entry.demonstration.strip(), language="python", wrap_lines=True)
            st.code(entry.shows.strip(), language=None)
        again = command(entry, found)
        if again:
            took = origin(keys_of(entry)[0], found.shown.size if found.shown else "").get("seconds")
            price = f" (when it was stored, all of its experiment took {took:,} s)" if took else ""
            st.markdown(f"Run it again{price}:")
            st.code(again, language="bash")
        with st.container(horizontal=True, gap="medium"):
            if again:
                door(replace(settings, experiment=keys_of(entry)[0]), "Its run, below", "science")
            door(FORMULAS[entry.paper], "Its formulas")
        _tell(entry, found)
        st.code(SOURCES[entry.paper].bibtex, language="bibtex")


def _readings(entry: Entry, found: Verdict) -> None:
    says = {one.name: one.says for one in entry.readings}
    if found.tried:
        rows = [
            {
                "Reading": one.reading,
                "Ours": figure(one),
                "Agrees": "yes" if one.agrees else "cannot tell" if one.wide else "no",
                "What it is": says.get(one.reading, "What the paper states."),
            }
            for one in found.tried
        ]
        wrapped = ("Reading", "Ours", "What it is")
        many = len(rows) > MANY
        table = pd.DataFrame(rows)
        layout.small_table(table, label="Readings that were run", wrapped=wrapped, tall=many)
    without = *found.unreached, *found.untried
    if without and (entry.holds or entry.within or entry.points):
        st.caption(f"Readings without a figure of ours: {'; '.join(without)}.")


def _tell(entry: Entry, found: Verdict) -> None:
    address = os.environ.get("FEDPCA_TELL", "")
    if address:
        st.link_button("Tell us that this is wrong", address, icon=":material/rate_review:")
    else:
        st.caption(
            "You know better? The project's form “A verdict on my paper” asks for the row "
            f"({entry.name}), what we say of it ({found.word}) and what it should say."
        )


def small(found: Judged) -> None:
    """A few rows as a plain table; folded away, why each verdict."""
    table = texts(found)
    if table.empty:
        return
    layout.small_table(
        table[["Verdict", "Claim", "Printed", "Ours"]],
        label="Claims, published numbers and ours",
        wrapped=("Claim", "Ours"),
    )
    lines = [
        f"- **{row['Claim']}** {row['Verdict']}. {row['Why']}" for row in table.to_dict("records")
    ]
    layout.about(About("Why each verdict", "\n".join(lines)))


def texts(found: Judged) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "Paper": SOURCES[entry.paper].name,
                "Place": entry.place + f", {entry.row}" * bool(entry.row),
                "Claim": entry.says,
                "Printed": entry.printed,
                "Ours": ours(found, entry.unit),
                "Verdict": f"{MARKS[found.word]} {found.word}",
                "Why": found.why or "–",
            }
            for entry, found in found.rows
        ]
    )


def ours(found: Verdict, unit: str = "") -> str:
    """The median, what one more run would give, of what, in which reading."""
    if (one := found.shown) is None:
        return "–"
    return figure(one, unit) + f"; {one.reading}" * (one.reading != STATED)


def figure(one: Tried, unit: str = "") -> str:
    """Our figure in one reading with its interval, unit, seeds and size."""
    spread = f" ({short(one.low, 3)} to {short(one.high, 3)})" if one.low != one.high else ""
    shown = f"{short(one.middle, 3)}{spread * (one.seeds > 1)}" + f" {unit}" * bool(unit)
    return f"{shown}; {plural(one.seeds, 'seed')}" + ", live size" * (one.size == "live")


# ---------------------------------------------------------------------- one experiment
def experiment(found: Shown, settings: PapersSettings) -> None:
    entry = EXPERIMENTS[settings.experiment]
    small(found.rows)
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
        with st.expander(f"What every method needed, at {SIZES[one]}", expanded=one == size):
            table = needed(summary(found.cells[one]))
            same = table.pop("Seeds")[0] if table["Seeds"].nunique() == 1 else "the"
            figures = [str(name) for name in table if name not in ("Value", "Method")]
            layout.small_table(table, label="What every method needed", numbers=figures)
            timed = " Seconds are of one machine, beside whatever else it did."
            st.caption(
                f"{'One seed' if same == '1' else f'Medians over {same} seeds'}; "
                f"{entry.described(one)}." + timed * (TITLES["seconds"] in table)  # type: ignore[arg-type]
            )
    for one, made in found.origins.items():
        st.caption(made_by(entry.key, one, made))


def made_by(key: str, size: str, made: Mapping[str, Any]) -> str:
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


def needed(table: pd.DataFrame) -> pd.DataFrame:
    """A summary as it is shown."""
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


def _colours(series: pd.Series) -> dict[str, str]:
    """The first variant of a method has the method's own, others what these leave."""
    firsts = {str(name).split(",")[0]: str(name) for name in reversed(series.unique())}
    return {name: method for method, name in firsts.items() if palette.knows(method)}


def _measured(entry: Experiment, found: Shown, size: str) -> list[Panel]:
    """The experiment's measure against what it varies; at its own size with the paper's values."""
    table = found.medians(size, entry.measure)
    if table.empty:
        return []
    colours = _colours(table["series"])
    rows = {name: table[table["series"] == name] for name in table["series"].unique()}
    curves = [
        Curve(name, list(one["part"].replace("", SIZES[size])), one["result"], colours.get(name))
        for name, one in rows.items()
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
    against = f"{entry.y_title} against {entry.x_title}"
    points = found.cells[size].dropna(subset="x")
    parts = {str(part): points[points["part"] == part] for part in points["part"].unique()}
    return [
        Panel.of(
            "paper-curves",
            plot(rows, "x", "result", "series", colours=_colours(rows["series"]), spread=False),
            key=f"{entry.key}-curves-{part}",
            title=f"{entry.varied} {part}".strip() or against.capitalize(),
            x_title=entry.x_title,
            y_title=entry.y_title,
            description=f"{against}, {part or entry.title}.",
        )
        for part, rows in parts.items()
    ]


# ---------------------------------------------------------------------- the papers themselves
def sources() -> None:
    layout.section("The papers")
    shown = "docs/coverage.md" if guides() is None else "[docs/coverage.md](docs/coverage/)"
    st.markdown(f"Every item of them, and the page or command that shows it: {shown}.")
    if fold := layout.opened("Authors and links; cite them, and this software", "cite"):
        with fold:
            st.markdown("\n".join(f"- {_said(one)}" for one in SOURCES.values()))
            entries = [*(one.bibtex for one in SOURCES.values()), SOFTWARE.bibtex]
            st.code("\n".join(entries), language="bibtex")


def _said(one: Paper) -> str:
    title = f"[{one.title}]({one.link})" if one.link else one.title
    where = f"{one.venue}, {one.year}" if one.venue else str(one.year)
    authors = ", ".join(one.authors) or "Authors not found"
    return f"**{one.name}.** {authors}: {title}. {where}. {one.note}".strip()
