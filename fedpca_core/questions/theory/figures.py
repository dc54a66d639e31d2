"""What the Theory page shows: a run against its claims, factors along two axes, all statements."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.questions.theory.iterations import LOW
from fedpca_core.questions.theory.settings import TheorySettings
from fedpca_core.questions.theory.study import AgainstClaims, Factors, Measured
from fedpca_core.settings import plural, short
from fedpca_core.study.panels import ROUNDING, Baseline, Curve, Panel, plot
from fedpca_core.study.parts import (
    About,
    Badge,
    Caption,
    Cards,
    Chart,
    Fold,
    Parts,
    Section,
    Table,
    names,
    words,
)

#: Colours of this page by role; the methods here are none of the federated PCA.
CLAIM, OURS, MEASURED = "series 1", "series 0", "series 2"

BADGES: Mapping[str, tuple[str, str]] = {
    "holds": ("holds", "green"),
    "vacuous": ("says nothing here (1 or more)", "orange"),
    "violated": ("violated", "red"),
    "none": ("no claim", "gray"),
}


def method(found: Measured, settings: TheorySettings) -> Parts:
    """The verdict on the claim, the run, its numbers, and the wrong fixed point of FedAvg."""
    yield Badge(*badge(found))
    yield summary(found)
    yield Chart("theory_view", convergence(found), rounds=found.course.rounds)
    yield cards(found, settings)
    yield Section("The wrong fixed point of FedAvg", "Every method on the same problem, L/λ = κ.")
    yield floor_sentence(found, settings)
    yield Chart("theory_rivals", [rivals(found, settings)])
    yield Table(work_table(found), "What each method costs")


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
        return words("theory-diverged")
    largest = f"{course.largest:.3f}" if np.isfinite(course.largest) else "–"
    arrival = (
        f"the average is within 1e-8 of the minimiser after **{plural(course.arrived, 'round')}**"
        if course.arrived is not None
        else f"the average ends {short(float(course.distances[-1]), 2)} away from the minimiser, "
        "relative to its size"
    )
    return f"Largest contraction factor seen in a round: **{largest}**; {arrival}."


def convergence(found: Measured) -> list[Panel]:
    """The norm of the theorem over rounds with its promises, and the factor of each round."""
    course, claim = found.course, found.claim
    rounds = np.arange(course.rounds + 1)
    look: dict[str, Any] = {"colour": MEASURED, "simulation_only": True}
    curves = [Curve("measured", rounds, np.maximum(course.norms, ROUNDING), **look)]
    lines = [Baseline("no progress", 1.0)]
    promises = [(claim.name, claim.factor, CLAIM), ("our spectral bound", found.spectral, OURS)]
    for name, factor, colour in promises:
        if factor is None:
            continue
        if factor < 1:
            promised = np.maximum(factor**rounds, ROUNDING)
            # Where both say the same, the one shows through the other.
            dash = "dot" if colour == OURS else None
            title = f"{name}, ρᵏ"
            curves.append(Curve(title, rounds, promised, colour=colour, dash=dash, guide=True))
        lines.append(Baseline(f"{name}: {factor:.4f}", factor, colour=colour))
    if found.norm is not None:
        exact = f"exact worst case here: {found.norm:.4f}"
        lines.append(Baseline(exact, found.norm, simulation_only=True))
    each = [np.nan, *course.contractions]  # of round k at k; the start has none
    factors = [Curve("factor of the round", rounds[: len(each)], each, marker=True, **look)]
    return [
        Panel.of("theory-norm", curves),
        Panel.of("theory-factor", factors, baselines=tuple(lines)),
    ]


def cards(found: Measured, settings: TheorySettings) -> Cards:
    """The numbers behind the lines."""

    def text(value: float | None) -> str:
        return "–" if value is None else f"{value:.4f}"

    first, *others = Cards.of(
        "theory-numbers",
        claimed=text(found.claim.factor),
        claim=found.claim.remark or found.claim.name,
        bound=text(found.spectral),
        low=LOW,
        high=settings.high,
        norm=text(found.norm),
        radius=text(found.radius),
    ).cards
    # What is not known of this method or problem takes no room.
    return Cards([first, *(card for card in others if card.value != "–")])


def rivals(found: Measured, settings: TheorySettings) -> Panel:
    """Distance of the average to the minimiser, all methods on one problem."""
    table = AgainstClaims().tables(found, settings)["curves"]
    table = table[table["method"] != "chosen"]
    return Panel.of(
        "theory-rivals",
        plot(
            table.assign(distance=table["distance"].clip(ROUNDING, 1e12)),
            *("round", "distance", "method"),
            colours={name: f"series {index}" for index, name in enumerate(found.rivals)},
            spread=False,
        ),
    )


def floor_sentence(found: Measured, settings: TheorySettings) -> str:
    """FedAvg's wrong fixed point, in words."""
    distances = found.rivals["FedAvg"].distances
    floor = float(distances[-1])
    if floor > 1e-8 and floor < 0.999 * float(distances[-2]):
        return words("theory-moving", floor=short(floor, 2))
    if floor <= 1e-8:
        why = (
            "one local step is gradient descent"
            if settings.local_steps == 1
            else "the clients are alike, so there is nothing to correct"
        )
        return f"FedAvg converges here too, because {why}."
    return words("theory-stops", floor=short(floor, 2), steps=settings.local_steps)


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


#: Colours for what was computed exactly, by problem.
EXACT = {"two scalar clients": MEASURED, "this problem": "series 3"}
SILENT = Baseline("1: says nothing above", 1.0)


def factors(found: Factors, settings: TheorySettings) -> Parts:
    """Where Theorem 1 speaks, and both charts."""
    yield where_it_speaks(found)
    panels = [against_penalty(found, settings), against_steps(found, settings)]
    yield Chart("theory_sweeps", panels)


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
    return Panel.of(
        "theory-penalty",
        curves,
        baselines=(SILENT,),
        axes_id=f"theory-penalty-{settings.kappa}",
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
    return Panel.of(
        "theory-steps",
        (*curves, _vertical("√κ", found.root, 0.0, 1.2)),
        baselines=(SILENT,),
        axes_id=f"theory-steps-{settings.kappa}",
    )


def _vertical(name: str, at: float, low: float, high: float) -> Curve:
    return Curve(name, [at, at], [low, high], colour="guide", guide=True)


def where_it_speaks(found: Factors) -> str:
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


MARKS = names("theory-marks")


def statements(found: pd.DataFrame, settings: TheorySettings) -> Parts:
    """The table of statements, and why one holds although a step of its proof does not."""
    yield Table(
        verdict_table(found),
        "Statements and verdicts",
        numbers=("Violated", "Worst", "Silent"),
        wrapped=("Setting", "Claimed factor"),
    )
    yield Caption(words("theory-worst"))


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


#: What the theorems have to do with PCA.
FOR_PCA = Fold("What this has to do with PCA", [words("theory-admm"), words("theory-personal")])

#: Why Theorem 3 holds although a step of its proof does not.
REPAIR = About.of("theory-repair")
