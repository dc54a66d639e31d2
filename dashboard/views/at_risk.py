"""The map of what is at risk: records a client against the size of a record."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.player import Heat, chart
from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from fedpca_core.settings import short
from fedpca_core.studies.pca_settings import AttackSettings
from fedpca_core.studies.records.at_risk import ATTACKED, CLIENTS, AtRisk
from fedpca_core.studies.sweep import Swept

STUDY = AtRisk()


def show(controls: Controls[AttackSettings]) -> Swept | None:
    """The switch and, once on, the map."""
    layout.section("What is at risk?")
    controls.parameter("at_risk")
    settings = controls.settings()
    if not STUDY.wanted(settings):
        st.caption("Switch it on to measure how many records a client may hold; takes minutes.")
        return None
    found: Swept | None = jobs.study(STUDY, settings, draw).result
    return found


def draw(swept: Swept) -> None:
    """Share of clients whose records are certified, and why it ends where it ends."""
    names = swept.series
    if not names:
        return
    bands = [swept.band(name, "recovered") for name in names]
    counts = max((band.x for band in bands), key=len)
    values = np.full((len(names), len(counts)), np.nan)
    for row, band in enumerate(bands):
        values[row, : len(band.x)] = band.middle
    chart(
        key="at_risk",
        panels=[
            Heat(
                key="at_risk",
                title="Share of clients whose records are all certified",
                values=values,
                row_labels=names,
                column_labels=[short(count) for count in counts],
                x_title="records per client",
                low=0.0,
                high=1.0,
                show_values=True,
                height=90 + 44 * len(names),
                description="For every kind of image and number of records a client, the share of "
                "clients whose records the attack certifies.",
            )
        ],
    )
    st.caption(
        f"{ATTACKED} of {CLIENTS} clients each, their matrix known exactly; the work for each is "
        "limited, and more gets further. Three things can bound it, which this map does not tell "
        "apart: rank (more records than informative features leave the rotation open), precision "
        "of the matrix, and the grid (several sets of whole records may fit). Images that are not "
        "on this machine are left out."
    )
