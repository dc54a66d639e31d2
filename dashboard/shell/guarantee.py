"""ε on any page: its controls, and the guarantee beside the run."""

import math
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.shell import layout
from dashboard.shell.controls import Controls
from fedpca_core.questions.trace.opened import Opened
from fedpca_core.settings import short
from fedpca_core.study.facts import EPSILON, FALSE_ALARMS, NOTICED, Facts


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
    layout.facts_card(
        f"ε = {short(round(found.epsilon, 3))}, δ = {short(found.delta)}, for every method here",
        {
            "Protects": found.unit,
            "Against": f"{found.towards}; another run with fresh noise is a second release",
            "Released": found.released,
            "Clip": f"records clipped at norm {short(found.clip_norm)}",
            "Noise": f"standard deviation {found.noise:.2g} on every entry of a client's matrix; "
            f"{found.drawn}",
            "Sampling": found.sampling,
            "Accountant": found.accountant,
            "Taken as public": ", ".join(found.public),
        },
        protection="formal",
    )
    st.caption("The answer's error is measured against the data without clipping and noise.")
    with st.expander("What this ε means for a person, a client, two runs"):
        layout.small_table(meanings(facts), label="What ε means", numbers=[EPSILON, NOTICED])
        st.caption(
            f"All from the same noise, at δ = {short(found.delta)}. The last column is the share "
            "of cases in which the best possible test notices that the records were replaced, if "
            "it raises a false alarm in one case of twenty; 5% is guessing."
        )


def meanings(facts: Facts | Opened) -> pd.DataFrame:
    """ε for a record, a person, a client and two runs, as finished texts."""
    rows = [
        {
            "What may be replaced": unit,
            EPSILON: stated.budget,
            NOTICED: f"{100 * stated.noticed(FALSE_ALARMS):.3g}%",
        }
        for unit, stated in facts.meanings().items()
    ]
    return pd.DataFrame(rows)
