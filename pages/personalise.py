"""Who should collaborate? Personalised PCA between training alone and one shared model."""

import math

import streamlit as st

from dashboard.shell import layout, own_table, presets, share
from dashboard.shell.controls import Controls
from dashboard.shell.data import noise_controls
from dashboard.shell.parts import ask, lay_out
from fedpca_core.papers.presets import PERPCA
from fedpca_core.questions.personalise import figures
from fedpca_core.questions.personalise.exposure import LARGEST, Exposure
from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.questions.personalise.study import CollaborationSweep, PersonalComparison
from fedpca_core.study.parts import words

COMPARISON, SWEEP, EXPOSURE = PersonalComparison(), CollaborationSweep(), Exposure()

controls = Controls(PersonaliseSettings)
controls.heading("Who should collaborate?", words("personalise-lead"))

with st.sidebar:
    st.header("Clients", anchor=False)
    with st.container():  # of one place, however many they are
        own = controls.parameter("problem") == "table"
        if own:
            own_table.upload(controls)
        controls.draw("heterogeneity", "samples", "clients")
        if not own:
            controls.parameter("features")
        controls.draw("components", "noise_variance", "seed")
    st.header("Method", anchor=False)
    controls.draw("rounds", "pace", "start_from")
    with st.expander("Readings of the paper"):
        controls.draw("reading", "prior", "gradient")
    with st.expander("Differential privacy", expanded=True):
        noise_controls(controls)

with st.expander("Figures of the paper, at a size that answers at once"):
    with st.container(horizontal=True):
        presets.buttons(controls, PERPCA)
    st.caption(words("personalise-printed"))
    layout.cite("perpca")

controls.parameter("error_on", as_buttons=True)
top = st.container(key="personal_comparison")
layout.section("Between alone and shared", words("personalise-between"))
with st.container(horizontal=True, gap="medium"):
    controls.parameter("sweep", as_buttons=True)
    controls.parameter("datasets")
middle = st.container(key="personal_sweep_place")
layout.section("What the uploads give away")
lay_out([figures.threat(not math.isinf(controls.values["epsilon"]))])
controls.parameter("exposure")
settings = controls.settings()
data = own_table.of(settings)

with top:
    for preset in PERPCA:
        if preset.settings.run_key() == settings.run_key() != PersonaliseSettings():
            st.caption(f"**{preset.title}.** {preset.point}")
    job = ask(COMPARISON, settings, figures.comparison, data=data)
    own_table.remedy(controls, job.refusal)
with middle:
    ask(SWEEP, settings, figures.sweep, data=data, above=job)
if settings.exposure and not EXPOSURE.wanted(settings):
    layout.sentence(
        f"The demonstration solves for up to {LARGEST} features, not {settings.features}; "
        "choose fewer features.",
        kind="note",
    )
elif settings.exposure:
    ask(EXPOSURE, settings, figures.exposure, data=data, above=job)

share.take_away(settings, data)
