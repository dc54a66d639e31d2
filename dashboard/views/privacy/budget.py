"""The Privacy page's error budget: exact decompositions, and the theory's terms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import streamlit as st

from dashboard.player import Curve, Panel, chart
from dashboard.shell import layout
from dashboard.shell.jobs import Job
from fedpca_core.algorithms import FedPower
from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import Problem
from fedpca_core.protocol.simulate import simulate
from fedpca_core.studies.private import error_budget
from fedpca_core.studies.private import run as private_run
from fedpca_core.studies.private.error_budget import ABLATION, Ablation, RoundIdentity, TheoryTerms
from fedpca_core.studies.private.settings import PrivacySettings

_COLOURS = ("series 9", "series 1", "series 7", "formal")
_ZERO = 1e-14


@dataclass(frozen=True)
class Budget:
    """Mean ablation over the repetitions, the identity of one run, and the theory's terms."""

    increments: Array
    squared: Array
    identity: RoundIdentity
    terms: TheoryTerms
    repetitions: int


def decompose(c: PrivacySettings, problem: Problem, job: Job) -> Budget:
    """Switch effects on one by one over all repetitions, and take one run apart exactly."""
    run = private_run.method(c, private_run.current_noise(c))
    if not isinstance(run, FedPower):
        raise InvalidInput(
            "The error budget takes FedPower apart; choose FedPower as the method (with p = 1 it "
            "is the distributed power method)."
        )
    seeds = [c.seed + 1009 * index for index in range(c.repetitions)]
    ablations: list[Ablation] = []
    for index, seed in enumerate(seeds):
        if not job.report(index / len(seeds), "Switching effects on one by one") and ablations:
            break
        ablations.append(error_budget.ablation(problem, run, seed))
    trace = simulate(problem, run, rounds=run.rounds, seed=c.seed)
    drift = error_budget.largest_drift(problem, trace)
    return Budget(
        np.mean([ablation.increments for ablation in ablations], axis=0),
        np.mean([ablation.sines[-1] ** 2 for ablation in ablations], axis=0),
        error_budget.one_round_identity(problem, trace),
        error_budget.theory_terms(problem, run, trace.setting, drift),
        len(ablations),
    )


def draw_budget(result: Budget, c: PrivacySettings) -> None:
    """Stacked areas of the ablation, the identity's norms, and the terms."""
    rounds = np.arange(len(result.squared))
    shares = np.maximum(result.increments, 0.0)
    shares = shares / shares.sum(axis=0)
    areas = tuple(
        Curve(name, rounds, share, colour=colour, simulation_only=True)
        for name, share, colour in zip(ABLATION, shares, _COLOURS, strict=True)
    )
    parts = {
        "drawing some clients, E": (result.identity.sampling, "series 7"),
        "clients differ, H": (result.identity.heterogeneity, "series 1"),
        "privacy noise, N": (result.identity.noise, "formal"),
    }
    at = np.arange(1, len(result.identity.noise) + 1)
    lines = tuple(
        Curve(name, at, values, colour=colour, marker=True, simulation_only=True)
        for name, (values, colour) in parts.items()
        if values.max(initial=0.0) > _ZERO
    )
    panels = [
        Panel(
            key="ladder",
            title="What the squared distance is made of",
            x_title="communication",
            y_title="share of sin² θ",
            curves=areas,
            log_y=False,
            y_range=(0.0, 1.0),
            kind="area",
            integer_x=True,
            description="Stacked areas: shares of the squared distance that the centralised power "
            "method, local drift, client sampling and privacy noise account for.",
        )
    ]
    if lines:
        panels.append(
            Panel(
                key="identity",
                title="What one average is made of",
                x_title="communication",
                y_title="spectral norm over the eigengap",
                curves=tuple(
                    Curve(
                        curve.name,
                        curve.x,
                        np.where(np.asarray(curve.y) > _ZERO, curve.y, np.nan),
                        colour=curve.colour,
                        marker=True,
                        simulation_only=True,
                    )
                    for curve in lines
                ),
                integer_x=True,
                follows=False,
                description="Norms of the three error terms of each synchronised average.",
            )
        )
    chart(key="privacy_budget", panels=panels)
    lowest = float(result.increments.min())
    st.caption(
        f"Left: four runs that share every random draw, each with one effect more; mean of "
        f"{result.repetitions}; sin² θ itself falls from {result.squared[0]:.2g} to "
        f"{result.squared[-1]:.2g}. An effect can also help: decreases are drawn as zero"
        + (f" (largest here: {-lowest:.2g})" if lowest < -5e-4 else "")
        + ". Right: one run, an identity that holds to rounding; terms that are exactly zero "
        "(E and H at single products with everybody) are not drawn. Both need raw data."
    )
    if not lines:
        st.caption("Every term of the identity is zero here: no noise, no sampling, no gaps.")
    draw_terms(result.terms, c)


def draw_terms(terms: TheoryTerms, c: PrivacySettings) -> None:
    """I1, I2, I3, eta and rho as cards, vacuous where they say nothing."""
    layout.section(
        "What theory says",
        "Orders of magnitude with hidden constants, not bounds."
        + (
            " Here they are **vacuous**: local frames drift so far apart (ρ) that the "
            "denominator 1 − cρ is not positive. The proofs treat hidden steps as free of noise; "
            "they are not."
            if terms.vacuous
            else ""
        ),
    )
    layout.metric_cards(
        [
            layout.Card("I₁, privacy noise", _term(terms.noise, terms), "over the eigengap"),
            layout.Card("I₂, local drift", _term(terms.drift, terms), "not 0 even at p = 1"),
            layout.Card(
                "I₃, client sampling",
                "none" if not c.draws else _term(terms.sampling, terms),
                "everybody takes part" if not c.draws else f"K = {c.draws}",
            ),
            layout.Card(
                "Sum must stay below",
                f"{terms.allowed:.2g}",
                "met" if _sum(terms) <= terms.allowed else "not met: nothing is promised",
                help="min{½, (√r − √(k−1))/√d}: otherwise the theorem does not apply.",
            ),
            layout.Card("Heterogeneity η", f"{terms.eta:.2g}", "largest ‖Sᵢ − S‖/‖S‖"),
            layout.Card("Drift ρ", f"{terms.rho:.2g}", "measured; √2 is the most with alignment"),
            layout.Card(
                "Predicted floor",
                f"{terms.floor:.2g}" if terms.floor > 0 else "none",
                "tangent of the final angle (ours)",
                help="ν(√(d−k)+√k)/(σₖ √m_eff √(1−q²)). Above about ½ the run does not converge.",
            ),
        ]
    )


def _term(value: float | None, terms: TheoryTerms) -> str:
    return "vacuous" if terms.vacuous or value is None else f"{value:.2g}"


def _sum(terms: TheoryTerms) -> float:
    if terms.vacuous:
        return float("inf")
    return sum(value or 0.0 for value in (terms.noise, terms.drift, terms.sampling))
