"""One malicious client among many, and which rule of the server heals."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart
from dashboard.shell import jobs, layout
from dashboard.views.anomaly.view import (
    View,
)
from fedpca_core.anomaly.poisoning import RULES, Poisoning, poison


def poisoning(view: View) -> None:
    """One liar among the clients, and four rules of the server."""
    types = sorted({str(name) for name in view.detection.types[view.detection.attack]})
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        preferred = next((i for i, name in enumerate(types) if name.startswith("scan")), 0)
        hidden = st.selectbox(
            "Attack to hide",
            types,
            index=preferred,
            key="hidden",
            bind="query-params",
            help="The liars put the direction into the model that makes this attack look normal.",
        )
        liars = view.controls.parameter("malicious")
    first, last = 101, 180

    def work(job: jobs.Job) -> dict[str, Poisoning]:
        runs: dict[str, Poisoning] = {}
        for index, rule in enumerate(RULES):
            if not job.report(index / len(RULES), f"Server rule: {RULES[rule].lower()}"):
                break
            runs[rule] = poison(
                view.detection,
                view.settings.components,
                hidden,
                rule,
                malicious=liars,
                first=first,
                last=last,
                participation=view.settings.participation,
                seed=view.settings.seed,
            )
            job.publish(dict(runs))
        return runs

    def draw(runs: dict[str, Poisoning]) -> None:
        chart(key="poison_view", panels=panels(runs, hidden, first, last))
        plain = runs["nothing"]
        before = float(plain.auc[plain.rounds < first][-1])
        story = (
            f"Before the attack, “{hidden}” has AUC {before:.2f}. {liars} of "
            f"{view.detection.problem.clients} clients lie{'s' if liars == 1 else ''} "
            f"from round {first} to {last}, and "
            f"{plain.auc[(plain.rounds >= first) & (plain.rounds <= last)].min():.2f} is reached. "
            f"{int(plain.rounds[-1]) - last} rounds after they have gone it is still "
            f"**{plain.auc[-1]:.2f}** with the plain mean"
        )
        for rule in ("reset", "printed", "polar"):
            if rule in runs:
                story += f"; **{runs[rule].auc[-1]:.2f}** ({RULES[rule].lower()})"
        st.markdown(story + ".")

    jobs.show(view.key("poison", hidden, liars), work, draw, name="poison")
    layout.threat_card(
        "A malicious client",
        sees="the broadcasts",
        knows="the direction that hides its attack, and the other uploads of the round (generous)",
        does="sends |S|·target − Σ others, so that the plain average becomes its target",
        outcome="one attack type passes unseen; the others are still caught. The honest clients' "
        "duals absorb the lie (ΣYᵢ ≠ 0), so it stays after the liar has left",
        protection="none",
    )
    layout.about(
        "Which rule heals",
        "**Reset the duals**: all Yᵢ = 0 once the liars have gone; the run then converges to the "
        "right subspace again. **Printed average**: forgets by itself within some forty rounds, "
        "at the price of a noise floor. **Orthonormal uploads**: the server replaces every upload "
        "by its polar factor, which weakens one liar but not five. It reads single uploads, so it "
        "cannot be combined with secure aggregation.",
    )


def panels(runs: Mapping[str, Poisoning], hidden: str, first: int, last: int) -> list[Panel]:
    """Detection of the hidden attack type under every server rule."""
    window = Curve(
        "the liars are there", [first, first, last, last], [0.02, 1.0, 1.0, 0.02], guide=True
    )
    styles = {rule: f"series {index}" for index, rule in enumerate(RULES)}
    return [
        Panel(
            key="poisoned",
            title=f"AUC on “{hidden}”",
            x_title="communication round",
            y_title="AUC of the hidden attack type",
            curves=(
                *(
                    Curve(RULES[rule], run.rounds, run.auc, colour=styles[rule])
                    for rule, run in runs.items()
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
                    run.rounds,
                    np.maximum(run.dual_sum, 1e-12),
                    colour=styles[rule],
                    simulation_only=True,
                )
                for rule, run in runs.items()
            ),
            follows=False,
            integer_x=True,
            height=400,
            description="Norm of the sum of all duals over rounds for each rule.",
        ),
    ]
