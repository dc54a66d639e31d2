"""What does an honest-but-curious server learn of one client from exactly the messages it saw?"""

from __future__ import annotations

import streamlit as st

from dashboard.player import replay
from dashboard.shell import formulas, jobs, layout, presets, share
from dashboard.shell.controls import Controls
from dashboard.shell.data import own_data, problem_controls
from dashboard.views import adversary, elsewhere, reconstruction, replay_section
from dashboard.views import differencing as joining_section
from dashboard.views import recovery as recovery_sweep
from fedpca_core.algorithms.registry import ATTACKABLE
from fedpca_core.studies.build import build_problem
from fedpca_core.studies.pca_settings import AttackSettings, ConvergeSettings

controls = Controls(AttackSettings, also_known=("attacked",))
layout.heading(
    "What leaks?",
    "An honest-but-curious server follows the protocol and keeps every message. Scrub through the "
    "rounds and watch it reconstruct the covariance of one client.",
)
controls.show_notes()

with st.sidebar:
    st.header("Problem", anchor=False)
    problem_controls(controls)
    st.header("Run", anchor=False)
    controls.parameter("rounds", high=200)
    controls.draw("starts", "participation")
    controls.parameter("absent", disabled=controls.values["participation"] == 1)
    controls.parameter("seed")
    with st.expander("Parameters of FAPS"):
        controls.draw("penalty_factor", "adaptive", "inner_rule", "inner_steps")
    with st.expander("Defences", expanded=True):
        controls.draw("secure_aggregation", "dtype", "upload_noise")
        controls.draw("private_start", "private_penalty", "random_inner_steps")

controls.parameter("attacked")
with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
    adversary_key = controls.parameter("attack")
    controls.parameter("client")
    if adversary_key == "collude":
        controls.parameter("colluders")

settings = controls.settings()
presets.note(settings)
with layout.guard(otherwise=st.stop):
    problem = build_problem(settings, own_data(settings))
    adversary.private_matrix(problem, settings.client)  # refuses a client that is not there


def work(job: jobs.Job) -> adversary.Outcome:
    """Run every method from the same start and attack its transcript."""
    return adversary.attack_all(settings.run_key(), problem, job.report)


def draw(outcome: adversary.Outcome) -> None:
    """Pictures, curves and the verdict."""
    for refusal in outcome.refusals.values():
        layout.sentence(refusal, kind="note")
    recoveries = outcome.recoveries
    if not recoveries:
        return
    st.markdown(adversary.verdict(recoveries, settings))
    replay(
        key="attack_view",
        rounds=max(entry.errors.shape[1] for entry in recoveries.values()) - 1,
        images=outcome.pictures,
        panels=[
            reconstruction.error_panel(recoveries, outcome.baselines),
            reconstruction.progress_panel(recoveries),
            reconstruction.angle_panel(recoveries),
        ],
    )


key = ("attack", settings.run_key(), problem.digest)
job = jobs.show(key, work, draw, name="attack", seconds=120)

st.caption(problem.note)
adversary.card(settings, job.result)
formulas.reconstruction()
replay_section.show(controls, settings, problem)
joining_section.show(controls, settings, problem)
layout.section("Does it get harder with size?")
if controls.parameter("growth") and settings.problem.startswith("decay"):
    recovery_sweep.show(settings)
elif controls.values["growth"]:
    layout.sentence(
        "Images and tables have the features they have; choose a synthetic spectrum to vary them.",
        kind="note",
    )
elsewhere.show(controls)
if job.result is not None:
    wire = st.expander("What crossed the wire", key="wire", on_change="rerun")
    if wire.open:
        for method, recovery in job.result.recoveries.items():
            wire.markdown(f"**{ATTACKABLE[method]}**")
            wire.dataframe(recovery.messages, hide_index=True, width="stretch", height=280)
with st.container(horizontal=True, vertical_alignment="center"):
    share.copy_link(controls.settings().query(), key="attack")
    share.download_json(settings.to_json(), name="attack")
    if job.result is not None and job.result.recoveries:
        share.download_csv(lambda: adversary.error_table(job.result), name="attack")
    st.page_link("../pages/privacy.py", label="FedPower under attack", icon=":material/lock:")
    st.page_link(
        "../pages/anomaly.py",
        label="FedPG under attack",
        icon=":material/sensors:",
        query_params={"topic": "Leaks"},
    )
    st.page_link("../pages/personalise.py", label="PerPCA under attack", icon=":material/group:")
    st.page_link(
        "../pages/converge.py",
        label="Compare the costs of this run",
        icon=":material/show_chart:",
        query_params=settings.carried(ConvergeSettings).query(complete=True),
    )
