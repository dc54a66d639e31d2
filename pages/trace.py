"""Open the file of a run, from a federation of one's own, and read it as its server could."""

from contextlib import suppress

import streamlit as st

from dashboard.shell import jobs, layout, script, share
from dashboard.shell.controls import Controls
from dashboard.shell.parts import lay_out
from dashboard.views import opened
from dashboard.views.findings import offer
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.trace import figures
from fedpca_core.questions.trace.example import EXAMPLE, example
from fedpca_core.questions.trace.opened import Opened, OpenedRun, clients_of
from fedpca_core.questions.trace.settings import OpenedSettings
from fedpca_core.study.parts import words

STUDY = OpenedRun()

controls = Controls(OpenedSettings)
layout.heading("Open a run", words("trace-lead"))
controls.show_notes()
data = opened.choose()
with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
    last = None
    if data is not None:
        with suppress(InvalidInput):  # what is wrong with the file is said below
            last = clients_of(data.content) - 1
    controls.parameter("client", high=last)
    controls.draw("grid", "unmask")
if controls.values["unmask"]:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        controls.draw("stated_trace", "budget")


def open_example() -> None:
    controls.apply(EXAMPLE)
    opened.keep(example())


def drawn(result: Opened) -> None:
    offer(result.findings, settings, controls, each="each client ")
    lay_out(figures.opened(result, settings))


settings = controls.settings()
found = None
if data is None:
    layout.sentence(words("trace-none"), kind="note")
    st.button("Open an example", icon=":material/folder_open:", on_click=open_example)
else:
    found = jobs.study(STUDY, settings, drawn, data=data).result
script.fold(settings, [STUDY], data)
share.take_away(settings, lambda: {STUDY: found}, data)
