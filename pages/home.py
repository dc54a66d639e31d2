"""What this is, and the ways in."""

from __future__ import annotations

import streamlit as st

from dashboard.shell import layout, presets
from dashboard.shell.doors import DOORS
from fedpca_core.studies.papers.faps import PRESETS

layout.heading(
    "The federated-PCA laboratory",
    "Many parties want the leading directions of all their data together, and none will hand its "
    "data over. Turn the parameters and watch how fast each method gets there, what it costs on "
    "the wire, and what an honest-but-curious server reconstructs of one client from exactly the "
    "messages it saw.",
)

grid = st.grid(3, min_column_width=260, border=True, gap="medium")
for entry in DOORS:
    with grid.cell():
        st.subheader(entry.question, anchor=False)
        st.markdown(entry.answer)
        st.page_link(entry.page, label=entry.label, icon=entry.icon)

layout.section("Start from an experiment", "Each makes one point.")
presets.cards([preset for preset in PRESETS if preset.name != "default"])

layout.section("What to know before you trust a picture")
st.markdown(
    "- Everything is simulated here, on synthetic or public data; nothing you load leaves this "
    "session.\n"
    "- Curves marked *simulation only* need the clients' private data: nobody could draw them in "
    "a real deployment.\n"
    "- Masking (what FAPS does) is not privacy. ε appears only where it is accounted, with its "
    "unit, clipping norm, δ, sampling scheme and accountant.\n"
    "- Where a paper and our measurement differ, both are shown.\n"
    "- Every setting is in the address: copy the link and somebody else sees the same picture."
)
