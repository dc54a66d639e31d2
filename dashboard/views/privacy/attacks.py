"""The Privacy page's attackers: reconstruction against epsilon, and membership of one record."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart
from dashboard.shell import layout
from dashboard.views.privacy.noises import COLOURS, NAMES
from fedpca_core.questions.privacy.membership import TESTS, TESTS_AT_SOURCE, Tested
from fedpca_core.questions.privacy.price import last_value
from fedpca_core.questions.privacy.reconstruction import CLIENT, EVEN, PUBLIC, RUNS, finding
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import short
from fedpca_core.study.sweep import Swept

#: Noise at the source is let out whole, so its error may be smaller than that of messages.
FLAT = {"none": "messages without noise"}


# ---------------------------------------------------------------------- reconstruction
def draw_reconstruction(settings: PrivacySettings, result: Swept) -> None:
    """Error of one attacker against epsilon, with guesses that need no message."""
    st.markdown(verdict(result, settings))
    bands = {
        kind: result.band(kind, "error")
        for kind in result.series
        if kind in COLOURS and kind != "none"
    }
    curves = tuple(
        Curve(
            NAMES[kind],
            band.x,
            band.middle,
            lower=band.lower,
            upper=band.upper,
            colour=COLOURS[kind],
            marker=True,
        )
        for kind, band in bands.items()
        if len(band.x)
    )
    if not curves:
        return
    flat = {name: last_value(result, name) for name in (PUBLIC, EVEN, "none")}
    chart(
        key="privacy_reconstruction",
        panels=[
            Panel(
                key="reconstruction",
                title="Reconstructing one client's matrix",
                x_title=f"budget ε (δ = {short(settings.delta)})",
                y_title="relative error of Sᵢ",
                curves=curves,
                baselines=tuple(
                    Baseline(f"{FLAT.get(name, name)}: {short(value, 2)}", value)
                    for name, value in flat.items()
                    if value is not None and value > 1e-4
                ),
                log_x=True,
                log_y=True,
                follows=False,
                height=380,
                simulation_only=True,
                description="Error of the server's best reconstruction of one client's second "
                "moments against the budget, with guesses that need no message.",
            )
        ],
    )
    st.caption(
        "One attacker throughout: it starts from the pooled S and corrects it by what the messages "
        "say, shrunk by the strength that is best in hindsight; without noise it does not shrink. "
        "No strength that a server could choose does better with ridge. Noise at the source: it "
        "has all of Sᵢ + Eᵢ, as any "
        f"method may let out in the end. Client {CLIENT}, medians and range of {RUNS} runs; "
        "simulation only."
    )


def verdict(result: Swept, settings: PrivacySettings) -> str:
    """What the attacker gets without noise, and at the budgets that were tried."""
    guess = last_value(result, PUBLIC)
    assert guess is not None
    text = f"Guessing that client {CLIENT} is like the average misses Sᵢ by {_percent(guess)}. "
    if last_value(result, "none") is not None:
        text += f"Without noise the server {finding(result, 'none').words}. "
    kind = "exact" if "exact" in result.series else "source"
    said = "exact noise" if kind == "exact" else "noise at the source"
    text += f"With {said} it {finding(result, kind).words}."
    if guess < 0.15 and settings.problem != "distinct":
        text += (
            " Clients here are so alike that a small error proves nothing: choose **Distinct "
            "clients** as the data."
        )
    return text


# ---------------------------------------------------------------------- membership
def draw_membership(settings: PrivacySettings, result: Tested) -> None:
    """ROC and AUC against their ceilings."""
    layout.section(
        "Is one record in the data?",
        "The best test there is, for the pair of records that is easiest to tell apart, by an "
        "adversary who knows everything else. Everybody takes part"
        + (", and p = 1: every answer is seen." if settings.method == "fedpower" else "."),
    )
    if not result.tests:
        layout.sentence(
            "Without noise one look at the answers decides membership: ε = ∞. Choose a finite ε "
            "to see what is left.",
            kind="note",
        )
        return
    chart(key="privacy_membership", panels=[_roc(result, settings), _areas(result, settings)])
    first = next(iter(result.tests.values()))
    st.caption(
        f"{TESTS} runs with the record and as many with another in its place "
        f"({TESTS_AT_SOURCE} draws at the source); simulation only. "
        "Two ceilings: Gaussian noise of this budget permits the lower one, and every run here "
        "stays below it up to chance; (ε, δ) alone, whatever the mechanism, permits the upper one. "
        f"Unit: one record, replaced; δ = {short(settings.delta)}; accountant: exact composition. "
        f"Measured areas have a standard error of about {first.uncertainty:.2f} or less."
    )
    _audits(result, settings)


def _audits(result: Tested, settings: PrivacySettings) -> None:
    """What the same runs prove of ε, beside what is promised."""
    layout.section("An audit beside the promise")
    rows = [
        {
            "Noise": NAMES[kind],
            "Promised ε": short(result.promised[kind], 3),
            "Proved: ε is at least": short(audit.epsilon, 2),
            "Confidence": f"{audit.confidence:.0%}",
            "Runs": str(audit.runs),
            "By": audit.way,
        }
        for kind, test in result.tests.items()
        for audit in test.audits(settings.delta)
    ]
    numbers = ["Promised ε", "Proved: ε is at least", "Confidence", "Runs"]
    layout.small_table(pd.DataFrame(rows), label="Audits", numbers=numbers)
    st.caption(
        "A lower bound on ε from the runs above, with the best test there is; an audit that ends "
        f"above the promise would refute it. Unit: one record, replaced; δ = "
        f"{short(settings.delta)}. More runs prove more: the bound nears the promise from below."
    )


def _roc(result: Tested, settings: PrivacySettings) -> Panel:
    curves = [
        Curve(
            f"{NAMES[kind]}, area {test.auc:.2f}",
            *test.roc(),
            colour=COLOURS[kind],
        )
        for kind, test in result.tests.items()
    ]
    curves += [
        Curve("most with Gaussian noise", *result.gaussian_roc, colour="text", guide=True),
        Curve("most that (ε, δ) permits", *result.permitted_roc, colour="accent", guide=True),
        Curve("coin toss", [0.0, 1.0], [0.0, 1.0], colour="guide", guide=True),
    ]
    return Panel(
        key="roc",
        title=f"Telling two neighbours apart at ε = {short(settings.epsilon)}",
        x_title="false alarms",
        y_title="detections",
        curves=tuple(curves),
        log_y=False,
        follows=False,
        x_range=(0.0, 1.0),
        y_range=(0.0, 1.0),
        height=380,
        simulation_only=True,
        description="ROC curves of the likelihood-ratio test for both calibrations, with the "
        "most that Gaussian noise and that (ε, δ) alone permit.",
    )


def _areas(result: Tested, settings: PrivacySettings) -> Panel:
    curves = [
        Curve(
            f"{NAMES[kind]}, expected",
            result.budgets,
            areas,
            colour=COLOURS[kind],
        )
        for kind, areas in result.expected.items()
    ]
    curves += [
        Curve(
            f"{NAMES[kind]}, measured",
            [settings.epsilon],
            [test.auc],
            colour=COLOURS[kind],
            marker=True,
        )
        for kind, test in result.tests.items()
    ]
    curves += [
        Curve(
            "most with Gaussian noise", result.budgets, result.gaussian, colour="text", guide=True
        ),
        Curve(
            "most that (ε, δ) permits",
            result.budgets,
            result.permitted,
            colour="accent",
            guide=True,
        ),
    ]
    return Panel(
        key="auc",
        title="Area under the curve against ε",
        x_title=f"budget ε (δ = {short(settings.delta)})",
        y_title="area (½ is a coin toss)",
        curves=tuple(curves),
        log_x=True,
        log_y=False,
        follows=False,
        y_range=(0.48, 1.0),
        height=380,
        simulation_only=True,
        description="Area under the ROC curve against the budget, expected and measured, with "
        "the ceilings that Gaussian noise and (ε, δ) alone set.",
    )


def _percent(value: float) -> str:
    return f"{value:.1%}" if value >= 1e-3 else short(value, 1)
