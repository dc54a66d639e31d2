"""The visitor's own file: kept for the session, read by a worker; how is part of the settings."""

import math
from collections.abc import Callable
from typing import Any

import streamlit as st

from dashboard.shell import jobs, layout, limits
from dashboard.shell.controls import Controls, itself, plain
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.catalogue import OWN_TABLE, TABLE_SUFFIXES
from fedpca_core.settings import Settings
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.own_table import NAMED, SCALED, TableFacts, fitting

_STATE = "_own_table"


def upload(controls: Controls[Any]) -> TableFacts | None:
    """Draw the upload and the settings that say how the table is read; what is in the file."""
    _, facts = choose("One row for each record, one column for each feature.")
    if facts is not None:
        reading(controls, facts)
        controls.parameter("scaling")
    return facts


def reading(controls: Controls[Any], facts: TableFacts) -> None:
    """Draw whose records they are, which columns are features, and what becomes of missing cells,
    with what that costs; and a button for what is suggested where it is not chosen."""
    suggestion = st.container()
    controls.parameter(
        "client_column", options=["", *facts.clients], empty="Split by a rule", shapes=itself
    )
    controls.parameter("columns", options=(*facts.numeric, *facts.further))
    if facts.missing or controls.values.get("missing", "drop") != "drop":
        controls.parameter("missing")
        st.caption(facts.gaps() or "No cell of the numeric columns is missing.")
    changes, said = facts.better({"missing": "drop", **controls.values})
    if changes:
        suggestion.button(
            f"Read it so: {plain('; '.join(said))}",
            on_click=controls.changer(**changes),
            key="suggested_reading",
            help="A column of few values, called as such columns are, names clients; one that "
            "names records is no feature; gaps are handled in the way that loses least.",
        )


def choose(explanation: str) -> tuple[OwnData | None, TableFacts | None]:
    """Draw the upload; the file of this session and what is in it, once that is known.

    What is wrong with a file is said as long as it stands in the upload.
    """
    file, new = layout.upload(
        "Your file",
        f"{_STATE}_file",
        type=list(TABLE_SUFFIXES),
        help=f"{explanation} CSV, Parquet, or a matrix of NumPy; at most {layout.UPLOAD_MB} MB. It "
        "stays in the memory of this session and is never written to a disk.",
    )
    if new is not None:
        for kept in ("", "_refusal", "_facts"):
            st.session_state.pop(f"{_STATE}{kept}", None)
        try:
            limits.check_file(new)
        except InvalidInput as too_large:
            st.session_state[f"{_STATE}_refusal"] = str(too_large)
        else:
            st.session_state[_STATE] = new
    refusal = st.session_state.get(f"{_STATE}_refusal")
    if file is not None and refusal:
        layout.sentence(plain(refusal))
    if (own := current()) is None:
        st.caption("No file yet: choose one with a numeric column for each feature.")
        return None, None
    name = plain(own.name)

    def size(facts: TableFacts) -> None:
        st.caption(f"{name}: {facts.rows:,} rows, {facts.columns} columns")

    job = jobs.study(OWN_TABLE, Settings(), size, data=own)
    st.session_state[f"{_STATE}_facts"] = job.result
    return (own, job.result) if job.result is not None else (None, None)


def remedy(
    controls: Controls[Any], refusal: str | None, fit: Callable[[Any, TableFacts], Any] = fitting
) -> None:
    """The way out where a refused run asks for more clients or components than the file allows,
    or for the names of the columns that an ε takes as public."""
    facts = st.session_state.get(f"{_STATE}_facts")
    if refusal and (NAMED in refusal or SCALED in refusal) and facts is not None:
        _to_name(controls, facts)
    elif refusal and ("clients" in refusal or "components" in refusal):
        to_fit(controls, fit)


def to_fit(controls: Controls[Any], fit: Callable[[Any, TableFacts], Any] = fitting) -> None:
    """A button for as many clients and components as the file allows, where there are more, and
    one that names its columns where an ε asks for that."""
    facts = st.session_state.get(f"{_STATE}_facts")
    settings = controls.settings()
    if facts is None or settings.problem not in ("own", "table"):
        return
    if not math.isinf(getattr(settings, "epsilon", math.inf)) and not settings.columns:
        _to_name(controls, facts)
    fits = fit(settings, facts)
    words = [
        f"{getattr(fits, name)} {name}"
        for name in ("clients", "components")
        if getattr(fits, name, 0) != getattr(settings, name, 0)
    ]
    if words:
        st.button(
            f"Use {' and '.join(words)}",
            on_click=controls.changer(lambda: fit(controls.settings(), facts)),
            key="remedy_fitting",
            help=f"As the {facts.rows:,} rows and their columns allow.",
        )


def _to_name(controls: Controls[Any], facts: TableFacts) -> None:
    """A button that names all numeric columns, where nobody has, and scales them by nothing of
    their own: who presses it says that they are public."""
    settings = controls.settings()
    named = tuple(name for name in facts.numeric if name != settings.client_column)
    words = {"columns": f"name the {len(named)} numeric columns", "scaling": "centre only"}
    changes: dict[str, Any] = {} if settings.columns else {"columns": named}
    if getattr(settings, "scaling", "") == "standardise":
        changes["scaling"] = "centre"
    st.button(
        " and ".join(words[name] for name in changes).capitalize(),
        on_click=controls.changer(**changes),
        key="remedy_columns",
        help="An ε then takes the columns as public, and they stay whatever the records hold.",
    )


def remedy_of(controls: Controls[Any], job: jobs.Job) -> None:
    """The `remedy` of a job that may end later: a fragment, ``remedy`` among the job's parts."""
    with st.container():  # always there, so that nothing below moves
        if job.done:
            remedy(controls, job.refusal)
        else:
            st.fragment(lambda: remedy(controls, job.refusal), key="remedy")()


def current() -> OwnData | None:
    return st.session_state.get(_STATE)


def of(settings: Any) -> OwnData | None:
    return current() if settings.problem == "table" else None
