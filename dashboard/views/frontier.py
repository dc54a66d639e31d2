"""All methods on one problem: the Pareto front, and one point of it closely."""

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from dashboard.player import chart
from dashboard.shell import layout, script, share
from dashboard.shell.navigation import door
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.which.figures import (
    FRONT,
    PROTECTION,
    along,
    floors,
    label,
    panel,
    protection,
)
from fedpca_core.questions.which.frontier import Front, Frontier, pareto, seeds_of, shown
from fedpca_core.questions.which.links import destinations, point
from fedpca_core.questions.which.rules import size
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import short
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import Cards, named_once, words

#: The widget that holds the chosen point.
POINT = "which_point"
PAGES = {"converge": "See it converge", "attack": "Attack it", "privacy": "What its ε costs"}


def draw(front: Front, settings: FrontierSettings, data: OwnData | None = None) -> None:
    """The sentence, the chart, and the point that was chosen."""
    if front.refusals:
        layout.sentence("\n\n".join(named_once(front.refusals)), kind="note")
    if front.table.empty:
        return
    points = front.points()
    drawn = shown(points, settings.across, settings.upward).reset_index(drop=True)
    if drawn.empty:
        layout.sentence(words("which-no-numbers"))
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
    notes = floors(settings.across, settings.upward)
    if len(seeds_of(settings)) < settings.seeds:
        notes.append(f"At this size a run is long: the picture is of seed {settings.seed} alone.")
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
    cards = Cards.of(
        "which-point",
        rounds=same["rounds"],
        reached=_reached(same, settings),
        sent=size(same["bytes_client"]),
        angle=short(same["sin_theta"], 2),
        lost=100 * same["worst_client"],
    )
    layout.metric_cards(cards.cards)
    colour = {"formal": "blue", "masked": "orange", "none": "gray"}[same["protection"]]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(PROTECTION[same["protection"]], color=colour)  # type: ignore[arg-type]
        st.markdown(protection(same), width="content")
    alone = point(settings, method, value)
    with st.container(horizontal=True, vertical_alignment="center"):
        for name, there in destinations(alone).items():
            door(there, PAGES[name])
        with st.popover("Share", icon=":material/share:", key="point-share"):
            share.copy_link(alone.query())
    script.fold(alone, [Frontier()], data, label="This point as a script", key="script-point")


def _reached(row: pd.Series, settings: FrontierSettings) -> str:
    if row["reached"] == 1:
        return f"to {short(settings.accuracy)}, every seed"
    if row["reached"] == 0:
        return f"{short(settings.accuracy)} is never reached"
    return f"{100 * row['reached']:.0f}% of the seeds reach {short(settings.accuracy)}"
