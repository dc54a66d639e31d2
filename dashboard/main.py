"""The navigation: what runs before every page (also an entry of its own for plain hosts)."""

import sys
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

PAGES = ROOT / "pages"


from dashboard.shell.warmup import warm  # noqa: E402

warm()  # where this file is the entry; under app.py it is done already

from dashboard.player import printed  # noqa: E402
from dashboard.shell.document import PRODUCT, icon  # noqa: E402
from dashboard.shell.navigation import ENTRIES, listed, tabs  # noqa: E402

st.set_page_config(page_icon=icon(), layout="wide")

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
    ],
    position="hidden",
)

st.set_page_config(
    page_title=f"{page.title} · {PRODUCT}",
    # On the front page, and inside another page (embed=true), the picture comes first.
    initial_sidebar_state="collapsed" if st.context.is_embedded or page.url_path == "" else "auto",
)
st.html(ROOT / "dashboard" / "page.css")
script = (ROOT / "dashboard" / "links.js").read_text(encoding="utf-8")
shown = page.url_path or ENTRIES[0].name
for place, links in ((st.sidebar, listed(shown)), (st, tabs(shown))):
    if links:
        place.html(f"{links}<script>{script}</script>", unsafe_allow_javascript=True)

printed.forget()
page.run()
