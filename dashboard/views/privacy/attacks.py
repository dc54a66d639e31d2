"""The Privacy page's attackers: reconstruction against epsilon, and membership of one record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart
from dashboard.shell import layout
from dashboard.shell.jobs import Job
from dashboard.views.privacy.price import BUDGETS
from dashboard.views.privacy.run import COLOURS
from fedpca_core.algorithms import FedPower
from fedpca_core.arrays import Array
from fedpca_core.attacks import gaussian_roc, permitted_auc, permitted_roc, theoretical_auc
from fedpca_core.errors import InvalidInput
from fedpca_core.gaussian_privacy import mu_of
from fedpca_core.guarantee import short
from fedpca_core.problems import Problem
from fedpca_core.studies.private import record_attacks
from fedpca_core.studies.private import run as private_run
from fedpca_core.studies.private.record_attacks import Membership
from fedpca_core.studies.private.settings import PrivacySettings

#: Runs with the record, and as many without it, for one ROC curve.
TESTS = 120
#: The client under attack: the reference, which uploads in every round whoever is drawn.
CLIENT = 0


@dataclass(frozen=True)
class Attacked:
    """Errors and membership scores by calibration.

    Attributes
    ----------
    errors : calibration -> (budgets,) reconstruction errors
    without : float
        Error without noise.
    guesses : name -> error of a guess that needs no message
    tests : calibration -> Membership at the page's budget; empty without noise
    separations : calibration -> (budgets,) mu of the worst pair
    """

    errors: Mapping[str, Array]
    without: float
    guesses: Mapping[str, float]
    tests: Mapping[str, Membership]
    separations: Mapping[str, Array]


def attack(c: PrivacySettings, problem: Problem, job: Job) -> Attacked:
    """Reconstruct one client at every budget, then test for one of its records."""
    private_run.require_budget(c)
    run = private_run.method(c, private_run.current_noise(c))
    if not isinstance(run, FedPower):
        raise InvalidInput(
            "These attacks read FedPower's messages; choose FedPower as the method (with p = 1 it "
            "sends what SSI sends)."
        )
    norm = private_run.treatment(c)[1]
    errors: dict[str, Array] = {}
    without = record_attacks.reconstruction_error(
        problem, replace(run, noise=0.0), client=CLIENT, seed=c.seed
    )
    seeds = tuple(c.seed + 1009 * index for index in range(3))
    for position, kind in enumerate(("exact", "published")):
        found = []
        for index, epsilon in enumerate(BUDGETS):
            share = (position + index / len(BUDGETS)) / 4
            if not job.report(share, f"Reconstruction at ε = {epsilon:g}, {kind} noise"):
                break
            noisy = replace(run, noise=private_run.noise_for(c, kind, epsilon))
            found.append(
                np.median(
                    [
                        record_attacks.reconstruction_error(
                            problem, noisy, client=CLIENT, seed=seed
                        )
                        for seed in seeds
                    ]
                )
            )
        errors[kind] = np.array(found + [np.nan] * (len(BUDGETS) - len(found)))
    # Membership has an exact likelihood without hidden products and without draws.
    plain = replace(run, period=1, draws=None)
    tests: dict[str, Membership] = {}
    separations: dict[str, Array] = {}
    for position, kind in enumerate(("exact", "published")):
        noisy = replace(plain, noise=private_run.noise_for(c, kind))
        if not c.noise or not job.wanted():
            break

        def progress(share: float, text: str, position: int = position) -> bool:
            return job.report(0.5 + (position + share) / 4, text)

        tests[kind] = record_attacks.membership(
            problem,
            noisy,
            epsilon=c.epsilon,
            delta=c.delta,
            runs=TESTS,
            client=CLIENT,
            clip_norm=norm,
            seed=c.seed,
            progress=progress,
        )
        separations[kind] = np.array(
            [
                record_attacks.membership(
                    problem,
                    replace(plain, noise=private_run.noise_for(c, kind, epsilon)),
                    epsilon=epsilon,
                    delta=c.delta,
                    runs=1,
                    client=CLIENT,
                    clip_norm=norm,
                    seed=c.seed,
                ).separation
                for epsilon in BUDGETS
            ]
        )
    guesses = record_attacks.public_guesses(problem, CLIENT)
    return Attacked(errors, without, guesses, tests, separations)


def draw_attacks(result: Attacked, c: PrivacySettings) -> None:
    """Error against epsilon with the public guesses; ROC and AUC against their ceilings."""
    st.markdown(_verdict(result, c))
    chart(key="privacy_reconstruction", panels=[_reconstruction(result, c)])
    st.caption(
        "Without noise the server solves its equations. With noise it shrinks towards the pooled "
        "S, by the strength that is best in hindsight: no server using ridge does better. "
        f"Client {CLIENT + 1}, medians of three runs; simulation only."
    )
    layout.section(
        "Is one record in the data?",
        "The best test there is, for the pair of records that is easiest to tell apart, by an "
        "adversary who knows everything else. Sent at p = 1 with everybody taking part.",
    )
    if not result.tests:
        layout.sentence(
            "Without noise one look at the answers decides membership: ε = ∞. Switch the noise on "
            "to see what is left.",
            kind="note",
        )
        return
    chart(key="privacy_membership", panels=[_roc(result, c), _auc(result, c)])
    st.caption(
        f"{TESTS} runs with the record and {TESTS} with another in its place. Unit: one record, "
        f"replaced; clip norm {private_run.treatment(c)[1]:g}; δ = {short(c.delta)}; accountant: "
        "exact composition. Measured areas have a standard error of about "
        f"{1 / np.sqrt(6 * TESTS):.2f}."
    )


def _reconstruction(result: Attacked, c: PrivacySettings) -> Panel:
    curves = tuple(
        Curve(
            f"{kind} noise",
            np.array(BUDGETS),
            values,
            colour=COLOURS[kind],
            marker=True,
            simulation_only=True,
        )
        for kind, values in result.errors.items()
        if np.isfinite(values).any()
    )
    baselines = [Baseline(f"{name}: {value:.2g}", value) for name, value in result.guesses.items()]
    if result.without > 1e-4:
        baselines.append(Baseline(f"without noise: {result.without:.2g}", result.without))
    return Panel(
        key="reconstruction",
        title="Reconstructing one client's matrix",
        x_title=f"budget ε (δ = {short(c.delta)})",
        y_title="relative error of Sᵢ",
        curves=curves,
        baselines=tuple(baselines),
        log_x=True,
        log_y=True,
        follows=False,
        height=380,
        description="Error of the server's best reconstruction of one client's second moments "
        "against the budget, with guesses that need no message.",
    )


def _roc(result: Attacked, c: PrivacySettings) -> Panel:
    curves = []
    for kind, test in result.tests.items():
        false, true = test.roc()
        curves.append(
            Curve(f"{kind} noise, area {test.auc:.2f}", false, true, colour=COLOURS[kind])
        )
    grid = np.linspace(1e-6, 1 - 1e-6, 101)
    for label, ceiling in (
        ("Gaussian noise", gaussian_roc(float(mu_of(c.epsilon, c.delta)), grid)),
        ("any mechanism", permitted_roc(c.epsilon, c.delta, grid)),
    ):
        text = f"most that ε = {c.epsilon:g} permits {label}"
        curves.append(Curve(text, grid, ceiling, colour="text", guide=True))
    curves.append(Curve("coin toss", [0.0, 1.0], [0.0, 1.0], colour="guide", guide=True))
    return Panel(
        key="roc",
        title=f"Telling two neighbours apart at ε = {c.epsilon:g}",
        x_title="false alarms",
        y_title="detections",
        curves=tuple(curves),
        log_y=False,
        follows=False,
        x_range=(0.0, 1.0),
        y_range=(0.0, 1.0),
        height=380,
        description="ROC curves of the likelihood-ratio test for both calibrations, with the "
        "curve that the guarantee permits at most.",
    )


def _auc(result: Attacked, c: PrivacySettings) -> Panel:
    budgets = np.array(BUDGETS)
    curves = [
        Curve(
            f"{kind} noise, Φ(μ/√2)",
            budgets,
            [theoretical_auc(value) for value in values],
            colour=COLOURS[kind],
        )
        for kind, values in result.separations.items()
    ]
    curves += [
        Curve(f"{kind} noise, measured", [c.epsilon], [test.auc], colour=COLOURS[kind], marker=True)
        for kind, test in result.tests.items()
    ]
    most = [theoretical_auc(float(mu_of(epsilon, c.delta))) for epsilon in BUDGETS]
    any_noise = [permitted_auc(epsilon, c.delta) for epsilon in BUDGETS]
    for label, values in (("Gaussian noise", most), ("any mechanism", any_noise)):
        text = f"most that ε permits {label}"
        curves.append(Curve(text, budgets, values, colour="text", guide=True))
    return Panel(
        key="auc",
        title="Area under the curve against ε",
        x_title=f"budget ε (δ = {short(c.delta)})",
        y_title="area (½ is a coin toss)",
        curves=tuple(curves),
        log_x=True,
        log_y=False,
        follows=False,
        y_range=(0.48, 1.0),
        height=380,
        description="Area under the ROC curve against the budget, expected and measured, with "
        "the ceiling that the guarantee sets.",
    )


def _verdict(result: Attacked, c: PrivacySettings) -> str:
    public = result.guesses["public answer S"]
    text = f"Without noise client {CLIENT + 1} is reconstructed to {_percent(result.without)}. "
    exact = result.errors["exact"]
    better = [e for e, v in zip(BUDGETS, exact, strict=True) if v < 0.95 * public]
    text += (
        "With exact noise the server gains nothing over the public guess "
        f"({_percent(public)}) at any ε up to {BUDGETS[-1]:g}."
        if not better
        else f"With exact noise it beats the public guess ({_percent(public)}) only from "
        f"ε = {better[0]:g}."
    )
    if public < 0.15 and c.model != "distinct":
        text += (
            " Clients here are so alike that a small error proves nothing: choose **Distinct "
            "clients** as the data."
        )
    return text


def _percent(value: float) -> str:
    return f"{value:.1%}" if value >= 1e-3 else f"{value:.0e}"
