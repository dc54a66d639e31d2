"""Drawing the sweep of the Personalise page: the three methods along one axis."""

from __future__ import annotations

import math
from collections.abc import Mapping

import streamlit as st

from dashboard.player import Curve, Panel, chart
from dashboard.shell import layout
from dashboard.views.personal import TIE, UNCHANGED, error_title, name
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.papers.personal import expected_curve
from fedpca_core.questions.personalise.settings import ALONE, COMPARED, SHARED, PersonaliseSettings
from fedpca_core.questions.personalise.sweep import (
    AXES,
    FRESH,
    MOST_CLIENTS,
    better_at_the_end,
    crossing,
    largest_gain,
)
from fedpca_core.settings import short
from fedpca_core.study.sweep import Swept

AXIS_TITLES: Mapping[str, str] = {
    "heterogeneity": "heterogeneity (spread of the random step)",
    "samples": "samples per client",
    "clients": "clients",
}


def draw(found: Swept, settings: PersonaliseSettings) -> None:
    """The three methods along one axis, and where they cross."""
    st.markdown(sentence(found))
    chart(key="personal_sweep", panels=[panel(found, settings)])
    st.caption(size(settings))
    for reason in dict.fromkeys(found.refusals.values()):
        layout.sentence(reason, kind="note")


def size(settings: PersonaliseSettings) -> str:
    """How the sweep was measured, where that differs from the chart above."""
    sets = "one data set" if settings.datasets == 1 else f"{settings.datasets} data sets"
    text = f"Medians over {sets}; baselines at their limits, personalised PCA when it has settled."
    if settings.vary != "clients" and settings.clients > MOST_CLIENTS:
        text += f" With {MOST_CLIENTS} of the {settings.clients} clients, to answer soon."
    if not math.isinf(settings.epsilon):
        text += f" Every run has noise at the source, ε = {short(settings.epsilon)}. {UNCHANGED}"
    return text


def panel(found: Swept, settings: PersonaliseSettings) -> Panel:
    """Fresh error of the three methods along one axis, with a mark at the page's setting."""
    bands = {key: found.band(METHODS[key].title, FRESH) for key in COMPARED}
    several = settings.datasets > 1
    lines = [
        Curve(
            METHODS[key].title,
            band.x,
            band.middle,
            lower=band.lower if several else None,
            upper=band.upper if several else None,
            colour=key,
            marker=True,
        )
        for key, band in bands.items()
    ]
    here, axis = float(getattr(settings, found.parameter)), bands[ALONE].x
    if axis[0] <= here <= axis[-1]:
        ends = [
            float(min(band.lower.min() for band in bands.values())),
            float(max(band.upper.max() for band in bands.values())),
        ]
        lines.append(Curve("this page's setting", [here, here], ends, colour="guide", guide=True))
    expected = expected_curve(settings)
    if expected is not None:
        figure, values = expected
        title = f"personalised PCA at the size of Figure {figure.name}"
        lines.append(Curve(title, figure.values, values, colour="simulation", guide=True))
    return Panel(
        key="personal-sweep",
        title="",
        x_title="heterogeneity that personalised PCA assumes"
        if (found.parameter, settings.problem) == ("heterogeneity", "table")
        else AXIS_TITLES[found.parameter],
        y_title=error_title(settings, "fresh"),
        curves=tuple(lines),
        log_x=True,
        log_y=False,
        follows=False,
        axes_id=f"personal-sweep-{found.parameter}",
        description="Error of the three methods after they have settled: personalised PCA follows "
        "the shared model where clients are alike and training alone where they are not.",
        height=400,
        simulation_only=True,
    )


def sentence(found: Swept) -> str:
    """Where the baselines cross and where personalised PCA gains most."""
    axis = found.band(METHODS[ALONE].title, FRESH).x
    if len(axis) + len(found.refusals) < len(AXES[found.parameter]):
        return "Still running: values further to the right are on their way."

    def at(value: float) -> str:
        if found.parameter == "heterogeneity":
            return f"a heterogeneity of {short(value, 2)}"
        return f"{value:.0f} {AXIS_TITLES[found.parameter]}"

    where = crossing(found)
    if where is not None:
        extremes = f"Training alone and one shared model ({name(SHARED)}) cross at **{at(where)}**."
    else:
        who = "One shared model" if better_at_the_end(found) == SHARED else "Training alone"
        extremes = f"{who} is the better extreme all along."
    place, gain = largest_gain(found)
    if gain <= TIE:
        return f"{extremes} Personalised PCA never gains more than {TIE} over the better one."
    return (
        f"{extremes} Personalised PCA gains most over the better one, **{gain:.3f}**, "
        f"at {at(place)}."
    )
