"""Who should collaborate? Personalised PCA between training alone and one shared model."""

from __future__ import annotations

import streamlit as st

from dashboard.player import chart, replay
from dashboard.shell import jobs, layout, share
from dashboard.shell.controls import Controls
from dashboard.views import personal as personal_view
from fedpca_core.studies.personalised import (
    PRESETS,
    Exposure,
    Outcome,
    PersonaliseSettings,
    Sweep,
    compare,
    give_away,
    sweep,
)

#: Larger frames take minutes to attack.
ATTACKABLE = 40

controls = Controls(PersonaliseSettings)
layout.heading(
    "Who should collaborate?",
    "Every client has few records and a subspace of its own, near a common one. Alone it overfits; "
    "one shared model fits nobody. Personalised PCA keeps a model for each client and pulls it "
    "towards a common frame.",
)
controls.show_notes()

with st.sidebar:
    st.header("Clients", anchor=False)
    controls.draw("spread", "samples", "clients")
    controls.draw("features", "components", "noise_variance", "seed")
    st.header("Method", anchor=False)
    controls.draw("rounds", "pace", "start_from")
    with st.expander("Readings of the paper"):
        controls.draw("reading", "prior", "gradient")

with st.expander("Figures of the paper, at a size that answers at once"):
    with st.container(horizontal=True):
        for name, (title, preset) in PRESETS.items():
            st.button(title, key=f"p-preset-{name}", on_click=controls.changer(preset))
    st.caption(
        "PerPCA prints no numbers; its words hold when its heterogeneity is read as a standard "
        "deviation. “Too heterogeneous” shows the literal reading: there, nobody gains."
    )

controls.parameter("measure", as_buttons=True)
top = st.container()
layout.section(
    "Between alone and shared",
    "Where clients are alike, personalised PCA follows the shared model; where they are not, it "
    "follows training alone; in between it beats both.",
)
controls.parameter("vary", as_buttons=True)
middle = st.container()
settings = controls.settings()


def draw_outcome(outcome: Outcome) -> None:
    """Curves, gains, angles and costs of the three methods."""
    st.markdown(personal_view.verdict(outcome))
    replay(
        key="personal_view",
        rounds=settings.rounds,
        panels=[personal_view.curves(outcome, settings.measure), personal_view.gains(outcome)],
    )


def draw_sweep(found: Sweep) -> None:
    """The three methods along one axis."""
    st.markdown(personal_view.sweep_sentence(found))
    chart(key="personal_sweep", panels=[personal_view.sweep_panel(found, settings)])


def draw_exposure(found: Exposure) -> None:
    """What the server recovered."""
    st.markdown(personal_view.exposure_sentence(found))
    chart(key="personal_exposure", panels=[personal_view.exposure_panel(found)])


with top:
    run = settings.run_key()
    job = jobs.show(
        ("personalise", run), lambda job: compare(run, job.report), draw_outcome, name="personal"
    )
with middle:
    jobs.show(
        ("personal sweep", run, settings.vary),
        lambda job: sweep(settings, job.report, job.publish),
        draw_sweep,
        name="personal_sweep_job",
        patience=0.2,
    )

if job.result is not None:
    layout.section(
        "How far apart are they?",
        "The largest principal angle between every two clients' subspaces. Simulation only: nobody "
        "in the federation sees the true frames.",
    )
    chart(key="personal_angles", panels=personal_view.angles(job.result))
    personal_view.facts(job.result, settings)

layout.section("What the uploads give away")
layout.threat_card(
    "An honest-but-curious server, no secure aggregation",
    sees="every upload V − β hᵢ, and the common frame V it sent",
    knows="the step sizes, the prior and the noise variance",
    does="solves the upload for the client's private frame Uᵢ: as many equations as unknowns",
    outcome="Uᵢ, and from consecutive Uᵢ the covariance Sᵢ. Uploads are not private. The server "
    "needs only their sum, so secure aggregation changes nothing else; without it, never start "
    "all clients from one frame",
)
if settings.features > ATTACKABLE:
    layout.sentence(
        f"The demonstration solves for up to {ATTACKABLE} features, not {settings.features}; "
        "choose fewer features.",
        kind="note",
    )
elif st.toggle("Attack a short run with these settings", key="p-attack"):
    jobs.show(
        ("personal exposure", run),
        lambda job: give_away(settings, job.report),
        draw_exposure,
        name="personal_exposure_job",
    )

with st.container(horizontal=True, vertical_alignment="center"):
    share.copy_link(key="personalise")
    share.download_json(settings.to_json(), name="personalise")
    if job.result is not None:
        share.download_csv(job.result.table, name="personalise-curves")
