"""Drawing the Theory page: a run against its claims, and the other methods beside it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart, replay
from dashboard.shell import layout
from fedpca_core.questions.theory.method import Measured
from fedpca_core.questions.theory.settings import LOW, TheorySettings
from fedpca_core.settings import short

#: Colours of this page by role; the methods here are none of the federated PCA.
CLAIM, OURS, MEASURED = "series 1", "series 0", "series 2"

BADGES: Mapping[str, tuple[str, str]] = {
    "holds": ("holds", "green"),
    "vacuous": ("says nothing here (1 or more)", "orange"),
    "violated": ("violated", "red"),
    "none": ("no claim", "gray"),
}


def draw(found: Measured, settings: TheorySettings) -> None:
    """The verdict on the claim, the run, its numbers, and the wrong fixed point of FedAvg."""
    text, colour = badge(found)
    st.badge(text, color=colour)  # type: ignore[arg-type]
    st.markdown(summary(found))
    replay(key="theory_view", rounds=found.course.rounds, panels=convergence(found))
    cards(found, settings)
    layout.section("The wrong fixed point of FedAvg", "Every method on the same problem, L/λ = κ.")
    st.markdown(floor_sentence(found, settings))
    chart(key="theory_rivals", panels=[rivals(found)])
    work = work_table(found)
    layout.small_table(work, label="What each method costs", numbers=list(work.columns[1:]))


def badge(found: Measured) -> tuple[str, str]:
    """Text and colour of the verdict on the chosen theorem."""
    text, colour = BADGES[found.verdict]
    claim = found.claim
    if claim.factor is None:
        return "No theorem that holds speaks of this choice", colour
    doubt = "" if claim.proved else " (proved for quadratics only)"
    return f"{claim.name}: {text}{doubt}", colour


def summary(found: Measured) -> str:
    """What the run did, in words."""
    course = found.course
    if course.diverged:
        return (
            "**The run diverged**: these step sizes are too long. The bound and the exact norm "
            "above 1 say so beforehand."
        )
    largest = f"{course.largest:.3f}" if np.isfinite(course.largest) else "–"
    arrival = (
        f"the average is within 1e-8 of the minimiser after **{course.arrived} rounds**"
        if course.arrived is not None
        else f"the average ends {short(float(course.distances[-1]), 2)} away from the minimiser, "
        "relative to its size"
    )
    return f"Largest contraction factor seen in a round: **{largest}**; {arrival}."


def convergence(found: Measured) -> list[Panel]:
    """The norm of the theorem over rounds with its promises, and the factor of each round."""
    course, claim = found.course, found.claim
    rounds = np.arange(course.rounds + 1)
    curves = [
        Curve(
            "measured",
            rounds,
            np.maximum(course.norms, 1e-16),
            colour=MEASURED,
            simulation_only=True,
        )
    ]
    lines = [Baseline("no progress", 1.0)]
    promises = [(claim.name, claim.factor, CLAIM), ("our spectral bound", found.spectral, OURS)]
    for name, factor, colour in promises:
        if factor is None:
            continue
        if factor < 1:
            promised = np.maximum(factor**rounds, 1e-16)
            # Where both say the same, the one shows through the other.
            dash = "dot" if colour == OURS else None
            title = f"{name}, ρᵏ"
            curves.append(Curve(title, rounds, promised, colour=colour, dash=dash, guide=True))
        lines.append(Baseline(f"{name}: {factor:.4f}", factor, colour=colour))
    if found.norm is not None:
        exact = f"exact worst case here: {found.norm:.4f}"
        lines.append(Baseline(exact, found.norm, simulation_only=True))
    return [
        Panel(
            key="theory-norm",
            title="The norm of the theorems",
            x_title="round",
            y_title="Φ relative to the start",
            curves=tuple(curves),
            integer_x=True,
            description="Distance to the optimum in the norm of the theorems, round by round, with "
            "what the chosen theorem and our own bound promise.",
            height=380,
        ),
        Panel(
            key="theory-factor",
            title="Contraction in each round",
            x_title="round",
            y_title="Φ after / Φ before",
            curves=(
                Curve(
                    "factor of the round",
                    rounds[: len(course.contractions) + 1],
                    [np.nan, *course.contractions],  # of round k at k; the start has none
                    colour=MEASURED,
                    marker=True,
                    simulation_only=True,
                ),
            ),
            baselines=tuple(lines),
            log_y=False,
            integer_x=True,
            description="By what factor each round shrinks the distance, with horizontal lines at "
            "the claimed factor, our bound and the exact worst case.",
            height=380,
        ),
    ]


def cards(found: Measured, settings: TheorySettings) -> None:
    """The numbers behind the lines."""

    def text(value: float | None) -> str:
        return "–" if value is None else f"{value:.4f}"

    cards = [
        layout.Card(
            "Claimed factor", text(found.claim.factor), found.claim.remark or found.claim.name
        ),
        layout.Card(
            "Our spectral bound",
            text(found.spectral),
            f"any clients with λ = {LOW:g}, L = {settings.high:g}",
            help="Derived here: no clients with these constants and no start make a round "
            "shrink Φ by less: the largest spectral norm of one round over all "
            "curvatures between λ and L.",
        ),
        layout.Card(
            "Exact worst case",
            text(found.norm),
            "one round, on this very problem; simulation only",
            help="Operator norm of one round. A trajectory shows less.",
        ),
        layout.Card(
            "Asymptotic rate",
            text(found.radius),
            "spectral radius, on this very problem; simulation only",
            help="Factor to which rounds settle when many have passed: the largest modulus of "
            "an eigenvalue of one round.",
        ),
    ]
    # What is not known of this method or problem takes no room.
    layout.metric_cards([cards[0], *(card for card in cards[1:] if card.value != "–")])


def rivals(found: Measured) -> Panel:
    """Distance of the average to the minimiser, all methods on one problem."""
    return Panel(
        key="theory-rivals",
        title="",
        x_title="communication round",
        y_title="distance of the average to the minimiser",
        curves=tuple(
            Curve(
                name,
                np.arange(course.rounds + 1),
                np.clip(course.distances, 1e-16, 1e12),
                colour=f"series {index}",
            )
            for index, (name, course) in enumerate(found.rivals.items())
        ),
        integer_x=True,
        description="Relative distance to the common minimiser for FedAvg, gradient descent, "
        "Scaffnew, exact Uzawa and ADMM. FedAvg stops at a floor.",
        height=400,
        simulation_only=True,
    )


def floor_sentence(found: Measured, settings: TheorySettings) -> str:
    """FedAvg's wrong fixed point, in words."""
    distances = found.rivals["FedAvg"].distances
    floor = float(distances[-1])
    if floor > 1e-8 and floor < 0.999 * float(distances[-2]):
        return (
            f"FedAvg is {short(floor, 2)} away from the minimiser after these rounds and still "
            "moving; allow more rounds to see where it stops."
        )
    if floor <= 1e-8:
        why = (
            "one local step is gradient descent"
            if settings.local_steps == 1
            else "the clients are alike, so there is nothing to correct"
        )
        return f"FedAvg converges here too, because {why}."
    return (
        f"**FedAvg stops {short(floor, 2)} away from the minimiser** (relative to its size) with "
        f"{settings.local_steps} local steps: every client walks towards its own minimiser, "
        "and the average of these walks has another fixed point. The multipliers of the other "
        "methods remove exactly that."
    )


def work_table(found: Measured) -> pd.DataFrame:
    """Rounds, local gradients and bytes to an accuracy of 1e-8, method by method."""
    rows = []
    for name, course in found.rivals.items():
        there = course.arrived is not None and course.bytes_up is not None
        work = "exact solves" if course.gradients is None else f"{course.gradients:,}"
        rows.append(
            {
                "Method": name,
                "Rounds to 1e-8": f"{course.arrived}" if there else "not reached",
                "Local gradients per client": work if there else "–",
                "Kilobytes sent up": f"{(course.bytes_up or 0) / 1e3:,.1f}" if there else "–",
                "Distance at the end": short(float(course.distances[-1]), 2),
            }
        )
    return pd.DataFrame(rows)
