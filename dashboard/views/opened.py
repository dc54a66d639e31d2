"""The upload of a run's file."""

import streamlit as st

from dashboard.shell.controls import plain
from dashboard.shell.upload import upload
from fedpca_core.study.own_data import OwnData

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
