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
from dashboard.views.convergence import refusals
from dashboard.views.pictures import lasting, mosaic
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.settings import short
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.pca_settings import FINER, AttackSettings
from fedpca_core.studies.records.pictures import SHOWN
from fedpca_core.studies.records.study import ClientRecords, MethodRecords, Recovered, stand_in
from fedpca_core.studies.scene.words import things

STUDY = ClientRecords()


def picture(
    place: DeltaGenerator, settings: AttackSettings, data: OwnData | None = None
) -> jobs.Job:
    """The job, the verdict, and the rounds to play."""
    with place:
        if stand_in(settings) is not settings:
            _stood_in(stand_in(settings))
        return jobs.study(
            STUDY, settings, lambda result: draw(result, settings), data=data, parts=["taken"]
        )


def dials(controls: Controls[AttackSettings]) -> None:
    """What decides about it and stands in no sidebar, and how it works."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        if controls.values["problem"] != "table":
            controls.parameter("records_per_client")
        if controls.values["problem"] in FINER:
            controls.parameter("fine")
        controls.draw("joined", "mean_known", "grid_known")
        controls.parameter("once")
        if "faps" in controls.values["attacked"]:
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
    for text in filter(None, [result.by.note, *refusals(result.refusals)]):
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
    """One line a method, above the pictures; the verdict says the rest."""
    one, title = result.found[method], METHODS[method].title
    if one.pending:
        return f"**{title}**: received, and being taken apart."
    if one.certified is None:
        why = _obstacle(one, result, settings).partition(". ")[0].rstrip(".")
        why = why.removeprefix("Not certified: ")
        return f"**{title}**: no record; {why}."
    what = "every difference between the" if one.differences else "all"
    guess = "" if one.step is None else ", the step of its grid found by trial"
    return (
        f"**{title}**: after round {one.certified} the server has **{what} {result.records} "
        f"{_things(settings)} {_whose(result, settings)}**, certified{guess}; in truth "
        f"{one.exact} of {result.records} are exact."
    )


def verdicts(result: Recovered, settings: AttackSettings) -> Mapping[str, str]:
    """For every method: certified and why to believe it, or what stood in the way."""
    return {method: _verdict(method, one, result, settings) for method, one in result.found.items()}


def _verdict(method: str, one: MethodRecords, result: Recovered, settings: AttackSettings) -> str:
    title = METHODS[method].title
    if one.pending:
        return f"From **{title}** this is what the server received; it is being taken apart."
    if one.certified is None:
        return (
            f"From **{title}** the server has no record: "
            f"{_obstacle(one, result, settings)}{_price(one, result)}"
        )
    return (_differences if one.differences else _certified)(method, one, result, settings)


def _differences(
    method: str, one: MethodRecords, result: Recovered, settings: AttackSettings
) -> str:
    """The mean is kept back, and all differences are out."""
    unique = "; no other whole differences explain the messages" if one.unique else ""
    return (
        f"From **{METHODS[method].title}** the server has **every difference between the "
        f"{result.records} {_things(settings)} {_whose(result, settings)}** after round "
        f"{one.certified}, although nobody told it the mean, and can prove it: a wrong rotation "
        f"would pass with a chance of {_power(one.log10_chance)}{unique}. What stays open is one "
        f"{_thing(settings)} that all have in common, and their common sign; drawn is each above "
        f"the smallest value of every {_feature(settings)}. In truth {one.exact} of "
        f"{result.records} are exact."
    )


def _certified(method: str, one: MethodRecords, result: Recovered, settings: AttackSettings) -> str:
    who = _whose(result, settings)
    unique = "; no other whole records explain the messages" if one.unique else ""
    guess = "" if one.step is None else f" It found the step of the grid, {one.step:.4g}, by trial."
    return (
        f"From **{METHODS[method].title}** the server has **all {result.records} "
        f"{_things(settings)} {who}** after round {one.certified}, and can prove it: every value "
        f"lies within {short(one.distance, 1)} of a step of the grid, a wrong rotation would pass "
        f"with a chance of {_power(one.log10_chance)}{unique}.{guess} In truth {one.exact} of "
        f"{result.records} are exact, value for value."
    )


def _power(exponent: float) -> str:
    return f"10{f'{exponent:.0f}'.translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"


def _obstacle(one: MethodRecords, result: Recovered, settings: AttackSettings) -> str:
    features = result.facts.features
    if result.facts.guarantee is not None:
        epsilon = short(round(result.facts.guarantee.epsilon, 3))
        return f"noise at the source buries them at ε = {epsilon}."
    if one.attack == "sums":
        return (
            "it sees sums only, over the same clients in every round. Let participants change "
            "(participation below 1, some 30 rounds) or records join, and sums no longer hide them."
        )
    if one.attack == "linear":
        return (
            "it reads masked messages as products; “Replay FAPS for its records”, below, reruns "
            "the update instead. Masking is not privacy."
        )
    if one.attack == "model":
        return (
            f"its one message holds {int(one.directions[-1])} leading directions of the client, "
            "which do not determine its matrix. With as many components as records, and the sizes "
            "of the directions, as in the stacked variant, they would."
        )
    if result.records > features:
        fewer = "Choose fewer records per client."
        if settings.problem == "table":
            fewer = "A client with fewer rows than the table has columns is read."
        return (
            f"the client holds {result.records:,} records of {features} features, and a matrix of "
            f"{features} features cannot tell so many apart. {fewer}"
        )
    if not settings.mean_known:
        return f"it does not know the mean that was subtracted. {one.note}"
    return one.note or "its messages do not determine the client's matrix in these rounds."


def _price(one: MethodRecords, result: Recovered) -> str:
    if result.facts.guarantee is None:
        return ""
    return f" The price: the answer is off by a sine of {short(one.answer, 2)} (simulation only)."


def _things(settings: AttackSettings) -> str:
    return things(stand_in(settings))


def _thing(settings: AttackSettings) -> str:
    return "row" if settings.problem == "table" else "picture"


def _feature(settings: AttackSettings) -> str:
    return "column" if settings.problem == "table" else "pixel"


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
    summed = one.attack == "sums" or (one.attack == "two runs" and settings.secure_aggregation)
    whose = "a sum over clients" if summed else f"from {result.facts.client(settings.client)}"
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
            captions=[_held_caption(one, result, k) for k in range(len(one.directions))],
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


def _held_caption(one: MethodRecords, result: Recovered, k: int) -> str:
    if one.certified is not None and k >= one.certified and one.differences:
        return f"✓ certified: all {result.records}, less what is common to them"
    if one.certified is not None and k >= one.certified:
        return f"✓ certified: all {result.records}, to the last grey level"
    return held_caption(int(one.directions[k]), k, one.attack)


def held_caption(directions: int, k: int, attack: str) -> str:
    """What the server holds as long as it is no record."""
    if directions:
        return f"{directions} directions, drawn as pictures; no record"
    masked = k > 0 and attack in ("linear", "replay")
    return "read as products: a mask, no record" if masked else "nothing yet"


def panel(result: Recovered, settings: AttackSettings) -> Panel:
    """Directions that the server holds, round by round."""
    summed = all(one.attack == "sums" for one in result.found.values())
    whose = "the sum of all clients" if summed else "the client"
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
