"""The records section: what came, what the server made of it, and what nobody should see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.player import Baseline, Curve, Images, Panel, replay, to_uint8
from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls, packed
from dashboard.views.findings import caption, offer
from dashboard.views.pictures import lasting, mosaic
from fedpca_core.algorithms.registry import METHODS, replayable
from fedpca_core.findings import Finding, Status
from fedpca_core.questions.attack.records.pictures import SHOWN
from fedpca_core.questions.attack.records.study import (
    ClientRecords,
    MethodRecords,
    Recovered,
    stand_in,
)
from fedpca_core.questions.home.words import things
from fedpca_core.settings import short
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import refusals
from fedpca_core.study.pca_settings import FINER, AttackSettings

STUDY = ClientRecords()


def picture(
    place: DeltaGenerator,
    settings: AttackSettings,
    controls: Controls[AttackSettings],
    data: OwnData | None = None,
) -> jobs.Job:
    """The job, the verdict, the rounds to play, and what was not tried."""

    def shown(result: Recovered) -> None:
        draw(result, settings)
        last = (one for method in result.found.values() for one in method.findings[-1])
        offer(last, settings, controls)

    with place:
        if stand_in(settings) is not settings:
            _stood_in(stand_in(settings))
        return jobs.study(STUDY, settings, shown, data=data, parts=["taken"])


def dials(controls: Controls[AttackSettings]) -> None:
    """What decides about it and stands in no sidebar, and how it works."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        if controls.values["problem"] != "table":
            controls.parameter("records_per_client")
        if controls.values["problem"] in FINER:
            controls.parameter("fine")
        controls.draw("joined", "mean_known", "grid_known")
        controls.parameter("once")
        if any(map(replayable, controls.values["attacked"])):
            controls.parameter("unmask")
    st.caption("ε, noise on uploads, precision and secure aggregation are in the sidebar.")
    layout.about(
        "How records follow from a matrix",
        "A second-moment matrix fixes a client's records up to a rotation. Whole numbers fix the "
        "rotation, as long as the client holds fewer records than features: the rotated records "
        "generate a lattice, whose shortest vectors show the axes. Whether the result is right is "
        "decided without the truth, by its distance to the grid over all features. The parts are "
        "known (lattice reduction; hidden subset sums); we know of no published attack of this "
        "kind.",
        source="Lenstra, Lenstra and Lovász (1982); Nguyen and Stern (1999); Coron and Gini "
        "(2020).",
    )


def _stood_in(chosen: AttackSettings) -> None:
    """Say that digits are shown, and lead to the page on them."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            f"Shown on digits: {chosen.clients} clients, {short(chosen.records_per_client)} each",
            width="content",
            help="A synthetic spectrum has no records on a grid, so this is the same server on "
            f"digits, with {chosen.components} components and everything else as set on this page.",
        )
        st.page_link(
            "../pages/attack.py",
            label="The whole page on digits",
            icon=":material/visibility:",
            query_params=packed(chosen),
        )


def draw(result: Recovered, settings: AttackSettings) -> None:
    """What is said of it, and the rounds to play."""
    for text in refusals(result.refusals):
        layout.sentence(text, kind="note")
    if not result.found:
        return
    st.markdown("  \n".join(headline(m, result, settings) for m in result.found))
    rounds = max(len(one.directions) for one in result.found.values()) - 1
    pictured = result.rows is None
    if not pictured:
        _tables(result, settings)
    replay(
        key="records_view",
        rounds=rounds,
        images=rows(result, settings, rounds) if pictured else [],
        panels=[panel(result, settings)],
        autoplay=pictured,
    )
    with st.expander("In full: what it has, why it can be sure, what stood in the way"):
        st.markdown("\n\n".join(verdicts(result, settings).values()))


def headline(method: str, result: Recovered, settings: AttackSettings) -> str:
    """One line a method, above the pictures: the finding after the last round."""
    one = result.found[method]
    matrix, records = one.findings[-1]
    return f"**{METHODS[method].title}**: {_words(one, matrix, records, result, settings)}"


def _words(
    one: MethodRecords,
    matrix: Finding,
    records: Finding,
    result: Recovered,
    settings: AttackSettings,
) -> str:
    if records.status is not Status.OPEN:
        of_matrix = f"; the matrix: {matrix.words}" if matrix is not records else ""
        return f"the records: {records.words}{of_matrix}."
    what = "every difference between the" if one.differences else "all"
    guess = "" if one.step is None else f", the step of its grid, {one.step:.4g}, found by trial"
    return (
        f"after round {one.certified} the server has **{what} {result.records} "
        f"{_things(settings)} {_whose(result, settings)}**, certified{guess}; in truth "
        f"{one.exact} of {result.records} are exact."
    )


def verdicts(result: Recovered, settings: AttackSettings) -> Mapping[str, str]:
    """For every method: the certificate in full, or what stood in the way."""
    return {method: _verdict(method, one, result) for method, one in result.found.items()}


def _verdict(method: str, one: MethodRecords, result: Recovered) -> str:
    matrix, records = one.findings[-1]
    common = (
        " What stays open is what all of them have in common, and their common sign; drawn is each "
        "above the smallest value of every feature."
        if one.differences
        else ""
    )
    return (
        f"**{METHODS[method].title}**, the matrix: {matrix.words}. The records: {records.words}. "
        f"{_obstacle(one, result)}{common}{_price(one, result)}"
    )


def _obstacle(one: MethodRecords, result: Recovered) -> str:
    """What stood in the way, where the finding does not say it, and what to try."""
    if one.certified is not None:
        return ""
    if result.facts.guarantee is not None:
        epsilon = short(round(result.facts.guarantee.epsilon, 3))
        return f"The matrix carries noise at the source, ε = {epsilon}."
    if result.records > result.facts.features:
        return (
            f"The client holds {result.records:,} records of {result.facts.features} features; "
            "with fewer records than features a lattice may follow."
        )
    return one.note


def _price(one: MethodRecords, result: Recovered) -> str:
    if result.facts.guarantee is None:
        return ""
    return f" The price: the answer is off by a sine of {short(one.answer, 2)} (simulation only)."


def _things(settings: AttackSettings) -> str:
    return things(stand_in(settings))


def _whose(result: Recovered, settings: AttackSettings) -> str:
    return "that joined" if settings.joined else f"of {result.facts.client(settings.client)}"


def rows(result: Recovered, settings: AttackSettings, rounds: int) -> list[list[Images]]:
    """What every method's server received, what it made of it, and the truth, round by round."""
    return [lasting(_row(method, result, settings), rounds) for method in result.found]


