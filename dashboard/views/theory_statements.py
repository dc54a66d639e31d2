"""Drawing the verdicts of the Theory page, and its bridge to PCA."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.player import Curve, Panel, chart
from dashboard.shell import layout
from fedpca_core.questions.theory.bridge import Exhibit, arrivals

MARKS = {
    "holds": "✓ holds",
    "false as printed": "✗ false as printed",
    "corrected: holds": "✓ holds, corrected here",
    "corrected: fails": "✗ correction fails",
}


def draw_verdicts(found: pd.DataFrame) -> None:
    """The table of statements."""
    table = verdict_table(found)
    layout.small_table(
        table,
        label="Statements and verdicts",
        numbers=("Violated", "Worst", "Silent"),
        wrapped=("Setting", "Claimed factor"),
    )
    st.caption(
        "Worst: the largest measured factor over the claimed one. Silent: further comparisons "
        "where the claim is 1 or more. Theorem 8 has no statement to check."
    )


def verdict_table(found: pd.DataFrame) -> pd.DataFrame:
    """The table of verdicts as texts for the page."""
    return pd.DataFrame(
        {
            "Statement": found["theorem"],
            "Verdict": [MARKS[verdict] for verdict in found["verdict"]],
            "Setting": found["setting"],
            "Claimed factor": found["claim"],
            "Violated": [
                f"{violated}/{cases}"
                for violated, cases in zip(found["violated"], found["cases"], strict=True)
            ],
            "Worst": [f"{worst:.4g}" for worst in found["worst"]],
            "Silent": found["vacuous"],
        }
    )


def repair() -> None:
    """Fold away why Theorem 3 holds although a step of its proof does not."""
    layout.about(
        "Theorem 3 holds for any strongly convex smooth functions",
        "Gradient steps end within ((L−λ)/(2r+L+λ))ⁿ of their first distance to the exact solve "
        "Y⁺. An inequality in the proof of Lemma 11, which bounds that distance, is false; the "
        "identity below takes its place, quadratic or not. M inverts the mean of the local "
        "problem's Hessian between Y⁺ and the optimum, B = ωM − I, and ‖B‖ and ‖rM‖ are the two "
        "terms of ρ of Theorem 1. So the distance times ω is at most (1 + ρ)Φ, hence 2Φ wherever "
        "the claim speaks. Theorems 9 and 10 are proved for quadratics only.",
        formula=r"\omega\,(Y^+ - Kz) = (\omega E_Z - E_H) - B\,E_H - rM\,\omega E_Z",
        papers=("dfl",),
    )


def draw_bridge(found: Exhibit) -> None:
    """Shift-and-invert beside its rivals."""
    st.markdown(bridge_sentence(found))
    chart(key="theory_bridge", panels=[bridge_panel(found)])


def bridge_panel(found: Exhibit) -> Panel:
    """Shift-and-invert and its rivals on the same clients."""
    curves = [
        Curve(name, course.rounds, course.sines, colour=f"series {index}")
        for index, (name, course) in enumerate(found.courses.items())
        if len(course.rounds) > 1
    ]
    return Panel(
        key="theory-bridge",
        title="",
        x_title="communication round",
        y_title="squared sine to the leading eigenvector",
        curves=tuple(curves),
        follows=False,
        integer_x=True,
        description="Convergence to the leading eigenvector of the power method, Lanczos, and "
        "shift-and-invert with three inner solvers.",
        height=360,
        simulation_only=True,
    )


def bridge_sentence(found: Exhibit) -> str:
    """Who wins, and whether the theory applies."""
    state = (
        "Every client's term is convex here, so the factors above apply to the inner solves."
        if found.convex
        else f"The worst client's largest eigenvalue is {found.excess:.2f} times that of the mean, "
        "beyond the shift: its term is not convex and **no factor above applies**."
    )
    order = ", ".join(f"{name} {count}" for name, count in arrivals(found).items())
    gone = [name for name, course in found.courses.items() if course.diverged]
    text = f"{state} Rounds to 1e-10: {order or 'none arrives'}."
    return f"{text} **Diverged: {', '.join(gone)}.**" if gone else text
