"""A few malicious clients among many, and which rule of the server heals."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart
from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from fedpca_core.questions.anomaly.poisoned import FIRST, LAST, ROUNDS, RULES, Courses, preferred
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.catalogue import ATTACK_TYPES
from fedpca_core.study.own_data import OwnData


def choose(controls: Controls[AnomalySettings], data: OwnData | None) -> None:
    """The attack to hide and how many hide it; who they are."""
    row = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    job = jobs.study(ATTACK_TYPES, controls.settings(), lambda _: None, data=data)
    with row:
        if types := job.result:
            first = preferred(types)
            others = ["", *(name for name in types if name != first)]
            controls.parameter("hidden", options=others, empty=first)
        controls.parameter("malicious")
    layout.threat_card(
        "Malicious clients",
        sees="the broadcasts",
        knows="the direction that hides their attack, and the other uploads of the round "
        "(generous)",
        does="send what turns the plain average of the round into their target",
        outcome="one attack type passes unseen while they lie. The honest clients' duals absorb "
        "the lie (ΣYᵢ ≠ 0), so some of it may stay after the liars have left",
        protection="none",
    )


def draw(found: Courses, settings: AnomalySettings) -> None:
    """Detection of the hidden attack under every rule, and what the duals remember."""
    chart(key="poison_view", panels=panels(found))
    plain = found.rules["nothing"]
    story = (
        f"Before the attack, “{found.hidden}” has AUC {plain.before:.2f}. {found.malicious} of "
        f"{found.facts.clients} clients lie{'s' if found.malicious == 1 else ''} "
        f"from round {FIRST} to {LAST}, and {plain.worst:.2f} is reached. "
        f"{ROUNDS - LAST} rounds after they have gone it is still "
        f"**{plain.after:.2f}** with the plain mean"
    )
    for rule in ("reset", "printed", "polar"):
        if rule in found.rules:
            story += f"; **{found.rules[rule].after:.2f}** ({RULES[rule].lower()})"
    st.markdown(story + ".")


def explain() -> None:
    """Which rule heals."""
    layout.about(
        "Which rule heals",
        "**Reset the duals**: all Yᵢ = 0 once the liars have gone; the run then converges to the "
        "right subspace again. **Printed average**: forgets by itself, at the price of a noise "
        "floor. **Orthonormal uploads**: the server replaces every upload by its polar factor, "
        "which bounds what one liar can do but not what several can. It reads single uploads, so "
        "it cannot be combined with secure aggregation.",
    )


def panels(found: Courses) -> list[Panel]:
    """AUC of the hidden attack and the sum of the duals under every server rule."""
    window = Curve(
        "the liars are there", [FIRST, FIRST, LAST, LAST], [0.02, 1.0, 1.0, 0.02], guide=True
    )
    styles = {rule: f"series {index}" for index, rule in enumerate(RULES)}
    return [
        Panel(
            key="poisoned",
            title=f"AUC on “{found.hidden}”",
            x_title="communication round",
            y_title="AUC of the hidden attack type",
            curves=(
                *(
                    Curve(RULES[rule], course.rounds, course.auc, colour=styles[rule])
                    for rule, course in found.rules.items()
                ),
                window,
            ),
            baselines=(Baseline("guessing", 0.5),),
            log_y=False,
            y_range=(0, 1.02),
            follows=False,
            integer_x=True,
            height=400,
            description="AUC of the attack type that the liars hide, over rounds, for each rule.",
        ),
        Panel(
            key="dualsum",
            title="What the duals remember: ‖Σ Yᵢ‖",
            x_title="communication round",
            y_title="‖Σ Yᵢ‖",
            curves=tuple(
                Curve(
                    RULES[rule],
                    course.rounds,
                    np.maximum(course.dual_sum, 1e-12),
                    colour=styles[rule],
                )
                for rule, course in found.rules.items()
            ),
            follows=False,
            integer_x=True,
            height=400,
            description="Norm of the sum of all duals over rounds for each rule.",
            simulation_only=True,
        ),
    ]
