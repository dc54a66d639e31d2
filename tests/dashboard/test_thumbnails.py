"""Thumbnails are drawn from results: there is one for every card, and it is that of its run."""

from __future__ import annotations

from dashboard.shell.navigation import ENTRIES
from fedpca_core.papers import faps
from fedpca_core.questions.catalogue import PRESETS
from fedpca_core.study.parts import names
from scripts import thumbnails


def test_every_card_of_the_front_page_has_one_and_nothing_else_does():
    cards = {preset.name for preset in faps.PRESETS if preset.name != "default"}
    pages = set(names("doors"))
    assert pages == {page.name for page in ENTRIES[1:] if not page.of}
    assert {file.stem for file in thumbnails.FOLDER.iterdir()} == cards | pages
    assert {name for name, _ in thumbnails.wanted()} == cards | pages


def test_one_drawn_again_is_the_one_on_the_page():
    drawn = thumbnails.drawing(PRESETS["people-joined"].settings)
    assert drawn == (thumbnails.FOLDER / "people-joined.svg").read_text(encoding="utf-8")
