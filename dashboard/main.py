"""The navigation: what runs before every page (also an entry of its own for plain hosts)."""

from __future__ import annotations

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

# A picture of our own: a Material symbol as the page's icon would be fetched from another host.
st.set_page_config(
    page_icon=str(ROOT / "assets" / "favicon.png"),
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
            PAGES / "which.py",
            title="Which one?",
            icon=":material/alt_route:",
            url_path="which",
        ),
        st.Page(
            PAGES / "check.py",
            title="Leak check",
            icon=":material/fact_check:",
            url_path="check",
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
