"""The story above the picture: told, asked, guessed, shown, and one door to go deeper."""

from base64 import b64encode
from html import escape
from pathlib import Path

import streamlit as st

from dashboard.shell.controls import Controls
from dashboard.shell.navigation import door
from dashboard.views import classroom
from fedpca_core.questions.home.scene import LivePicture, Scene
from fedpca_core.questions.home.settings import FREE, STEPS, SceneSettings
from fedpca_core.questions.home.story import CHAPTERS, NEVER, Chapter
from fedpca_core.study.parts import names

#: Where a session keeps what was guessed in each step.
GUESSES = "story_guesses"
#: Of a term where it is first used; drawn by hand, to be seen on light paper and on dark.
_PICTURES = Path(__file__).resolve().parent.parent / "terms"


def arrive(controls: Controls[SceneSettings]) -> None:
    """Open a step as it is told where the link names nothing but the step."""
    if st.query_params.get("step", FREE) not in CHAPTERS or "step" in st.session_state:
        return
    given = {name: st.query_params.get_all(name) for name in st.query_params}
    controls.open(SceneSettings.from_query(given, ("embed", "embed_options")).configuration)


def choose(controls: Controls[SceneSettings]) -> Chapter | None:
    """The way into the story and along it; returns the step that is open."""
    described = controls.parameters["step"]
    st.segmented_control(
        "Story",
        [FREE, *STEPS],
        key="step",
        bind="query-params",
        default=FREE,
        required=True,
        format_func=described.text,
        label_visibility="collapsed",
        on_change=lambda: _go(controls, st.session_state["step"]),
        help=described.help,
    )
    controls.values["step"] = st.session_state["step"]
    controls.values["shown"] = st.query_params.get("shown") == "true"
    return CHAPTERS.get(st.session_state["step"])


def _go(controls: Controls[SceneSettings], step: str) -> None:
    """Set the scene for a step; without one the run stays as it is."""
    if step not in CHAPTERS:
        st.query_params.pop("shown", None)
        st.session_state["step"] = FREE
        return
    keep = {"lecture": False, "hide": (), "section": "scene", "autoplay": True}
    kept = {name: controls.values.get(name, default) for name, default in keep.items()}
    shown = step in st.session_state.get(GUESSES, {})
    controls.open(SceneSettings(**{**CHAPTERS[step].sets, **kept, "step": step, "shown": shown}))


def guessed(chapter: Chapter | None) -> str | None:
    return None if chapter is None else st.session_state.get(GUESSES, {}).get(chapter.key)


def tell(chapter: Chapter, settings: SceneSettings) -> None:
    """On the left: the words of the step, and a picture of every new term."""
    with st.container(key="story_told"):
        st.markdown(chapter.filled(chapter.told, settings))
        if chapter.terms:
            st.html(f'<div class="fp-terms">{"".join(map(_term, chapter.terms))}</div>')


def _term(name: str) -> str:
    drawn = b64encode((_PICTURES / f"{name}.svg").read_bytes()).decode()
    picture, told = f'<img alt="" src="data:image/svg+xml;base64,{drawn}">', names("story-terms")
    return f"<figure>{picture}<figcaption>{told[name]}</figcaption></figure>"


def after(
    chapter: Chapter,
    controls: Controls[SceneSettings],
    settings: SceneSettings,
    scene: Scene | None,
) -> None:
    """On the right: the question and the guess, or the sentence that the run bears out."""
    with st.container(key="story_asked"):
        asked = chapter.filled(chapter.asked, settings, None if scene is None else scene.facts)
        st.markdown(f"**{asked}**")
        room = classroom.opened()
        if not settings.shown:
            if room is None:
                _ask(chapter, settings)
            else:
                classroom.ask(room, asked, chapter.options(settings), _show, chapter.key)
        elif scene is not None:
            _end(chapter, settings, scene, asked, room)
        _turn(chapter, controls, settings)


def _ask(chapter: Chapter, settings: SceneSettings) -> None:
    options = chapter.options(settings)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        chosen = st.select_slider(
            "Your guess",
            options,
            value=options[len(options) // 2],
            key=f"guess_{chapter.key}_{len(options)}",
        )
        st.button(
            "Show me", key="story_show", type="primary", on_click=_show, args=(chapter.key, chosen)
        )


def _show(step: str, guess: str | None) -> None:
    """Show the run of a step; nobody may have guessed."""
    st.session_state[GUESSES] = {**st.session_state.get(GUESSES, {}), step: guess}
    st.query_params["shown"] = "true"


def _end(
    chapter: Chapter, settings: SceneSettings, scene: Scene, asked: str, room: str | None
) -> None:
    """The answer to the guess, and the sentence of the run, when the picture has come to it."""
    story = LivePicture().tables(scene, settings)["story"].iloc[0]
    guess, answer = guessed(chapter), str(story["answer"])
    said = "" if guess is None else f"You said {guess}. It was {answer}."
    if room is not None:
        said = classroom.reveal(room, asked, chapter.options(settings), answer)
    at = 0 if chapter.guess == "epsilon" else scene.rounds if answer == NEVER else int(answer)
    with st.container(key="story_ending"):
        st.html(
            f'<div class="fp-late" role="status" data-from="{at}"><p>{escape(said)}</p>'
            f"<p>{escape(str(story['ending']))}</p></div>"
        )


def _turn(chapter: Chapter, controls: Controls[SceneSettings], settings: SceneSettings) -> None:
    """The door, back and on; the keys p and n press the buttons in a lecture."""
    at = STEPS.index(chapter.key)
    before, on = STEPS[max(at - 1, 0)], STEPS[at + 1] if at + 1 < len(STEPS) else FREE
    name = CHAPTERS[on].title if on in CHAPTERS else "The end: turn the parameters yourself"
    with st.container(horizontal=True, vertical_alignment="center", key="story_turn"):
        st.button("Back", key="story_back", disabled=at == 0, on_click=_go, args=(controls, before))
        st.button("Next", key="story_next", help=name, on_click=_go, args=(controls, on))
        if not settings.shown or classroom.CODE in st.session_state:
            classroom.door()
        if settings.shown:
            door(chapter.opens(settings), chapter.door, "arrow_outward")
