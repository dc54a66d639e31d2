"""Drawing the Theory page: runs against claims, sweeps, rivals, verdicts."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dashboard.player import Baseline, Curve, Panel
from dashboard.shell import layout
from fedpca_core.settings import short
from fedpca_core.studies.theory import LOW, Study, Sweeps, TheorySettings

CLAIM = "FedPower"  # palette colours, by role on this page
OURS = "FAPS"
MEASURED = "SSI"
#: Curves of the other methods, in the order of `study`.
RIVALS = ("LocalPower", "SSI", "FAPS", "VariableSplitting", "FedPG")

BADGES: Mapping[str, tuple[str, str]] = {
    "holds": ("holds", "green"),
    "vacuous": ("says nothing here (1 or more)", "orange"),
    "violated": ("violated", "red"),
    "none": ("no claim", "gray"),
}


def badge(study: Study) -> tuple[str, str]:
    """Text and colour of the verdict on the chosen theorem."""
    text, colour = BADGES[study.verdict]
    name = study.claim.name
    if study.claim.factor is None:
        return "No theorem speaks of this choice", colour
    doubt = "" if study.claim.proved else " (proved for quadratics only)"
    return f"{name}: {text}{doubt}", colour


def summary(study: Study) -> str:
    """What the run did, in words."""
    trace = study.trace
    seen = trace.contractions[np.isfinite(trace.contractions)]
    largest = f"{seen.max():.3f}" if len(seen) else "–"
    if trace.diverged:
        return (
            "**The run diverged**: these step sizes are too long. The bound and the exact norm "
            "above 1 say so beforehand."
        )
    reached = trace.rounds_to(1e-8)
    far = float(trace.distances[-1])
    arrival = (
        f"the average is within 1e-8 of the minimiser after **{reached} rounds**"
        if reached is not None
        else f"the average ends {far:.1e} away from the minimiser, relative to its size"
    )
    return f"Largest contraction factor seen in a round: **{largest}**; {arrival}."


def convergence(study: Study) -> list[Panel]:
    """The norm of the theorem over rounds with its promises, and the factor of each round."""
    trace, claim = study.trace, study.claim
    norms = trace.norms / trace.norms[0]
    rounds = np.arange(len(norms))
    curves = [Curve("measured", rounds, np.maximum(norms, 1e-16), colour=MEASURED)]
    factors = [
        Curve("factor of the round", rounds[1:], trace.contractions, colour=MEASURED, marker=True)
    ]
    lines = [Baseline("no progress", 1.0)]
    promises = [(claim.name, claim.factor, CLAIM), ("our bound ρ_spec", study.spectral, OURS)]
    for name, factor, colour in promises:
        if factor is None:
            continue
        if factor < 1:
            promised = np.maximum(factor**rounds, 1e-16)
            curves.append(Curve(f"{name}, ρᵏ", rounds, promised, colour=colour, guide=True))
        lines.append(Baseline(f"{name}: {factor:.4f}", factor, colour=colour))
    if study.norm is not None:
        lines.append(Baseline(f"exact worst case here: {study.norm:.4f}", study.norm))
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
            curves=tuple(factors),
            baselines=tuple(lines),
            log_y=False,
            integer_x=True,
            description="By what factor each round shrinks the distance, with horizontal lines at "
            "the claimed factor, our bound and the exact worst case.",
            height=380,
        ),
    ]


def cards(study: Study, configuration: TheorySettings) -> None:
    """The numbers behind the lines."""

    def text(value: float | None) -> str:
        return "–" if value is None else f"{value:.4f}"

    layout.metric_cards(
        [
            layout.Card(
                "Claimed factor", text(study.claim.factor), study.claim.remark or study.claim.name
            ),
            layout.Card(
                "Our bound ρ_spec", text(study.spectral),
                f"any clients with λ = {LOW:g}, L = {configuration.high:g}",
            ),
            layout.Card(
                "Exact worst case", text(study.norm), "one round, on this very problem",
                help="Operator norm of one round. A trajectory shows less.",
            ),
            layout.Card(
                "Asymptotic rate", text(study.radius), "spectral radius, on this very problem"
            ),
        ]
    )  # fmt: skip


def rivals(study: Study) -> Panel:
    """Distance of the average to the minimiser, all methods on one problem."""
    curves = [
        Curve(
            name,
            np.arange(len(trace.distances)),
            np.clip(trace.distances, 1e-16, 1e12),
            colour=colour,
        )
        for (name, trace), colour in zip(study.rivals.items(), RIVALS, strict=True)
    ]
    return Panel(
        key="theory-rivals",
        title="",
        x_title="communication round",
        y_title="distance of the average to the minimiser",
        curves=tuple(curves),
        integer_x=True,
        description="Relative distance to the common minimiser for FedAvg, gradient descent, "
        "Scaffnew, exact Uzawa and ADMM. FedAvg stops at a floor.",
        height=400,
    )


def floor_sentence(study: Study, configuration: TheorySettings) -> str:
    """FedAvg's wrong fixed point, in words."""
    distances = study.rivals["FedAvg"].distances
    floor = float(distances[-1])
    if floor > 1e-8 and floor < 0.999 * float(distances[-2]):
        return (
            f"FedAvg is {floor:.2g} away from the minimiser after these rounds and still moving; "
            "allow more rounds to see where it stops."
        )
    if floor <= 1e-8:
        why = (
            "one local step is gradient descent"
            if configuration.local_steps == 1
            else "the clients are alike, so there is nothing to correct"
        )
        return f"FedAvg converges here too, because {why}."
    return (
        f"**FedAvg stops {floor:.2g} away from the minimiser** (relative to its size) with "
        f"{configuration.local_steps} local steps: every client walks towards its own minimiser, "
        "and the average of these walks has another fixed point. The multipliers of the other "
        "methods remove exactly that."
    )


