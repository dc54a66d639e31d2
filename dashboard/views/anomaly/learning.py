"""How near the corrected and the printed rules come to centralised PCA."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.player import Curve, Panel, chart, replay
from dashboard.shell import layout
from dashboard.views.anomaly.common import colour, floor
from fedpca_core.questions.anomaly.learning import FULL_ROUNDS, Learnt
from fedpca_core.questions.anomaly.settings import AnomalySettings

#: Digits as indices.
LOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def draw(found: Learnt, settings: AnomalySettings) -> None:
    """Corrected and printed rules, and the progress measure."""
    replay(
        key="learning_view",
        rounds=settings.rounds,
        panels=[excess_loss(found), distance(found)],
    )
    if found.progress is not None:
        if settings.rounds > FULL_ROUNDS:
            st.caption(f"Below: the first {FULL_ROUNDS} rounds.")
        chart(key="progress_view", panels=progress(found.progress))
    last, after = (str(settings.components + more).translate(LOW) for more in (0, 1))
    st.markdown(
        f"The gap at this rank, λ{last}/λ{after}, is **{found.gap:.2f}** (simulation only). "
        + (
            "Neighbouring directions are hard to tell apart, so the distance falls slowly while "
            "the loss, which is what detection depends on, is nearly reached."
            if found.gap < 1.2
            else "The subspace is well determined."
        )
    )


def explain() -> None:
    """What is corrected."""
    layout.about(
        "Corrected and as printed",
        "**Projection.** As printed, the gradient loses its whole component along U; but the "
        "penalty compares matrices, and that component is the only force that turns a client's "
        "basis back on Z. The run comes close, the duals grow without end, and it drifts away: "
        "most plainly with participation 1. **Average.** As printed, the server adds Yᵢ/ρ of the "
        "sample; the duals' sum vanishes only over all clients, so a noise floor remains that "
        "falls as ρ grows. The mean of the bases keeps ΣYᵢ = 0 exactly and converges. Both "
        "corrections are the default.",
        formula=r"\mathrm{grad}=G-U\,\mathrm{sym}(U^\top G)\quad\text{instead of}\quad "
        r"G-U(U^\top G)",
        source="equations 8 and 17; corrected here.",
        papers=("iot",),
    )
    layout.about(
        "What the charts measure",
        "**‖sin Θ‖ / √k**: sines of the principal angles to the subspace of centralised PCA, root "
        "mean square; 0 is the same subspace, 1 a right angle throughout. **Consensus** is how far "
        "the clients’ matrices Uᵢ are from their average Z, **stationarity** how steep their terms "
        "of ℒ still are; both vanish exactly at a solution. The **augmented Lagrangian** ℒ is the "
        "clients’ losses together with the price of disagreeing. The **duals** Yᵢ remember "
        "how each client disagreed in earlier rounds; the mean of the Uᵢ keeps their sum at zero. "
        "The average of orthonormal matrices is shorter than they are, so Z is orthonormalised "
        "before it scores a flow.",
        papers=("iot",),
    )


def excess_loss(found: Learnt) -> Panel:
    """Excess loss of the variants against rounds."""
    return _approach(
        found,
        key="approach",
        column="excess_loss",
        lowest=1e-14,
        title="Loss beyond centralised PCA",
        y_title="excess reconstruction loss per record",
        description="Excess reconstruction loss of the corrected and the printed rules against "
        "communication rounds, logarithmic.",
    )


def distance(found: Learnt) -> Panel:
    """Subspace distance of the variants against rounds."""
    return _approach(
        found,
        key="distance",
        column="distance",
        lowest=1e-12,
        title="Distance to the centralised subspace",
        y_title="‖sin Θ‖ / √k",
        description="Distance to the centralised subspace against communication rounds.",
    )


def _approach(
    found: Learnt,
    *,
    key: str,
    column: str,
    lowest: float,
    title: str,
    y_title: str,
    description: str,
) -> Panel:
    curves = tuple(
        Curve(name, table["round"], np.maximum(table[column], lowest), colour=colour(name))
        for name, table in found.approach.items()
    )
    return Panel(
        key=key,
        title=title,
        x_title="communication round",
        y_title=y_title,
        curves=curves,
        integer_x=True,
        height=400,
        description=description,
        simulation_only=True,
    )


def progress(table: pd.DataFrame) -> list[Panel]:
    """The two parts of the progress measure, the Lagrangian, the duals, and how far Z is off.

    All but the last need what only the clients hold.
    """
    table = table[table["round"] > 0]  # at the start everything agrees, and a logarithm has no zero
    rounds = table["round"]

    def panel(
        key: str, title: str, y_title: str, description: str, *curves: Curve, truth: bool = True
    ) -> Panel:
        return Panel(
            key=key,
            title=title,
            x_title="communication round",
            y_title=y_title,
            curves=curves,
            log_y=key != "lagrangian",
            follows=False,
            integer_x=True,
            height=300,
            description=description,
            simulation_only=truth,
        )

    return [
        panel(
            "progress",
            "Progress measure P = consensus + stationarity",
            "squared norm",
            "Consensus gap and squared gradient over rounds.",
            Curve("consensus Σ‖Uᵢ−Z‖²", rounds, floor(table["consensus"]), colour="series 0"),
            Curve(
                "stationarity Σ‖grad ℒ‖²", rounds, floor(table["stationarity"]), colour="series 1"
            ),
        ),
        panel(
            "lagrangian",
            "Augmented Lagrangian",
            "ℒ",
            "Augmented Lagrangian over rounds.",
            Curve("ℒ over all clients", rounds, table["lagrangian"], colour="series 2"),
        ),
        panel(
            "duals",
            "Duals",
            "size",
            "Norm of the sum of all duals, which must stay at rounding, and the largest dual.",
            Curve("‖Σ Yᵢ‖", rounds, floor(table["dual_sum"]), colour="series 4"),
            Curve("max |Yᵢ|", rounds, floor(table["dual_size"]), colour="series 3"),
        ),
        panel(
            "departure",
            "The average is not orthonormal",
            "‖ZᵀZ − I‖",
            "Departure of the consensus average from orthonormality over rounds.",
            Curve("‖ZᵀZ − I‖", rounds, floor(table["departure"]), colour="series 5"),
            truth=False,
        ),
    ]
