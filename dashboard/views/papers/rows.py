"""Drawing the rows of the papers: a claim, the printed number, ours, the verdict."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.shell import layout
from fedpca_core.studies.papers.page import Judged, PapersSettings
from fedpca_core.studies.papers.row import Verdict

MARKS = {
    "reproduced": "✓ reproduced",
    "with a correction": "✓ with a correction",
    "not reproduced": "✗ not reproduced",
    "values unreadable": "? values unreadable",
    "out of scope": "– out of scope",
    "not run yet": "… not run yet",
}


def counts(found: Judged) -> None:
    """How many rows have each verdict."""
    layout.metric_cards(
        [layout.Card(word.capitalize(), str(many)) for word, many in found.counts.items()],
        columns=6,
    )


def draw(found: Judged, settings: PapersSettings) -> None:
    """The rows of one paper or with one verdict, to sort and search."""
    table = texts(found.only(settings.paper, settings.verdict))
    if table.empty:
        layout.sentence("No row has this verdict; choose another.", kind="note")
        return
    st.dataframe(
        table[["Paper", "Place", "Claim", "Published", "Ours", "Verdict", "Why"]],
        hide_index=True,
        width="stretch",
        height=min(38 + 35 * len(table), 600),
        column_config={
            "Place": st.column_config.TextColumn(width=150),
            "Claim": st.column_config.TextColumn(width=330),
            "Published": st.column_config.TextColumn(width=90),
            "Ours": st.column_config.TextColumn(width=150),
            "Verdict": st.column_config.TextColumn(width=140),
        },
    )


def small(found: Judged) -> None:
    """A few rows with all their words, as a plain table."""
    layout.small_table(
        texts(found)[["Claim", "Published", "Ours", "Verdict", "Agreement means", "Why"]],
        label="Claims, published numbers and ours",
    )


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
            "Ours": [ours(verdict) for _, verdict in found.rows],
            "Verdict": table["verdict"].map(MARKS),
            "Agreement means": table["agreement"],
            "Why": table["why"],
        }
    )


def ours(found: Verdict) -> str:
    """The median, what the seeds span, and at which size."""
    if not found.seeds:
        return "–"
    spread = "" if found.seeds == 1 else f" ({found.low:.3g} to {found.high:.3g})"
    seeds = f"{found.seeds} seed{'' if found.seeds == 1 else 's'}"
    return f"{found.middle:.3g}{spread}; {seeds}{', live size' if found.size == 'live' else ''}"
