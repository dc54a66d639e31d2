"""What a community host does: ``streamlit run dashboard/main.py`` with one worker, in 1 GB."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from bench.visitor import Visitor
from dashboard.shell.navigation import ENTRIES
from tests.browser.tools import ROOT, serve, started_by

#: Megabytes that such a host gives, all processes together.
HOST = 1024
#: Seconds that a visitor stays on a page where no picture comes.
STAY = 6.0


def megabytes(process: int) -> float:
    """Proportional set size of a process and its children: what they take of the host's memory."""
    total = 0
    for one in (process, *started_by(process)):
        try:
            text = Path(f"/proc/{one}/smaps_rollup").read_text()
        except OSError:  # it has ended
            continue
        found = re.search(r"^Pss:\s+(\d+) kB", text, re.MULTILINE)
        total += int(found[1]) if found else 0
    return total / 1024


async def visited(address: str, page: str) -> list[str]:
    """Errors that a visitor of a page meets while its first results arrive."""
    async with Visitor(address, page) as visitor:
        await visitor.picture(STAY)
        return [f"{page}: {error}" for error in visitor.errors]


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="reads Linux's /proc")
def test_all_pages_fit_into_a_community_host(tmp_path):
    with serve(ROOT / "dashboard" / "main.py", tmp_path, workers="1") as server:
        assert server.process is not None
        most, errors = 0.0, []
        for entry in ENTRIES:
            name = "" if entry is ENTRIES[0] else entry.name
            errors += asyncio.run(visited(server.removeprefix("http://"), name))
            most = max(most, megabytes(server.process.pid))
    print(f"at most {most:.0f} MB")
    assert errors == []
    assert 100 < most < HOST, f"{most:.0f} MB"
