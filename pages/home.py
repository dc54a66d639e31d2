"""The experiment this laboratory exists for: all parameters, one picture."""

import streamlit as st

from dashboard.shell import jobs, layout, own_table, share
from dashboard.shell.controls import Controls, itself
from dashboard.shell.navigation import ENTRIES, door, listed
from dashboard.shell.parts import lay_out
from dashboard.shell.streamlit_internals import run_again
from dashboard.views import front, scene, story
from dashboard.views.findings import offer
from fedpca_core.questions.catalogue import DIAL_CURVES
from fedpca_core.questions.home.scene import LivePicture
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.study.parts import GuaranteeOf, words
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings

STUDY = LivePicture()


@st.fragment(key="experiment")
def experiment() -> None:
    """The parameters and what they act on; the page below stays as it is while they are turned."""
    controls = Controls(SceneSettings, also_known=("shown", "step"))
    story.arrive(controls)
    # Computed while the widgets are drawn; a file of one's own is known only by its own.
    expected = controls.foreseen()
    if expected is not None and expected.problem != "table" and not expected.secure_aggregation:
        jobs.foresee(STUDY, expected)
    title = st.container(key="front")
    # All stand at one place with and without a step, whose style puts the picture first: a widget
    # that moves to another container writes no address from then on.
    with st.container(gap=None):
        opening, strip = st.container(key="opening_line"), st.container(key="story_strip")
    with st.container(key="stage"):
        row, picture = st.container(), st.container()
    after = st.container()
    # Beside the title for the eye; the tabulator comes to the dials first.
    with st.container(key="front_ways", horizontal=True):
        chapter = story.choose(controls)
        if chapter is None:  # in a step all of it hangs on the parameters
            controls.runs = ("picture", "opening", "taken", "known", "curves")
        door("trace", "Open a run")
        with st.popover("Pages", icon=":material/menu:", key="pages_front"):
            st.html(listed(ENTRIES[0].name))
        icon, key = ":material/share:", "share_front"
        with st.popover("Share", icon=icon, key=key, on_change=lambda: run_again(["taken"])):
            place_of_taken = st.container()
            st.markdown("**In a lecture, or inside another page**")
            controls.draw("lecture", "hide", shapes=itself)
            controls.draw("autoplay", "round", "section")
    with st.container(key="for_dials"):
        place_of_curves = st.container()
        front.meanings(controls)
    with title:
        controls.heading(
            "No record is sent. What does the server hold?" if chapter is None else chapter.title
        )
    with row:
        scene.parameters(controls)

    settings = scene.possible(controls.settings())
    job, data, first = jobs.Job(None), own_table.of(settings), controls.opening is not None
    hidden = {name for name in ("parameters", "story") if name in settings.hide}
    asking = chapter is not None and not settings.shown
    guess = story.guessed(chapter)
    if chapter is not None and not (settings.lecture and settings.shown):
        with strip:
            story.tell(chapter, settings)
    with after:
        front.look(settings.lecture, chapter is not None, settings.shown, hidden)

    @st.fragment(key="picture")
    def shown() -> None:
        nonlocal job, data, settings, first
        settings = scene.possible(controls.settings(), told=True)
        data = own_table.of(settings)
        job = jobs.study(
            STUDY,
            settings,
            lambda found: scene.view(found, settings, asking, guess)(controls.changer(unmask=True)),
            data=data,
            parts=controls.runs[1:] or ["experiment"],
        )
        if job.refusal is not None and data is None:
            scene.way_out(controls, STUDY)
        if job.done:
            layout.picture_first(first)
            first = False

    @st.fragment(key="opening")
    def said() -> None:
        scene.opening(settings, job.result if job.done else None, controls)

    @st.fragment(key="taken")
    def taken() -> None:
        if st.session_state.get("share_front"):
            share.offers(settings, {STUDY: job.result}, data)

    @st.fragment(key="known")
    def known() -> None:
        with st.container(horizontal=True, key="after_scene"):
            if job.done and job.result is not None and chapter is None and not job.result.other:
                offer(job.result.findings[-1], settings, controls)
            door(settings.carried(AttackSettings), "Attack this run")
            door(settings.carried(ConvergeSettings), "Compare all methods on it")
        if job.result is not None:
            lay_out([GuaranteeOf(job.result.facts)])
        share.fold(settings, data)

    @st.fragment(key="curves")
    def curves() -> None:
        """Behind the dials what each does, once the picture stands."""
        if job.done and job.result is not None:
            jobs.beside(DIAL_CURVES, settings, front.curves, part="curves", data=data)
            if data is None:
                scene.foresee(STUDY, settings, controls.turned)
        else:
            front.curves(None)

    with picture:
        shown()
    if chapter is None:
        with opening:
            said()
    if chapter is not None:
        with strip:
            story.after(chapter, controls, settings, job.result if job.done else None)
    with place_of_taken:
        taken()
    known()
    if chapter is None:
        with place_of_curves:
            curves()
    controls.whole()


front.begin()
experiment()

for key, title, lead, draw in (
    ("story", "The story", "Seven steps, five minutes: guess, then see.", front.steps),
    ("doors", "Every question has its page", words("home-doors"), front.doors),
    ("presets", "Start from an experiment", "Each makes one point.", front.presets),
):
    with st.container(key=f"section_{key}"):
        layout.section(title, lead)
    draw()

layout.section("What to know before you trust a picture")
st.markdown(words("home-trust"))
