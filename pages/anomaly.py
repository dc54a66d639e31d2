"""Can devices that keep their traffic to themselves learn together what is unusual?"""

from __future__ import annotations

import math
from dataclasses import replace

import streamlit as st

from dashboard.shell import jobs, layout, own_table, presets, share
from dashboard.shell.controls import Controls
from dashboard.shell.data import noise_controls
from dashboard.shell.parts import ask, drawing, lay_out
from fedpca_core.papers.presets import IOT
from fedpca_core.questions.anomaly import figures, task
from fedpca_core.questions.anomaly.poisoned import preferred
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.catalogue import ATTACK_TYPES, studies_of
from fedpca_core.questions.told import TOLD
from fedpca_core.study.here import COMMAND, on
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import words

controls = Controls(AnomalySettings)
controls.heading("Can it tell attacks from normal traffic?", words("anomaly-lead"))


def own_file() -> OwnData | None:
    own, facts = own_table.choose(
        "One row for each record, numbers as features. With a column of labels the alarms can be "
        "judged; the public CSVs of UNSW-NB15, TON-IoT, NSL-KDD and IoT-23 are recognised."
    )
    if facts is None:
        return None
    controls.parameter(
        "label_column", options=["", *facts.labels, task.NO_LABELS], empty="Found by its name"
    )
    if values := facts.labels.get(controls.values["label_column"]):
        controls.parameter("normal_value", options=["", *values], empty="Found by itself")
    own_table.reading(controls, facts)
    return own


with st.sidebar:
    st.header("Traffic", anchor=False)
    with st.container():  # of one place, however many they are
        data = own_file() if controls.parameter("problem") == "own" else None
    controls.draw("clients", "split", "alpha", "each", "transform")
    st.header("Learning", anchor=False)
    controls.parameter("method")
    controls.parameter("components", high=task.most_components(controls.values["problem"]))
    controls.draw("rounds", "participation", "penalty_factor", "local_steps")
    with st.expander("Differential privacy", expanded=True):
        noise_controls(controls)
    with st.expander("Corrected or as printed"):
        if "projection" not in controls.idle:
            controls.parameter("projection")
        controls.draw("average", "standardising")
    with st.expander("Further settings"):
        controls.draw("step_factor", "local_start", "sampling", "initial", "seed")

with st.popover("Presets", icon=":material/bookmark:"):
    presets.buttons(controls, IOT, width="stretch")

view = controls.parameter("view", as_buttons=True)
with st.container():
    if task.resolve(controls.values["problem"]) == "synthetic":
        layout.sentence(
            "This traffic is synthetic: drawn by this program with labelled attacks, not measured. "
            f"“{COMMAND} ton-iot” says where to get real traffic, or choose your own file.",
            kind="note",
        )
        st.button(
            "Real traffic that comes along: IoT-23",
            on_click=controls.changer(lambda: on(controls.settings(), "iot23")),
            key="to_iot23",
        )


def choose() -> None:
    if view == "leaks":
        controls.parameter("client", high=controls.values["clients"] - 1)
        lay_out([figures.THREAT])
    if view not in ("detection", "alarms", "poisoning", "sweeps"):
        return
    row = st.container(horizontal=True, gap="medium", vertical_alignment="bottom")
    if view == "poisoning":
        types = jobs.study(ATTACK_TYPES, controls.settings(), lambda _: None, data=data).result
        with row:
            if types:
                first = preferred(types)
                others = ["", *(name for name in types if name != first)]
                controls.parameter("hidden", options=others, empty=first)
            controls.parameter("malicious")
        lay_out([figures.LIARS])
        return
    with row:
        if view == "sweeps":
            controls.parameter("sweep", as_buttons=True)
            controls.parameter("seeds")
        elif controls.parameter("rule", as_buttons=True) == "quantile":
            controls.parameter("share")
        if view == "detection":
            controls.parameter("flows_a_day")
        if view == "alarms":
            controls.draw("flow", "reconstructed")


def remedies(settings: AnomalySettings) -> None:
    """The two ways out, where a finite ε that travelled here does not fit the data's scaling."""
    if not task.without_guarantee(settings):
        return
    ways = {
        "Choose “Mean only”": replace(settings, standardising="centre"),
        "Switch the noise off": replace(settings, epsilon=math.inf),
    }
    with st.container(horizontal=True):
        for at, (label, changed) in enumerate(ways.items()):
            st.button(label, on_click=controls.changer(changed), key=f"remedy_{at}")


job = None
(study,) = studies_of(controls.settings())
with layout.guard():
    choose()
    settings = controls.settings()
    job = ask(study, settings, TOLD[study.key], data=data)
    remedies(settings)
    own_table.remedy(controls, job.refusal, task.fitting)
    lay_out(figures.READING[view])

settings = controls.settings()
if job is not None:
    jobs.below(job, study.key, drawing(figures.whose_records, settings))
share.take_away(settings, data)
