"""The controls of the anomaly page, and the traffic they lead to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from dashboard.shell.controls import Controls
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import traffic
from fedpca_core.problems.traffic import Detection, Traffic
from fedpca_core.problems.traffic_files import MAX_BYTES
from fedpca_core.problems.traffic_schemas import SCHEMAS
from fedpca_core.studies.detection.comparison import prepared, resolve
from fedpca_core.studies.detection.settings import AnomalySettings

_STATE = "_own_traffic"


def sidebar(controls: Controls[AnomalySettings]) -> None:
    """Draw the parameters of data and learning."""
    st.header("Traffic", anchor=False)
    if controls.parameter("data") == "own":
        upload()
    controls.draw("clients", "split", "transform")
    st.header("Learning", anchor=False)
    controls.draw("method", "components", "rounds", "participation", "penalty_factor")
    controls.parameter("local_steps")
    with st.expander("Corrected or as printed"):
        if controls.values["method"] == "fedpg":
            controls.parameter("projection")
        controls.draw("average", "scaling")
    with st.expander("Further settings"):
        controls.draw("step_factor", "local_start", "sampling", "initial", "seed")


def published_as(source: Traffic) -> str:
    """Key of the public data set that these records are, also when a visitor brought them."""
    return next((key for key, schema in SCHEMAS.items() if schema.title == source.name), "none")


def upload() -> None:
    """Take one or two CSV files and keep what was read for the session."""
    files = st.file_uploader(
        "Public CSV",
        type=["csv", "txt", "tsv"],
        accept_multiple_files=True,
        max_upload_size=MAX_BYTES // 2**20,
        help="The labelled CSV of UNSW-NB15, TON-IoT, NSL-KDD or IoT-23, recognised by its "
        "columns; or two of them, first the one to train on. At most 200 MB. It stays in this "
        "session.",
    )
    identity = tuple(file.file_id for file in files[:2])
    if not files or st.session_state.get(_STATE, {}).get("files") == identity:
        return
    # Remember a refusal too: reading a long file again would only refuse again.
    state: dict[str, Any] = {"files": identity}
    try:
        with st.spinner("Reading the file"):
            state["traffic"] = traffic.load_csv(files[0], files[1] if len(files) > 1 else None)
    except InvalidInput as refusal:
        state["refusal"] = str(refusal)
    st.session_state[_STATE] = state


def current_traffic(configuration: AnomalySettings) -> Traffic:
    """The raw records of the configuration.

    Raises
    ------
    InvalidInput
        Data that are not there, or a file that could not be used.
    """
    data = resolve(configuration.data)
    if data != "own":
        return _traffic(data, configuration.seed if data == "synthetic" else 0)
    state: Mapping[str, Any] = st.session_state.get(_STATE, {})
    if "refusal" in state:
        raise InvalidInput(state["refusal"])
    if "traffic" not in state:
        raise InvalidInput(
            "There is no file yet: choose the labelled CSV of UNSW-NB15, TON-IoT, NSL-KDD or "
            "IoT-23 in the sidebar, or another data set."
        )
    return state["traffic"]


def current_detection(configuration: AnomalySettings) -> Detection:
    """Training clients and test records of the configuration, cached."""
    chosen = AnomalySettings(
        data=resolve(configuration.data),
        clients=configuration.clients,
        split=configuration.split,
        transform=configuration.transform,
        scaling=configuration.scaling,
        seed=configuration.seed,
    )
    source = current_traffic(chosen)
    if chosen.data != "own":
        return _detection(chosen, source)
    state = st.session_state[_STATE]
    if state.get("prepared_for") != chosen:
        state |= {"detection": prepared(source, chosen), "prepared_for": chosen}
    return state["detection"]


# Each entry holds up to a hundred megabytes, hence the few.
@st.cache_resource(max_entries=3, show_spinner="Reading the records")
def _traffic(data: str, seed: int) -> Traffic:
    return traffic.synthetic(seed=seed) if data == "synthetic" else traffic.load(data)


@st.cache_resource(max_entries=3, show_spinner=False)
def _detection(configuration: AnomalySettings, _source: Traffic) -> Detection:
    detection = prepared(_source, configuration)
    _ = detection.problem.eigenvalues, detection.problem.digest
    return detection
