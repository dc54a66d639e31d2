"""ε on any page: its controls, and the guarantee beside the run."""

import math
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.shell import layout
from dashboard.shell.controls import Controls
from fedpca_core.questions.trace.opened import Opened
from fedpca_core.settings import short
from fedpca_core.study.facts import EPSILON, NOTICED, Facts, meant
from fedpca_core.study.parts import FactsCard, words


def noise_controls(controls: Controls[Any]) -> None:
    """ε, off by default, with the group of settings that gives it a meaning."""
    epsilon = controls.parameter("epsilon", shapes=math.isinf)
    if not math.isinf(epsilon):
        controls.draw("delta", "clip_norm")
        synthetic = ("decay_geometric", "decay_arithmetic")
        if "mean_share" in controls.values and controls.values.get("problem") not in synthetic:
            controls.parameter("mean_share")
            if "mean_clip" in controls.values:
                controls.parameter("mean_clip")


def card(facts: Facts | Opened) -> None:
    """The guarantee of a run with noise at the source; nothing where there is none."""
    found = facts.guarantee
    if found is None:
        return
    told = FactsCard.of(
        "guarantee",
        found=found,
        epsilon=short(round(found.epsilon, 3)),
        delta=short(found.delta),
        norm=short(found.clip_norm),
        public=", ".join(found.public),
    )
    layout.facts_card(told.title, told.facts, protection="formal")
    st.caption("The answer's error is measured against the data without clipping and noise.")
    with st.expander("What this ε means for a person, a client, two runs"):
        layout.small_table(meanings(facts), label="What ε means", numbers=[EPSILON, NOTICED])
        st.caption(words("guarantee-meanings", delta=short(found.delta)))


def meanings(facts: Facts | Opened) -> pd.DataFrame:
    """ε for a record, a person, a client and two runs, as finished texts."""
    return meant(facts.meanings(), "What may be replaced")
