"""What ε means on the Anomalies page: the same for every topic that learns."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import streamlit as st

from dashboard.shell import guarantee, layout
from dashboard.shell.controls import Controls
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import without_guarantee
from fedpca_core.settings import short
from fedpca_core.study.facts import data_note

#: What the card's guarantee is about, and what it leaves out.
COVERED = (
    "ε covers the mean and the subspace that are learnt. Centralised PCA and distances to it are "
    "shown without clipping and noise. A threshold at a training quantile is read off the records "
    "afterwards and is not covered: let every client keep its own. The names of the features count "
    "as public. Autoencoders learn from the records themselves, which this noise does not reach, "
    "and are left out."
)


def remedies(controls: Controls[AnomalySettings]) -> None:
    """The two ways out, where a finite ε that travelled here does not fit the data's scaling."""
    settings = controls.settings()
    if settings.topic == "published" or not without_guarantee(settings):
        return
    ways = {
        "Choose “Mean only”": replace(settings, standardising="centre"),
        "Switch the noise off": replace(settings, epsilon=math.inf),
    }
    with st.container(horizontal=True):
        for at, (label, changed) in enumerate(ways.items()):
            st.button(label, on_click=controls.changer(changed), key=f"remedy_{at}")


def draw(settings: AnomalySettings, result: Any) -> None:
    """Whose records these are, and the guarantee, or why there is none under a finite ε."""
    if hasattr(result, "facts"):
        carded = settings.topic not in ("published", "sweeps")
        promised = getattr(result.facts, "promised", None) if carded else None
        st.caption(data_note(result.facts.note, promised))
    if math.isinf(settings.epsilon):
        return
    if settings.topic == "published":
        layout.sentence(
            "The paper prints its table without noise, so these runs have none either and no ε.",
            kind="note",
        )
    elif settings.topic == "sweeps":
        st.caption(
            f"Every point is a run with noise at the source at ε = {short(settings.epsilon)}; "
            "looking at several of them spends it as many times. The topic “Detection” states the "
            "whole guarantee of one."
        )
    elif result.facts.promised is not None:
        guarantee.card(result.facts.promised)
        st.caption(COVERED)
