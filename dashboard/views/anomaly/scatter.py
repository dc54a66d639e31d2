"""Three-dimensional view of records: in the subspace, and how far outside it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import streamlit as st

from dashboard.shell.palette import colour
from fedpca_core.questions.anomaly.alarms import Cloud


def scatter(clouds: Mapping[str, Cloud], *, after: bool) -> None:
    """Draw records of each class before or after reconstruction.

    Axes are the scores on the two leading directions and the distance to the subspace; after
    reconstruction the distance is zero, so only the plane remains.
    """
    import plotly.graph_objects as go

    scheme: Literal["light", "dark"] = "dark" if st.context.theme.type == "dark" else "light"
    figure = go.Figure()
    highest = max(float(cloud.distance.max()) for cloud in clouds.values())
    for index, (name, cloud) in enumerate(clouds.items()):
        figure.add_scatter3d(
            x=cloud.plane[:, 0].astype(np.float32),
            y=cloud.plane[:, 1].astype(np.float32),
            z=(np.zeros_like(cloud.distance) if after else cloud.distance).astype(np.float32),
            mode="markers",
            name=name,
            text=list(cloud.types),
            marker={
                "size": 3,
                "color": colour(f"series {index}", scheme),
                "symbol": "circle" if index == 0 else "diamond",
            },
        )
    figure.update_layout(
        scene={
            # Short, and from a distance: a phone has no more room.
            "xaxis_title": "direction 1",
            "yaxis_title": "direction 2",
            # The same height before and after, so that what falls away can be seen.
            "zaxis": {"title": "distance", "range": [0.0, 1.05 * highest]},
            "camera": {"eye": {"x": 1.8, "y": 1.8, "z": 0.9}},
        },
        margin={"l": 0, "r": 0, "t": 10, "b": 0},
        legend={"orientation": "h", "y": 1.02, "itemsizing": "constant"},
        height=480,
    )
    st.plotly_chart(
        figure,
        key="scatter",
        alt="Normal flows and attacks in three dimensions: two directions of the subspace and the "
        "distance to it.",
    )
