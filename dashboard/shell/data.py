"""The controls of a pooled PCA problem, and of ε, on every page that has them."""

import math
from collections.abc import Collection
from typing import Any, TypeVar

import streamlit as st

from dashboard.shell import own_table
from dashboard.shell.controls import Controls, itself
from fedpca_core.study.pca_settings import CONSTANTS, IMAGES, ConvergeSettings

C = TypeVar("C", bound=ConvergeSettings)


def problem_controls(controls: Controls[C], elsewhere: Collection[str] = ()) -> None:
    """Draw the parameters of the problem, only those that matter for the chosen kind.

    Those that the page draws ``elsewhere`` are left to it. What follows keeps its place in the
    page's tree, however many there are: see `Controls`.
    """
    with st.container():
        kind = controls.parameter("problem", shapes=itself)
        if kind == "table":
            own_table.upload(controls)
            controls.draw("clients", "heterogeneity")
        else:
            spectrum = ("decay" if kind == "decay_geometric" else "condition", "features")
            image = ("clients", "records_per_client", "resolution")
            names = image if kind in IMAGES else (*spectrum, "clients", "samples")
            controls.draw(*(name for name in names if name not in elsewhere))
            controls.draw("sizes", "heterogeneity")
        controls.parameter("components")


def faps_controls(controls: Controls[C]) -> None:
    controls.draw("penalty_factor", "adaptive", "inner_rule", "inner_steps")
    with st.container():
        controls.draw(*(name for name in CONSTANTS if name not in controls.idle))


def noise_controls(controls: Controls[Any]) -> None:
    if not math.isinf(controls.parameter("epsilon", shapes=math.isinf)):
        controls.draw("delta", "clip_norm")
        synthetic = ("decay_geometric", "decay_arithmetic")
        if "mean_share" in controls.values and controls.values.get("problem") not in synthetic:
            controls.parameter("mean_share")
            if "mean_clip" in controls.values:
                controls.parameter("mean_clip")
