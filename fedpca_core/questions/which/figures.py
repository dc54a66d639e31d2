"""The panels of "Which one?" as plain data: the front, small multiples, and what would do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.which.remedies import Remedy
from fedpca_core.questions.which.rules import size
from fedpca_core.questions.which.settings import AXES, FrontierSettings
from fedpca_core.settings import short
from fedpca_core.study.panels import Baseline, Curve, Panel

#: Below these nobody asks how much smaller a number is; it is drawn there.
FLOORS: Mapping[str, float] = {
    "sin_theta": 1e-4,
    "relative_error": 1e-9,
    "unexplained": 1e-9,
    "worst_client": 1e-4,
    "leak": 1e-9,
    "records": 0.5,
}
#: What the chart calls the line that nothing beats.
FRONT = "Pareto front"
PROTECTION = {
    "none": "no protection",
    "masked": "masked, heuristically",
    "formal": "differentially private",
}


def label(row: pd.Series, settings: FrontierSettings) -> str:
    """A configuration in a few words."""
    title = METHODS[row["method"]].title
    if math.isnan(row["value"]):
        return title
    if settings.vary == "epsilon":
        return f"{title}, ε = {short(row['value'])}"
    parameter = settings.parameters()[settings.vary]
    return f"{title}, {parameter.label.lower()} {short(row['value'])}"


def along(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.sort_values("value", kind="stable")


def axis_title(axis: str) -> str:
    """What an axis of the chart says, in full."""
    full = {"sin_theta": "sine of the largest angle", "epsilon": "formal ε of a record"}
    return full.get(axis, AXES[axis].lower())


def panel(
    drawn: pd.DataFrame, best: list[int], settings: FrontierSettings) -> Panel:
    """Every method a point or a path, with whiskers over the seeds; the front dashed."""
    across, upward = settings.across, settings.upward
    curves = []
    for method in dict.fromkeys(drawn["method"]):
        rows = along(drawn[drawn["method"] == method])
        curves.append(
            Curve(
                METHODS[method].title,
                floored(rows, across),
                floored(rows, upward),
                lower=floored(rows, upward, "_low"),
                upper=floored(rows, upward, "_high"),
                whiskers=True,
                colour=method,
                marker=True,
                labels=[hover(row, settings) for _, row in rows.iterrows()],
            )
        )
    front = drawn.loc[best]
    curves.append(
        Curve(
            FRONT,
            floored(front, across),
            floored(front, upward),
            colour="guide",
            guide=True,
            labels=[hover(row, settings) for _, row in front.iterrows()],
        )
    )
    return Panel(
        key="frontier",
        title="",
        x_title=axis_title(across),
        y_title=axis_title(upward),
        curves=tuple(curves),
        log_x=True,
        follows=False,
        height=480,
        axes_id=f"frontier-{across}-{upward}",
        description="Every method at every value: medians over the seeds with whiskers over all of "
        "them, and the front of those that no other beats on both axes.",
        simulation_only=True,
    )


def floored(rows: pd.DataFrame, axis: str, end: str = "") -> Any:
    return np.maximum(rows[f"{axis}{end}"].to_numpy(dtype=float), FLOORS.get(axis, 0.0))


def hover(row: pd.Series, settings: FrontierSettings) -> str:
    """Configuration and what crossed the wire, for the pointer."""
    lines = [
        label(row, settings),
        f"{row['rounds']:.0f} rounds, {size(row['bytes_client'])} a client, "
        f"{row['local_products']:.0f} products",
        PROTECTION[row["protection"]],
        protection(row),
    ]
    return "\n".join(line for line in [*lines, str(row["note"])] if line)


def protection(row: pd.Series) -> str:
    """What is known of a client's safety: an ε, or how close the best attack comes."""
    if row["protection"] == "formal":
        return f"ε = {short(round(row['epsilon'], 3))} for one record"
    read = f"the server {row['finding']}"
    return read + (f"; {row['records']:.0f} records to the last digit" * bool(row["records"] > 0))


def small(rows: pd.DataFrame, name: str, measure: str, settings: FrontierSettings) -> Panel:
    curves = []
    for method in dict.fromkeys(rows["method"]):
        own = along(rows[rows["method"] == method])
        curves.append(
            Curve(
                METHODS[method].title,
                own["value"].to_numpy(dtype=float),
                floored(own, measure),
                lower=floored(own, measure, "_low"),
                upper=floored(own, measure, "_high"),
                colour=method,
                marker=True,
            )
        )
    described = settings.parameters()[name].label.lower()
    return Panel(
        key=f"strip-{name}-{measure}",
        title=f"{AXES[measure]} over {described}",
        x_title=described,
        y_title=axis_title(measure),
        curves=tuple(curves),
        log_x=name == "clients",
        follows=False,
        height=240,
        description=f"{AXES[measure]} of every method over {described}.",
        simulation_only=True,
    )


def remedy_panel(remedy: Remedy, settings: FrontierSettings) -> Panel:
    """What the best candidate loses at every value that was tried, and what it may lose."""
    tried = remedy.tried[np.isfinite(remedy.tried["value"].astype(float))]
    tried = tried[tried["lost"].notna()]
    described = settings.parameters()[remedy.name].label
    curve = Curve(
        "Best candidate",
        tried["value"].to_numpy(dtype=float),
        np.maximum(tried["lost"].to_numpy(dtype=float), FLOORS["unexplained"]),
        lower=np.maximum(tried["low"].to_numpy(dtype=float), FLOORS["unexplained"]),
        upper=np.maximum(tried["high"].to_numpy(dtype=float), FLOORS["unexplained"]),
        colour="centralized",
        marker=True,
        labels=[METHODS[key].title for key in tried["method"]],
    )
    limit = settings.most_lost
    return Panel(
        key=f"remedy-{remedy.name}",
        title=f"Variance lost over {described.split(',')[0].lower()}",
        x_title=described.lower(),
        y_title=AXES["unexplained"].lower(),
        curves=(curve,),
        baselines=() if math.isinf(limit) else (Baseline("at most", limit),),
        log_x=True,
        follows=False,
        height=260,
        description=f"The least variance that a candidate loses at each {described.lower()} that "
        "was tried, with the span over the seeds, and what was asked for.",
        simulation_only=True,
    )
