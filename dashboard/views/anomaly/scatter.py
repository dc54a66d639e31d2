"""Three-dimensional view of records: in the subspace, and how far outside it."""

from __future__ import annotations

from typing import Literal

import numpy as np
import streamlit as st

from dashboard.shell.palette import colour
from fedpca_core.anomaly.scores import reconstruct, score
from fedpca_core.problems.traffic import Detection

_POINTS = 500


def scatter(detection: Detection, frame: np.ndarray) -> None:
    """Draw normal flows and attacks before and after reconstruction.

    Axes are the scores on the two leading directions and the distance to the subspace; after
    reconstruction the distance is zero, so only the plane remains.
    """
    import plotly.graph_objects as go

    after = st.toggle(
        "After reconstruction",
        key="reconstructed",
        bind="query-params",
        help="Replace every record by its projection on the subspace: what an attack and a normal "
        "flow still differ in is not what the detector looks at.",
    )
    scheme: Literal["light", "dark"] = "dark" if st.context.theme.type == "dark" else "light"
    # The leading directions of the subspace itself, most energy first.
    inside = detection.training @ frame
    turn = np.linalg.eigh(inside.T @ inside)[1][:, ::-1][:, :2]
    figure = go.Figure()
    highest = 0.0
    groups = (("normal", ~detection.attack, 0), ("attack", detection.attack, 1))
    for name, chosen, index in groups:
        rows = np.flatnonzero(chosen)
        rows = rows[np.linspace(0, len(rows) - 1, min(_POINTS, len(rows))).astype(int)]
        records = detection.records[rows]
        highest = max(highest, float(np.sqrt(score(records, frame).max())))
        if after:
            records = reconstruct(records, frame)
        plane = records @ frame @ turn
        figure.add_scatter3d(
            x=plane[:, 0].astype(np.float32),
            y=plane[:, 1].astype(np.float32),
            z=np.sqrt(score(records, frame)).astype(np.float32),
            mode="markers",
            name=name,
            text=[str(kind) for kind in detection.types[rows]],
            marker={
                "size": 3,
                "color": colour(f"series {index}", scheme),
                "symbol": "circle" if index == 0 else "diamond",
            },
        )
    figure.update_layout(
        scene={
            "xaxis_title": "first direction",
            "yaxis_title": "second direction",
            # The same height before and after, or rounding would be blown up to look like distance.
            "zaxis": {"title": "distance", "range": [0.0, 1.05 * highest]},
            "camera": {"eye": {"x": 1.5, "y": 1.5, "z": 0.8}},
        },
        margin={"l": 0, "r": 0, "t": 10, "b": 0},
        legend={"orientation": "h", "y": 1.02},
        height=480,
    )
    st.plotly_chart(
        figure,
        key="scatter",
        alt="Normal flows and attacks in three dimensions: two directions of the subspace and the "
        "distance to it.",
    )
