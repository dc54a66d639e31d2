"""The sections of the Attack page: their dials, their jobs, and what is said where none runs."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.shell import jobs, layout
from dashboard.shell.controls import Controls
from dashboard.shell.navigation import door
from dashboard.shell.parts import drawing, lay_out
from dashboard.views.findings import offer
from fedpca_core.algorithms.registry import replayable
from fedpca_core.questions.anomaly import figures as anomaly
from fedpca_core.questions.attack.differencing import OneMoreRecord
from fedpca_core.questions.attack.figures import covariance
from fedpca_core.questions.attack.figures import records as of_records
from fedpca_core.questions.attack.reconstruction import Reconstructed
from fedpca_core.questions.attack.records import at_risk
from fedpca_core.questions.attack.records.study import ClientRecords, RecordsTaken, stand_in
from fedpca_core.questions.attack.replay import Defences, ReplayAttack
from fedpca_core.questions.attack.sent_models import SentModel, SentModels, borrowed
from fedpca_core.questions.personalise import figures as personalise
from fedpca_core.settings import plural, short
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import About, Caption, Part, Parts, words
from fedpca_core.study.pca_settings import FINER, AttackSettings
from fedpca_core.study.study import Study

RECORDS, REPLAY, DEFENCES, NEWCOMER = ClientRecords(), ReplayAttack(), Defences(), OneMoreRecord()
RISK, NOISE, MODELS = at_risk.AtRisk(), at_risk.NoiseAtRisk(), SentModels()
#: What decides about the records and stands in no sidebar.
_SETTING = ("records_per_client", "fine", "joined", "mean_known", "grid_known", "once", "unmask")


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
        controls.draw("joined", "mean_known", "grid_known", "once")
        if any(map(replayable, controls.values["attacked"])):
            controls.parameter("unmask")
    lay_out([About.of("records-from-matrix")])


def _stood_in(chosen: AttackSettings) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption(
            f"Shown on digits: {chosen.clients} clients, {short(chosen.records_per_client)} each",
            width="content",
            help="A synthetic spectrum has no records on a grid, so this is the same server on "
            f"digits, with {plural(chosen.components, 'component')} and everything else as set on "
            "this page.",
        )
        door(chosen, "The whole page on digits")


def further(controls: Controls[AttackSettings], data: OwnData | None) -> None:
    """What else a server may do, each part folded until one of its switches is on."""

    def part(title: str, lead: str, *switches: str) -> DeltaGenerator:
        place = st.expander(title, expanded=controls.on(*switches))
        place.markdown(words(lead))
        return place

    def dials(*names: str) -> None:
        with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
            controls.draw(*names)

    def study(one: Study[Any, Any], figures: Callable[..., Parts], data: OwnData | None) -> None:
        settings = controls.settings()
        if one.wanted(settings):
            jobs.study(one, settings, drawing(figures, settings), data=data)

    with part("The adversary who replays", "attack-replay", "replay", "defences"):
        dials("replay", "seeded", "defences", "budget")
        study(REPLAY, covariance.replayed, data)
        settings = controls.settings()
        if settings.replay and not REPLAY.wanted(settings):
            layout.sentence(REPLAY.obstacle(settings), kind="note")
        study(DEFENCES, covariance.defended, data)
    with part("One more record", "attack-newcomer", "differencing"):
        dials("differencing", "record")
        study(NEWCOMER, of_records.joined_record, data)
    with part("What is at risk?", "attack-risk", "at_risk"):
        controls.parameter("at_risk")
        study(RISK, of_records.risk_map, None)
        study(NOISE, of_records.risk_map, None)
        if RISK.wanted(controls.settings()):
            told = {"attacked": at_risk.ATTACKED, "clients": at_risk.CLIENTS}
            st.caption(words("attack-maps", records=at_risk.NOISY_RECORDS, **told))
    with part("Methods that send models", "attack-models", "elsewhere"):
        controls.parameter("elsewhere", as_buttons=True)
        settings = controls.settings()
        if MODELS.wanted(settings):
            _sent_models(settings)


def _clients(small: Any) -> Caption:
    name = small.parameters()["problem"].text(small.problem)
    return Caption(f"FedPG with {plural(small.clients, 'client')} on {name}.")


#: What leads to uploads that are no products, and what the study of their page read, by method.
READ: Mapping[str, tuple[Callable[[Any], list[Part]], Callable[[Any, Any], Parts]]] = {
    "fedpg": (lambda small: [_clients(small), anomaly.THREAT], anomaly.leaks),
    "personal": (lambda small: [personalise.threat()], personalise.exposure),
    "one_shot": (lambda small: [words("attack-one-shot")], lambda found, small: iter(())),
}


def _sent_models(settings: AttackSettings) -> None:
    """Another method's uploads, with the settings that its own page explains."""
    other = borrowed(settings)
    small = None if other is None else other[1]
    lead, read = READ[settings.elsewhere]
    lay_out(lead(small))

    def draw(found: SentModel) -> None:
        if found.read is not None:
            lay_out(read(found.read, small))
        if found.records is not None:
            lay_out(of_records.of_models(found.records))

    jobs.study(MODELS, settings, draw)


def messages(found: Reconstructed) -> None:
    if wire := layout.opened("What crossed the wire", "wire"):
        with wire:
            lay_out(covariance.messages(found))
