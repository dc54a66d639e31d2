"""The Privacy page's figures of the paper, with a verdict."""

from __future__ import annotations

import streamlit as st

from dashboard.player import Panel, chart
from dashboard.views.privacy.run import curve
from fedpca_core.papers.fedpower import MODELS, figure
from fedpca_core.questions.privacy.figures import Curves
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import short


def draw(settings: PrivacySettings, result: Curves) -> None:
    """The panel with its verdict."""
    entry = figure(settings.figure)
    st.markdown(entry.verdict)
    curves = tuple(
        curve(label, run, f"series {index}") for index, (label, run) in enumerate(result.items())
    )
    chart(
        key="privacy_figure",
        panels=[
            Panel(
                key="figure",
                title=entry.title,
                x_title="communication",
                y_title="projection distance, sin θ",
                curves=curves,
                integer_x=True,
                follows=False,
                height=420,
                axes_id=f"{settings.figure}-{settings.paper_size}",
                description=f"{entry.title}: median and quartiles of {settings.repetitions} "
                "repetitions.",
            )
        ],
    )
    ends = ", ".join(f"{label}: {short(run.final, 3)}" for label, run in result.items())
    st.markdown(f"Plateaus here: {ends}.")
    size = "the paper's size" if settings.paper_size else "live size (same noise over the gap)"
    st.caption(
        f"{MODELS[entry.model].title}, {size}; {entry.calibration} calibration; T = 10, decaying "
        f"gaps; {settings.repetitions} starts and noise draws on one data set (the paper does not "
        "say how many it used)."
    )
