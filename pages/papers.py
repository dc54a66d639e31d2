"""Every published number beside ours."""

from typing import Any

import streamlit as st

from dashboard.shell import jobs, layout, script, share
from dashboard.shell.controls import Controls
from dashboard.views.papers import experiments, rows, sources
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
    with st.container(width=260):
        controls.parameter("paper")
    with st.container(width=260):
        controls.parameter("verdict")
    with st.container(width=260):
        controls.parameter("order")
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
    job = jobs.study(ROWS, settings, lambda found: rows.draw(found, settings))
    results[ROWS] = job.result
if job.result is not None:
    with place:
        rows.counts(job.result)
    with closely:
        rows.closely(controls, job.result)
    settings = controls.settings()
job = jobs.study(EXPERIMENT, settings, lambda found: experiments.draw(found, settings))
results[EXPERIMENT] = job.result
experiments.doors(settings)

sources.section()
script.fold(settings, [ROWS, EXPERIMENT])
share.take_away(settings, lambda: results, None)
