"""FAPS, Figure 1(b) at live size: rounds to recover a client against rounds to converge."""

from __future__ import annotations

import streamlit as st

from dashboard.player import Curve, Panel, chart
from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from fedpca_core.questions.attack.recovery import DONE, DRAWS, Recovery
from fedpca_core.settings import short
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.sweep import Swept

STUDY = Recovery()


def show(controls: Controls[AttackSettings]) -> Swept | None:
    """The switch and, once on, the sweep over features as a job and its chart."""
    layout.section("Does it get harder with size?")
    controls.parameter("growth")
    settings = controls.settings()
    if STUDY.wanted(settings):
        found: Swept | None = jobs.study(STUDY, settings, draw).result
        return found
    if settings.growth:
        layout.sentence(STUDY.obstacle(settings), kind="note")
    return None


def draw(swept: Swept) -> None:
    """Both counts against the features, with bands over the draws of the problem."""
    curves = []
    for name, measure, colour in (
        ("rounds to recover the client", "recovered", "heuristic"),
        ("rounds to converge", "converged", "ssi"),
    ):
        band = swept.band("SSI", measure)
        curves.append(
            Curve(
                name=name,
                x=band.x,
                y=band.middle,
                lower=band.lower,
                upper=band.upper,
                colour=colour,
                marker=True,
            )
        )
    chart(
        key="recovery_sweep",
        panels=[
            Panel(
                key="recovery_sweep",
                title="SSI: recovered, and converged",
                x_title="features",
                y_title=f"rounds to {short(DONE)}",
                curves=tuple(curves),
                follows=False,
                simulation_only=True,
                description="Rounds until the linear attack on SSI has recovered the client, "
                "and until SSI has converged, against the number of features.",
            )
        ],
    )
    st.caption(f"Medians over {DRAWS} draws of the data; bands span all of them.")
