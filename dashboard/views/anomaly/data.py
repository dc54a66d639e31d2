"""The controls of the Anomalies page."""

from __future__ import annotations

import streamlit as st

from dashboard.shell import guarantee, own_table
from dashboard.shell.controls import Controls
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import NO_LABELS
from fedpca_core.study.own_data import OwnData


def sidebar(controls: Controls[AnomalySettings]) -> OwnData | None:
    """Draw the parameters of data and learning; the visitor's own file."""
    st.header("Traffic", anchor=False)
    with st.container():  # of one place, however many they are
        own = controls.parameter("problem") == "own"
        data = _own(controls) if own else None
    controls.draw("clients", "split")
    controls.parameter("transform")
    st.header("Learning", anchor=False)
    controls.draw("method", "components", "rounds", "participation", "penalty_factor")
    controls.parameter("local_steps")
    with st.expander("Differential privacy", expanded=True):
        guarantee.noise_controls(controls)
    with st.expander("Corrected or as printed"):
        if controls.values["method"] == "fedpg":
            controls.parameter("projection")
        controls.draw("average", "standardising")
    with st.expander("Further settings"):
        controls.draw("step_factor", "local_start", "sampling", "initial", "seed")
    return data


def _own(controls: Controls[AnomalySettings]) -> OwnData | None:
    """The visitor's file, and how it is read."""
    own, facts = own_table.choose(
        "One row for each record, numbers as features. With a column of labels the alarms can be "
        "judged; the public CSVs of UNSW-NB15, TON-IoT, NSL-KDD and IoT-23 are recognised."
    )
    if facts is None:
        return None
    controls.parameter(
        "label_column", options=["", *facts.labels, NO_LABELS], empty="Found by its name"
    )
    if values := facts.labels.get(controls.values["label_column"]):
        controls.parameter("normal_value", options=["", *values], empty="Found by itself")
    own_table.client_column(controls, facts)
    controls.parameter("columns", options=facts.numeric)
    return own