def _came(number: int, columns: int, whose: str) -> str:
    """What one round brought of the client, in words."""
    if columns == 0:
        return "nothing yet" if number == 0 else "nothing in this round"
    shown = f"the first {SHOWN} of its {columns}" if columns > SHOWN else "its"
    return f"message {number}, {whose}: {shown} columns as pictures"


def _row(method: str, result: Recovered, settings: AttackSettings) -> list[Images]:
    one, title = result.found[method], METHODS[method].title
    whose = (
        "a sum over clients"
        if settings.secure_aggregation
        else f"from {result.facts.client(settings.client)}"
    )
    came = [_came(k, columns, whose) for k, columns in enumerate(one.columns)]
    look: dict[str, Any] = {"palette": "grey", "show_scale": False, "size": 320}
    return [
        Images(
            f"{title}: received",
            to_uint8(np.stack([mosaic(tiles) for tiles in one.received]), 0.0, 1.0),
            captions=came,
            description=f"The columns of what the server received under {title}, as pictures.",
            **look,
        ),
        Images(
            "What the server made of it",
            to_uint8(np.stack([mosaic(tiles) for tiles in one.held]), 0.0, 1.0),
            captions=[caption(*pair) for pair in one.findings],
            description="Directions of the client's matrix as pictures, or its records.",
            **look,
        ),
        Images(
            "The private records",
            to_uint8(mosaic(result.truth)[None], 0.0, 1.0),
            captions=["never sent; their order is lost, so it is taken from here"],
            simulation_only=True,
            description="The client's private records side by side.",
            **look,
        ),
    ]


def panel(result: Recovered, settings: AttackSettings) -> Panel:
    """Directions that the server holds, round by round."""
    whose = "the sum of all clients" if settings.secure_aggregation else "the client"
    return Panel(
        key="records_directions",
        title=f"How much of {whose} the server holds",
        x_title="communication round",
        y_title="directions of its matrix",
        curves=tuple(
            Curve(METHODS[m].title, np.arange(len(one.directions)), one.directions, colour=m)
            for m, one in result.found.items()
        ),
        baselines=(Baseline(f"records to be found: {result.records}", float(result.records)),),
        log_y=False,
        integer_x=True,
        height=240,
        description=f"How many directions of the matrix of {whose} the server holds after a round.",
    )


def _tables(result: Recovered, settings: AttackSettings) -> None:
    """The recovered rows, exact cells marked."""
    assert result.rows is not None
    for method, one in result.found.items():
        if one.table is None:
            continue
        st.markdown(
            f"**Rows recovered from {METHODS[method].title}** (green: the client's own value, "
            "which only a simulation can tell)"
        )
        exact = one.exact_cells
        st.dataframe(
            one.table.style.apply(
                lambda _, marks=exact: np.where(marks, "background-color: #2e7d3233", ""), axis=None
            ).format("{:.6g}")
        )
