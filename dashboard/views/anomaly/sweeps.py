"""One setting varied, all others as they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.player import Curve, Panel, chart
from dashboard.shell import jobs, share
from dashboard.views.anomaly.view import (
    View,
)
from fedpca_core.studies.detection import comparison
from fedpca_core.studies.detection.settings import AnomalySettings


def sweeps(view: View) -> None:
    """One setting varied, all others as they are."""
    axis = view.controls.parameter("sweep", as_buttons=True)
    settings = replace(view.settings, sweep=axis)

    def work(job: jobs.Job) -> pd.DataFrame | None:
        table = None
        for table in comparison.sweep(view.traffic, settings, job.report):
            job.publish(table)
        return table

    def draw(table: pd.DataFrame) -> None:
        label = AnomalySettings.parameters()["sweep"].choices[axis]
        chart(key="sweep_view", panels=along(table, axis, label))
        share.download_csv(table, name="sweep")

    jobs.show(view.key("sweep", axis), work, draw, name="sweep")
    st.markdown(
        {
            "penalty_factor": "The distance has its minimum around factor 4 to 16; detection is "
            "much less sensitive.",
            "components": "A larger rank always lowers the loss, but not the number of mistakes.",
            "clients": "Detection hardly depends on the number of clients; time grows with it.",
        }[axis]
    )


def along(table: pd.DataFrame, axis: str, label: str) -> list[Panel]:
    """AUC and distance along one setting; along the clients also time."""
    x, log = table["value"], axis == "penalty_factor"
    panels = [
        Panel(
            key="sweep_auc",
            title="Detection",
            x_title=label.lower(),
            y_title="AUC",
            curves=(
                Curve("federated", x, table["auc"], colour="FedPG", marker=True),
                Curve("centralised PCA", x, table["centralised"], colour="Centralized"),
                Curve("norm only", x, table["norm"], colour="guide"),
            ),
            log_x=log,
            log_y=False,
            follows=False,
            integer_x=not log,
            description="AUC along the setting beside centralised PCA and the length alone.",
        ),
        Panel(
            key="sweep_distance",
            title="Convergence",
            x_title=label.lower(),
            y_title="distance to the centralised subspace",
            curves=(
                Curve(
                    "federated",
                    x,
                    np.maximum(table["distance"], 1e-12),
                    colour="FedPG",
                    marker=True,
                    simulation_only=True,
                ),
            ),
            log_x=log,
            follows=False,
            integer_x=not log,
            description="Distance to the centralised subspace after the last round.",
        ),
    ]
    if axis == "clients":
        panels.append(
            Panel(
                key="sweep_seconds",
                title="Time",
                x_title=label.lower(),
                y_title="seconds of all clients' steps here",
                curves=(Curve("federated", x, table["seconds"], colour="FedPG", marker=True),),
                log_x=log,
                log_y=False,
                follows=False,
                integer_x=not log,
                description="Seconds of computation of all clients and the server.",
            )
        )
    return panels
