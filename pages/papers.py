"""Every published number beside ours."""

import streamlit as st

from dashboard.shell import jobs, layout, share
from dashboard.shell.controls import Controls
from dashboard.views import papers
from fedpca_core.questions.papers.page import PaperExperiment, PaperRows, PapersSettings
from fedpca_core.study.parts import words

controls = Controls(PapersSettings)
controls.heading("Do the papers hold?", words("papers-lead"))

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
    job = jobs.study(PaperRows(), settings, lambda found: papers.rows(found, settings))
if job.result is not None:
    with place:
        papers.counts(job.result)
    with closely:
        papers.closely(controls, job.result)
    settings = controls.settings()
jobs.study(PaperExperiment(), settings, lambda found: papers.experiment(found, settings))
papers.doors(settings)

papers.sources()
share.take_away(settings, None)
