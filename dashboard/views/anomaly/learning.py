"""How near the corrected and the printed rules come to centralised PCA."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.player import Curve, Panel, chart, replay
from dashboard.shell import jobs, layout
from dashboard.views.anomaly.view import (
    View,
    colour,
    floor,
)
from fedpca_core.studies.detection import comparison
from fedpca_core.studies.detection.comparison import Learning


def learning(view: View) -> None:
    """Corrected and printed rules, and the progress measure."""

    def work(job: jobs.Job) -> Learning:
        return comparison.convergence(view.detection, view.settings, job.report, job.publish)

    def draw(result: Learning) -> None:
        replay(
            key="learning_view",
            rounds=view.settings.rounds,
            panels=[excess_loss(result), distance(result)],
        )
        if result.progress is not None:
            chart(key="progress_view", panels=progress(result.progress))

    jobs.show(view.key("learning"), work, draw, name="learning")
    values, k = view.detection.problem.eigenvalues, view.settings.components
    gap = float(values[k - 1] / max(values[k], 1e-300))
    st.markdown(
        f"The gap at this rank, λ{k}/λ{k + 1}, is **{gap:.2f}**. "
        + (
            "Neighbouring directions are hard to tell apart, so the distance falls slowly while "
            "the loss, which is what detection depends on, is nearly reached."
            if gap < 1.2
            else "The subspace is well determined."
        )
    )
    layout.about(
        "Corrected and as printed",
        "**Projection.** As printed, the gradient loses its whole component along U; but the "
        "penalty compares matrices, and that component is the only force that turns a client's "
        "frame back on Z. The run comes close, the duals grow without end, and it drifts away: "
        "most plainly with participation 1. **Average.** As printed, the server adds Yᵢ/ρ of the "
        "sample; the duals' sum vanishes only over all clients, so a noise floor remains that "
        "falls as ρ grows. The mean of the frames keeps ΣYᵢ = 0 exactly and converges. Both "
        "corrections are the default.",
        formula=r"\mathrm{grad}=G-U\,\mathrm{sym}(U^\top G)\quad\text{instead of}\quad "
        r"G-U(U^\top G)",
        source="Nguyen et al., FedPCA for IoT, eqs 8 and 17; corrected here.",
    )


def excess_loss(learning: Learning) -> Panel:
    """Excess loss of the variants against rounds."""
    return Panel(
        key="approach",
        title="Loss beyond centralised PCA",
        x_title="communication round",
        y_title="excess reconstruction loss per record",
        curves=tuple(
            Curve(
                name,
                table["round"],
                np.maximum(table["excess_loss"], 1e-14),
                colour=colour(name),
                simulation_only=True,
            )
            for name, table in learning.approach.items()
        ),
        integer_x=True,
        height=400,
        description="Excess reconstruction loss of the corrected and the printed rules against "
        "communication rounds, logarithmic.",
    )


def distance(learning: Learning) -> Panel:
    """Subspace distance of the variants against rounds."""
    return Panel(
        key="distance",
        title="Distance to the centralised subspace",
        x_title="communication round",
        y_title="‖sin Θ‖ / √k",
        curves=tuple(
            Curve(
                name,
                table["round"],
                np.maximum(table["distance"], 1e-12),
                colour=colour(name),
                simulation_only=True,
            )
            for name, table in learning.approach.items()
        ),
        integer_x=True,
        height=400,
        description="Distance to the centralised subspace against communication rounds.",
    )


def progress(table: pd.DataFrame) -> list[Panel]:
    """The two parts of the progress measure, the Lagrangian, the duals, and how far Z is off."""
    table = table[table["round"] > 0]  # at the start everything agrees, and a logarithm has no zero
    rounds = table["round"]
    return [
        Panel(
            key="progress",
            title="Progress measure P = consensus + stationarity",
            x_title="communication round",
            y_title="squared norm",
            curves=(
                Curve("consensus Σ‖Uᵢ−Z‖²", rounds, floor(table["consensus"]), colour="series 0"),
                Curve(
                    "stationarity Σ‖grad ℒ‖²",
                    rounds,
                    floor(table["stationarity"]),
                    colour="series 1",
                ),
            ),
            follows=False,
            integer_x=True,
            height=300,
            description="Consensus gap and squared gradient over rounds.",
        ),
        Panel(
            key="lagrangian",
            title="Augmented Lagrangian",
            x_title="communication round",
            y_title="ℒ",
            curves=(Curve("ℒ over all clients", rounds, table["lagrangian"], colour="series 2"),),
            log_y=False,
            follows=False,
            integer_x=True,
            height=300,
            description="Augmented Lagrangian over rounds.",
        ),
        Panel(
            key="duals",
            title="Duals",
            x_title="communication round",
            y_title="size",
            curves=(
                Curve("‖Σ Yᵢ‖", rounds, floor(table["dual_sum"]), colour="series 4"),
                Curve("max |Yᵢ|", rounds, floor(table["dual_size"]), colour="series 3"),
            ),
            follows=False,
            integer_x=True,
            height=300,
            description="Norm of the sum of all duals, which must stay at rounding, and the "
            "largest dual.",
        ),
        Panel(
            key="departure",
            title="The average is not orthonormal",
            x_title="communication round",
            y_title="‖ZᵀZ − I‖",
            curves=(Curve("‖ZᵀZ − I‖", rounds, floor(table["departure"]), colour="series 5"),),
            follows=False,
            integer_x=True,
            height=300,
            description="Departure of the consensus average from orthonormality over rounds.",
        ),
    ]
