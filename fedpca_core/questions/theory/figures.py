"""What the Theory page shows: a run against its claims, factors along two axes, all statements."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.consensus import bounds
from fedpca_core.questions.theory.settings import LOW, TheorySettings
from fedpca_core.questions.theory.study import CHOSEN, Measured
from fedpca_core.settings import plural, short
from fedpca_core.study import parts
from fedpca_core.study.panels import ROUNDING, Baseline, Curve, Panel, plot

#: Colours of this page by role; the methods here are none of the federated PCA.
CLAIM, OURS, MEASURED = "series 1", "series 0", "series 2"


def method(found: Measured, settings: TheorySettings) -> parts.Parts:
    """The verdict on the claim, the run, its numbers, and the wrong fixed point of FedAvg."""
    yield parts.Badge(*badge(found))
    yield summary(found)
    yield parts.Chart("theory_view", convergence(found), rounds=len(found.of()) - 1)
    yield cards(found, settings)
    yield parts.Section(
        "The wrong fixed point of FedAvg", "Every method on the same problem, L/λ = κ."
    )
    yield floor_sentence(found, settings)
    yield parts.Chart("theory_rivals", [rivals(found, settings)])
    yield parts.Table(work_table(found), "What each method costs")


def badge(found: Measured) -> tuple[str, str]:
    """Text and colour of the verdict on the chosen theorem."""
    claim, colour = found.claim, parts.names("theory-badge-colours")[found.verdict]
    if claim.factor is None:
        return "No theorem that holds speaks of this choice", colour
    doubt = "" if claim.proved else " (proved for quadratics only)"
    text = parts.names("theory-badges")[found.verdict]
    return f"{claim.name}: {text}{doubt}", colour


def summary(found: Measured) -> str:
    if found.diverged:
        return parts.words("theory-diverged")
    largest, rounds, end = found.summary.iloc[0][["largest_factor", "rounds_to_1e-8", "distance"]]
    text = "–" if np.isnan(largest) else f"{largest:.3f}"
    if np.isnan(rounds):
        return parts.words("theory-away", largest=text, distance=short(end, 2))
    return parts.words("theory-arrived", largest=text, rounds=plural(int(rounds), "round"))


def convergence(found: Measured) -> list[Panel]:
    """The norm of the theorem over rounds with its promises, and the factor of each round."""
    course, claim = found.of(), found.claim
    rounds = course["round"]
    look: dict[str, Any] = {"colour": MEASURED, "simulation_only": True}
    curves = [Curve("measured", rounds, course["norm"].clip(ROUNDING), **look)]
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
    factors = [Curve("factor of the round", rounds, course["factor"], marker=True, **look)]
    return [
        Panel.of("theory-norm", curves),
        Panel.of("theory-factor", factors, baselines=tuple(lines)),
    ]


def cards(found: Measured, settings: TheorySettings) -> parts.Cards:
    """The numbers behind the lines."""

    def text(value: float | None) -> str:
        return "–" if value is None else f"{value:.4f}"

    first, *others = parts.Cards.of(
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
    return parts.Cards([first, *(card for card in others if card.value != "–")])


def rivals(found: Measured, settings: TheorySettings) -> Panel:
    """Distance of the average to the minimiser, all methods on one problem."""
    table = found.curves[found.curves["method"] != CHOSEN]
    return Panel.of(
        "theory-rivals",
        plot(
            table.assign(distance=table["distance"].clip(ROUNDING, 1e12)),
            *("round", "distance", "method"),
            colours={
                name: f"series {index}" for index, name in enumerate(found.summary["method"][1:])
            },
            spread=False,
        ),
    )


def floor_sentence(found: Measured, settings: TheorySettings) -> str:
    """FedAvg's wrong fixed point, in words."""
    before, floor = found.of("FedAvg")["distance"].iloc[-2:]
    if 1e-8 < floor < 0.999 * before:
        return parts.words("theory-moving", floor=short(floor, 2))
    if floor <= 1e-8:
        return parts.names("theory-fedavg")["single" if settings.local_steps == 1 else "alike"]
    return parts.words("theory-stops", floor=short(floor, 2), steps=settings.local_steps)


def work_table(found: Measured) -> pd.DataFrame:
    """Rounds, local gradients and bytes to an accuracy of 1e-8, method by method."""
    rivals = found.summary.iloc[1:]
    columns = {
        "Rounds to 1e-8": rivals["rounds_to_1e-8"],
        "Local gradients per client": rivals["gradients_to_1e-8"],
        "Kilobytes sent up": rivals["bytes_up_to_1e-8"] / 1e3,
        "Distance at the end": [short(distance, 2) for distance in rivals["distance"]],
    }
    table = pd.DataFrame({"Method": rivals["method"], **columns})
    table = parts.written(table, {"Kilobytes sent up": 1}, 0)
    there, work = rivals["rounds_to_1e-8"].notna(), "Local gradients per client"
    table.loc[~there, "Rounds to 1e-8"] = "not reached"
    table.loc[there & rivals["gradients_to_1e-8"].isna(), work] = "exact solves"
    return table.reset_index(drop=True)


