"""The visitor's own CSV file: read once, kept for the session, split into clients on every page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.shell import layout
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import Problem
from fedpca_core.problems.csv_file import read_csv
from fedpca_core.problems.table import from_table

_STATE = "_own_table"
_EVEN = "(split evenly)"
SCALINGS = {"standardise": "Standardise", "centre": "Centre only", "none": "As they are"}


@dataclass(frozen=True)
class OwnTable:
    """A file and how to read it; hashable, so that problems made of it can be cached."""

    digest: str
    client_column: str | None
    columns: tuple[str, ...]
    scaling: str


def upload() -> None:
    """Draw the upload and the choices of columns, client column and scaling."""
    file = st.file_uploader(
        "CSV file",
        type=["csv", "tsv", "txt"],
        help="One row for each record, one column for each feature. It stays in this session.",
    )
    if file is not None and st.session_state.get(_STATE, {}).get("file") != file.file_id:
        _read(file.file_id, file.name, file.getvalue())
    state = st.session_state.get(_STATE)
    if state is None:
        st.caption("No file yet: choose one with a numeric column for each feature.")
        return
    frame: pd.DataFrame = state["frame"]
    st.caption(f"{state['name']}: {len(frame):,} rows, {frame.shape[1]} columns")
    keys = [_EVEN, *_client_columns(frame)]
    chosen = st.selectbox(
        "Client column",
        keys,
        index=keys.index(state["client_column"]) if state["client_column"] in keys else 0,
        help="Rows with the same value belong to one client (a station, a hospital).",
    )
    numeric = [name for name in frame.columns if pd.api.types.is_numeric_dtype(frame[name])]
    kept = [name for name in state["columns"] if name in numeric]
    columns = st.multiselect(
        "Features",
        numeric,
        default=kept or [name for name in numeric if name != chosen],
        help="Numeric columns. Leave out labels and identifiers.",
    )
    scaling = st.selectbox(
        "Scaling",
        list(SCALINGS),
        index=list(SCALINGS).index(state["scaling"]),
        format_func=SCALINGS.__getitem__,
        help="Standardise: every feature gets mean 0 and standard deviation 1 over all clients "
        "(this needs two secure sums).",
    )
    state.update(client_column=chosen, columns=tuple(columns), scaling=scaling)


def has_clients() -> bool:
    """Whether the table names its clients, so that the split is not ours to choose."""
    state = st.session_state.get(_STATE)
    return state is not None and state["client_column"] != _EVEN


def problem(*, clients: int, heterogeneity: float, seed: int) -> Problem:
    """The problem the visitor's table gives.

    Raises
    ------
    InvalidInput
        No file yet, or a file that does not work; the sentence says why.
    """
    state = st.session_state.get(_STATE)
    if state is None:
        raise InvalidInput(
            "There is no table yet, and a link cannot carry one; "
            "choose a CSV file in the sidebar, or another problem."
        )
    client_column = None if state["client_column"] == _EVEN else state["client_column"]
    table = OwnTable(state["digest"], client_column, state["columns"], state["scaling"])
    return _problem(table, state["frame"], clients, heterogeneity, seed)


def reading(*, clients: int, heterogeneity: float, seed: int) -> tuple[str, dict[str, Any]]:
    """The file's name and the arguments with which `from_table` makes this problem of it."""
    state = st.session_state.get(_STATE)
    if state is None:
        return "your-table.csv", {}
    named = state["client_column"] != _EVEN
    options: dict[str, Any] = {"scaling": state["scaling"], "clients": clients, "seed": seed}
    if state["columns"]:
        options["columns"] = list(state["columns"])
    options |= (
        {"client_column": state["client_column"]} if named else {"heterogeneity": heterogeneity}
    )
    return state["name"], options


@st.cache_resource(max_entries=8, show_spinner=False)
def _problem(
    table: OwnTable, _frame: pd.DataFrame, clients: int, heterogeneity: float, seed: int
) -> Problem:
    return from_table(
        _frame,
        columns=list(table.columns) or None,
        client_column=table.client_column,
        clients=clients,
        scaling=table.scaling,
        heterogeneity=None if table.client_column else heterogeneity,
        seed=seed,
    )


def _read(file_id: str, name: str, content: bytes) -> None:
    try:
        frame = read_csv(content, name=name)
    except InvalidInput as refusal:
        layout.sentence(str(refusal))
        st.session_state.pop(_STATE, None)
        return
    st.session_state[_STATE] = {
        "file": file_id,
        "digest": file_id,
        "name": name,
        "frame": frame,
        "client_column": _EVEN,
        "columns": (),
        "scaling": "standardise",
    }


def _client_columns(frame: pd.DataFrame) -> list[str]:
    """Columns that could name clients: few distinct values, each on several rows."""
    most = max(2, len(frame) // 2)
    return [str(name) for name in frame.columns if 2 <= frame[name].nunique() <= min(most, 200)]
