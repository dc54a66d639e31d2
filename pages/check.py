"""What does my deployment give away?"""

import math

import streamlit as st

from dashboard.shell import share
from dashboard.shell.controls import Controls
from dashboard.shell.parts import ask
from fedpca_core.questions.check import figures
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.check.study import LeakCheck
from fedpca_core.study.parts import words

controls = Controls(CheckSettings)
controls.heading("What does my deployment give away?", words("check-lead"))

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
ask(LeakCheck(), settings, figures.checked, sentences=True)
st.caption(words("check-file"))
share.take_away(settings, None, ("which", "Choose a method"), ("attack", "Watch an attack"))
