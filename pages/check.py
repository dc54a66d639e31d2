"""What does my deployment give away?"""

import math

import streamlit as st

from dashboard.shell import jobs, layout, script, share
from dashboard.shell.controls import Controls
from dashboard.shell.navigation import door
from dashboard.shell.parts import drawing
from fedpca_core.questions.check import figures
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.check.study import LeakCheck

STUDY = LeakCheck()

controls = Controls(CheckSettings)
layout.heading(
    "What does my deployment give away?",
    "Describe who runs what with whom. The answer says which attack applies, what it would get, "
    "how that is known, and what stops it at which cost. No data are asked for, so none "
    "leave your machine.",
)
controls.show_notes()

with st.sidebar:
    st.header("Deployment", anchor=False)
    controls.draw("method", "clients", "samples", "features", "components", "rounds")
    controls.draw("participation", "repeats")
    st.header("Records", anchor=False)
    controls.draw("values", "centring")
    st.header("Protection", anchor=False)
    controls.draw("secure_aggregation", "upload_noise", "dtype")
    epsilon = controls.parameter("epsilon")
    if not math.isinf(epsilon):
        controls.parameter("delta")
    controls.parameter("seed")

settings = controls.settings()
job = jobs.study(STUDY, settings, drawing(figures.checked, settings))
st.caption(
    "The same from a file: `python -m fedpca_core check FILE`, with the configuration below, or "
    "one printed by `python -m fedpca_core config check`."
)
script.fold(settings, [STUDY])
with st.container(horizontal=True, vertical_alignment="center"):
    share.take_away(settings, {STUDY: job.result}, data=None)
    door("which", "Choose a method")
    door("attack", "Watch an attack")
