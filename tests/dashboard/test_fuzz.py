"""Hostile links, configuration files and uploads: a sentence each, never a stack trace or a hang.

Every run tries the same ones, unless FEDPCA_SEED asks for others.
"""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from urllib.parse import parse_qs, urlencode

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from dashboard.shell import limits, workers
from dashboard.shell.controls import plain
from fedpca_core.algorithms.ssi import SSI
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.problem import from_blocks
from fedpca_core.protocol.simulate import simulate
from fedpca_core.protocol.trace_file import save_trace
from fedpca_core.questions.catalogue import OWN_TABLE, PAGES, PRESETS, read_settings, studies_of
from fedpca_core.settings import Settings
from fedpca_core.steps import outcome
from fedpca_core.study.own_data import OwnData
from tests.mutants import SEED, mutants
from tests.views.conftest import patient

__all__ = ["patient"]

ROOT = Path(__file__).resolve().parents[2]

NASTY = (
    *("", " ", "∞", "-∞", "inf", "-inf", "nan", "1e400", "-1e400", "1e-400", "0x10", "1_000"),
    *("9" * 400, "-1", "0", "٣", "true", "TRUE", "null", "None", "[]", "{}", "\x00", "\ud800"),
    *("<script>alert(1)</script>", "![x](https://example.org/x.png)", "$\\frac{1}{0}$", "%00"),
    *("../../etc/passwd", "'; --", "a" * 5000, "50", "50.0", "5e1", "0.15", "digits", "faps"),
)
texts = st.one_of(st.sampled_from(NASTY), st.text(max_size=30), st.floats().map(str))
page_classes = st.sampled_from(PAGES)


def keys(page: type[Settings]) -> list[str]:
    """What a link to a page may name, and what it may not."""
    described = [parameter.key for parameter in page.parameters().values()]
    return [*described, "embed", "settings", "no-such-setting", ""]


@st.composite
def links(draw: st.DrawFn) -> tuple[type[Settings], dict[str, list[str]]]:
    page = draw(page_classes)
    names = st.sampled_from(keys(page))
    values = st.lists(texts, min_size=1, max_size=3)
    extremes = {
        parameter.key: [parameter.text(end) for end in parameter._ends()]
        for parameter in page.parameters().values()
        if not parameter.free
    }
    chosen = draw(st.dictionaries(names, values, max_size=8))
    for key in draw(st.lists(st.sampled_from(sorted(extremes)), max_size=12)):
        if extremes[key]:
            chosen[key] = [draw(st.sampled_from(extremes[key]))]
    return page, chosen


@settings(max_examples=600)
@given(links())
def test_a_link_becomes_settings_and_sentences(link):
    page, parameters = link
    reading = page.from_query(parameters)
    assert isinstance(reading.configuration, page)
    assert all(len(note) < 1200 and "Traceback" not in note for note in reading.notes)
    query = urlencode(reading.configuration.query(), doseq=True)
    again = page.from_query(parse_qs(query, keep_blank_values=True))
    assert not again.notes and again.configuration == reading.configuration
    for study in studies_of(reading.configuration):
        hash(study.identity(reading.configuration))
        try:
            cost = limits.check(study, reading.configuration, None)
        except InvalidInput as refusal:
            assert "python -m fedpca_core run" in str(refusal) and len(str(refusal)) < 600
        else:
            assert cost.megabytes <= limits.LIMITS.megabytes


@settings(max_examples=200)
@given(st.one_of(texts, st.text(alphabet="![](){}<>*_`$|:#~-+\\ab/", max_size=40)))
def test_what_is_shown_back_is_letters_only(text):
    shown = plain(text)
    for opening in ("](", "![", "<", "`", "$", "*", "_"):
        position = shown.find(opening)
        while position >= 0:
            assert position > 0 and shown[position - 1] == "\\", (text, shown)
            position = shown.find(opening, position + 1)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)


@st.composite
def files(draw: st.DrawFn) -> str:
    content = json.loads(draw(st.sampled_from(list(PRESETS.values()))).settings.to_json())
    for name in draw(st.lists(st.sampled_from([*content, "new"]), max_size=4)):
        content[name] = draw(json_values)
    text = json.dumps(content)
    cut = draw(st.integers(0, 3 * len(text)))
    return text[:cut] if cut < len(text) else text


@settings(max_examples=150)
@given(st.one_of(files(), json_values.map(json.dumps), texts))
def test_a_configuration_file_is_read_or_refused_in_a_sentence(text):
    try:
        found = read_settings(text)
    except InvalidInput as refusal:
        assert 10 < len(str(refusal)) < 2000
    else:
        assert read_settings(found.to_json()) == found


def good_files() -> list[bytes]:
    """One small table in every kind of file."""
    drawn = np.random.default_rng(0)
    table = pd.DataFrame(drawn.integers(0, 9, (30, 4)), columns=["a", "b", "c", "site"])
    parquet, npy, npz = io.BytesIO(), io.BytesIO(), io.BytesIO()
    table.to_parquet(parquet)
    np.save(npy, table.to_numpy(float))
    np.savez_compressed(npz, records=table.to_numpy(float))
    return [
        table.to_csv(index=False).encode(),
        table.to_csv(index=False, sep=";", decimal=",").encode("utf-16"),
        table.to_csv(index=False, sep="\t").encode("utf-8-sig"),
        *(buffer.getvalue() for buffer in (parquet, npy, npz)),
    ]


