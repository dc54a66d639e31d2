"""The sections of the Attack page: their dials, their jobs, and what is said where none runs."""

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from dashboard.shell.navigation import door
from dashboard.shell.parts import drawing, lay_out
from dashboard.views import elsewhere
from dashboard.views.findings import offer
from fedpca_core.algorithms.registry import replayable
from fedpca_core.questions.attack.defences import Defences
from fedpca_core.questions.attack.differencing import OneMoreRecord
from fedpca_core.questions.attack.figures import covariance, newcomer, replay, risk
from fedpca_core.questions.attack.figures import records as of_records
from fedpca_core.questions.attack.reconstruction import Reconstructed
from fedpca_core.questions.attack.records.at_risk import (
    ATTACKED,
    CLIENTS,
    NOISY_RECORDS,
    AtRisk,
    NoiseAtRisk,
)
from fedpca_core.questions.attack.records.study import ClientRecords, RecordsTaken, stand_in
from fedpca_core.questions.attack.replay import ReplayAttack
from fedpca_core.settings import plural, short
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import About, Parts, words
from fedpca_core.study.pca_settings import FINER, AttackSettings
from fedpca_core.study.study import Study

RECORDS, REPLAY, DEFENCES, NEWCOMER = ClientRecords(), ReplayAttack(), Defences(), OneMoreRecord()
RISK, NOISE = AtRisk(), NoiseAtRisk()
#: What decides about the records and stands in no sidebar.
_SETTING = ("records_per_client", "fine", "joined", "mean_known", "grid_known", "once", "unmask")
#: Results of the sections that are switched on, by study.
Results = dict[Any, Any]


def records(
    place: DeltaGenerator,
    settings: AttackSettings,
    controls: Controls[AttackSettings],
    data: OwnData | None = None,
) -> jobs.Job:
    """The records: the job, the verdict, the rounds to play, and what was not tried."""

    def shown(result: RecordsTaken) -> None:
        lay_out(of_records.records(result, settings))
        last = (one for method in result.found.values() for one in method.findings[-1])
        offer(last, settings, controls)

    with place:
        if stand_in(settings) is not settings:
            _stood_in(stand_in(settings))
        return jobs.study(RECORDS, settings, shown, data=data, parts=["taken"])


def dials(controls: Controls[AttackSettings]) -> None:
    """What decides about the records and stands in no sidebar, and how it works."""
    with (
        st.expander("Settings of the attack", expanded=controls.on(*_SETTING)),
        st.container(horizontal=True, gap="medium", vertical_alignment="bottom"),
    ):
        if controls.values["problem"] != "table":
            controls.parameter("records_per_client")
        if controls.values["problem"] in FINER:
            controls.parameter("fine")
        controls.draw("joined", "mean_known", "grid_known")
        controls.parameter("once")
        if any(map(replayable, controls.values["attacked"])):
            controls.parameter("unmask")
    lay_out([About.of("records-from-matrix")])


def _stood_in(chosen: AttackSettings) -> None:
    """Say that digits are shown, and lead to the page on them."""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            f"Shown on digits: {chosen.clients} clients, {short(chosen.records_per_client)} each",
            width="content",
            help="A synthetic spectrum has no records on a grid, so this is the same server on "
            f"digits, with {plural(chosen.components, 'component')} and everything else as set on "
            "this page.",
        )
        door(chosen, "The whole page on digits")


def further(controls: Controls[AttackSettings], data: OwnData | None) -> Results:
    """What else a server may do, each part folded until one of its switches is on."""
    results = Results()

    def part(title: str, lead: str, *switches: str) -> DeltaGenerator:
        place = st.expander(title, expanded=controls.on(*switches))
        place.markdown(words(lead))
        return place

    def dials(*names: str, budget: bool = False) -> None:
        with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
            controls.draw(*names)
            if budget:
                controls.parameter("budget")

    def study(one: Study[Any, Any], figures: Callable[..., Parts], data: OwnData | None) -> None:
        settings = controls.settings()
        if one.wanted(settings):
            draw = drawing(figures, settings)
            results[one] = jobs.study(one, settings, draw, data=data).result

    with part("The adversary who replays", "attack-replay", "replay", "defences"):
        dials("replay", "seeded", "defences", budget=True)
        study(REPLAY, replay.replayed, data)
        settings = controls.settings()
        if settings.replay and not REPLAY.wanted(settings):
            layout.sentence(REPLAY.obstacle(settings), kind="note")
        study(DEFENCES, replay.defended, data)
    with part("One more record", "attack-newcomer", "differencing"):
        dials("differencing", "record")
        study(NEWCOMER, newcomer.joined_record, data)
    with part("What is at risk?", "attack-risk", "at_risk"):
        controls.parameter("at_risk")
        study(RISK, risk.at_risk, None)
        study(NOISE, risk.at_risk, None)
        if RISK in results:
            told = {"attacked": ATTACKED, "clients": CLIENTS, "records": NOISY_RECORDS}
            st.caption(words("attack-maps", **told))
    with part("Methods that send models", "attack-models", "elsewhere"):
        results |= elsewhere.show(controls, data)
    return results


def messages(found: Reconstructed) -> None:
    """Round by round what crossed the wire, folded away."""
    wire = st.expander("What crossed the wire", key="wire", on_change="rerun")
    if wire.open:
        with wire:
            lay_out(covariance.messages(found))
