"""Drawing the rows of the papers: a claim, the printed number, ours, the verdict."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import streamlit as st

from dashboard.shell import layout
from dashboard.shell.controls import Controls, packed
from fedpca_core.papers.row import KINDS, Verdict
from fedpca_core.papers.sources import source
from fedpca_core.questions.papers.page import NO_ROW, Judged, PapersSettings
from fedpca_core.settings import short

#: Pages by the kind of the settings that open an experiment there, with their formulas.
PAGES = {
    "converge": ("../pages/converge.py", ":material/show_chart:"),
    "attack": ("../pages/attack.py", ":material/visibility:"),
    "privacy": ("../pages/privacy.py", ":material/verified_user:"),
    "anomaly": ("../pages/anomaly.py", ":material/sensors:"),
    "personalise": ("../pages/personalise.py", ":material/diversity_3:"),
    "theory": ("../pages/theory.py", ":material/function:"),
}

MARKS = {
    "reproduced": "✓ reproduced",
    "with a correction": "✓ with a correction",
    "not reproduced": "✗ not reproduced",
    "values unreadable": "? values unreadable",
    "out of scope": "– out of scope",
    "not run yet": "… not run yet",
}
#: The verdict that waits for a run at the paper's size, where a smaller one is shown.
WAITING = "… not yet at paper size"


def counts(found: Judged) -> None:
    """How many rows have each verdict."""
    layout.metric_cards(
        [
            layout.Card(word.removeprefix("values ").capitalize(), str(many))
            for word, many in found.counts.items()
        ],
        columns=6,
    )
    _why_not(found)


def _why_not(found: Judged) -> None:
    """A line for each paper: what keeps its rows from being reproduced."""
    many = found.why_not
    table = pd.DataFrame(
        {
            "Paper": many.index,
            "Not reproduced": many["all"].to_numpy(),
            "Why not": [
                ", ".join(f"{number} × {kind}" for kind, number in line.items() if number)
                for line in many.drop(columns="all").to_dict("records")
            ],
        }
    )
    layout.small_table(
        table,
        label="Why rows are not reproduced, by paper",
        numbers=("Not reproduced",),
        wrapped=("Why not",),
    )
    layout.about(
        "What these reasons mean",
        "\n".join(f"- **{kind.capitalize()}.** {says}" for kind, says in KINDS.items()),
    )


def draw(found: Judged, settings: PapersSettings) -> None:
    """The rows of one paper or with one verdict."""
    listed = found.only(settings.paper, settings.verdict).sorted_by(settings.order)
    table = texts(listed)
    if table.empty:
        layout.sentence("No row has this verdict; choose another.", kind="note")
        return
    place = table["Paper"] + ", " + table["Place"]
    columns = ("Place", "Claim", "Published", "Ours", "Why")
    shown = table.assign(Place=place, Why=table["Why"].replace("", "–"))
    layout.small_table(
        shown[["Verdict", *columns]],
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


def _one(found: Judged, settings: PapersSettings) -> None:
    """One row in full: what counts as agreement, the ways to its run and formulas, BibTeX."""
    ((row, _),), said = found.rows, texts(found).iloc[0]
    with st.container(border=True, key="papers_row"):
        st.markdown(f"**{said['Paper']}, {row.place}.** {row.claim} {said['Verdict']}.")
        means = f"Agreement: {row.agreement.sentence}. " if row.agreement else ""
        st.markdown(
            f"Published: {said['Published']}. Ours: {said['Ours']}. {means}{said['Why']}".strip()
        )
        with st.container(horizontal=True, gap="medium"):
            if row.experiment:
                st.page_link(
                    "../pages/papers.py",
                    label="Its run, below",
                    icon=":material/science:",
                    query_params=packed(replace(settings, experiment=row.experiment)),
                )
            page, icon = PAGES[row.explained]
            st.page_link(page, label="Its formulas", icon=icon)
        if row.demonstration:
            st.markdown("See it in two lines of Python:")
            st.code(row.demonstration, language="python", wrap_lines=True)
        st.code(source(row.source).bibtex, language="bibtex")


def small(found: Judged) -> None:
    """A few rows as a plain table; folded away, what counts as agreement and what explains it."""
    table = texts(found)
    layout.small_table(
        table[["Verdict", "Claim", "Published", "Ours"]],
        label="Claims, published numbers and ours",
        wrapped=("Claim", "Ours"),
    )
    lines = [
        f"- **{row['Claim']}** {row['Verdict']}. "
        + (f"Agreement: {row['Agreement means']}. " if row["Agreement means"] else "")
        + row["Why"]
        for row in table.to_dict("records")
    ]
    layout.about("What counts as agreement, and why each verdict", "\n".join(lines))
    # What several rows share stands under the first of them.
    first = {row.demonstration: row for row, _ in reversed(found.rows) if row.demonstration}
    if not first:
        return
    shown = [f"# {row.place}: {row.claim}\n{lines}" for lines, row in reversed(first.items())]
    fold = st.expander("See it in two lines", key="demonstrations", on_change="rerun")
    if fold.open:
        with fold:
            st.markdown("What is wrong or ambiguous in the text, shown in a notebook:")
            st.code("\n\n".join(shown), language="python", wrap_lines=True)


def texts(found: Judged) -> pd.DataFrame:
    """The rows as texts for the page."""
    table = found.table()
    if table.empty:
        return table
    return pd.DataFrame(
        {
            "Paper": table["paper"],
            "Place": table["place"],
            "Claim": table["claim"],
            "Published": table["published"].replace("", "in words"),
            "Ours": [
                ours(verdict, unit)
                for (_, verdict), unit in zip(found.rows, table["unit"], strict=True)
            ],
            "Verdict": [
                WAITING if one.word == "not run yet" and one.seeds else MARKS[one.word]
                for _, one in found.rows
            ],
            "Agreement means": table["agreement"],
            "Why": table["why"],
        }
    )


def ours(found: Verdict, unit: str = "") -> str:
    """The median, what the seeds span, of what, and at which size."""
    if not found.seeds:
        return "–"
    spread = "" if found.seeds == 1 else f" ({short(found.low, 3)} to {short(found.high, 3)})"
    seeds = f"{found.seeds} seed{'' if found.seeds == 1 else 's'}"
    size = ", live size" if found.size == "live" else ""
    counted = unit == "rounds" or unit.startswith(("times", "percentage points"))
    of = unit if unit in ("", "%") else f" {unit}" if counted else f", {unit}"
    return f"{short(found.middle, 3)}{spread}{of}; {seeds}{size}"