SILENT = Baseline("1: says nothing above", 1.0)


def factors(found: Mapping[str, pd.DataFrame], settings: TheorySettings) -> parts.Parts:
    yield where_it_speaks(settings)
    penalty, steps = found["penalty"], found["local-steps"]
    panels = [against_penalty(penalty, settings), against_steps(steps, settings)]
    yield parts.Chart("theory_sweeps", panels)


def _columns(table: pd.DataFrame, names: str, colours: str) -> list[Curve]:
    """The columns that have a name on the page, against the first."""
    first, named = table.columns[0], parts.names(names)
    here = [name for name in named if name.endswith("this problem")]
    look: dict[str, Any] = {"names": named, "truths": here, "spread": False}
    look["colours"] = parts.names(colours)
    return [*plot(table.melt(first), first, "value", "variable", **look)]


def against_penalty(table: pd.DataFrame, settings: TheorySettings) -> Panel:
    """Factors of exact solves against the penalty."""
    table = table.iloc[1:]
    x, claimed = table["penalty_factor"], table["Theorem 1"]
    curves = _columns(table, "theory-penalty-names", "theory-penalty-colours")
    curves.insert(1, Curve("its square", x, claimed**2, colour=CLAIM, dash="dot"))
    if (claimed >= 1).any():
        upper = claimed.where(claimed >= 1)
        edge, silent = upper.clip(upper=1.0), "Theorem 1 says nothing"
        curves.append(Curve(silent, x, edge, lower=edge, upper=upper, colour="guide"))
    best, factor = bounds.best_penalty(LOW, settings.high)
    if best > 0:
        curves.append(_vertical("best r for Theorem 1", best / LOW, 0.6, factor))
    axes = f"theory-penalty-{settings.kappa}"
    return Panel.of("theory-penalty", curves, baselines=(SILENT,), axes_id=axes)


def against_steps(table: pd.DataFrame, settings: TheorySettings) -> Panel:
    """Factors at r = 0 against the number of local steps."""
    claims = ["Theorem 3", "Theorem 10", "our bound for Scaffnew"]
    table = table.assign(**table[claims].clip(upper=3.0))  # they grow where they say nothing
    curves = _columns(table, "theory-steps-names", "theory-steps-colours")
    curves.append(_vertical("√κ", math.sqrt(settings.kappa), 0.0, 1.2))
    axes = f"theory-steps-{settings.kappa}"
    return Panel.of("theory-steps", curves, baselines=(SILENT,), axes_id=axes)


def _vertical(name: str, at: float, low: float, high: float) -> Curve:
    return Curve(name, [at, at], [low, high], colour="guide", guide=True)


def where_it_speaks(settings: TheorySettings) -> str:
    """Best penalty and vacuous window of Theorem 1, in words."""
    limits = LOW, settings.high
    (penalty, factor), window = bounds.best_penalty(*limits), bounds.vacuous_penalties(*limits)
    bare, where = bounds.theorem_1(*limits, 0.0), short(round(penalty / LOW, 3))
    text = parts.words("theory-promises", where=where, factor=factor, bare=bare)
    if window is None:
        return f"{text} It speaks for every r at this condition number."
    begin, end = (one / LOW for one in window)
    last = f"{end:,.0f}" if end >= 100 else short(end, 3)
    return f"{text} " + parts.words("theory-silent", begin=short(begin, 2), end=last)


def statements(found: pd.DataFrame, settings: TheorySettings) -> parts.Parts:
    columns = {
        "Statement": found["theorem"],
        "Verdict": found["verdict"].map(parts.names("theory-marks")),
        "Setting": found["setting"],
        "Claimed factor": found["claim"],
        "Violated": found["violated"].astype(str) + "/" + found["cases"].astype(str),
        "Worst": found["worst"].map("{:.4g}".format),
        "Silent": found["vacuous"],
    }
    yield parts.Table(
        pd.DataFrame(columns),
        "Statements and verdicts",
        numbers=("Violated", "Worst", "Silent"),
        wrapped=("Setting", "Claimed factor"),
    )
    yield parts.Caption(parts.words("theory-worst"))


#: What the theorems have to do with PCA.
FOR_PCA = parts.Fold(
    "What this has to do with PCA", [parts.words("theory-admm"), parts.words("theory-personal")]
)

#: Why Theorem 3 holds although a step of its proof does not.
REPAIR = parts.About.of("theory-repair")
