"""The experiment this laboratory exists for: all parameters, one picture."""

from __future__ import annotations

import streamlit as st

from dashboard.shell import guarantee, jobs, layout, page, script, share
from dashboard.shell.controls import Controls, packed
from dashboard.shell.data import own_data
from dashboard.views import scene, story, ways
from fedpca_core.studies.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.studies.scene.scene import LivePicture
from fedpca_core.studies.scene.settings import SceneSettings

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
    with st.container(key="front", horizontal=True, vertical_alignment="center"):
        place = st.container(key="front_title")
        chapter = story.choose(controls)
        with place:
            layout.heading(
                "No record is sent. What does the server hold?"
                if chapter is None
                else chapter.title
            )
    controls.show_notes()
    strip = st.container(key="story_strip") if chapter is not None else None
    dials, picture = st.container(), st.container()
    after = st.container()
    with dials if chapter is None else after:
        scene.parameters(controls)
    with after, st.container(horizontal=True, key="after_scene"):
        taken = st.container(horizontal=True, vertical_alignment="center")
        with st.popover("Lecture", icon=":material/co_present:"):
            controls.draw("lecture", "hidden", "autoplay", "round", "section")

    with dials if chapter is None else picture:
        settings = scene.possible(controls.settings())
    hidden = {name for name in ("parameters", "story") if name in settings.hidden}
    asking = chapter is not None and not settings.shown
    guess = story.guessed(chapter)
    if chapter is not None and strip is not None and not (settings.lecture and settings.shown):
        with strip:
            story.tell(chapter, settings)
    data = own_data(settings)
    with after:
        page.look(settings.lecture, chapter is not None, settings.shown, hidden)
    with picture:
        job = jobs.study(
            STUDY,
            settings,
            lambda found: scene.draw(found, settings, asking=asking, guess=guess),
            data=data,
            parts=["experiment"],
        )
        if job.refusal is not None and data is None:
            scene.way_out(controls, STUDY)
    if controls.opening is not None and job.done:
        layout.picture_first()
    if chapter is not None and strip is not None:
        with strip:
            story.after(chapter, controls, settings, job.result if job.done else None)

    with after:
        if job.result is not None:
            guarantee.card(job.result.facts)
    with taken:
        share.take_away(settings, {STUDY: job.result}, data)
        st.page_link(
            "../pages/attack.py",
            label="Attack this run",
            icon=":material/visibility:",
            query_params=packed(settings.carried(AttackSettings)),
        )
        st.page_link(
            "../pages/converge.py",
            label="Compare all methods on it",
            icon=":material/show_chart:",
            query_params=packed(settings.carried(ConvergeSettings)),
        )
    script.fold(settings, [STUDY], data)


page.front()
experiment()

with st.container(key="section_story"):
    layout.section("The story", "Seven steps, five minutes: guess, then see.")
    ways.story()

with st.container(key="section_doors"):
    layout.section(
        "Every question has its page",
        "A laboratory for federated PCA, letting users tune clients, heterogeneity, ρ/β, DP budget "
        "ε and participation ratio, then visualizing convergence, communication rounds, and "
        "SSI-style data-reconstruction attacks versus FAPS masking in live Plotly charts.",
    )
ways.doors()

with st.container(key="section_presets"):
    layout.section("Start from an experiment", "Each makes one point.")
ways.presets()

layout.section("What to know before you trust a picture")
st.markdown(
    "- Everything is simulated here, on synthetic or public data; nothing you load leaves this "
    "session.\n"
    "- Curves marked *simulation only* need the clients' private data: nobody could draw them in "
    "a real deployment.\n"
    "- Masking (what FAPS does) is not privacy. ε appears only where it is accounted, with its "
    "unit, clipping norm, δ, sampling scheme and accountant.\n"
    "- Where a paper and our measurement differ, both are shown.\n"
    "- Every setting is in the address: copy the link and somebody else sees the same picture."
)
