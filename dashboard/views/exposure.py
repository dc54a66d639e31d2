"""Drawing what a server recovers from the uploads of personalised PCA."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.player import Curve, Panel, chart
from dashboard.shell import layout
from fedpca_core.questions.personalise.exposure import Exposed
from fedpca_core.settings import short

#: Below this a distance is round-off.
ROUND_OFF = 1e-16


def threat(noisy: bool = False) -> None:
    """Who attacks, and what comes of it, without or with noise at the source."""
    if noisy:
        outcome = (
            "Uᵢ, and from consecutive Uᵢ the noisy covariance Sᵢ + Eᵢ, up to a multiple of the "
            "identity. That is all the client ever released, and what ε covers"
        )
    else:
        outcome = (
            "Uᵢ, and from consecutive Uᵢ the covariance Sᵢ. Uploads are not private. The server "
            "needs only their sum, so secure aggregation changes nothing else; without it, never "
            "start all clients from one basis"
        )
    layout.threat_card(
        "An honest-but-curious server, no secure aggregation",
        sees="every upload V − β hᵢ, and the common basis V it sent",
        knows="the step sizes, the prior and the noise variance",
        does="solves the upload for the client's private basis Uᵢ: as many equations as unknowns",
        outcome=outcome,
        protection="formal" if noisy else "none",
    )


def draw(found: Exposed) -> None:
    """What was recovered, in words and message by message."""
    st.markdown(sentence(found))
    chart(key="personal_exposure", panels=[panel(found)])


def panel(found: Exposed) -> Panel:
    """How far the recovered basis is from the client's own, message by message."""
    curves = (
        ("recovered, common start", found.errors["common"], "personalized"),
        ("recovered, independent starts", found.errors["independent"], "series 2"),
        ("a server that only looks at the common basis", found.baseline, "guide"),
    )
    return Panel(
        key="personal-exposure",
        title="",
        x_title="round of the upload",
        y_title="distance of the recovered basis",
        curves=tuple(
            Curve(
                name,
                found.rounds,
                np.maximum(values, ROUND_OFF),
                colour=colour,
                marker=colour != "guide",
            )
            for name, values, colour in curves
        ),
        integer_x=True,
        follows=False,
        y_range=(ROUND_OFF, 2.0),
        description=f"Median distance between {found.attacked} clients' private bases and what "
        "the server recovers from their uploads, after a common and after independent starts.",
        height=360,
        simulation_only=True,
    )


def sentence(found: Exposed) -> str:
    """What was recovered, in words."""
    first = float(found.errors["common"][1])
    whole = "the whole noisy covariance Sᵢ + Eᵢ" if found.noisy else "the whole covariance Sᵢ"
    parts = [
        "After a common start, **one upload gives a client's private basis with an error of "
        f"{short(first, 1)}**. "
        + (
            f"For {found.moments} of {found.attacked} clients a few rounds give {whole} as well."
            if found.moments
            else f"These few rounds give {whole} of none of the {found.attacked} clients."
        )
    ]
    if found.noisy and np.isfinite(found.own):
        parts.append(
            f"From the client's own Sᵢ what was found differs by **{short(found.own, 2)} times its "
            "size** (median): clipping and noise at the source, which bind every attack."
        )
    if found.records is not None:
        parts.append(
            f"With one sample per client, the **sample itself** is recovered for {found.records} "
            f"of {found.attacked} clients, up to its sign."
        )
    parts.append(
        "After independent starts these few uploads tell little more than the common basis."
        if found.hidden
        else "Independent starts hide the first messages, not the later ones."
    )
    if found.lost:
        parts.append(
            "Where the curve jumps, bases have come close to 45° from the common one: there two "
            "answers fit the same upload and this solver may follow the wrong one. That is no "
            "protection."
        )
    return " ".join(parts)
