"""Style sheets: what is drawn must not style the page anew, and a colour is the theme's."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from dashboard.views import front

DASHBOARD = Path(front.__file__).resolve().parent.parent


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


def test_the_papers_of_the_page_are_those_of_the_theme():
    config = tomllib.loads((DASHBOARD.parent / ".streamlit" / "config.toml").read_text("utf-8"))
    light, dark = config["theme"]["light"], config["theme"]["dark"]
    rules = (DASHBOARD / "page.css").read_text(encoding="utf-8")
    for variable, key in (
        ("--st-background-color", "backgroundColor"),
        ("--st-secondary-background-color", "secondaryBackgroundColor"),
    ):
        assert f"{variable}: light-dark({light[key]}, {dark[key]});" in rules
