"""ε against heterogeneity on Converge: one small chart a heterogeneity, all methods in each."""

from __future__ import annotations

import math

import numpy as np
import streamlit as st

from dashboard.player import Curve, Panel, chart
from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from fedpca_core.questions.privacy.budgets import BudgetsAndHeterogeneity, levels, measure_at
from fedpca_core.settings import short
from fedpca_core.study.build import beside_epsilon
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_core.study.sweep import Swept

STUDY = BudgetsAndHeterogeneity()
ROUNDING = 1e-16


def show(controls: Controls[ConvergeSettings], data: OwnData | None) -> Swept | None:
    """The switch and, once on, the sweep as a job and its charts."""
    layout.section("What does ε cost where clients differ?")
    controls.parameter("budgets")
    settings = controls.settings()
    if not STUDY.wanted(settings):
        return None
    found: Swept | None = jobs.study(
        STUDY, settings, lambda swept: draw(swept, settings), data=data
    ).result
    return found


def draw(swept: Swept, settings: ConvergeSettings) -> None:
    """Small multiples on common axes."""
    if found := panels(swept, settings):
        chart(key="budgets_map", panels=found)
    for reason in dict.fromkeys(swept.refusals.values()):
        layout.sentence(reason, kind="note")
    if not found:
        return
    st.caption(
        f"After at most {settings.rounds} rounds; medians and ranges over the random starts. "
        "Horizontal: the same runs without clipping and noise, where they end within the axis; the "
        "others end below it. ε per record (replaced), "
        f"δ = {short(settings.delta)}, records clipped at norm {short(settings.clip_norm)}, exact "
        f"accountant; {beside_epsilon(settings)}. At the source, so every method has the ε of its "
        "federation. Measured "
        "against the data without clipping and noise: simulation only."
    )


def panels(swept: Swept, settings: ConvergeSettings) -> list[Panel]:
    """One panel a heterogeneity; the same range of angles in all."""
    noisy = swept.table[np.isfinite(swept.table["value"].astype(float))]
    if noisy.empty:
        return []
    lowest = max(float(noisy["result"].min()) / 3, ROUNDING)
    return [
        Panel(
            key=f"budgets-{eta:g}",
            title=f"Heterogeneity {eta:g}",
            x_title="budget ε",
            y_title="sine of the largest principal angle",
            curves=tuple(curves),
            log_x=True,
            follows=False,
            y_range=(lowest, 1.5),
            height=300,
            description=f"Final angle of each method against ε at heterogeneity {eta:g}.",
            simulation_only=True,
        )
        for eta in levels(settings)
        if (curves := _curves(swept, measure_at(eta), lowest))
    ]


def _curves(swept: Swept, measure: str, lowest: float) -> list[Curve]:
    """Every method's curve, and its level without noise where that lies within the axis."""
    found = []
    for name in swept.series:
        band = swept.band(name, measure)
        finite = np.isfinite(band.x)
        if finite.any():
            found.append(
                Curve(
                    name,
                    band.x[finite],
                    np.maximum(band.middle[finite], ROUNDING),
                    lower=np.maximum(band.lower[finite], ROUNDING),
                    upper=np.maximum(band.upper[finite], ROUNDING),
                    marker=True,
                )
            )
        for x, y in zip(band.x, band.middle, strict=True):
            if math.isinf(x) and finite.any():
                ends = [float(band.x[finite].min()), float(band.x[finite].max())]
                if y > lowest:
                    level = [float(y)] * 2
                    found.append(Curve(f"{name}, ε = ∞", ends, level, colour=name, guide=True))
    return found
