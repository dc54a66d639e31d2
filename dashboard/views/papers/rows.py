"""Drawing the numbers and claims of the papers: as printed, ours, the verdict and why."""

import os
from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard.player import chart
from dashboard.shell import layout
from dashboard.shell.controls import Controls
from dashboard.shell.navigation import door
from fedpca_core.papers.entries import Entry
from fedpca_core.papers.judge import STATED, WORDS, Verdict
from fedpca_core.papers.registry import keys_of
from fedpca_core.papers.results import origin
from fedpca_core.papers.sources import SOURCES
from fedpca_core.questions.papers.page import (
    NO_ROW,
    Judged,
    PapersSettings,
    command,
    overview,
)
from fedpca_core.settings import short
from fedpca_core.study.parts import names, words

#: The page with the formulas of a paper.
FORMULAS = names("paper-pages")
MARKS = dict(zip(WORDS, "✓✓✗?⇄✗–", strict=True))

#: What the verdicts mean, in the order in which they are offered.
MEANS = names("verdicts")


def counts(found: Judged) -> None:
    """The count by verdict, a bar for each paper, and what nobody can know."""
    chart(key="paper_verdicts", panels=[overview(found)])
    many = found.counts
    table = pd.DataFrame({"Paper": many.index})
    for word in WORDS:
        table[word.capitalize()] = many[word].astype(str).to_numpy()
    layout.small_table(
        table, label="How many have which verdict, by paper", numbers=list(table.columns[1:])
    )
    layout.about(
        "What the verdicts mean, and what nobody can know",
        "\n".join(f"- **{word.capitalize()}.** {says}" for word, says in MEANS.items())
        + "\n\n"
        + words("papers-unknown"),
    )


def draw(found: Judged, settings: PapersSettings) -> None:
    """The rows of one paper or with one verdict."""
    listed = found.only(settings.paper, settings.verdict).sorted_by(settings.order)
    table = texts(listed)
    if table.empty:
        layout.sentence("No row has this verdict; choose another.", kind="note")
        return
    place = table["Paper"] + ", " + table["Place"]
    columns = ("Place", "Claim", "Printed", "Ours", "Why")
    layout.small_table(
        table.assign(Place=place)[["Verdict", *columns]],
        label="Every number of the papers",
        wrapped=columns,
        tall=True,
    )


def closely(controls: Controls[PapersSettings], found: Judged) -> None:
    """Any row in full: those that are listed are offered first, in their order."""
    settings = controls.settings()
    listed = found.only(settings.paper, settings.verdict).sorted_by(settings.order).verdicts
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
            size = found.shown.size if found.shown else ""
            took = origin(keys_of(entry)[0], size).get("seconds")
            price = f" (when it was stored, all of its experiment took {took:,} s)" if took else ""
            st.markdown(f"Run it again{price}:")
            st.code(again, language="bash")
        with st.container(horizontal=True, gap="medium"):
            if again:
                its_run = replace(settings, experiment=keys_of(entry)[0])
                door(its_run, "Its run, below", "science")
            door(FORMULAS[entry.paper], "Its formulas")
        _tell(entry, found)
        st.code(SOURCES[entry.paper].bibtex, language="bibtex")


def _readings(entry: Entry, found: Verdict) -> None:
    """Every reading that was run, and those that were not."""
    says = {one.name: one.says for one in entry.readings}
    if found.tried:
        table = pd.DataFrame(
            {
                "Reading": [one.reading for one in found.tried],
                "Ours": [figure(one.middle, one.low, one.high, one.seeds, one.size)
                         for one in found.tried],
                "Agrees": ["yes" if one.agrees else "cannot tell" if one.wide else "no"
                           for one in found.tried],
                "What it is": [says.get(one.reading, "What the paper states.")
                               for one in found.tried],
            }
        )  # fmt: skip
        layout.small_table(
            table, label="Readings that were run", wrapped=("Reading", "Ours", "What it is")
        )
    if found.untried and (entry.holds or entry.within or entry.points):
        st.caption(f"Readings without a run: {', '.join(found.untried)}.")


def _tell(entry: Entry, found: Verdict) -> None:
    """Where somebody who knows better can say so."""
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
    layout.about("Why each verdict", "\n".join(lines))


def texts(found: Judged) -> pd.DataFrame:
    """The rows as texts for the page."""
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
    one = found.shown
    if one is None:
        return "–"
    reading = "" if one.reading == STATED else f"; {one.reading}"
    return figure(one.middle, one.low, one.high, one.seeds, one.size, unit) + reading


def figure(middle: float, low: float, high: float, seeds: int, size: str, unit: str = "") -> str:
    """A figure with its interval, unit, seeds and size."""
    spread = "" if seeds < 2 or low == high else f" ({short(low, 3)} to {short(high, 3)})"
    of = f" {unit}" if unit else ""
    live = ", live size" if size == "live" else ""
    return f"{short(middle, 3)}{spread}{of}; {seeds} seed{'' if seeds == 1 else 's'}{live}"
