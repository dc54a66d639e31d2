"""Drawing the factors of the Theory page against the penalty and against local steps."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart
from dashboard.views.theory import CLAIM, MEASURED, OURS
from fedpca_core.questions.theory.settings import TheorySettings
from fedpca_core.questions.theory.sweeps import Factors
from fedpca_core.settings import short

#: Colours for what was computed exactly, by problem.
EXACT = {"two scalar clients": MEASURED, "this problem": "series 3"}
SILENT = Baseline("1: says nothing above", 1.0)


def draw(found: Factors, settings: TheorySettings) -> None:
    """Where Theorem 1 speaks, and both charts."""
    st.markdown(sentence(found))
    chart(
        key="theory_sweeps",
        panels=[against_penalty(found, settings), against_steps(found, settings)],
    )


def against_penalty(found: Factors, settings: TheorySettings) -> Panel:
    """Factors of exact solves against the penalty."""
    x, claimed = found.penalties[1:], found.claimed[1:]
    curves = [
        Curve("ρ of Theorem 1", x, claimed, colour=CLAIM),
        Curve("its square", x, claimed**2, colour=CLAIM, dash="dot"),
        Curve("our bound for ADMM (ω = r)", x, found.admm[1:], colour=OURS),
    ]
    for name, norms in found.penalty_norms.items():
        here = name == "this problem"
        title = f"exact, {name}"
        curves.append(Curve(title, x, norms[1:], colour=EXACT[name], simulation_only=here))
    beyond = claimed >= 1
    if beyond.any():
        edge = np.where(beyond, 1.0, np.nan)
        upper = np.where(beyond, claimed, np.nan)
        curves.append(
            Curve("Theorem 1 says nothing", x, edge, lower=edge, upper=upper, colour="guide")
        )
    best, factor = found.best
    if best > 0:
        curves.append(_vertical("best r for Theorem 1", best, 0.6, factor))
    return Panel(
        key="theory-penalty",
        title="Against the penalty (exact solves)",
        x_title="penalty factor r / λ",
        y_title="factor of a round",
        curves=tuple(curves),
        baselines=(SILENT,),
        log_x=True,
        log_y=False,
        follows=False,
        axes_id=f"theory-penalty-{settings.condition}",
        description="Claimed and exact factors against the penalty; above 1 the claim says "
        "nothing.",
        height=400,
    )


def against_steps(found: Factors, settings: TheorySettings) -> Panel:
    """Factors at r = 0 against the number of local steps."""
    highest = 3.0  # claims grow without bound where they say nothing
    colours = dict(zip(found.by_steps, (CLAIM, "series 4", OURS), strict=True))
    curves = [
        Curve(name, found.steps, np.minimum(values, highest), colour=colours[name])
        for name, values in found.by_steps.items()
    ]
    for name, norms in found.step_norms.items():
        here = name == "this problem"
        title = f"Scaffnew, exact, {name}"
        curves.append(Curve(title, found.steps, norms, colour=EXACT[name], simulation_only=here))
    if "this problem" in found.step_rates:
        rates = found.step_rates["this problem"]
        title = "Scaffnew, asymptotic, this problem"
        curves.append(Curve(title, found.steps, rates, colour="series 5", simulation_only=True))
    return Panel(
        key="theory-steps",
        title="Against local steps (r = 0)",
        x_title="local steps n",
        y_title="factor of a round",
        curves=(*curves, _vertical("√κ", found.root, 0.0, 1.2)),
        baselines=(SILENT,),
        log_x=True,
        log_y=False,
        y_range=(0.0, 1.6),
        follows=False,
        axes_id=f"theory-steps-{settings.condition}",
        description="Claimed and exact factors against the number of local steps, with a mark at "
        "the square root of the condition number.",
        height=400,
    )


def _vertical(name: str, at: float, low: float, high: float) -> Curve:
    return Curve(name, [at, at], [low, high], colour="guide", guide=True)


def sentence(found: Factors) -> str:
    """Best penalty and vacuous window of Theorem 1, in words."""
    penalty, factor = found.best
    text = (
        f"Theorem 1 promises most at **r = {short(round(penalty, 3))} λ**: a factor of "
        f"{factor:.4f}, against {found.claimed[0]:.4f} at r = 0."
    )
    if found.window is None:
        return text + " It speaks for every r at this condition number."
    begin, end = found.window
    last = f"{end:,.0f}" if end >= 100 else short(end, 3)
    return (
        f"{text} Between **r = {short(begin, 2)} λ and {last} λ it says nothing** (factor of 1 or "
        "more), although the method converges there."
    )
