"""What does privacy cost, and what does it protect?"""

from typing import Any

import streamlit as st

from dashboard.shell import layout, meanwhile, own_table, share
from dashboard.shell.controls import Controls
from dashboard.shell.parts import ask, lay_out
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.catalogue import studies_of
from fedpca_core.questions.privacy import figures
from fedpca_core.questions.privacy.guarantee import promised
from fedpca_core.questions.privacy.settings import REAL, PrivacySettings
from fedpca_core.questions.told import TOLD
from fedpca_core.study.parts import words

controls = Controls(PrivacySettings)
controls.heading("What does privacy cost?", words("privacy-lead"))
view = controls.parameter("view", as_buttons=True)

with st.sidebar:
    if view == "figures":
        controls.draw("figure", "paper_size")
    else:
        st.header("Budget", anchor=False)
        with st.container():  # of one place, however many they are
            method = controls.parameter("method")
            at_the_source = view == "ways"
            controls.parameter("epsilon")
            if not at_the_source:
                controls.parameter("calibration")
                if "upload_noise" not in controls.idle:
                    controls.parameter("upload_noise")
            controls.parameter("delta")
            if controls.parameter("unit") == "person":
                controls.parameter("held")
            if at_the_source or controls.parameter("trusted") == "clients":
                controls.draw("colluding", "dropouts")
        st.header("Run", anchor=False)
        controls.draw("products", "local_steps")
        if METHODS[method].plans_products:
            controls.parameter("draws")
            with st.expander("Schedule and messages"):
                controls.draw(
                    "decaying_gaps", "alignment", "public_reference", "literal", "surplus"
                )
        st.header("Data", anchor=False)
        problem = controls.parameter("problem")
        if problem == "table":
            own_table.upload(controls)
        if problem not in REAL:
            controls.parameter("features")
        controls.draw("clients", "components")
        if problem not in REAL:
            controls.parameter("networks" if problem == "blocks" else "samples")
        if problem == "spiked":
            controls.parameter("treatment")
        if problem in ("spiked", *REAL):
            controls.parameter("clip_norm")
        if problem in REAL and controls.values.get("scaling") != "none":
            controls.draw("mean_share", "mean_clip")
    controls.draw("repetitions", "seed")
    if view == "accountants":
        controls.parameter("multiplier")
        if "coin" not in controls.idle:
            controls.parameter("coin")

settings = controls.settings()
data = own_table.of(settings)
shown = studies_of(settings)
more: dict[Any, Any] = {}
answered, guaranteed = st.container(key="answered"), st.container()
if view != "ways":  # there each way states its own

    def refused(refusal: str) -> None:
        own_table.remedy(controls, refusal)
        meanwhile.offer(settings)
        st.stop()

    with guaranteed, layout.guard(otherwise=refused):
        promises = promised(settings, data)
        lay_out(figures.guarantee(promises, settings))
    more[shown.pop(0)] = promises

columns = len(shown) if view == "utility" else 1
with answered:  # the picture first, what ε means below it
    places = st.columns(columns, gap="medium")
for index, study in enumerate(shown):
    with places[index % columns]:
        ask(study, settings, TOLD[study.key], data=data)

if view not in ("figures", "ways"):
    layout.section("What this protects, and what not")
    lay_out(figures.protection(promises, settings))
lay_out([figures.READING])
share.take_away(settings, data, more=more)
