"""Drawing all methods on one problem: the Pareto front, one point closely, the recommendation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.player import Curve, Panel, chart
from dashboard.shell import layout, script, share
from dashboard.shell.controls import packed
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.which.frontier import STRIPS, Front, Frontier, pareto, shown
from fedpca_core.questions.which.links import destinations, point
from fedpca_core.questions.which.recommendation import Advice, named, sentences
from fedpca_core.questions.which.rules import ORDER, RULES, size
from fedpca_core.questions.which.settings import AXES, FrontierSettings
from fedpca_core.settings import short
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import named_once

#: The widget that holds the chosen point.
POINT = "which_point"
PAGES: Mapping[str, tuple[str, str, str]] = {
    "converge": ("../pages/converge.py", "See it converge", ":material/show_chart:"),
    "attack": ("../pages/attack.py", "Attack it", ":material/visibility:"),
    "privacy": ("../pages/privacy.py", "What its ε costs", ":material/verified_user:"),
}


def draw(front: Front, settings: FrontierSettings, data: OwnData | None = None) -> None:
    """The sentence, the chart, and the point that was chosen."""
    if front.refusals:
        layout.sentence("\n\n".join(named_once(front.refusals)), kind="note")
    if front.table.empty:
        return
    points = front.points()
    drawn = shown(points, settings.across, settings.upward).reset_index(drop=True)
    if drawn.empty:
        layout.sentence(
            "No run has numbers on both axes: an ε is stated only for runs with noise at the "
            "source, how close attacks come only for runs without, and records are taken apart "
            "only where their values lie on a grid. Choose other axes, or paths over ε."
        )
        return
    best = pareto(drawn, settings.across, settings.upward)
    names = {label(row, settings): (row["method"], row["value"]) for _, row in drawn.iterrows()}
    st.markdown(_verdict(drawn, best, settings))

    def choose(curve: str, number: int) -> None:
        own = drawn[[METHODS[key].title == curve for key in drawn["method"]]]
        of = drawn.loc[best] if curve == FRONT else along(own)
        if number < len(of):
            st.session_state[POINT] = label(of.iloc[number], settings)

    chart(key="frontier", panels=[panel(drawn, best, settings)], on_choice=choose)
    notes = [
        f"{AXES[axis]}: what is below {short(FLOORS[axis])} is drawn there."
        for axis in (settings.across, settings.upward)
        if axis in FLOORS
    ]
    if "leak" in (settings.across, settings.upward):
        notes.append("An attack that errs more leaks less, so up and right is better there.")
    st.caption(" ".join(["Click a point to see it closely.", *notes]))
    _closely(drawn, best, names, settings, data)


def _verdict(drawn: pd.DataFrame, best: list[int], settings: FrontierSettings) -> str:
    rows = [row for _, row in drawn.loc[best].iterrows()]
    text = "; ".join(f"**{label(row, settings)}**" for row in rows[:5])
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return f"Nothing beats these on both axes: {text}{more}."


def _closely(
    drawn: pd.DataFrame,
    best: list[int],
    names: Mapping[str, tuple[str, float]],
    settings: FrontierSettings,
    data: OwnData | None,
) -> None:
    """The chosen point, its link and script, and the pages that show the same state."""
    options = list(names)
    if st.session_state.get(POINT) not in options:
        st.session_state[POINT] = label(drawn.iloc[best[0]], settings)
    chosen = st.selectbox(
        "One configuration closely",
        options,
        key=POINT,
        help="Click a point of the picture, or choose it here.",
    )
    method, value = names[chosen]
    same = drawn[[label(row, settings) == chosen for _, row in drawn.iterrows()]].iloc[0]
    cards = [
        layout.Card("Rounds", f"{same['rounds']:.0f}", _reached(same, settings)),
        layout.Card("Bytes a client", size(same["bytes_client"]), "both ways"),
        layout.Card("Largest angle", short(same["sin_theta"], 2), "sine, simulation only"),
        layout.Card(
            "Worst client loses", f"{100 * same['worst_client']:.2g}%", "of its own best variance"
        ),
    ]
    layout.metric_cards(cards)
    colour = {"formal": "blue", "masked": "orange", "none": "gray"}[same["protection"]]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(PROTECTION[same["protection"]], color=colour)  # type: ignore[arg-type]
        st.markdown(protection(same), width="content")
    alone = point(settings, method, value)
    with st.container(horizontal=True, vertical_alignment="center"):
        for name, there in destinations(alone).items():
            page, title, icon = PAGES[name]
            st.page_link(page, label=title, icon=icon, query_params=packed(there))
        share.copy_link(alone.query(), key="point")
    script.fold(alone, [Frontier()], data, label="This point as a script", key="script-point")


def _reached(row: pd.Series, settings: FrontierSettings) -> str:
    if row["reached"] == 1:
        return f"to {short(settings.accuracy)}, every seed"
    if row["reached"] == 0:
        return f"{short(settings.accuracy)} is never reached"
    return f"{100 * row['reached']:.0f}% of the seeds reach {short(settings.accuracy)}"


# ---------------------------------------------------------------------- more tables
def hidden(front: Front) -> None:
    """What secure sums hide, and whose data these are."""
    told = sums(front)
    if len(told):
        layout.section(
            "What secure sums hide",
            "The same methods when the server sees only sums over all clients, and a second run "
            "after one record joined. Errors are relative; simulation only.",
        )
        layout.small_table(told, label="What secure sums hide", numbers=list(told.columns[1:]))
    st.caption(front.facts.note)


def sums(front: Front) -> pd.DataFrame:
    """What secure sums hide and what they do not, as finished texts."""
    rows = front.table[front.table["newcomer"].notna()]
    return pd.DataFrame(
        [
            {
                "Method": METHODS[row["method"]].title,
                "A client, from its own uploads": _error(row["leak"]),
                "A client, from sums": _error(row["leak_sums"]),
                "The pooled matrix alone": _error(row["pooled"]),
                "The record that joined, from sums": _angle(row["newcomer"]),
            }
            for _, row in rows.drop_duplicates("method").iterrows()
        ]
    )


def _error(value: float) -> str:
    return "–" if math.isnan(value) else short(value, 2)


def _angle(sine: float) -> str:
    return "exact" if sine < 1e-6 else f"sine {short(sine, 2)}"


def strip(front: Front, settings: FrontierSettings) -> None:
    """The two axes of the page over heterogeneity and over clients, a small chart each."""
    points, panels = front.points(), []
    drawn: dict[str, None] = {}
    for name in STRIPS:
        rows = points[points["parameter"] == name]
        for measure in dict.fromkeys([settings.upward, settings.across]):
            some = rows[rows[measure].notna()]
            if len(some):
                panels.append(small(some, name, measure, settings))
                drawn[measure] = None
    if panels:
        chart(key="frontier_strip", panels=panels)
        seeds = int(points["seeds"].max())
        lows = [
            f"{AXES[axis]}: what is below {short(FLOORS[axis])} is drawn there."
            for axis in drawn
            if axis in FLOORS
        ]
        bands = f"Lines are medians over {seeds} seeds, bands span them." if seeds > 1 else ""
        st.caption(" ".join([bands, *lows]).strip())


# ---------------------------------------------------------------------- what to use
def advice(found: Advice, settings: FrontierSettings) -> None:
    """The recommendation, the rules, and what they left out."""
    first, *others = sentences(found, settings)
    best = found.place(1)
    first = first.replace("ε = ", "ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")  # stays in one line
    layout.sentence(first, kind="remedy" if best is None else "good")
    if found.table.empty:
        return
    for other in others:
        st.markdown(other)
    st.caption(f"Medians over {found.seeds} seeds of data, starts and noise.")
    rules = pd.DataFrame(
        [
            {
                "Rule": rule.title,
                "Asks that": rule.demand(settings) or "nothing here",
                "Leaves out": _left_out(found, rule.key),
            }
            for rule in RULES
        ]
    )
    layout.small_table(rules, label="The rules")
    st.caption(ORDER)
    with st.expander("Every candidate, judged"):
        layout.small_table(_judged(found), label="Every candidate, judged", numbers=["Sine"])
        for name, why in found.refusals.items():
            st.caption(f"{name}: {why}")


def _left_out(found: Advice, key: str) -> str:
    rows = found.table[found.table["excluded"] == key]
    titles = rows["method"].map(lambda method: METHODS[method].title)
    if rows["way"].nunique() > 1:
        titles += " " + rows["way"]
    return "; ".join(titles + ": " + rows["reason"]) or "–"


def _judged(found: Advice) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "Rank": "–" if math.isnan(row["rank"]) else f"{row['rank']:.0f}",
                "Configuration": named(row),
                "First in": f"{round(row['first'] * found.seeds)} of {found.seeds}",
                "Sine": short(row["sin_theta"], 2),
                "Bytes a client": size(row["bytes_client"]),
                "Left out because it": row["reason"] or "–",
            }
            for _, row in found.table.iterrows()
        ]
    )
