"""Can devices that keep their traffic to themselves learn together what is unusual?"""

from __future__ import annotations

from typing import cast

import streamlit as st

from dashboard.shell import absent_data, jobs, layout, own_table, script, share
from dashboard.shell.controls import Controls
from dashboard.views.anomaly import VIEWS, privacy
from dashboard.views.anomaly.data import sidebar
from fedpca_core.papers.iot import PRESETS
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import fitting, of_iot23, resolve
from fedpca_core.study.here import COMMAND

controls = Controls(AnomalySettings)
layout.heading(
    "Can it tell attacks from normal traffic?",
    "Devices learn one subspace of normal traffic together without sending a record. What lies far "
    "from it raises the alarm; whether that beats learning nothing is shown beside it.",
)
controls.show_notes()

with st.sidebar:
    data = sidebar(controls)

with st.popover("Presets", icon=":material/bookmark:"):
    for preset in PRESETS:
        preset_settings = cast(AnomalySettings, preset.settings)
        st.button(
            preset.title,
            on_click=controls.changer(absent_data.opened(preset_settings)),
            width="stretch",
            key=preset.name,
            help=absent_data.told(preset.point, preset_settings),
        )

view = VIEWS[controls.parameter("topic", as_buttons=True)]
with st.container():
    if resolve(controls.values["problem"]) == "synthetic":
        layout.sentence(
            "This traffic is synthetic: drawn by this program with labelled attacks, not measured. "
            f"“{COMMAND} ton-iot” says where to get real traffic, or choose your own file.",
            kind="note",
        )
        st.button(
            "Real traffic that comes along: IoT-23",
            on_click=controls.changer(lambda: of_iot23(controls.settings())),
            key="to_iot23",
        )
job = None
with layout.guard():
    view.choose(controls, data)
    settings = controls.settings()
    job = jobs.study(view.study, settings, lambda found: view.draw(found, settings), data=data)
    privacy.remedies(controls)
    own_table.remedy(controls, job.refusal, fitting)
    view.explain()

settings = controls.settings()
if job is not None:
    jobs.below(job, view.study.key, lambda found: privacy.draw(settings, found))
script.fold(settings, [view.study], data)
with st.container(horizontal=True, vertical_alignment="center"):
    share.take_away(settings, {view.study: job and job.result}, data)
