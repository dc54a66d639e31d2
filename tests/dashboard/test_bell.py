"""A page hears of the end of its job from the server: its tab asks for nothing in between."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.visitor import Visitor
from tests.browser.tools import serve

ROOT = Path(__file__).resolve().parents[2]

PAGE = """
import sys, time
from pathlib import Path
sys.path.insert(0, {root!r})
import streamlit as st
from dashboard.shell import jobs

name = st.query_params["flag"]

def work(job):
    while not Path({folder!r}, name).exists():
        job.report(0.5, "working")
        time.sleep(0.02)
    return "the result"

@st.fragment(key="below")
def below():
    st.text(f"below: {{job.result}}")

parts = ["below"] if name == "parts" else []
job = jobs.show(name, work, st.text, name="told", patience=0.0, parts=parts)
below()
"""


class Silent(Visitor):
    """A tab that never asks again, and what it was shown."""

    async def _poll(self, fragment: str, interval: float) -> None:
        pass

    def _element(self, element, fragment: str) -> None:
        self.seen = [*getattr(self, "seen", []), element.text.body or element.progress.text]


async def told(address: str, flag: Path) -> None:
    async with Silent(address, "", f"flag={flag.name}") as tab, asyncio.timeout(120):
        while not any("working" in text for text in getattr(tab, "seen", [])):
            await asyncio.sleep(0.05)
        assert "the result" not in tab.seen
        flag.touch()
        while not {"the result", "below: the result"} <= set(tab.seen):
            await asyncio.sleep(0.05)
        assert not tab.errors


def test_a_page_is_told_and_draws_what_depends_on_the_job(tmp_path):
    entry = tmp_path / "page.py"
    entry.write_text(PAGE.format(root=str(ROOT), folder=str(tmp_path)))
    with serve(entry, ROOT) as server:
        address = str(server).removeprefix("http://")
        for name in ("parts", "page"):
            asyncio.run(told(address, tmp_path / name))
