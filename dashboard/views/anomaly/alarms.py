"""A live detector, the attack types it catches, and what made one alarm."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart, replay
from dashboard.shell import layout
from dashboard.shell.controls import Controls
from dashboard.views.anomaly.common import threshold, written
from dashboard.views.anomaly.scatter import scatter
from fedpca_core.questions.anomaly.alarms import Alarmed
from fedpca_core.questions.anomaly.judged import level
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.settings import short
from fedpca_core.study.own_data import OwnData

#: Features shown of one score.
LARGEST = 10


def choose(controls: Controls[AnomalySettings], data: OwnData | None) -> None:
    """The alarm level, and the flow whose score is taken apart."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        threshold(controls, data)
        controls.draw("flow", "reconstructed")


def draw(found: Alarmed, settings: AnomalySettings) -> None:
    """A live detector, attack types, and what made one alarm."""
    at = level(settings, found.facts.labelled)
    layout.section(
        "A live detector",
        "Test flows as they might arrive: calm traffic, then a burst of each attack type in "
        "alphabetical order."
        if found.facts.labelled
        else "The first of the tested records.",
    )
    replay(
        key="live_view",
        rounds=len(found.scores) - 1,
        round_label="flow",
        panels=[live(found, found.thresholds[at])],
    )
    if found.caught:
        table = found.caught[at]
        chart(key="types_view", panels=[by_type(table)])
        with st.expander("As a table"):
            shown = table.assign(caught=100 * table["caught"]).rename(columns=TYPE_COLUMNS)
            shown = written(shown, {"Flows": 0, "AUC": 3}, 1)
            layout.small_table(shown, label="Attack types", numbers=list(shown.columns[1:]))
    one_alarm(found, settings, found.thresholds[at])
    if found.clouds:
        layout.section(
            "In three coordinates",
            "Tested flows along two directions of the subspace and by their distance to it; “After "
            "reconstruction” leaves only what the subspace holds.",
        )
        scatter(found.clouds, after=settings.reconstructed)


def explain() -> None:
    """What a contribution is."""
    layout.about(
        "What makes a score",
        "The score is the sum over all features of the squared difference between a record and "
        "what the subspace expects of it; the largest terms say where it does not fit.",
        formula=r"a(x) = \sum_j \big(x - \hat Z \hat Z^\top x\big)_j^2",
    )


TYPE_COLUMNS = {"type": "Type", "records": "Flows", "caught": "Caught, %", "auc": "AUC"}


def one_alarm(found: Alarmed, settings: AnomalySettings, limit: float) -> None:
    """Why one flow raised (or did not raise) the alarm."""
    layout.section("What made this score", "Choose a flow of the stream by its number.")
    flow = found.flow(settings)
    last = ", the last of the stream," if flow < settings.flow else ""
    value = float(found.scores[flow])
    st.markdown(
        f"Flow {flow}{last} is of type **{found.types[flow]}**; its score {short(value, 3)} is "
        f"{'above' if value > limit else 'below'} the threshold {short(limit, 3)}: "
        f"**{'alarm' if value > limit else 'no alarm'}**."
    )
    table = found.explained(flow)
    left, right = st.columns(2)
    with left:
        chart(key="parts_view", panels=[contribution_bars(table.head(LARGEST))])
    with right:
        columns = {
            "feature": "Feature",
            "measured": "Measured",
            "standardised": "Standardised",
            "share": "% of score",
        }
        shown = table.head(LARGEST).rename(columns=columns)
        shown["Measured"] = [short(value) for value in shown["Measured"]]
        shown = written(shown, {"Standardised": 2}, 1)
        layout.small_table(shown, label="Features", numbers=list(shown.columns[1:]))


def live(found: Alarmed, limit: float) -> Panel:
    """Scores of a stream of flows, attacks and normal ones apart."""
    attack, values = found.attack, np.maximum(found.scores, 1e-3)
    x = np.arange(len(values))
    normal = "normal flow" if found.facts.labelled else "record"
    curves = [Curve(normal, x, np.where(attack, np.nan, values), colour="series 0")]
    if found.facts.labelled:
        seen = np.where(attack, values, np.nan)
        curves.append(Curve("attack", x, seen, colour="series 1", dash="solid"))
    return Panel(
        key="live",
        title="Anomaly score of each flow",
        x_title="flow",
        y_title="anomaly score",
        curves=tuple(curves),
        baselines=(Baseline(f"alarm above {short(limit, 3)}", max(limit, 1e-3)),),
        integer_x=True,
        height=330,
        description="Anomaly scores of a stream of flows with a burst of every attack type, and "
        "the alarm threshold.",
    )


def by_type(table: pd.DataFrame) -> Panel:
    """Share of each attack type caught and missed."""
    ordered = table.sort_values("caught", ascending=False)
    names = list(ordered["type"])
    return Panel(
        key="types",
        title="Attack types caught and missed",
        x_title="",
        y_title="% of the flows of this type",
        curves=(
            Curve("caught", names, 100 * ordered["caught"], colour="series 0"),
            Curve("missed", names, 100 * (1 - ordered["caught"]), colour="series 1"),
        ),
        kind="bars",
        stack=True,
        log_y=False,
        y_range=(0, 100),
        follows=False,
        height=360,
        description="For every attack type the share of its flows caught and missed.",
    )


def contribution_bars(table: pd.DataFrame) -> Panel:
    """The largest contributions to one score."""
    return Panel(
        key="contributions",
        title="Features that make up the score",
        x_title="",
        y_title="% of the score",
        curves=(
            Curve("share of the score", list(table["feature"]), table["share"], colour="series 2"),
        ),
        kind="bars",
        log_y=False,
        follows=False,
        height=380,
        description="The ten features that contribute most to the score of one flow.",
    )
