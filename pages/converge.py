"""How fast does each method converge, and what does it cost on the wire?"""

from types import SimpleNamespace

import streamlit as st

from dashboard.shell import jobs, layout, own_table, presets, share
from dashboard.shell.controls import Controls
from dashboard.shell.data import faps_controls, noise_controls, problem_controls
from dashboard.shell.parts import ask, drawing, lay_out
from fedpca_core.questions.converge import figures
from fedpca_core.questions.converge.study import BudgetsAndHeterogeneity, Convergence
from fedpca_core.study.parts import About, words
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings

STUDY, BUDGETS = Convergence(), BudgetsAndHeterogeneity()

controls = Controls(ConvergeSettings, runs=["comparison", "costs", "further"])
controls.heading("How fast does it converge?", words("converge-lead"))

with st.sidebar:
    st.header("Problem", anchor=False)
    problem_controls(controls)
    st.header("Run", anchor=False)
    controls.draw("rounds", "starts", "participation", "absent", "seed")
    with st.expander("Parameters of the methods"):
        faps_controls(controls)
        controls.draw("local_steps", "rho_factor")
    with st.expander("Differential privacy", expanded=True):
        noise_controls(controls)
    with st.expander("On the wire"):
        controls.draw("dtype", "secure_aggregation", "upload_noise")

controls.parameter("methods")
with st.container(horizontal=True, gap="medium"):
    controls.draw("measure", "axis", as_buttons=True)
chart = st.container()
layout.section("What it costs", "Medians over the starts that got there.")
with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
    controls.draw("accuracy", "guide")

#: What the page shows. No class of its own: to make one at every run is a fortieth of the page.
shown = SimpleNamespace(settings=controls.settings(), data=None, job=jobs.Job(None))


@st.fragment(key="comparison")
def comparison() -> None:
    settings = shown.settings = controls.settings()
    shown.data = own_table.of(settings)
    presets.note(settings)
    parts = ["remedy", "costs", "taken"]
    shown.job = ask(STUDY, settings, figures.comparison, data=shown.data, parts=parts)
    own_table.remedy_of(controls, shown.job)


@st.fragment(key="costs")
def costs() -> None:
    jobs.below(shown.job, STUDY.key, drawing(figures.costs, shown.settings))


@st.fragment(key="further")
def further() -> None:
    layout.section("What does ε cost where clients differ?")
    controls.parameter("budgets")
    settings = controls.settings()
    if BUDGETS.wanted(settings):
        ask(BUDGETS, settings, figures.budgets, data=shown.data)
    share.take_away(settings, shown.data, (settings.carried(AttackSettings), "Attack this run"))


with chart:
    comparison()
costs()
lay_out([About.of("measures"), About.of("rates")])
further()
controls.whole()
