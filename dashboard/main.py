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

st.html(ROOT / "dashboard" / "page.css")

st.navigation(
    [
        st.Page(PAGES / "home.py", title="Home", icon=":material/home:", default=True),
        st.Page(
            PAGES / "converge.py",
            title="How fast?",
            icon=":material/show_chart:",
            url_path="converge",
        ),
        st.Page(
            PAGES / "attack.py",
            title="What leaks?",
            icon=":material/visibility:",
            url_path="attack",
        ),
        st.Page(
            PAGES / "anomaly.py",
            title="Anomalies",
            icon=":material/sensors:",
            url_path="anomaly",
        ),
        st.Page(
            PAGES / "privacy.py",
            title="What does privacy cost?",
            icon=":material/verified_user:",
            url_path="privacy",
        ),
        st.Page(
            PAGES / "personalise.py",
            title="Who collaborates?",
            icon=":material/diversity_3:",
            url_path="personalise",
        ),
        st.Page(
            PAGES / "theory.py",
            title="What is proved?",
            icon=":material/function:",
            url_path="theory",
        ),
    ]
).run()
