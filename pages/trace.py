"""Open the file of a run, from a federation of one's own, and read it as its server could."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import streamlit as st

from dashboard.shell import jobs, layout, share
from dashboard.shell.controls import Controls, plain
from dashboard.shell.navigation import door
from dashboard.shell.parts import ask, lay_out
from dashboard.views.findings import offer
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.check.figures import checked
from fedpca_core.questions.check.study import LeakCheck
from fedpca_core.questions.trace import figures
from fedpca_core.questions.trace.opened import (
    EXAMPLE,
    UNASKED,
    Opened,
    OpenedRun,
    OpenedSettings,
    at_a_glance,
    example,
)
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import words

STUDY, CHECK = OpenedRun(), LeakCheck()


def chosen() -> OwnData | None:
    file, new = layout.upload(
        "File of a run (.npz)",
        "_opened_file",
        type=["npz"],
        help="What a run on Flower has written, or `save_trace` of a run in a script. It is read "
        "without executing anything in it and stays in this session.",
    )
    if new is not None:
        st.session_state["_opened"] = new
        with suppress(InvalidInput):  # what is wrong with the file is said below
            if 0 < at_a_glance(new.content)[1] <= UNASKED:
                controls.open(replace(controls.foreseen() or OpenedSettings(), unmask=True))
    found: OwnData | None = st.session_state.get("_opened")
    if found is not None and file is None:
        st.caption(f"Open: {plain(found.name)}")
    return found


controls = Controls(OpenedSettings)
controls.heading("Open a run", words("trace-lead"))
data = chosen()
with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
    last = None
    if data is not None:
        with suppress(InvalidInput):
            last = at_a_glance(data.content)[0] - 1
    controls.parameter("client", high=last)
    controls.draw("grid", "unmask")
if controls.values["unmask"]:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        controls.draw("stated_trace", "budget")


def open_example() -> None:
    controls.open(EXAMPLE)
    st.session_state["_opened"] = example()


def drawn(result: Opened) -> None:
    offer(result.findings, settings, controls, each="each client ")
    lay_out(figures.opened(result, settings))


settings = controls.settings()
more: dict[Any, Any] = {}
if data is None:
    layout.sentence(words("trace-none"), kind="note")
    st.button("Open an example", icon=":material/folder_open:", on_click=open_example)
else:
    job = jobs.study(STUDY, settings, drawn, data=data)
    if job.done and job.result is not None and (alike := job.result.alike) is not None:
        if CHECK.pieces(alike):  # of a size that is run here
            layout.section("What would have stopped it", words("opened-remedy"))
            if controls.parameter("remedy"):
                more[CHECK] = ask(CHECK, alike, checked, sentences=True).result
        door(alike, "The whole leak check at this size")
        settings = controls.settings()
share.take_away(settings, data, more=more)
