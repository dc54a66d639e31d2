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

from dashboard.shell import figures  # noqa: E402
from dashboard.shell.document import page_title  # noqa: E402
from dashboard.shell.navigation import ENTRIES  # noqa: E402

# A picture of our own: a Material symbol as the page's icon would be fetched from another host.
st.set_page_config(
    page_icon=str(ROOT / "assets" / "favicon.png"),
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
