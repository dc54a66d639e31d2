"""The maps of what is at risk: records a client, or noise, against the kind of data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import streamlit as st

from dashboard.player import Heat, chart
from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from fedpca_core.questions.attack.records.at_risk import (
    ATTACKED,
    CLIENTS,
    NOISY_RECORDS,
    PRECISION,
    RANK,
    RECORDS,
    ROWS,
    SEVERAL,
    AtRisk,
    NoiseAtRisk,
)
from fedpca_core.questions.attack.records.at_risk import NOISE as NOISES
from fedpca_core.settings import short
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.sweep import Swept

STUDY, NOISE = AtRisk(), NoiseAtRisk()
#: Why a row of the map ends.
BOUNDARY = {
    RANK: "*rank*, the records span all that the features allow, and a matrix cannot tell more "
    "apart",
    SEVERAL: "*grid*, several sets of records on the grid explain the matrix",
    PRECISION: "*precision*, too few features are left over, or rounding and noise are too large, "
    "to tell records from chance",
}


def show(controls: Controls[AttackSettings]) -> tuple[Swept | None, Swept | None]:
    """The switch and, once on, the maps."""
    layout.section("What is at risk?")
    controls.parameter("at_risk")
    settings = controls.settings()
    if not STUDY.wanted(settings):
        st.caption(
            "Switch it on to measure how many records a client may hold, and how much noise it "
            "takes: the first cells at once, all of them in under a minute."
        )
        return None, None
    found: Swept | None = jobs.study(
        STUDY, settings, lambda s: draw(s, "records per client", RECORDS)
    ).result
    noisy: Swept | None = jobs.study(
        NOISE, settings, lambda s: draw(s, "relative noise on uploads", NOISES)
    ).result
    st.caption(
        f"{ATTACKED} of {CLIENTS} clients each; the work for each is limited. In the first map "
        f"their matrix is known exactly; in the second it is read off two noisy messages of SSI, "
        f"{NOISY_RECORDS} records a client. An empty cell was not run: not yet, or because this "
        "machine does not have the data or the data not so many records."
    )
    return found, noisy


def draw(swept: Swept, varied: str, varying: Sequence[float]) -> None:
    """Share of clients whose records are certified, and why it ends where it ends.

    The map has all its cells from the beginning, so that nothing moves while they fill.
    """
    names, columns = list(ROWS), np.sort(varying)
    bands = [swept.band(name, "recovered") for name in names]
    values = np.full((len(names), len(columns)), np.nan)
    for row, band in zip(values, bands, strict=True):
        row[np.searchsorted(columns, band.x)] = band.middle
    chart(
        key=f"at_risk_{swept.parameter}",
        panels=[
            Heat(
                key=f"at_risk_{swept.parameter}",
                title=f"Share of clients whose records are all certified, by {varied}",
                values=values,
                row_labels=names,
                column_labels=[short(value) for value in columns],
                x_title=varied,
                low=0.0,
                high=1.0,
                show_values=True,
                height=90 + 44 * len(names),
                description="For every kind of data, the share of clients whose records the "
                f"attack certifies, by {varied}.",
            )
        ],
    )
    st.markdown("\n".join(f"- {boundary(swept, name, varied)}" for name in swept.series))


def boundary(swept: Swept, name: str, varied: str) -> str:
    """Where a row of the map ends, and what ends it."""
    recovered, why = swept.band(name, "recovered"), swept.band(name, "obstacle")
    ends = np.flatnonzero(recovered.middle < 1.0)
    if not len(ends):
        return f"**{name}**: all of them, up to {short(recovered.x[-1])} {varied}."
    first = int(ends[0])
    reason = BOUNDARY[int(why.middle[first])]
    where = f"at {short(recovered.x[first])}"
    if first > 0:
        where = f"between {short(recovered.x[first - 1])} and {short(recovered.x[first])}"
    return f"**{name}** ends {where} {varied}: {reason}."
