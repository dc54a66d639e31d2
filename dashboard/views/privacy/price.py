"""The Privacy page's price of epsilon: final distance against the budget and against T."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart
from dashboard.shell.jobs import Job
from dashboard.views.privacy.run import COLOURS, ROUNDING
from fedpca_core.arrays import Array
from fedpca_core.guarantee import short
from fedpca_core.problems import Problem
from fedpca_core.studies.private import run as private_run
from fedpca_core.studies.private.settings import PrivacySettings

BUDGETS = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 100.0)
#: Local products T, each with the whole budget spread over it.
LENGTHS = (2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40)


@dataclass(frozen=True)
class Price:
    """Final distances by calibration; NaN where not computed.

    Attributes
    ----------
    budgets : calibration -> (budgets, repetitions)
    lengths : calibration -> (lengths, repetitions)
    without : (repetitions,)
        Without noise, at the configured T.
    """

    budgets: Mapping[str, Array]
    lengths: Mapping[str, Array]
    without: Array


def price(c: PrivacySettings, problem: Problem, job: Job) -> Price:
    """Final distance against the budget and against T, for both calibrations."""
    private_run.require_budget(c)
    seeds = [c.seed + 1009 * index for index in range(c.repetitions)]
    wire = private_run.channel(c)

    def final(settings: PrivacySettings, noise: float) -> Array:
        run, rounds = private_run.method(settings, noise), private_run.rounds_of(settings)
        found: Array = private_run.repeat(problem, run, rounds, wire, seeds).sines[:, -1]
        return found

    kinds = ("exact", "published")
    budgets = {kind: np.full((len(BUDGETS), len(seeds)), np.nan) for kind in kinds}
    lengths = {kind: np.full((len(LENGTHS), len(seeds)), np.nan) for kind in kinds}
    steps = [(budgets, kind, index) for index in range(len(BUDGETS)) for kind in kinds]
    steps += [(lengths, kind, index) for index in range(len(LENGTHS)) for kind in kinds]
    without = final(c, 0.0)
    for position, (table, kind, index) in enumerate(steps):
        if table is budgets:
            settings, text = c, f"ε = {BUDGETS[index]:g}, {kind} noise"
            noise = private_run.noise_for(c, kind, BUDGETS[index])
        else:
            products = LENGTHS[index]
            settings = replace(c, products=products, period=min(c.period, products))
            noise, text = private_run.noise_for(settings, kind), f"T = {products}, {kind} noise"
        if not job.report(position / len(steps), text):
            break
        table[kind][index] = final(settings, noise)
    return Price(budgets, lengths, without)


def draw_price(result: Price, c: PrivacySettings) -> None:
    """The utility curve against epsilon, and the best number of products."""
    quiet = float(np.median(result.without))
    panels = []
    if curves := _curves(BUDGETS, result.budgets):
        panels.append(
            Panel(
                key="price",
                title="Against the budget",
                x_title=f"budget ε (δ = {short(c.delta)}, T = {c.products})",
                y_title="final projection distance, sin θ",
                curves=curves,
                baselines=(Baseline(f"without noise {quiet:.1e}", max(quiet, ROUNDING)),)
                if quiet > 1e-5
                else (),
                log_x=True,
                follows=False,
                height=400,
                description="Distance after the last communication against the privacy budget, "
                "median and quartiles, for exact and published noise.",
            )
        )
    if curves := _curves(LENGTHS, result.lengths):
        panels.append(
            Panel(
                key="length",
                title="Against the number of products",
                x_title=f"local products T (ε = {c.epsilon:g}, δ = {short(c.delta)})",
                y_title="final projection distance, sin θ",
                curves=curves,
                follows=False,
                integer_x=True,
                height=400,
                description="Distance at the end of runs of different lengths that spend the same "
                "budget, median and quartiles.",
            )
        )
    st.markdown(_advice(result, c))
    if panels:
        chart(key="privacy_price", panels=panels)
    st.caption(
        f"ε per record (replaced), total over all products; clip norm "
        f"{private_run.treatment(c)[1]:g}; δ = {short(c.delta)}; sampling gives no amplification; "
        "accountant: exact composition for exact noise, Theorem 6 for published noise, which is "
        "placed at the ε it claims (its true ε is smaller). Bands: quartiles of "
        f"{c.repetitions} repetitions."
    )


def _curves(at: tuple[float, ...], finals: Mapping[str, Array]) -> tuple[Curve, ...]:
    curves = []
    for kind, values in finals.items():
        done = np.isfinite(values).all(axis=1)
        if not done.any():
            continue
        low, middle, high = np.maximum(
            np.quantile(values[done], [0.25, 0.5, 0.75], axis=1), ROUNDING
        )
        curves.append(
            Curve(
                name=f"{kind} noise",
                x=np.array(at, dtype=float)[done],
                y=middle,
                lower=low,
                upper=high,
                colour=COLOURS[kind],
                marker=True,
                simulation_only=True,
            )
        )
    return tuple(curves)


def _advice(result: Price, c: PrivacySettings) -> str:
    if c.method == "block_krylov":
        return (
            "With exact noise a run of block Krylov costs what one product costs, whatever its "
            "length: its probes are orthogonal to each other, so one record cannot move all of "
            "them. Published noise knows nothing of that and grows with T (not in the papers)."
        )
    medians = np.median(result.lengths[c.calibration], axis=1)
    done = np.isfinite(medians)
    if not done.any():
        return "The budget is spread over all products, so each product more makes all noisier."
    best = LENGTHS[int(np.argmin(np.where(done, medians, np.inf)))]
    return (
        "The budget is spread over all products, so each product more makes all of them noisier. "
        f"At ε = {c.epsilon:g} with {c.calibration} noise the best of these lengths is "
        f"**T = {best}**: fewer have not converged, more only add noise."
    )
