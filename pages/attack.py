"""What does an honest-but-curious server learn of one client from exactly the messages it saw?"""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.shell import jobs, layout, own_table, presets, share
from dashboard.shell.controls import Controls
from dashboard.shell.data import faps_controls, noise_controls, problem_controls
from dashboard.shell.navigation import door
from dashboard.shell.parts import ask, drawing, lay_out
from dashboard.views.findings import offer
from fedpca_core.algorithms.registry import replayable
from fedpca_core.questions.anomaly import figures as anomaly
from fedpca_core.questions.attack.differencing import OneMoreRecord
from fedpca_core.questions.attack.figures import covariance
from fedpca_core.questions.attack.figures import records as of_records
from fedpca_core.questions.attack.reconstruction import ClientReconstruction, Reconstructed
from fedpca_core.questions.attack.records import at_risk
from fedpca_core.questions.attack.records.study import ClientRecords, RecordsTaken, stand_in
from fedpca_core.questions.attack.replay import Defences, ReplayAttack
from fedpca_core.questions.attack.sent_models import SentModel, SentModels, borrowed
from fedpca_core.questions.personalise import figures as personalise
from fedpca_core.settings import plural, short
from fedpca_core.study import OwnData, Study
from fedpca_core.study.parts import About, Caption, Part, Parts, words
from fedpca_core.study.pca_settings import FINER, IMAGES, AttackSettings, ConvergeSettings

STUDY, RECORDS, REPLAY = ClientReconstruction(), ClientRecords(), ReplayAttack()
RISK, NOISE, MODELS = at_risk.AtRisk(), at_risk.NoiseAtRisk(), SentModels()
#: What decides about the records and stands in no sidebar.
SETTING = ("records_per_client", "fine", "joined", "mean_known", "grid_known", "once", "unmask")
#: Dials side by side.
BESIDE: dict[str, Any] = {"horizontal": True, "gap": "medium", "vertical_alignment": "bottom"}

controls = Controls(AttackSettings, most={"rounds": 200})
controls.heading("What leaks?", words("attack-lead"))
of_preset = st.container()
place = st.container()


@st.fragment(key="card")
def card() -> None:
    jobs.below(job, STUDY.key, drawing(covariance.card, settings))


@st.fragment(key="messages")
def messages() -> None:
    jobs.below(job, "messages", wire)


def wire(found: Reconstructed) -> None:
    if opened := layout.opened("What crossed the wire", "wire"):
        with opened:
            lay_out(covariance.messages(found))


def records(settings: AttackSettings, data: OwnData | None = None) -> jobs.Job:
    """The records: the job, the verdict, the rounds to play, and what was not tried."""

    def shown(result: RecordsTaken) -> None:
        lay_out(of_records.records(result, settings))
        last = (one for method in result.found.values() for one in method.findings[-1])
        offer(last, settings, controls)

    with place:
        if (chosen := stand_in(settings)) is not settings:
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                each = short(chosen.records_per_client)
                st.caption(
                    f"Shown on digits: {chosen.clients} clients, {each} each",
                    width="content",
                    help="A synthetic spectrum has no records on a grid, so this is the same "
                    f"server on digits, with {plural(chosen.components, 'component')} and "
                    "everything else as set on this page.",
                )
                door(chosen, "The whole page on digits")
        return jobs.study(RECORDS, settings, shown, data=data, parts=["taken"])


# The first page of a visit begins with the picture that its link asks for; dials follow.
opening = controls.opening
early = opening is not None and opening.problem != "table"
recovered = None
if opening is not None and early:
    recovered = records(opening)
    if recovered.result is not None:
        layout.picture_first(opening=True)

with st.sidebar:
    st.header("Problem", anchor=False)
    problem_controls(controls, elsewhere=("records_per_client",))
    st.header("Run", anchor=False)
    controls.draw("rounds", "starts", "participation", "absent", "seed")
    with st.expander("Parameters of FAPS"):
        faps_controls(controls)
    with st.expander("Differential privacy", expanded=True):
        noise_controls(controls)
    with st.expander("Defences", expanded=True):
        controls.draw("secure_aggregation", "dtype", "upload_noise")
        controls.draw("private_start", "private_penalty", "random_inner_steps")

