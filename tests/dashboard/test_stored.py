"""Where a preset's data are missing, its stored result is shown, and marked as such."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.player.encode import encode
from dashboard.shell import meanwhile
from fedpca_core.problems.data_sets import DATA_SETS
from fedpca_core.questions.catalogue import PRESETS, studies_of
from fedpca_core.study.here import missing, named
from fedpca_core.study.panels import Images
from scripts import posters

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(file.stem for file in meanwhile.STORED.glob("*.json"))


def test_presets_with_other_data_have_one():
    assert set(NAMES) == {name for name, one in PRESETS.items() if missing(one.settings)}


def test_views_that_show_records_are_left_out(tmp_path, monkeypatch):
    """Photographs of people are not ours to hand on."""
    monkeypatch.setattr(meanwhile, "STORED", tmp_path)
    shown = [encode(key="v", rounds=1, images=[[Images("Records", np.zeros((2, 3, 3), np.uint8))]])]
    pictures = [("one", part) for part in ("<div>Said.</div>", *shown)]
    told = json.loads(posters.stored(PRESETS["ten-faces"], pictures).read_text())
    assert told["pictures"] == {"one": ["<div>Said.</div>"]} and told["without_images"]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_of_its_preset(name):
    held = json.loads((meanwhile.STORED / f"{name}.json").read_text(encoding="utf-8"))
    settings = PRESETS[name].settings
    assert held["data"] == DATA_SETS[named(settings)[0]].title
    assert set(held["pictures"]) <= {study.key for study in studies_of(settings)}
    assert all(held["pictures"].values())
    whole = not held["without_images"]  # a link opens what comes along in the place of a part
    assert (meanwhile.opened(settings) == settings) == whole
    assert ("stored result is shown" in meanwhile.told("A point.", settings)) == whole
    (study, *_) = studies_of(settings)
    assert meanwhile.stored(study, replace(settings, seed=settings.seed + 1)) is None


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
    held = json.loads((meanwhile.STORED / f"{name}.json").read_text(encoding="utf-8"))
    assert held["without_images"] == any("not ours to hand on" in text for text in told)
    assert links and (app.get("bidi_component") or app.get("html"))
