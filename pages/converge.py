"""How fast does each method converge, and what does it cost on the wire?"""

from __future__ import annotations

import streamlit as st

from dashboard.player import replay
from dashboard.shell import formulas, jobs, layout, presets, script, share
from dashboard.shell.controls import Controls
from dashboard.shell.data import current_problem, problem_controls
from dashboard.views import convergence
from dashboard.views.guides import guide_curves
from fedpca_core.studies.laboratory import Comparison, compare
from fedpca_core.studies.pca import AttackConfiguration, Configuration

controls = Controls(Configuration)
layout.heading(
    "How fast does it converge?",
    "Every method starts from the same random frame and must find the leading subspace of all "
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

settings = controls.settings()
with chart:
    presets.note(settings)
with layout.guard(otherwise=st.stop):
    problem = current_problem(settings)


def work(job: jobs.Job) -> Comparison:
    """Compare the methods in the background, showing what is done so far."""
    return compare(settings.run_key(), problem, job.report, job.publish)


def draw(comparison: Comparison) -> None:
    """The chart of a finished, stopped or unfinished comparison."""
    for refusal in comparison.refusals.values():
        layout.sentence(refusal, kind="note")
    if not convergence.drawable(comparison, settings.measure):
        layout.sentence(
            "None of the chosen methods has this measure: a consensus gap needs a frame at every "
            "client. Add FAPS or variable splitting, or choose another measure."
        )
        return
    summary = comparison.summary(settings.measure, settings.accuracy)
    st.markdown(convergence.verdict(summary, settings.accuracy))
    guides = guide_curves(comparison, settings) if settings.guide else ()
    replay(
        key="converge_view",
        rounds=comparison.rounds,
        panels=[convergence.panel(comparison, settings, guides)],
    )


with chart:
    key = ("converge", settings.run_key(), problem.digest)
    job = jobs.show(key, work, draw, name="converge", seconds=180)
with table:
    st.caption(problem.note)
    if job.result is not None:
        summary = job.result.summary(settings.measure, settings.accuracy)
        costs = convergence.cost_table(summary)
        layout.small_table(costs, label="What it costs", numbers=list(costs.columns[1:]))
        convergence.facts(problem, settings)
    formulas.measures()
    formulas.rates()
    script.fold(script.comparison(settings))
    with st.container(horizontal=True, vertical_alignment="center"):
        share.copy_link(settings.query(), key="converge")
        share.download_json(settings.to_json(), name="comparison")
        if job.result is not None:
            share.download_csv(job.result.curves, name="curves")
        st.page_link(
            "../pages/attack.py",
            label="Attack this run",
            icon=":material/visibility:",
            query_params=AttackConfiguration(**settings.as_dict()).query(),
        )
