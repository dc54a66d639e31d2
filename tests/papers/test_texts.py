"""The entries against the papers' texts, which are not shipped: skipped where they are not."""

from collections import Counter
from dataclasses import replace

import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.papers.entries import PAPERS, paper
from tests.papers import texts


@pytest.fixture(scope="module")
def found():
    """Lines of every paper's text, by key."""
    folder = texts.folder()
    if folder is None:
        pytest.skip("The papers' texts are not here; name their folder in FEDPCA_PAPERS.")
    return {key: texts.lines_of(paper(key), folder) for key in PAPERS}


@pytest.mark.parametrize("key", PAPERS)
def test_every_value_stands_where_it_is_said_to_stand(key, found):
    assert texts.misplaced(paper(key), found[key]) == []


@pytest.mark.parametrize("key", PAPERS)
def test_every_number_and_statement_of_a_text_has_an_entry_or_a_reason(key, found):
    assert texts.unlisted(paper(key), found[key]) == []


@pytest.mark.parametrize("key", PAPERS)
def test_an_entry_that_is_taken_away_is_missed(key, found):
    """All whose line nobody else quotes, at once: numbers, and statements by their heads."""
    one = paper(key)
    lines = Counter(line for line, _ in texts.quoted(one))
    passed = {line for each in one.ignored for line in range(*(each.lines or (0, 0)))}
    away = [
        entry
        for entry in one.entries
        if lines[entry.line] == 1
        and (
            (entry.kind == "number" and entry.line not in passed)
            or texts.STATEMENT.match(found[key][entry.line - 1])
        )
    ]
    rest = tuple(entry for entry in one.entries if entry not in away)
    reported = "\n".join(texts.unlisted(replace(one, entries=rest), found[key]))
    assert away
    assert [e.id for e in away if f"line {e.line}: " not in reported] == []


@pytest.mark.parametrize("key", PAPERS)
def test_an_entry_at_another_line_is_misplaced(key, found):
    one = paper(key)
    moved = tuple(replace(entry, line=1) for entry in one.entries)
    assert len(texts.misplaced(replace(one, entries=moved), found[key])) > 0.9 * len(moved)


@pytest.mark.parametrize("key", PAPERS)
def test_an_entry_stands_in_the_section_that_it_names(key, found):
    one = paper(key)
    assert texts.elsewhere(one, found[key]) == []
    moved = replace(one, entries=tuple(replace(entry, line=1) for entry in one.entries))
    named = [entry for entry in one.entries if texts.PLACED.search(entry.place)]
    assert len(texts.elsewhere(moved, found[key])) > 0.8 * len(named)


def test_a_section_ends_before_the_next_and_the_last_with_the_text():
    parts = texts.sections(["1 Start", "a", "1.1 Part", "b", "2 End", "c"])
    assert parts == {"1": range(1, 5), "1.1": range(3, 5), "2": range(5, 7)}


@pytest.mark.parametrize("key", PAPERS)
def test_what_is_ignored_is_there(key, found):
    """A reason for a number that the line does not have, or for lines beyond the text, is stale."""
    for each in paper(key).ignored:
        assert bool(each.lines) != bool(each.line), each.why
        if each.lines:
            first, last = each.lines
            assert 1 <= first <= last <= len(found[key]), each.why
        text = found[key][each.line - 1] if each.line else ""
        head = texts.STATEMENT.match(text)
        there = {*texts.numbers(text), head[1] if head else ""}
        assert set(each.printed) - there == set(), f"line {each.line}"


@pytest.mark.parametrize(
    ("printed", "line", "there"),
    [
        ("207", "SSI 207 1.09e-07", True),
        ("20", "SSI 207 1.09e-07", False),
        ("07", "SSI 207 1.09e-07", False),
        ("1.09e-07", "SSI 207 1.09e-07", True),
        ("114", "consists of 114,956 samples", False),
        ("114,956", "consists of 114,956 samples", True),
        ("0.04", "tuned to be (0.02,0.04,0.04).", True),
        ("10", "including 101010, 100100100", True),
        ("100", "including 101010, 100100100", True),
        ("5.6", "over 5.68 of", False),
    ],
)
def test_a_number_is_found_as_a_whole(printed, line, there):
    assert texts.stands(printed, line) is there


def test_the_script_names_what_is_missing(tmp_path, monkeypatch, capsys):
    one = replace(paper("faps"), entries=(), stated={}, ignored=())
    monkeypatch.setattr(texts, "PAPERS", ("faps",))
    monkeypatch.setattr(texts, "paper", lambda key: one)
    monkeypatch.setenv("FEDPCA_PAPERS", str(tmp_path))
    text = f"{one.title}\nSSI 207\nTheorem 8\nabout one-third, or four times\n"
    (tmp_path / "a.txt").write_text(text)
    assert texts.main() == 1
    printed = capsys.readouterr().out
    for missing in ("line 2: 207", "line 3: Theorem 8", "line 4: one-third", "line 4: four times"):
        assert missing in printed


def test_a_folder_that_is_not_there_is_told(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("FEDPCA_PAPERS", str(tmp_path / "nowhere"))
    with pytest.raises(InvalidInput, match="is not a folder"):
        texts.folder()
    monkeypatch.setenv("FEDPCA_PAPERS", str(tmp_path))
    with pytest.raises(InvalidInput, match="begins with"):
        texts.main()
    monkeypatch.delenv("FEDPCA_PAPERS")
    monkeypatch.setattr(texts, "SHARED", tmp_path / "nowhere")
    assert texts.main() == 0
    assert "name their folder" in capsys.readouterr().out
