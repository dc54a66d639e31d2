"""How fast does each method converge, and what does it cost on the wire?"""

from __future__ import annotations

import streamlit as st

from dashboard.shell import formulas, guarantee, jobs, layout, own_table, presets, script, share
from dashboard.shell.controls import Controls, packed
from dashboard.shell.data import own_data, problem_controls
from dashboard.views import budgets, convergence
from fedpca_core.studies.catalogue import studies_of
from fedpca_core.studies.convergence import Convergence
from fedpca_core.studies.pca_settings import AttackSettings, ConvergeSettings

STUDY = Convergence()

controls = Controls(ConvergeSettings)
layout.heading(
    "How fast does it converge?",
    "Every method starts from the same random basis and must find the leading subspace of all "
    "clients' data together. Watch what a round, a byte or a local product buys.",
)
controls.show_notes()

with st.sidebar:
    st.header("Problem", anchor=False)
    problem_controls(controls)
    st.header("Run", anchor=False)
    controls.draw("rounds", "starts", "participation")
    controls.parameter("absent", disabled=controls.values["participation"] == 1)
    controls.parameter("seed")
    with st.expander("Parameters of the methods"):
        controls.draw("penalty_factor", "adaptive", "inner_rule", "inner_steps", "local_steps")
    with st.expander("Differential privacy", expanded=True):
        guarantee.noise_controls(controls)
    with st.expander("On the wire"):
        controls.draw("dtype", "secure_aggregation", "upload_noise")

controls.parameter("methods")
with st.container(horizontal=True, gap="medium"):
    controls.parameter("measure", as_buttons=True)
    controls.parameter("axis", as_buttons=True)
chart = st.container()
layout.section("What it costs", "Medians over the starts that got there.")
with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
    controls.draw("accuracy", "guide")
table = st.container()


@st.fragment(key="costs")
def costs() -> None:
    """Of the run as far as it has come."""
    jobs.below(job, STUDY.key, lambda found: convergence.costs(found, settings))


@st.fragment(key="taken")
def taken() -> None:
    """What there is of the run to take away, and where it goes on."""
    with st.container(horizontal=True, vertical_alignment="center"):
        share.take_away(settings, {STUDY: job.result, budgets.STUDY: mapped}, data)
        st.page_link(
            "../pages/attack.py",
            label="Attack this run",
            icon=":material/visibility:",
            query_params=packed(settings.carried(AttackSettings)),
        )


settings = controls.settings()
data = own_data(settings)
with chart:
    presets.note(settings)
    job = jobs.study(
        STUDY,
        settings,
        lambda found: convergence.draw(found, settings),
        data=data,
        parts=["remedy", "costs", "taken"],
    )
    own_table.remedy_of(controls, job)
with table:
    costs()
    formulas.measures()
    formulas.rates()
    mapped = budgets.show(controls, data)
    settings = controls.settings()
    script.fold(settings, studies_of(settings), data)
    taken()
