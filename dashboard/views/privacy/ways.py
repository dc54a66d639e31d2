"""The Privacy page's ways to spend one epsilon, side by side."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.player import Curve, Panel, chart
from dashboard.shell import layout
from dashboard.views.privacy.noises import ROUNDING
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.privacy.spending import RUNS, Spent, Ways
from fedpca_core.questions.privacy.ways import WAYS
from fedpca_core.settings import short
from fedpca_core.study.parts import named_once
from fedpca_core.study.sweep import Swept

COLOURS = {
    "published": "series 1",
    "exact": "formal",
    "single": "series 8",
    "remembered": "series 9",
    "orthogonal": "series 4",
    "source": "series 0",
    "covariance": "series 5",
    "shared_products": "series 2",
    "shared_orthogonal": "series 3",
    "shared_covariance": "series 6",
    "shared_source": "accent",
    "colluding": "series 7",
}


def draw(settings: PrivacySettings, result: Ways) -> None:
    """Distance against rounds and bytes, with the guarantee of every way."""
    st.markdown(verdict(settings, result))
    chart(
        key="privacy_ways",
        panels=[
            _panel("rounds", "Against rounds", "communication", _curves(result, by_bytes=False)),
            _panel(
                "bytes", "Against bytes", "bytes up, one client", _curves(result, by_bytes=True)
            ),
        ],
    )
    table = pd.DataFrame([_row(one) for one in result.spent.values()])
    layout.small_table(table, label="Ways to spend ε", numbers=list(table.columns[1:]))
    if result.refusals:
        layout.sentence("\n\n".join(named_once(result.refusals)), kind="note")
    st.markdown(grounds(result))
    terms = next(iter(result.spent.values())).guarantee.terms()
    st.caption(
        f"δ = {terms['δ']}; unit: {terms['unit']}; clip norm {terms['clip norm']}; sampling: "
        f"{terms['sampling']}; accountant: {terms['accountant']}; taken as public: "
        f"{terms['taken as public']}; noise: {terms['noise']}. Published noise is placed at the "
        "ε it claims, and gives the smaller one of the table. Shared noise idealises the sums: "
        "real protocols add discrete noise and sum in a finite field. Medians of "
        f"{settings.repetitions} starts, each with noise of its own; distances are simulation only."
    )


def draw_budgets(settings: PrivacySettings, result: Swept) -> None:
    """Where every way ends, against the budget."""
    layout.section("The same, against ε")
    curves = []
    for key in result.series:
        band = result.band(key, "sin_theta")
        curves.append(_curve(WAYS[key].title(settings), band.x, band.middle, COLOURS[key]))
    chart(
        key="privacy_ways_budget",
        panels=[
            _panel(
                "ways-budget",
                "",
                f"budget ε (δ = {short(settings.delta)})",
                tuple(curves),
                log_x=True,
            )
        ],
    )
    st.caption(f"Medians of at most {RUNS} runs at each budget.")


def verdict(settings: PrivacySettings, result: Ways) -> str:
    """Which way ends closest, with and without trust."""
    text = f"One budget, ε = {short(settings.epsilon)} for every record. "
    alone, together = result.best(trusting=False), result.best(trusting=True)
    if alone is not None:
        text += f"Trusting nobody, **{alone.title}** ends closest: {_end(alone)}. "
    if together is not None:
        text += (
            f"If clients share the noise and the server sees sums only, **{together.title}** "
            f"does: {_end(together)}."
        )
    return text


def _end(one: Spent) -> str:
    rounds = len(one.run.middle) - 1
    return (
        f"distance {short(one.run.final, 2)} after {rounds} {'round' if rounds == 1 else 'rounds'} "
        f"and {one.bytes_up[-1] / 1e3:,.1f} kB from each client"
    )


def _row(one: Spent) -> dict[str, str]:
    return {
        "Way": one.title,
        "Final distance": short(one.run.final, 2),
        "Rounds": str(len(one.run.middle) - 1),
        "kB up, one client": f"{one.bytes_up[-1] / 1e3:,.1f}",
        "Guaranteed ε": one.guarantee.budget,
        "Noise ν": short(one.guarantee.noise, 2),
    }


def grounds(result: Ways) -> str:
    """What is released and towards whom its ε holds, once for all ways that have it alike."""
    alike: dict[tuple[str, str], list[str]] = {}
    for one in result.spent.values():
        terms = one.guarantee.terms()
        alike.setdefault((terms["released"], terms["towards"]), []).append(one.title)
    return "\n".join(
        f"- **{'; '.join(titles)}:** {released}. Holds towards {towards}."
        for (released, towards), titles in alike.items()
    )


def _curves(result: Ways, *, by_bytes: bool) -> tuple[Curve, ...]:
    return tuple(
        _curve(
            one.title,
            one.bytes_up[1:] if by_bytes else np.arange(len(one.run.middle)),
            one.run.middle[1:] if by_bytes else one.run.middle,
            COLOURS[key],
        )
        for key, one in result.spent.items()
    )


def _curve(title: str, x: object, y: object, colour: str) -> Curve:
    return Curve(
        title,
        x,
        np.maximum(y, ROUNDING),  # type: ignore[call-overload]
        colour=colour,
        marker=True,
    )


def _panel(
    key: str, title: str, x_title: str, curves: tuple[Curve, ...], log_x: bool | None = None
) -> Panel:
    return Panel(
        key=key,
        title=title,
        x_title=x_title,
        y_title="projection distance, sin θ",
        curves=curves,
        log_x=key == "bytes" if log_x is None else log_x,
        follows=False,
        integer_x=key == "rounds",
        height=400,
        simulation_only=True,
        description=f"Largest angle of every way to spend one budget, by {x_title}; median.",
    )
