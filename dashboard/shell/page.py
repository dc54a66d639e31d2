"""How the front page stands on the screen: before a room, and with parts of it left out.

Each state has a style sheet, which is on the page only while the state lasts. One sheet with
``:has(…)`` for all of them would make the browser style the page anew for every stroke of a chart.
"""

from collections.abc import Collection
from pathlib import Path

import streamlit as st

_SHEETS = Path(__file__).resolve().parent.parent / "front"
_PARTS = {"parameters": ".st-key-scene_sheet", "story": ".st-key-story_strip, .st-key-step"}


def front() -> None:
    """What always holds on the front page."""
    st.html(_SHEETS / "front.css")
    script = (_SHEETS / "dials.js").read_text("utf-8")
    st.html(f"<script>{script}</script>", unsafe_allow_javascript=True)


def look(lecture: bool, story: bool, shown: bool, hidden: Collection[str]) -> None:
    """Set the page for a lecture, for a step of the story (its run shown or not), and hide parts.

    In a lecture everything but the picture and the story is below.
    """
    states = {
        "free": not story,
        "story": story,
        "told": story and not (lecture and shown),
        "shown": story and shown,
        "lecture": lecture,
    }
    sheets = [(_SHEETS / f"{name}.css").read_text("utf-8") for name, on in states.items() if on]
    rules = [f"{_PARTS[name]} {{ display: none !important; }}" for name in sorted(hidden)]
    if "parameters" in hidden:  # the play bar stands on nothing
        rules.append(".fp-scene > .fp-transport { bottom: 0 !important; }")
        if shown:  # and there is room for a sentence
            asked = '.fp-scene:not([data-hide~="sentence"]) > .fp-sentence'
            rules.append(f"{asked} {{ display: revert !important; }}")
    # The element is always there: nothing below it moves when a state changes.
    st.html(f"<span></span><style>{' '.join(sheets + rules)}</style>")
