"""One setting varied, all others as they are."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.player import Curve, Panel, chart
from dashboard.shell import layout
from dashboard.shell.controls import Controls
from dashboard.views.anomaly.common import colour
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.sweeps import best, span
from fedpca_core.settings import short
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.sweep import Swept


def choose(controls: Controls[AnomalySettings], data: OwnData | None) -> None:
    """What varies, and from how many seeds."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        controls.parameter("sweep", as_buttons=True)
        controls.parameter("seeds")


def draw(found: Swept, settings: AnomalySettings) -> None:
    """AUC and distance along one setting, and where they are best."""
    parameter = settings.parameters()[found.parameter]
    title = settings.algorithm().title
    chart(key="sweep_view", panels=along(found, parameter.label, title))
    near, smallest = best(found, "distance", lowest=True)
    text = (
        f"After {settings.rounds} rounds the distance to the centralised subspace is smallest, "
        f"{short(smallest, 2)}, at {parameter.label.lower()} {short(near)} (simulation only)."
    )
    if "norm" in found.series:
        at, highest = best(found, "auc")
        low, high = span(found, "auc")
        text += (
            f" The AUC is highest, {highest:.3f}, at {short(at)}; it varies between {low:.3f} and "
            f"{high:.3f}."
        )
    st.markdown(text)
    for reason in dict.fromkeys(found.refusals.values()):
        layout.sentence(reason, kind="note")


def explain() -> None:
    """What varies and what stays."""
    layout.about(
        "What varies, and what stays",
        "Every point is a run of its own with all other settings as they are in the sidebar. With "
        "several seeds the curve is the median and the band spans all of them; a seed draws the "
        "start and the participants, and with synthetic traffic the records too.",
    )


def along(found: Swept, label: str, title: str) -> list[Panel]:
    """AUC, distance and time along one setting."""
    log = found.parameter in ("penalty_factor", "local_steps")
    whole = found.parameter != "penalty_factor"
    panels = []
    if "norm" in found.series:
        panels.append(
            _panel(
                label,
                log,
                whole,
                "sweep_auc",
                "Detection",
                "AUC",
                "AUC along the setting beside centralised PCA and the length alone.",
                _curve(found, "federated", "auc", title, title),
                _curve(found, "centralised", "auc", "centralised PCA", "Centralised PCA", True),
                _curve(found, "norm", "auc", "norm only", "Norm only"),
            )
        )
    panels.append(
        _panel(
            label,
            log,
            whole,
            "sweep_distance",
            "Convergence",
            "distance to the centralised subspace",
            "Distance to the centralised subspace after the last round.",
            _curve(found, "federated", "distance", title, title, True),
        )
    )
    if found.parameter in ("clients", "local_steps"):
        panels.append(
            _panel(
                label,
                log,
                whole,
                "sweep_seconds",
                "Time",
                "seconds of all clients' steps here",
                "Seconds of computation of all clients and the server.",
                _curve(found, "federated", "seconds", title, title),
            )
        )
    return panels


def _panel(
    label: str,
    log: bool,
    whole: bool,
    key: str,
    title: str,
    y_title: str,
    description: str,
    *curves: Curve,
) -> Panel:
    return Panel(
        key=key,
        title=title,
        x_title=label.lower(),
        y_title=y_title,
        curves=curves,
        log_x=log,
        log_y=key == "sweep_distance",
        follows=False,
        integer_x=whole,
        description=description,
    )


def _curve(
    found: Swept, series: str, measure: str, name: str, look: str, truth: bool = False
) -> Curve:
    band = found.band(series, measure)
    least = 1e-12 if measure == "distance" else 0.0
    several = found.table["seed"].nunique() > 1
    return Curve(
        name,
        band.x,
        np.maximum(band.middle, least),
        lower=np.maximum(band.lower, least) if several else None,
        upper=np.maximum(band.upper, least) if several else None,
        colour=colour(look),
        marker=series == "federated",
        simulation_only=truth,
    )
