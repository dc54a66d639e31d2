"""The papers themselves, and how to cite them and this software."""

import streamlit as st

from dashboard.shell import layout
from dashboard.shell.document import guides
from fedpca_core.papers.entries import Paper
from fedpca_core.papers.sources import SOURCES, software_bibtex


def section() -> None:
    """The papers with their links, and BibTeX entries to copy."""
    layout.section("The papers")
    shown = "docs/coverage.md" if guides() is None else "[docs/coverage.md](docs/coverage/)"
    st.markdown(f"Every item of them, and the page or command that shows it: {shown}.")
    fold = st.expander(
        "Authors and links; cite them, and this software", key="cite", on_change="rerun"
    )
    if fold.open:
        with fold:
            st.markdown("\n".join(f"- {_said(one)}" for one in SOURCES.values()))
            entries = [*(one.bibtex for one in SOURCES.values()), software_bibtex()]
            st.code("\n".join(entries), language="bibtex")


def _said(one: Paper) -> str:
    title = f"[{one.title}]({one.link})" if one.link else one.title
    where = f"{one.venue}, {one.year}" if one.venue else str(one.year)
    authors = ", ".join(one.authors) or "Authors not found"
    return f"**{one.name}.** {authors}: {title}. {where}. {one.note}".strip()
