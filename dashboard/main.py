"""The navigation: what runs before every page (also an entry of its own for plain hosts)."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

PAGES = ROOT / "pages"


@st.cache_resource(show_spinner=False)
def _warm_up() -> None:
    """Warm up where this file is the entry; under app.py the imports are already there."""
    from dashboard.shell.warmup import warm

    warm()


_warm_up()

from dashboard.shell import figures  # noqa: E402
from dashboard.shell.document import page_title  # noqa: E402
from dashboard.shell.navigation import ENTRIES  # noqa: E402


@st.cache_resource(show_spinner=False)
def _icon() -> str:
    """A picture of our own in the address itself.

    A Material symbol would be fetched from another host, and a file is forgotten by the server
    while another visitor's page is drawn.
    """
    picture = (ROOT / "assets" / "favicon.png").read_bytes()
    return f"data:image/png;base64,{base64.b64encode(picture).decode()}"


st.set_page_config(
    page_icon=_icon(),
    layout="wide",
    # In a lecture or inside another page (embed=true) the picture comes first.
    initial_sidebar_state="collapsed" if st.context.is_embedded else "auto",
)

page = st.navigation(
    [
        st.Page(
            PAGES / f"{entry.name}.py",
            title=entry.title,
            icon=f":material/{entry.icon}:",
            url_path=entry.name,
            default=entry is ENTRIES[0],
        )
        for entry in ENTRIES
    ]
)

st.set_page_config(page_title=page_title(page.title))
st.html(ROOT / "dashboard" / "page.css")

figures.forget()
page.run()
