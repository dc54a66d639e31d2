"""The list of what the papers have: whole, with links and commands that exist, and as shown."""

from collections import Counter

import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.papers.registry import ENTRIES
from tests.papers import coverage

ITEMS = list(coverage.items())


def test_the_page_is_what_the_list_and_the_entries_say(tmp_path):
    shown, made = coverage.DOCS / "coverage.md", tmp_path / "coverage.md"
    made.write_text(coverage.page(), encoding="utf-8")
    assert shown.read_bytes() == made.read_bytes(), f"It has changed: copy {made} to {shown}."


def test_every_place_exists():
    assert [(one.name, place, fault) for one in ITEMS for place in one.where
            if (fault := coverage.wrong(place))] == []  # fmt: skip


@pytest.mark.parametrize(
    "place",
    ["/nowhere", "/converge?methods=magic", "/converge?nothing=1", "/papers?row=faps/theorem-99",
     "reproduce table-99", "reproduce dfl-statements --only lemma-99", "fp.Magic"],
)  # fmt: skip
def test_a_place_that_does_not_exist_is_found(place):
    assert coverage.wrong(place)


def test_every_entry_of_every_paper_belongs_to_an_item():
    found = {entry.name for paper, rows in coverage.listed().items() for row in rows
             for entry in coverage.covered(paper, row)}  # fmt: skip
    assert sorted(set(ENTRIES) - found) == []


def test_what_is_not_there_has_a_reason_and_what_is_has_a_place():
    for one in ITEMS:
        assert one.line > 0 and one.says, one
        assert one.where if one.state == "there" else len(one.reason) > 15, one


def test_no_item_is_listed_twice():
    assert max(Counter((one.paper, one.name) for one in ITEMS).values()) == 1


def test_an_item_of_entries_that_do_not_exist_is_refused():
    with pytest.raises(InvalidInput, match="no entry"):
        coverage.read("faps", {"item": "Theorem 99", "covers": ["theorem-99"]})


def test_an_item_with_nothing_behind_it_is_not_there():
    """An assumption of the text is quoted, and no more."""
    assert coverage.read("faps", {"item": "Remark 7", "covers": ["remark-7"]}).state == "out"
