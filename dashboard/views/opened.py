"""A run from its file: the upload, and what everybody may read of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.player import Curve, Images, Panel, replay, to_uint8
from dashboard.shell import guarantee, layout
from dashboard.shell.controls import plain
from dashboard.shell.upload import upload
from fedpca_core.findings import TARGETS, Status, Target
from fedpca_core.questions.trace.opened import Opened
from fedpca_core.questions.trace.settings import OpenedSettings
from fedpca_core.settings import short
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.panels import ROUNDING

_STATE = "_opened_run"


def choose() -> OwnData | None:
    """The upload; returns the file of this session, if there is one."""
    file = upload(
        "File of a run (.npz)",
        type=["npz"],
        help="What a run on Flower has written, or `save_trace` of a run in a script. It is read "
        "without executing anything in it and stays in this session.",
    )
    if file is not None and st.session_state.get(f"{_STATE}_file") != file.file_id:
        st.session_state[f"{_STATE}_file"] = file.file_id
        keep(OwnData(file.name, file.getvalue()))
    found: OwnData | None = st.session_state.get(_STATE)
    if found is not None and file is None:
        st.caption(f"Open: {plain(found.name)}")
    return found


def keep(data: OwnData) -> None:
    """Take this as the file of the session."""
    st.session_state[_STATE] = data


def draw(found: Opened, settings: OpenedSettings) -> None:
    """The verdict, the rounds to play, the recovered records and the run's facts."""
    st.markdown(verdict(found, settings))
    if found.note:
        layout.sentence(found.note, kind="note")
    table = found.rounds
    replay(
        key="opened_view",
        rounds=len(table) - 1,
        images=[[_matrix(found, settings)]],
        panels=[_progress(table), _directions(table), _bytes(table)],
    )
    guarantee.card(found)
    if found.records is not None:
        layout.section(
            "The records",
            "Certified from the messages alone, in no order; each "
            "up to its sign, as a matrix of second moments is the same for both.",
        )
        st.dataframe(found.records, hide_index=True)
    layout.section("The run")
    facts = pd.DataFrame({"What": found.facts.keys(), "Of this run": found.facts.values()})
    layout.small_table(facts, label="Facts of the run")


def verdict(found: Opened, settings: OpenedSettings) -> str:
    """What is known of the client from this file, target by target."""
    noisy = ", as it was released, with noise" if found.guarantee else ""
    lines = [
        f"- **{TARGETS[one.target]}**{noisy if one.target is Target.COVARIANCE else ''}: whoever "
        f"holds this file {one.words}."
        for one in found.findings
    ]
    return "\n".join([f"Of client {settings.client}:", *lines])


def _matrix(found: Opened, settings: OpenedSettings) -> Images:
    top = float(np.abs(found.matrices[-1]).max()) or 1.0
    first = found.findings[0]
    whose = "all clients" if first.target is Target.SUM else f"client {settings.client}"
    masked = first.status in (Status.NOT_OPENED, Status.NOT_TRIED)
    title = "Masked messages of {}, read as products" if masked else "The server's matrix of {}"
    return Images(
        title=title.format(whose),
        frames=to_uint8(found.matrices, -top, top),
        low=-top,
        high=top,
        palette="diverging",
        captions=[f"{held} directions" for held in found.rounds["directions_held"]],
        description=f"Heat map of what the messages of {whose} give, round by round.",
    )


def _progress(table: pd.DataFrame) -> Panel:
    return Panel(
        key="movement",
        title="How far the answer moves",
        x_title="communication round",
        y_title="sine of the largest principal angle",
        curves=(
            Curve("from the round before", table["round"], table["moved_sine"].clip(ROUNDING)),
            # The last answer is no distance from itself.
            Curve(
                "from the last answer",
                table["round"][:-1],
                table["sine_to_last"][:-1].clip(ROUNDING),
            ),
        ),
        integer_x=True,
        description="Angle between the answer of a round and those of the round before and the "
        "last one; without the data nobody can say how far it is from the truth.",
    )


def _directions(table: pd.DataFrame) -> Panel:
    return Panel(
        key="directions",
        title="What the server holds",
        x_title="communication round",
        y_title="directions read off the messages",
        curves=(Curve("directions", table["round"], table["directions_held"]),),
        log_y=False,
        integer_x=True,
        description="Directions of the client's matrix that the messages give, round by round.",
    )


def _bytes(table: pd.DataFrame) -> Panel:
    return Panel(
        key="bytes",
        title="What crossed the wire",
        x_title="communication round",
        y_title="kB so far",
        curves=(
            Curve("up", table["round"], table["bytes_up"] / 1e3),
            Curve("down", table["round"], table["bytes_down"] / 1e3),
        ),
        log_y=False,
        integer_x=True,
        description=f"Bytes so far over all clients; {short(float(table['bytes_up'].iloc[-1]))} up "
        "at the end.",
    )