def sweep_panels(found: Sweeps, configuration: TheorySettings) -> list[Panel]:
    """Factors against the penalty and against local steps."""
    positive = found.penalties > 0
    colours = (CLAIM, OURS, MEASURED, "VariableSplitting", "LocalPower", "FedPG")
    ticks = Baseline("1: says nothing above", 1.0)
    by_penalty = [
        Curve(name, found.penalties[positive] / LOW, values[positive], colour=colour)
        for (name, values), colour in zip(found.by_penalty.items(), colours, strict=False)
    ]
    claimed = found.by_penalty["ρ of Theorem 1"][positive]
    by_penalty.append(
        Curve("its square", found.penalties[positive] / LOW, claimed**2, colour=CLAIM, dash="dot")
    )
    if (claimed >= 1).any():
        edge = np.where(claimed >= 1, 1.0, np.nan)
        by_penalty.append(
            Curve("Theorem 1 says nothing", found.penalties[positive] / LOW, edge,
                  lower=edge, upper=np.where(claimed >= 1, claimed, np.nan), colour="heuristic")
        )  # fmt: skip
    best = found.best[0] / LOW
    if best > 0:
        by_penalty.append(_vertical("best r for Theorem 1", best, 0.6, found.best[1]))
    marker = _vertical("√κ", found.root, 0.0, 1.2)
    by_steps = [
        Curve(name, found.steps, np.minimum(values, 3.0), colour=colour)
        for (name, values), colour in zip(
            found.by_steps.items(),
            ("FedPower", "LocalPower", "FAPS", "SSI", "VariableSplitting", "FedPG"),
            strict=False,
        )
    ]
    return [
        Panel(
            key="theory-penalty",
            title="Against the penalty (exact solves)",
            x_title="r / λ",
            y_title="factor of a round",
            curves=tuple(by_penalty),
            baselines=(ticks,),
            log_x=True,
            log_y=False,
            follows=False,
            axes_id=f"theory-penalty-{configuration.condition}",
            description="Claimed and measured factors against the penalty; above 1 the claim says "
            "nothing.",
            height=400,
        ),
        Panel(
            key="theory-steps",
            title="Against local steps (r = 0)",
            x_title="local steps n",
            y_title="factor of a round",
            curves=(*by_steps, marker),
            baselines=(ticks,),
            log_x=True,
            log_y=False,
            y_range=(0.0, 1.6),
            follows=False,
            axes_id=f"theory-steps-{configuration.condition}",
            description="Claimed and measured factors against the number of local steps, with a "
            "mark at the square root of the condition number.",
            height=400,
        ),
    ]


def _vertical(name: str, at: float, low: float, high: float) -> Curve:
    return Curve(name, [at, at], [low, high], colour="guide", guide=True)


def window_sentence(found: Sweeps) -> str:
    """Best penalty and vacuous window of Theorem 1, in words."""
    penalty, factor = found.best
    text = (
        f"Theorem 1 promises most at **r = {short(round(penalty / LOW, 3))} λ**: a factor of "
        f"{factor:.4f}, against {found.by_penalty['ρ of Theorem 1'][0]:.4f} at r = 0."
    )
    if found.window is None:
        return text + " It speaks for every r at this condition number."
    begin, end = (edge / LOW for edge in found.window)
    last = f"{end:,.0f}" if end >= 100 else f"{end:.3g}"
    return (
        f"{text} Between **r = {begin:.2g} λ and {last} λ it says nothing** (factor of 1 or "
        "more), although the method converges there."
    )
