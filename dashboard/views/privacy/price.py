"""The Privacy page's price of epsilon: final distance against the budget and against T."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart
from dashboard.shell import layout
from dashboard.views.privacy.noises import COLOURS, NAMES, ROUNDING
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.price import best_length, last_value
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import short
from fedpca_core.study.sweep import Swept


def draw_budgets(settings: PrivacySettings, result: Swept) -> None:
    """The final distance against the budget."""
    layout.section("Against the budget")
    curves = [_curve(result, kind) for kind in result.series if kind != "none"]
    if not curves:
        return
    quiet = last_value(result, "none")
    chart(
        key="privacy_price",
        panels=[
            Panel(
                key="price",
                title="",
                x_title=f"budget ε (δ = {short(settings.delta)}, T = {settings.products})",
                y_title="final projection distance, sin θ",
                curves=tuple(curves),
                baselines=()
                if quiet is None or quiet <= 1e-5
                else (Baseline(f"without noise {short(quiet, 2)}", quiet, simulation_only=True),),
                log_x=True,
                follows=False,
                height=400,
                description="Distance after the last communication against the privacy budget, "
                "median and range, for each kind of noise.",
            )
        ],
    )
    st.caption(
        f"ε of {build.unit(settings)}; total over all products; sampling gives no amplification; "
        "accountant: exact composition, but Theorem 6 for published noise, which is "
        "placed at the ε it claims (its true ε is smaller). Bands span "
        f"{settings.repetitions} repetitions."
    )


def draw_lengths(settings: PrivacySettings, result: Swept) -> None:
    """The final distance of runs of different lengths with one budget."""
    layout.section("Against the number of products")
    chart(
        key="privacy_length",
        panels=[
            Panel(
                key="length",
                title="",
                x_title=f"local products T (ε = {short(settings.epsilon)}, "
                f"δ = {short(settings.delta)})",
                y_title="final projection distance, sin θ",
                curves=tuple(_curve(result, kind) for kind in result.series),
                follows=False,
                integer_x=True,
                height=400,
                description="Distance at the end of runs of different lengths that spend the same "
                "budget, median and range.",
            )
        ],
    )
    st.markdown(_advice(result, settings))


def _curve(result: Swept, kind: str) -> Curve:
    band = result.band(kind, "sin_theta")
    return Curve(
        name=NAMES[kind],
        x=band.x,
        y=np.maximum(band.middle, ROUNDING),
        lower=np.maximum(band.lower, ROUNDING),
        upper=np.maximum(band.upper, ROUNDING),
        colour=COLOURS[kind],
        marker=True,
        simulation_only=True,
    )


def _advice(result: Swept, settings: PrivacySettings) -> str:
    if "none" in result.series:
        return "Without noise nothing is spent, and products more can only help."
    if METHODS[settings.method].accounts == "orthogonal":
        return (
            "With exact noise a run of block Krylov costs what one product costs, whatever its "
            "length: its probes are orthogonal to each other, so one record cannot move all of "
            "them. Published noise knows nothing of that and grows with T (not in the papers)."
        )
    if settings.calibration == "source":
        return "At the source a product costs nothing: all noise is paid before the first one."
    spread = "The budget is spread over all products, so each product more makes all noisier. "
    best = best_length(result, settings.calibration)
    if best is None:
        return spread
    length, at_the_edge = best
    return (
        spread + f"At ε = {short(settings.epsilon)} with {settings.calibration} noise the best of "
        f"these lengths is **T = {length}**: "
        + (
            "an end of what is tried here, so the best may lie beyond."
            if at_the_edge
            else "fewer have not converged, more only add noise."
        )
        + " A deployment fixes T before: every run that is tried on the records is a release."
    )
