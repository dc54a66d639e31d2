"""All methods on one problem: the Pareto front, and one point of it closely."""

import pandas as pd
import streamlit as st

from dashboard.player import chart
from dashboard.shell import layout, share
from dashboard.shell.navigation import door
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.which import figures
from fedpca_core.questions.which.frontier import Front, Frontier, seeds_of
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.questions.which.use import destinations, point
from fedpca_core.settings import short, size
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import Cards, named_once, words

#: The widget that holds the chosen point.
POINT = "which_point"
PAGES = {"converge": "See it converge", "attack": "Attack it", "privacy": "What its ε costs"}


def draw(front: Front, settings: FrontierSettings, data: OwnData | None = None) -> None:
    if front.refusals:
        layout.sentence("\n\n".join(named_once(front.refusals)), kind="note")
    if front.table.empty:
        return
    drawn, best, panel = figures.picture(front, settings)
    if drawn.empty:
        layout.sentence(words("which-no-numbers"))
        return
    named = [f"**{label}**" for label in drawn.loc[best, "label"]]
    more = f" and {len(named) - 5} more" * (len(named) > 5)
    st.markdown(f"Nothing beats these on both axes: {'; '.join(named[:5])}{more}.")

    def choose(curve: str, number: int) -> None:
        own = drawn[[METHODS[key].title == curve for key in drawn["method"]]]
        of = drawn.loc[best] if curve == figures.FRONT else figures.along(own)
        if number < len(of):
            st.session_state[POINT] = of.iloc[number]["label"]

    chart(key="frontier", panels=[panel], on_choice=choose)
    notes = figures.floors(settings.across, settings.upward)
    if len(seeds_of(settings)) < settings.seeds:
        notes.append(f"At this size a run is long: the picture is of seed {settings.seed} alone.")
    if "leak" in (settings.across, settings.upward):
        notes.append("An attack that errs more leaks less, so up and right is better there.")
    st.caption(" ".join(["Click a point to see it closely.", *notes]))
    _closely(drawn, best[0], settings, data)


def _closely(
    drawn: pd.DataFrame, first: int, settings: FrontierSettings, data: OwnData | None
) -> None:
    options = list(dict.fromkeys(drawn["label"]))
    if st.session_state.get(POINT) not in options:
        st.session_state[POINT] = drawn.iloc[first]["label"]
    chosen = st.selectbox(
        "One configuration closely",
        options,
        key=POINT,
        help="Click a point of the picture, or choose it here.",
    )
    same = drawn[drawn["label"] == chosen].iloc[0]
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
        st.badge(figures.PROTECTION[same["protection"]], color=colour)  # type: ignore[arg-type]
        st.markdown(figures.protection(same), width="content")
    alone = point(settings, same["method"], same["value"])
    with st.container(horizontal=True, vertical_alignment="center"):
        for name, there in destinations(alone).items():
            door(there, PAGES[name])
        shared = st.popover("Share", icon=":material/share:", key="point-share", on_change="rerun")
        if shared.open:  # Streamlit's box for a link is a file of 1.5 MB
            with shared:
                share.copy_link(alone.query())
    share.fold(alone, data, [Frontier()], label="This point as a script", key="script-point")


def _reached(row: pd.Series, settings: FrontierSettings) -> str:
    wanted, part = short(settings.accuracy), row["reached"]
    some = f"{100 * part:.0f}% of the seeds reach {wanted}"
    return {1: f"to {wanted}, every seed", 0: f"{wanted} is never reached"}.get(part, some)
