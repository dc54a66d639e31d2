"""Bytes and seconds of each method."""

from __future__ import annotations

import streamlit as st

from dashboard.shell import layout
from dashboard.views.anomaly.common import written
from fedpca_core.questions.anomaly.costs import Spent
from fedpca_core.questions.anomaly.settings import AnomalySettings

TITLES = {
    "method": "Method",
    "bytes_up": "Bytes up",
    "megabytes": "MB in all",
    "training_seconds": "Training, s",
    "microseconds_per_flow": "µs a flow",
}

#: Decimals; two for the others.
DIGITS = {"Bytes up": 0, "µs a flow": 3}


def draw(found: Spent, settings: AnomalySettings) -> None:
    """Bytes and seconds of each method."""
    st.markdown(
        f"A client uploads **{found.a_round:,} bytes** a round with {found.title} and "
        f"**{found.once:,} bytes once** if it sends its covariance, which under a secure sum "
        f"gives the exact answer for every rank. {found.title} saves bytes only for clients "
        f"that take part fewer than {found.break_even:.1f} times; here each takes part about "
        f"{found.taken:.0f} times."
    )
    table = written(found.table.rename(columns=TITLES), DIGITS, 2)
    layout.small_table(table, label="What each method costs", numbers=list(table.columns[1:]))
    st.caption(
        "Bytes up: of one client in one round (once for the first two). MB in all: both "
        "directions, all clients and rounds."
    )


def explain() -> None:
    """What the table counts."""
    layout.about(
        "What is counted",
        "float32 on the wire. Up: one matrix. Down: the average before the local steps with the "
        "penalty, and the new average after them, both to the participants. The duals never "
        "travel. Once, before the first round, and not in the table: two sums for the "
        "standardisation and one eigenvalue. Training is the time of all clients and the server "
        "together on this machine, scoring that of a batch.",
    )