GOOD = good_files()


def read(content: bytes) -> None:
    """What a page does with a file: a look, the limits, the worker's reading."""
    own = OwnData("own.file", content)
    limits.check_file(own)
    facts = outcome(OWN_TABLE.run(Settings(), own))
    assert facts is not None and facts.rows * facts.columns <= limits.LIMITS.cells


@pytest.mark.parametrize(
    "content", GOOD, ids=["csv", "semicolons", "tabs", "parquet", "npy", "npz"]
)
def test_the_same_table_in_every_kind_of_file(content):
    own = OwnData("own.file", content)
    facts = outcome(OWN_TABLE.run(Settings(), own))
    assert (facts.rows, facts.columns, len(facts.numeric)) == (30, 4, 4)
    rows, columns = own.shape
    assert columns == 4 and 30 <= rows <= 32


@settings(max_examples=200)
@given(st.integers(0, len(GOOD) - 1), st.integers(0, 2**32))
def test_a_spoiled_file_is_read_or_refused_in_a_sentence(kind, seed):
    content, drawn = bytearray(GOOD[kind]), random.Random(seed)
    for _ in range(drawn.randint(1, 6)):
        at = drawn.randrange(len(content))
        what = drawn.randrange(4)
        if what == 0:
            content[at] = drawn.randrange(256)
        elif what == 1:
            del content[at : at + drawn.randint(1, 40)]
        elif what == 2:
            content[at:at] = drawn.choice([b"\n", b",", b'"', b"\x00", b"9" * 400, b"1e400", b";"])
        else:
            content[at:at] = content[: drawn.randint(1, 60)]
        if not content:
            break
    try:
        read(bytes(content))
    except InvalidInput as refusal:
        assert 10 < len(str(refusal)) < 1000


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([[{"a": 1}]], dtype=object))
    return buffer.getvalue()


def declared(rows: int, columns: int) -> bytes:
    """A matrix whose header promises far more than follows."""
    buffer = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (rows, columns)}
    np.lib.format.write_array_header_1_0(buffer, header)
    return buffer.getvalue() + bytes(80)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b",".join(b"c%d" % n for n in range(100_000)) + b"\n" + b"1," * 100_000, "columns"),
        (b",".join([b"a"] * 100_000) + b"\n1\n", "columns"),
        (b"1,2\n" * 13_000_000, "cells"),
        (declared(2**40, 2), "cells"),
        (declared(100, 3), "ends too early"),
        (declared(-5, 3), "own.file"),
        (pickled(), "numeric matrix"),
        (b"PAR1" + bytes(50), "looks like a Parquet file"),
        (b"\x93NUMPY\x01\x00", "looks like an array of NumPy"),
        (b"PK\x03\x04" + bytes(30), "zip archive"),
        (b"", "empty"),
        (b"\x00" * 1000, "own.file"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_files_are_refused_at_once(content, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        read(content)
    assert len(str(refused.value)) < 1000


@pytest.mark.parametrize("texts", [["inf"], ["-1e400"], ["nan"], ["word", "inf"]])
def test_a_number_without_end_is_a_sentence(texts, monkeypatch):
    monkeypatch.setattr(workers, "run", lambda *_: iter(()))
    app = AppTest.from_file(str(ROOT / "dashboard" / "main.py"), default_timeout=60)
    app.run().switch_page(str(ROOT / "pages" / "theory.py")).run()
    for key in ("seed", "clients", "rounds"):
        app.query_params[key] = texts
    app.run()
    assert not app.exception
    assert any("asks for something that this page cannot do" in one.value for one in app.markdown)


@pytest.mark.parametrize(
    "page", ["home", "converge", "attack", "privacy", "personalise", "theory", "anomaly"]
)
def test_pages_survive_hostile_links(page, monkeypatch):
    """Whole pages with links as a browser would bring them; nothing is computed."""

    def refused(*_: object) -> None:
        raise InvalidInput("Not in this test.")

    monkeypatch.setattr(workers, "run", refused)
    kind = {"home": "scene"}.get(page, page)
    chosen = next(one for one in PAGES if one.kind == kind)
    drawn = random.Random(page)
    for _ in range(4):
        app = AppTest.from_file(str(ROOT / "dashboard" / "main.py"), default_timeout=60)
        app.run()
        for key in drawn.sample(keys(chosen)[:-1], 6):
            app.query_params[key] = [drawn.choice(NASTY).replace("\ud800", "?")]
        app.switch_page(str(ROOT / "pages" / f"{page}.py")).run()
        assert not app.exception, [one.value for one in app.exception]
        assert app.title or app.header


def test_the_page_of_a_run_says_why_it_reads_no_changed_file(patient):
    generator, file = np.random.default_rng(0), io.BytesIO()
    blocks = [generator.standard_normal((5, count)) for count in (4, 3)]
    save_trace(simulate(from_blocks(blocks), SSI(2), rounds=2), file)
    app = AppTest.from_file(str(ROOT / "pages" / "trace.py"), default_timeout=60)
    refused = []
    for content in mutants(file.getvalue(), seed=SEED, count=5):
        app.session_state["_opened"] = OwnData("changed.npz", content)
        app.run()
        assert not app.exception, [one.value for one in app.exception]
        refused += [one.value for one in app.warning]
    assert len(refused) >= 3
    assert all(one.endswith(".") and "failed" not in one for one in refused)
