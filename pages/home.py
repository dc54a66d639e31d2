"""The experiment this laboratory exists for: all parameters, one picture."""

from __future__ import annotations

import streamlit as st

from dashboard.shell import guarantee, jobs, layout, presets, script, share
from dashboard.shell.controls import Controls, packed
from dashboard.shell.doors import DOORS
from dashboard.views import scene
from fedpca_core.studies.papers.faps import PRESETS
from fedpca_core.studies.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.studies.scene.scene import LivePicture
from fedpca_core.studies.scene.settings import SceneSettings

STUDY = LivePicture()

controls = Controls(SceneSettings)
with st.container(key="front"):
    layout.heading("Nobody sends a record. What does the server hold?")
controls.show_notes()
scene.parameters(controls)

settings = controls.settings()
job = jobs.study(STUDY, settings, lambda found: scene.draw(found, settings))

if job.result is not None:
    guarantee.card(job.result.facts)
with st.container(horizontal=True, vertical_alignment="center"):
    share.take_away(settings, {STUDY: job.result})
    st.page_link(
        "../pages/attack.py",
        label="Attack this run",
        icon=":material/visibility:",
        query_params=packed(settings.carried(AttackSettings)),
    )
    st.page_link(
        "../pages/converge.py",
        label="Compare all methods on it",
        icon=":material/show_chart:",
        query_params=packed(settings.carried(ConvergeSettings)),
    )
script.fold(settings, [STUDY])

layout.section("Every question has its page")
grid = st.grid(3, min_column_width=260, border=True, gap="medium")
for entry in DOORS:
    with grid.cell():
        st.subheader(entry.question, anchor=False)
        st.markdown(entry.answer)
        st.page_link(entry.page, label=entry.label, icon=entry.icon)

layout.section("Start from an experiment", "Each makes one point.")
presets.cards([preset for preset in PRESETS if preset.name != "default"])

layout.section("What to know before you trust a picture")
st.markdown(
    "- Everything is simulated here, on synthetic or public data; nothing you load leaves this "
    "session.\n"
    "- Curves marked *simulation only* need the clients' private data: nobody could draw them in "
    "a real deployment.\n"
    "- Masking (what FAPS does) is not privacy. ε appears only where it is accounted, with its "
    "unit, clipping norm, δ, sampling scheme and accountant.\n"
    "- Where a paper and our measurement differ, both are shown.\n"
    "- Every setting is in the address: copy the link and somebody else sees the same picture."
)
