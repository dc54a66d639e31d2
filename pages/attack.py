"""What does an honest-but-curious server learn of one client from exactly the messages it saw?"""

import streamlit as st

from dashboard.shell import jobs, layout, own_table, presets, share
from dashboard.shell.controls import Controls
from dashboard.shell.data import faps_controls, noise_controls, problem_controls
from dashboard.shell.parts import drawing, lay_out
from dashboard.views import attack
from fedpca_core.questions.attack.figures import covariance
from fedpca_core.questions.attack.reconstruction import ClientReconstruction
from fedpca_core.study.parts import About, words
from fedpca_core.study.pca_settings import IMAGES, AttackSettings, ConvergeSettings

STUDY = ClientReconstruction()

controls = Controls(AttackSettings, most={"rounds": 200})
controls.heading("What leaks?", words("attack-lead"))
of_preset = st.container()
place = st.container()


@st.fragment(key="card")
def card() -> None:
    jobs.below(job, STUDY.key, drawing(covariance.card, settings))


@st.fragment(key="messages")
def messages() -> None:
    jobs.below(job, "messages", attack.messages)


# The first page of a visit begins with the picture that its link asks for; dials follow.
opening = controls.opening
early = opening is not None and opening.problem != "table"
recovered = None
if opening is not None and early:
    recovered = attack.records(place, opening, controls)
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
with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
    with st.container(width=360):
        chosen = controls.parameter("attack")
    with st.container(width=260):
        controls.parameter("client")
    if chosen == "collude":
        with st.container(width=260):
            controls.parameter("colluders")

data = own_table.of(controls.settings())
attack.dials(controls)
settings = controls.settings()
if opening is None or not early:
    recovered = attack.records(place, settings, controls, data)
elif attack.RECORDS.identity(opening) != attack.RECORDS.identity(settings):
    st.rerun()  # the link says more than the dials do
layout.section("The covariance, round by round")
of_others = st.container()
with of_preset if settings.problem in IMAGES else of_others:
    presets.note(settings)  # of pictures about their records, of others about what follows
job = jobs.study(
    STUDY,
    settings,
    drawing(covariance.reconstructed, settings),
    data=data,
    parts=["remedy", "card", "messages", "taken"],
    above=recovered,
)
own_table.remedy_of(controls, job)
with st.expander("Who attacks, and what it knows"):
    card()
lay_out([About.of("reconstruction")])
attack.further(controls, data)

settings = controls.settings()
messages()
share.take_away(
    settings,
    data,
    ("privacy", "FedPower under attack", "lock"),
    (settings.carried(ConvergeSettings), "Compare the costs of this run"),
)
