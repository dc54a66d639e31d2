"""What is proved about agreeing on one minimiser, what is false as printed, and what is sharp."""

from __future__ import annotations

import streamlit as st

from dashboard.shell import layout, own_table, share
from dashboard.shell.controls import Controls
from dashboard.shell.parts import ask, lay_out
from fedpca_core.questions.theory import figures
from fedpca_core.questions.theory.settings import TheorySettings
from fedpca_core.questions.theory.study import AgainstClaims, PenaltyAndSteps, Statements
from fedpca_core.study.parts import words

controls = Controls(TheorySettings)
controls.heading("What is proved?", words("theory-lead"))

with st.sidebar:
    st.header("Problem", anchor=False)
    problem = controls.parameter("problem")
    if problem == "table":
        facts = own_table.upload(controls)
        if facts is not None:
            controls.parameter("target", options=["", *facts.numeric], empty="The last one")
    controls.draw("kappa", "heterogeneity", "clients")
    if problem != "table":
        controls.parameter("features")
    controls.parameter("seed")
    st.header("Method", anchor=False)
    controls.draw("method", "penalty_factor", "local_steps", "step_scale", "dual_scale")
    controls.draw("probability", "rounds")

run = st.container(key="theory_run")
layout.section("Which penalty, how many local steps?")
factors = st.container(key="theory_factors")
layout.section("Statements and verdicts", words("theory-verdicts"))
with st.container(width=220):
    controls.parameter("family_seed")
settings = controls.settings()
data = own_table.of(settings)

with run:
    job = ask(AgainstClaims(), settings, figures.method, data=data)
    own_table.remedy(controls, job.refusal)
with factors:
    ask(PenaltyAndSteps(), settings, figures.factors, data=data, above=job)
ask(Statements(), settings, figures.statements, above=job)
lay_out([figures.REPAIR, figures.FOR_PCA])

share.take_away(settings, data, ("personalise", "Personalised PCA"))
