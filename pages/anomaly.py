"""Can devices that keep their traffic to themselves learn together what is unusual?"""

from __future__ import annotations

import streamlit as st

from dashboard.shell import layout, share
from dashboard.shell.controls import Controls
from dashboard.views.anomaly import VIEWS, View
from dashboard.views.anomaly import data as anomaly_data
from fedpca_core.studies.detection.settings import AnomalySettings
from fedpca_core.studies.papers.iot import PRESETS

controls = Controls(AnomalySettings, also_known=("attacked", "flow", "hidden", "reconstructed"))
layout.heading(
    "Can it tell attacks from normal traffic?",
    "Devices learn one subspace of normal traffic together without sending a record. What lies far "
    "from it raises the alarm; whether that beats learning nothing is shown beside it.",
)
controls.show_notes()

with st.sidebar:
    anomaly_data.sidebar(controls)

with st.popover("Presets", icon=":material/bookmark:"):
    for name, preset in PRESETS.items():
        st.button(name, on_click=controls.changer(preset), width="stretch", key=f"preset_{name}")

topic = controls.parameter("topic", as_buttons=True)
body = st.container()
settings = controls.settings()

with body, layout.guard():
    # In a place of its own: what comes and goes here must not move the view below, to which a
    # running job may still be writing.
    with st.container():
        traffic = anomaly_data.current_traffic(settings)
        detection = anomaly_data.current_detection(settings)
        if detection.source.synthetic:
            layout.sentence(
                "This traffic is synthetic: drawn by this program with labelled attacks, not "
                "measured. Set FEDPCA_DATA to a folder with the public data sets, or choose your "
                "own file.",
                kind="note",
            )
    published_as = anomaly_data.published_as(traffic)
    VIEWS[topic](View(settings, detection, traffic, published_as, controls))
    if topic != "published":
        st.caption(detection.problem.note)

with st.container(horizontal=True, vertical_alignment="center"):
    share.copy_link(key="anomaly")
    share.download_json(controls.settings().to_json(), name="anomaly")
