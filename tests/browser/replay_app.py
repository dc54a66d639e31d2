"""A small page for the tests of the replay view: known numbers, a few parameters."""

import numpy as np
import streamlit as st

from dashboard.player import chart, prepared
from fedpca_core.study.panels import Baseline, Curve, Heat, Images, Panel

st.title("Replay fixture", anchor=False)
rounds = st.slider("Rounds", 4, 40, 20, key="rounds")
scale = st.slider("Scale", 1, 9, 1, key="scale")
in_bytes = st.toggle("Count bytes", key="bytes")

k = np.arange(rounds + 1)
x, x_title = (k * 1000, "bytes") if in_bytes else (k, "round")
early = np.where(k <= 3, 10.0 ** -(2.0 * k), np.nan)
frames = np.stack([np.full((2, 3), 10 * r, dtype=np.uint8) for r in k])
prepared(
    key="run",
    rounds=rounds,
    images=[
        [
            Images("Estimate", frames, 0, 255, "grey", [f"frame {r}" for r in k]),
            Images("Truth", frames[-1:], -1, 1, "diverging", simulation_only=True),
        ]
    ],
    panels=[
        Panel(
            key="error",
            title="Error",
            x_title=x_title,
            y_title="error",
            curves=(
                Curve("SSI", x, scale * 10.0 ** (-k / 5)),
                Curve("FAPS", x, scale * 10.0 ** (-k / 2), lower=0.5 * 10.0 ** (-k / 2),
                      upper=2 * 10.0 ** (-k / 2)),
                Curve("BlockKrylov", x, early),
                Curve("bound", x, 10.0 ** (-k / 6), guide=True),
            ),
            baselines=(
                Baseline("noise", 1e-3),
                Baseline("centralised", 1e-5, simulation_only=True),
            ),
            description="The error of three algorithms by round.",
        ),
        Panel("spectrum", "Spectrum", "component", "eigenvalue",
              (Curve("SSI", ["first", "second"], np.stack([k + 1.0, 2 * k + 2.0], axis=1)),),
              kind="bars", log_y=False),
        Heat("angles", "Angles", np.stack([np.full((2, 2), r / 40) for r in k]),
             ["a", "b"], ["a", "b"], low=0, high=1),
    ],
)()  # fmt: skip
rates = np.linspace(0, 1, 11)
chart(
    key="still",
    panels=[
        Panel("roc", "Trade-off", "false positives", "true positives",
              (Curve("attack", rates, np.sqrt(rates)), Curve("guess", rates, rates, guide=True)),
              baselines=(Baseline("one half of all of them", 0.5),),
              log_y=False, x_range=(0, 1), y_range=(0, 1), follows=False),
        Panel("bars", "Bytes", "client", "megabytes",
              (Curve("SSI", ["a", "b"], [1, 2]), Curve("FAPS", ["a", "b"], [2, 1])),
              kind="bars", log_y=False),
        Panel("area", "Budget", "round", "ε", (Curve("one", k, k), Curve("two", k, 2 * k)),
              kind="area", log_y=False),
        Panel("points", "Clients", "first", "second",
              (Curve("group", [1, 2], [3, 4], "series 2", labels=["client 1", "client 2"]),),
              kind="scatter", log_y=False),
        Heat("heat", "Angles", [[0, 1], [np.nan, 0.1234]], ["a", "b"], ["a", "b"],
             show_values=True),
    ],
)  # fmt: skip
