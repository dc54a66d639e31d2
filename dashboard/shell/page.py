"""How the front page stands on the screen: before a room, and with parts of it left out."""

from __future__ import annotations

from collections.abc import Collection

import streamlit as st

_PARTS = {"parameters": ".st-key-scene_sheet", "story": ".st-key-story_strip, .st-key-step"}


def look(*, lecture: bool, hidden: Collection[str]) -> None:
    """Hide parts of the page; in a lecture everything but the picture and the story is below."""
    rules = " ".join(f"{_PARTS[name]} {{ display: none !important; }}" for name in sorted(hidden))
    kind = "fp-before-a-room" if lecture else "fp-alone"
    st.html(f'<span class="{kind}"></span><style>{rules}</style>')
