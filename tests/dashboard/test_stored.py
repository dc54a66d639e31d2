"""Where a preset's data are missing, its stored result is shown, and marked as such."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.shell import absent_data, earlier
from fedpca_core.problems.data_sets import DATA_SETS
from fedpca_core.questions.catalogue import PRESETS, studies_of
from fedpca_core.study.here import missing, named

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(file.stem for file in earlier.STORED.glob("*.json"))


def test_presets_with_other_data_have_one():
    """But those that would show photographs of people, which are not ours to hand on."""
    absent = {name for name, one in PRESETS.items() if missing(one.settings)}
    assert set(NAMES) <= absent
    assert absent - set(NAMES) == {"ten-faces", "anomaly-table-1"}


@pytest.mark.parametrize("name", NAMES)
def test_it_is_of_its_preset(name):
    held = json.loads((earlier.STORED / f"{name}.json").read_text(encoding="utf-8"))
    settings = PRESETS[name].settings
    assert held["data"] == DATA_SETS[named(settings)[0]].title
    assert set(held["pictures"]) <= {study.key for study in studies_of(settings)}
    assert all(any(isinstance(one, dict) for one in parts) for parts in held["pictures"].values())
    assert absent_data.opened(settings) == settings
    assert "stored result is shown" in absent_data.told("A point.", settings)
    (study, *_) = studies_of(settings)
    assert earlier.stored(study, replace(settings, seed=settings.seed + 1)) is None


@pytest.mark.parametrize("name", NAMES)
def test_a_page_shows_it_with_the_command_that_helps(name, monkeypatch):
    links: list[str] = []
    monkeypatch.setattr(st, "page_link", lambda *where, label, **_: links.append(label))
    settings = PRESETS[name].settings
    app = AppTest.from_file(str(ROOT / "pages" / f"{settings.kind}.py"), default_timeout=60)
    app.query_params.update(settings.query())
    app.run()
    assert not app.exception
    said = "\n".join(one.value.replace("\\", "") for one in app.warning)
    assert "python -m fedpca_core data" in said
    told = [one.value for one in app.info]
    assert sum(text.startswith("**Stored result**") for text in told) >= 1
    assert app.get("bidi_component") and links
