"""A live detector, the attack types it catches, and what made one alarm."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.player import Baseline, Curve, Panel, chart, replay
from dashboard.shell import layout
from dashboard.views.anomaly.scatter import scatter
from dashboard.views.anomaly.view import (
    PER_CENT,
    THREE,
    View,
    threshold,
    with_findings,
)
from fedpca_core.anomaly.evaluation import caught_by_type
from fedpca_core.anomaly.scores import contributions
from fedpca_core.problems.traffic import Detection
from fedpca_core.studies.detection import comparison
from fedpca_core.studies.detection.comparison import Findings, Judged

TYPE_COLUMNS = {"type": "Type", "records": "Flows", "caught": "Caught, %", "auc": "AUC"}


def alarms(view: View) -> None:
    """A live detector, attack types, and what made one alarm."""
    settings = threshold(view)

    def draw(findings: Findings) -> None:
        judged = findings.judged.get(view.title)
        if judged is None:
            return
        level = judged.threshold(settings.rule, settings.share)
        rows = comparison.stream(view.detection, seed=settings.seed)
        layout.section(
            "A live detector",
            "Test flows as they might arrive: calm traffic, then a burst of each attack type in "
            "alphabetical order.",
        )
        replay(
            key="live_view",
            rounds=len(rows) - 1,
            round_label="flow",
            panels=[live(view.detection, rows, judged.detector.scores, level)],
        )
        table = caught_by_type(
            view.detection.attack, view.detection.types, judged.detector.scores, level
        )
        chart(key="types_view", panels=[by_type(table)])
        with st.expander("As a table"):
            st.dataframe(
                table.assign(caught=100 * table["caught"]).rename(columns=TYPE_COLUMNS),
                hide_index=True,
                width="stretch",
                column_config={"Caught, %": PER_CENT, "AUC": THREE},
            )
        one_alarm(view, judged, rows, level)

    with_findings(view, draw)


def one_alarm(view: View, judged: Judged, rows: np.ndarray, level: float) -> None:
    """Why one flow raised (or did not raise) the alarm."""
    layout.section("What made this score", "Choose a flow of the stream above by its number.")
    attacks = np.flatnonzero(view.detection.attack[rows])
    start = int(attacks[len(attacks) // 2])
    number = st.slider("Flow", 0, len(rows) - 1, start, key="flow", bind="query-params")
    row = int(rows[number])
    value = float(judged.detector.scores[row])
    names = list(view.detection.problem.feature_names)
    parts = contributions(view.detection.records[row], judged.detector.frame)
    st.markdown(
        f"Flow {number} is **{view.detection.types[row]}**; its score {value:.3g} is "
        f"{'above' if value > level else 'below'} the threshold {level:.3g}: "
        f"**{'alarm' if value > level else 'no alarm'}**."
    )
    left, right = st.columns(2)
    with left:
        chart(key="parts_view", panels=[contribution_bars(names, parts)])
    with right:
        table = pd.DataFrame(
            {
                "Feature": names,
                "Measured": view.detection.raw(row),
                "Standardised": view.detection.records[row],
                "% of score": 100 * parts / max(float(parts.sum()), 1e-300),
            }
        )
        st.dataframe(
            table.sort_values("% of score", ascending=False).head(10),
            hide_index=True,
            width="stretch",
            column_config={
                "Measured": st.column_config.NumberColumn(format="%.4g"),
                "Standardised": st.column_config.NumberColumn(format="%.2f"),
                "% of score": PER_CENT,
            },
        )
    if judged.detector.frame is not None and judged.detector.frame.shape[1] >= 2:
        scatter(view.detection, judged.detector.frame)


def live(detection: Detection, rows: np.ndarray, scores: np.ndarray, threshold: float) -> Panel:
    """Scores of a stream of flows, attacks and normal ones apart."""
    attack, values = detection.attack[rows], np.maximum(scores[rows], 1e-3)
    x = np.arange(len(rows))
    return Panel(
        key="live",
        title="Anomaly score of each flow",
        x_title="flow",
        y_title="anomaly score",
        curves=(
            Curve("normal flow", x, np.where(attack, np.nan, values), colour="series 0"),
            Curve("attack", x, np.where(attack, values, np.nan), colour="series 1", dash="solid"),
        ),
        baselines=(Baseline(f"alarm above {threshold:.3g}", threshold),),
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


def contribution_bars(names: list[str], parts: np.ndarray) -> Panel:
    """The largest contributions to one score."""
    largest = np.argsort(parts)[::-1][:10]
    return Panel(
        key="contributions",
        title="Features that make up the score",
        x_title="",
        y_title="% of the score",
        curves=(
            Curve(
                "share of the score",
                [names[index] for index in largest],
                100 * parts[largest] / max(float(parts.sum()), 1e-300),
                colour="series 2",
            ),
        ),
        kind="bars",
        log_y=False,
        follows=False,
        height=330,
        description="The ten features that contribute most to the score of one flow.",
    )
