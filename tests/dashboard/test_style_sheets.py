"""Style sheets leave a chart's strokes alone: what is drawn must not style the page anew."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboard.shell import page

DASHBOARD = Path(page.__file__).resolve().parent.parent


@pytest.mark.parametrize(
    "name",
    [
        "page.css",
        "player/frontend/replay.css",
        *(f"front/{sheet.name}" for sheet in sorted((DASHBOARD / "front").iterdir())),
    ],
)
def test_what_an_element_holds_is_asked_on_phones_only(name):
    rules = (DASHBOARD / name).read_text(encoding="utf-8")
    # A block of rules for narrow screens ends with a brace at the beginning of a line.
    wide = re.sub(r"@media \(max-width: 700px\) \{.*?\n\}", "", rules, flags=re.DOTALL)
    assert ":has(" not in wide
