"""The visitor's own CSV file: kept for the session; how to read it is part of the settings."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from dashboard.shell import layout
from dashboard.shell.controls import Controls
from fedpca_core.errors import InvalidInput
from fedpca_core.studies.own_data import OwnData

_STATE = "_own_table"


def upload(controls: Controls[Any]) -> None:
    """Draw the upload and the settings that say how the table is read."""
    own = choose("One row for each record, one column for each feature. It stays in this session.")
    if own is None:
        return
    client_column(controls, own.table)
    features(controls, own.table)
    controls.parameter("scaling")


def client_column(controls: Controls[Any], table: pd.DataFrame) -> None:
    """Draw whose records they are: a column that says so, or a split by rule."""
    offered = ["", *_client_columns(table)]
    controls.parameter("client_column", options=offered, empty="Split by a rule")


def features(controls: Controls[Any], table: pd.DataFrame) -> None:
    """Draw the choice of columns that are features."""
    numeric = [str(name) for name in table.columns if pd.api.types.is_numeric_dtype(table[name])]
    controls.parameter("columns", options=numeric)


def choose(explanation: str) -> OwnData | None:
    """Draw the upload; returns the file of this session, if there is one that is a table.

    What is wrong with a file is said as long as it stands in the upload.
    """
    file = st.file_uploader("CSV file", type=["csv", "tsv", "txt"], help=explanation)
    if file is not None and st.session_state.get(f"{_STATE}_file") != file.file_id:
        st.session_state[f"{_STATE}_file"] = file.file_id
        st.session_state[f"{_STATE}_refusal"] = _read(OwnData(file.name, file.getvalue()))
    refusal = st.session_state.get(f"{_STATE}_refusal")
    if file is not None and refusal:
        layout.sentence(refusal)
    own = current()
    if own is None:
        st.caption("No file yet: choose one with a numeric column for each feature.")
        return None
    st.caption(f"{own.name}: {len(own.table):,} rows, {own.table.shape[1]} columns")
    return own


def current() -> OwnData | None:
    """The file of this session, if there is one."""
    found: OwnData | None = st.session_state.get(_STATE)
    return found


def _read(own: OwnData) -> str | None:
    """Keep a file that is a table; returns what is wrong with one that is none."""
    st.session_state.pop(_STATE, None)
    try:
        _ = own.table
    except InvalidInput as refusal:
        return str(refusal)
    st.session_state[_STATE] = own
    return None


def _client_columns(table: pd.DataFrame) -> list[str]:
    """Columns that could name clients: few distinct values, each on several rows."""
    most = max(2, len(table) // 2)
    return [str(name) for name in table.columns if 2 <= table[name].nunique() <= min(most, 200)]
