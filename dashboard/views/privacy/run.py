"""The Privacy page's convergence view."""

from __future__ import annotations

import numpy as np
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart, replay
from dashboard.shell import layout
from dashboard.views.privacy.noises import COLOURS, NAMES, ROUNDING
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.privacy.convergence import PrivateRuns, Spending
from fedpca_core.questions.privacy.repeated import Repeated
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import short


def curve(name: str, run: Repeated, colour: str) -> Curve:
    """Median and quartiles of repeated runs against communications."""
    low, high = run.quartiles
    return Curve(
        name=name,
        x=np.arange(len(run.middle)),
        y=np.maximum(run.middle, ROUNDING),
        lower=np.maximum(low, ROUNDING),
        upper=np.maximum(high, ROUNDING),
        colour=colour,
        marker=True,
        simulation_only=True,
    )


def draw(settings: PrivacySettings, result: PrivateRuns) -> None:
    """Projection distance against communications, with quartile bands."""
    st.markdown(verdict(result, settings))
    floor = result.floor
    baselines = (
        []
        if floor is None
        else [Baseline(f"predicted floor {short(floor, 2)}", floor, simulation_only=True)]
    )
    panel = Panel(
        key="distance",
        title="",
        x_title="communication",
        y_title="projection distance, sin θ",
        curves=tuple(curve(NAMES[kind], run, COLOURS[kind]) for kind, run in result.runs.items()),
        baselines=tuple(baselines),
        integer_x=True,
        height=420,
        description="Sine of the largest principal angle to the sample's leading space after "
        "each communication, median and quartiles over the repetitions.",
    )
    rounds = result.rounds
    replay(key="privacy_run", rounds=rounds, panels=[panel], round_label="communication")
    if result.spending is not None:
        _draw_spending(result.spending, settings)


def verdict(result: PrivateRuns, settings: PrivacySettings) -> str:
    """One line on where the run ends and what noise has cost."""
    (first, run), *others = result.runs.items()
    budget = f"ε = {short(settings.epsilon)}, " if first in ("exact", "published", "source") else ""
    text = (
        f"**{METHODS[settings.method].title}** ends at distance **{short(run.final, 2)}** "
        f"({budget}{NAMES[first]}) after {len(run.middle) - 1} communications and "
        f"{run.bytes_up[-1] / 1e3:,.0f} kB up"
    )
    for kind, other in others:
        text += f"; {NAMES[kind]}: {short(other.final, 2)}"
    if budget and run.final > 0.5:
        text += ". That is hardly better than a random guess: allow a larger ε, or more samples"
    return text + "."


def _draw_spending(spending: Spending, settings: PrivacySettings) -> None:
    layout.section(
        "What each client has really spent",
        "A round in which a client does not upload releases nothing about it. This is the first "
        "repetition; which rounds count depends on the server's draws alone. Not in the paper.",
    )
    reference = spending.clients[0]
    chart(
        key="privacy_spending",
        panels=[
            Panel(
                key="spending",
                title="",
                x_title=f"client ({reference} is the reference and always uploads)",
                y_title=f"true ε at δ = {short(settings.delta)}",
                curves=(
                    Curve(
                        "true ε of the client",
                        spending.clients,
                        spending.epsilon,
                        colour="formal",
                    ),
                ),
                log_y=False,
                kind="bars",
                height=260,
                description="Epsilon spent by each client in one run, by exact composition.",
            )
        ],
    )
    fewest, most = spending.range
    st.caption(
        f"Unit: one record, replaced. Clip norm {spending.clip_norm:g}. Releases: "
        f"{fewest} to {most} of {settings.products}. "
        "Accountant: exact composition. Draws known to the server: no amplification."
    )
