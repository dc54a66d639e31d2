"""Bytes and seconds of each method."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dashboard.shell import layout, share
from dashboard.views.anomaly.view import (
    View,
    with_findings,
)
from fedpca_core.anomaly.detectors import Detector
from fedpca_core.studies.detection.comparison import Findings


def costs(view: View) -> None:
    """Bytes and seconds of each method."""

    def draw(findings: Findings) -> None:
        if view.title not in findings.judged:
            return
        features, k = view.detection.problem.features, view.settings.components
        once = features * (features + 1) // 2
        clients, records = view.detection.problem.clients, len(view.detection.training)
        exact = findings.judged["Centralised PCA"].detector
        sent = {
            "Every record to the server": (records // clients * features, clients * 1.0),
            "One-shot covariance, exact": (once, clients * (1 + features * k / once)),
        }
        rows = [
            _cost(name, floats, 4e-6 * floats * times, exact)
            for name, (floats, times) in sent.items()
        ]
        rows += [
            _cost(name, run.upload_floats, 1e-6 * run.bytes_total, run)
            for name, judged in findings.judged.items()
            if (run := judged.detector).upload_floats
        ]
        table = pd.DataFrame(rows)
        taken = view.settings.participation * view.settings.rounds
        even = (features + 1) / 2 / k
        st.markdown(
            f"A client uploads **{4 * features * k:,} bytes** a round with {view.title} and "
            f"**{4 * once:,} bytes once** if it sends its covariance, which under a secure sum "
            f"gives the exact answer for every rank. {view.title} saves bytes only for clients "
            f"that take part fewer than {even:.1f} times; here each takes part about {taken:.0f} "
            "times."
        )
        st.dataframe(
            table,
            hide_index=True,
            width="stretch",
            column_config={
                "Method": st.column_config.TextColumn(width="medium", pinned=True),
                "Bytes up": st.column_config.NumberColumn(format="localized"),
                "MB in all": st.column_config.NumberColumn(format="%.2f"),
                "Training, s": st.column_config.NumberColumn(format="%.2f"),
                "µs a flow": st.column_config.NumberColumn(format="%.3f"),
            },
        )
        st.caption(
            "Bytes up: of one client in one round (once for the first two). MB in all: both "
            "directions, all clients and rounds."
        )
        share.download_csv(table, name="costs")

    with_findings(view, draw)
    layout.about(
        "What is counted",
        "float32 on the wire. Up: one matrix. Down: the average before the local steps with the "
        "penalty, and the new average after them, both to the participants. The duals never "
        "travel. Once, before the first round, and not in the table: two sums for the "
        "standardisation and one eigenvalue. Training is the time of all clients and the server "
        "together on this machine, scoring that of a batch.",
    )


def _cost(name: str, floats: int, megabytes: float, run: Detector) -> dict[str, Any]:
    return {
        "Method": name,
        "Bytes up": 4 * floats,
        "MB in all": megabytes,
        "Training, s": run.training_seconds,
        "µs a flow": run.microseconds_per_record,
    }
