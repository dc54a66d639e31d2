"""Every published number beside ours."""

from typing import Any

import streamlit as st

from dashboard.shell import jobs, layout, script, share
from dashboard.shell.controls import Controls
from dashboard.views import papers
from fedpca_core.questions.papers.page import PaperExperiment, PaperRows, PapersSettings
from fedpca_core.study.parts import words
from fedpca_core.study.study import Study

ROWS, EXPERIMENT = PaperRows(), PaperExperiment()

controls = Controls(PapersSettings)
layout.heading("Do the papers hold?", words("papers-lead"))
controls.show_notes()
results: dict[Study[Any, Any], Any] = {}

place = st.container(key="papers_counts")
with st.container(horizontal=True, gap="medium"):
    for name in ("paper", "verdict", "order"):
        with st.container(width=260):
            controls.parameter(name)
closely = st.container()
listed = st.container(key="papers_rows")

layout.section("One table or figure", words("papers-table"))
with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
    with st.container(width=420):
        controls.parameter("experiment")
    with st.container(width=260):
        controls.parameter("seeds")
    controls.parameter("run_live")
settings = controls.settings()

with listed:
    job = jobs.study(ROWS, settings, lambda found: papers.rows(found, settings))
    results[ROWS] = job.result
if job.result is not None:
    with place:
        papers.counts(job.result)
    with closely:
        papers.closely(controls, job.result)
    settings = controls.settings()
job = jobs.study(EXPERIMENT, settings, lambda found: papers.experiment(found, settings))
results[EXPERIMENT] = job.result
papers.doors(settings)

papers.sources()
script.fold(settings, [ROWS, EXPERIMENT])
share.take_away(settings, lambda: results, None)