controls.parameter("attacked")
with st.container(**BESIDE):
    with st.container(width=360):
        chosen = controls.parameter("attack")
    with st.container(width=260):
        controls.parameter("client")
    if chosen == "collude":
        with st.container(width=260):
            controls.parameter("colluders")

data = own_table.of(controls.settings())
with (
    st.expander("Settings of the attack", expanded=controls.on(*SETTING)),
    st.container(**BESIDE),
):
    if controls.values["problem"] != "table":
        controls.parameter("records_per_client")
    if controls.values["problem"] in FINER:
        controls.parameter("fine")
    controls.draw("joined", "mean_known", "grid_known", "once")
    if any(map(replayable, controls.values["attacked"])):
        controls.parameter("unmask")
lay_out([About.of("records-from-matrix")])
settings = controls.settings()
if opening is None or not early:
    recovered = records(settings, data)
elif RECORDS.identity(opening) != RECORDS.identity(settings):
    st.rerun()  # the link says more than the dials do
layout.section("The covariance, round by round")
of_others = st.container()
with of_preset if settings.problem in IMAGES else of_others:
    presets.note(settings)  # of pictures about their records, of others about what follows
parts = ["remedy", "card", "messages", "taken"]
job = ask(STUDY, settings, covariance.reconstructed, data=data, parts=parts, above=recovered)
own_table.remedy_of(controls, job)
with st.expander("Who attacks, and what it knows"):
    card()
lay_out([About.of("reconstruction")])


# ------------------------------------------------------------------ what else a server may do
def part(title: str, lead: str, *switches: str) -> DeltaGenerator:
    """Folded until one of its switches is on."""
    folded = st.expander(title, expanded=controls.on(*switches))
    folded.markdown(words(lead))
    return folded


def study(one: Study[Any, Any], figures: Callable[..., Parts], data: OwnData | None) -> None:
    settings = controls.settings()
    if one.wanted(settings):
        ask(one, settings, figures, data=data)


def clients_of(small: Any) -> Caption:
    name = small.parameters()["problem"].text(small.problem)
    return Caption(f"FedPG with {plural(small.clients, 'client')} on {name}.")


#: What leads to uploads that are no products, and what the study of their page read, by method.
READ: Mapping[str, tuple[Callable[[Any], list[Part]], Callable[[Any, Any], Parts]]] = {
    "fedpg": (lambda small: [clients_of(small), anomaly.THREAT], anomaly.leaks),
    "personal": (lambda small: [personalise.threat()], personalise.exposure),
    "one_shot": (lambda small: [words("attack-one-shot")], lambda found, small: iter(())),
}

with part("The adversary who replays", "attack-replay", "replay", "defences"):
    with st.container(**BESIDE):
        controls.draw("replay", "seeded", "defences", "budget")
    study(REPLAY, covariance.replayed, data)
    settings = controls.settings()
    if settings.replay and not REPLAY.wanted(settings):
        layout.sentence(REPLAY.obstacle(settings), kind="note")
    study(Defences(), covariance.defended, data)
with part("One more record", "attack-newcomer", "differencing"):
    with st.container(**BESIDE):
        controls.draw("differencing", "record")
    study(OneMoreRecord(), of_records.joined_record, data)
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
        other = borrowed(settings)  # with the settings that its own page explains
        small = None if other is None else other[1]
        lead, read = READ[settings.elsewhere]
        lay_out(lead(small))

        def sent(found: SentModel) -> None:
            if found.read is not None:
                lay_out(read(found.read, small))
            if found.records is not None:
                lay_out(of_records.of_models(found.records))

        jobs.study(MODELS, settings, sent)

settings = controls.settings()
messages()
share.take_away(
    settings,
    data,
    ("privacy", "FedPower under attack", "lock"),
    (settings.carried(ConvergeSettings), "Compare the costs of this run"),
)
