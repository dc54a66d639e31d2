"""The papers as data: what a file must have, and that each entry points to something that is."""

import contextlib
import io
from functools import cache

import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.papers.entries import PAPERS, paper, read
from fedpca_core.papers.judge import read_as
from fedpca_core.papers.measured import measured
from fedpca_core.papers.registry import keys_of, results

ENTRIES = [entry for key in PAPERS for entry in paper(key).entries]
SHOWN = [entry for entry in ENTRIES if entry.demonstration]

SMALL = """
key = "faps"
name = "FAPS"
title = "A title"
year = 2022
[stated]
sizes = [{ line = 1, printed = "20", says = "clients" }]
[readings]
stops = [{ name = "later", says = "Stops later.", changes = { stop = 2.0 } }]
[[groups]]
place = "Table 1"
kind = "number"
stated = ["sizes"]
readings = "stops"
says = "Rounds of {method}."
entries = [
  { id = "a", line = 2, printed = "207", method = "SSI" },
  { id = "b", line = 2, printed = "42", method = "FAPS", contradicts = ["a"] },
]
[[ignored]]
lines = [3, 4]
why = "References."
"""


def changed(old, new):
    assert SMALL.count(old) == 1
    return SMALL.replace(old, new)


def test_what_a_group_says_holds_for_its_entries():
    first, second = read(SMALL, "small.toml").entries
    assert (first.paper, first.place, first.says) == ("faps", "Table 1", "Rounds of SSI.")
    assert second.says == "Rounds of FAPS."
    assert first.stated == second.stated and first.stated[0].printed == "20"
    assert first.readings == second.readings and first.readings[0].changes == {"stop": 2.0}


def test_how_a_series_was_run_joins_what_is_open_in_every_entry_that_reads_it():
    text = changed('method = "FAPS", contra', 'method = "FAPS", series = "S", open = "O.", contra')
    first, second = read(text.replace("[[groups]]", '[as_run]\nS = "R."\n[[groups]]'), "a").entries
    assert (first.open, second.open) == ("", "O. R.")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (changed('id = "a", line', 'id = "a", colour = "red", line'), "unknown field “colour”"),
        (changed('year = 2022', 'year = "2022"'), "Field “year” of “small.toml” is '2022'"),
        (changed('year = 2022', 'year = true'), "it must be a whole number"),
        (changed('title = "A title"\n', ""), "lacks the field “title”"),
        (changed(' says = "clients"', " why = 1"), "unknown field “why”"),
        (changed('name = "later", says', 'name = "later", who = "", says'), "unknown field “who”"),
        (changed('stated = ["sizes"]', 'stated = ["size"]'), "names the list “size”"),
        (changed('readings = "stops"', 'readings = "stop"'), "names the list “stop”"),
        (changed('id = "b"', 'id = "a"'), "two entries called “a”"),
        (changed('contradicts = ["a"]', 'contradicts = ["c"]'), "which is no entry"),
        (changed('kind = "number"', 'kind = "figure"'), "of no kind “figure”"),
        (changed('kind = "number"', 'kind = "claim"'), "does not say what decides it"),
        (changed('"207"', f'"{"7" * 41}"'), "quotes 41 characters"),
        (changed('method = "SSI"', 'method = "SSI", shows = "1"'), "without what it shows"),
        (changed('why = "References."', 'because = ""'), "unknown field “because”"),
        (changed('method = "SSI"', 'proves = "false"'), "beside a demonstration"),
        (changed('method = "SSI"', 'proves = 1'), "it must be a text"),
        (changed('method = "SSI"', 'any_size = 1'), "it must be true or false"),
        (changed('method = "SSI"', 'within = "a lot"'), "it must be a number"),
        (changed('method = "SSI"', 'kind = "claim", decides = "It.", within = 0.1'), "a tolerance"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_told_in_a_sentence(text, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        read(text, "small.toml")


def test_a_paper_that_is_not_there():
    with pytest.raises(InvalidInput, match="There is no paper “other”"):
        paper("other")


def test_all_five_papers_have_entries():
    assert {entry.paper for entry in ENTRIES} == set(PAPERS)
    assert all(paper(key).key == key for key in PAPERS)


def test_what_is_read_is_there():
    """Experiments that are named exist, and every stored reading finds series and measure."""
    for entry in ENTRIES:
        if not (entry.holds or entry.within or entry.points) or entry.out_of_scope:
            continue
        read = [("as stated", entry)] * (not entry.open)
        read += [(one.name, read_as(entry, one)) for one in entry.readings if one.reads]
        found = 0
        for name, each in read:
            cells = results(each.experiment)
            found += any(len(measured(each, one)) for one in cells.values())
            assert keys_of(each) or not each.experiment, f"{entry.name}: {name}"
        series = {name for one in results(entry.experiment).values()
                  for name, _ in one.numbers}  # fmt: skip
        asked = {entry.series, *entry.each, *entry.chain} - {""}
        assert found or not asked <= series or entry.over, entry.name


def test_a_reading_that_is_not_as_stated_names_what_it_sets_aside():
    named = {r.name: r for e in ENTRIES for r in e.readings if "stated" in r.name}
    assert len(named) > 5 and [name for name, one in named.items() if not one.instead] == []


def test_all_methods_of_a_table_have_the_same_readings():
    lists = {
        (entry.paper, entry.place): entry.readings
        for entry in ENTRIES
        if entry.place.startswith("Table")
    }
    assert len(lists) > 4
    for entry in ENTRIES:
        place = entry.paper, entry.place
        assert entry.readings == lists.get(place, entry.readings), entry.id
        assert entry.readings or not entry.place.startswith("Table")


def test_a_reading_that_takes_a_number_from_the_paper_does_not_judge_it():
    for entry in ENTRIES:
        for reading in entry.readings:
            taken = "recall" in entry.measure and "printed recall" in str(reading.reads)
            assert not taken or "recall" in reading.given, entry.name


def test_every_number_that_is_run_has_a_reading_and_a_place_in_the_text():
    """A reading's hint stands at a line; a line without a hint would say nothing."""
    for entry in ENTRIES:
        assert entry.line > 0
        if entry.kind == "number" and not entry.out_of_scope:
            assert entry.readings, entry.id
        for reading in entry.readings:
            assert bool(reading.hint) or not reading.line, f"{entry.id}: {reading.name}"


@cache
def printed_by(demonstration: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(demonstration, {})
    return printed.getvalue().strip()


@pytest.mark.parametrize("entry", SHOWN, ids=[f"{entry.paper}/{entry.id}" for entry in SHOWN])
def test_a_demonstration_prints_what_it_is_said_to_show(entry):
    assert printed_by(entry.demonstration) == entry.shows


def test_what_contradicts_the_paper_is_demonstrated():
    """By the entry itself or by the one that it excludes."""
    shown = {(entry.paper, entry.id) for entry in SHOWN}
    conflicts = [entry for entry in ENTRIES if entry.contradicts]
    assert conflicts
    for entry in conflicts:
        pair = {(entry.paper, name) for name in (entry.id, *entry.contradicts)}
        assert pair & shown, f"{entry.paper}/{entry.id}"
