"""Whatever a column holds is numbers, dates or texts afterwards, or left out in a sentence."""

import datetime
import io
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from fedpca_core.errors import InvalidInput
from fedpca_core.problems import from_table
from fedpca_core.problems.table import clean_table
from fedpca_core.problems.table_columns import dates, features, handled, plain
from fedpca_core.problems.traffic_table import read_traffic
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.own_table import TableFacts

ROWS = 40
DAY = datetime.date(2020, 1, 1)


def file(name="x", **columns):
    """A Parquet file of three columns of numbers and some of other kinds."""
    drawn = np.random.default_rng(0)
    numbers = {letter: pa.array(drawn.standard_normal(ROWS)) for letter in "abc"}
    content = io.BytesIO()
    parquet.write_table(pa.table({**numbers, **columns}), content)
    return OwnData("own.parquet", content.getvalue())


def column(*values):
    return pa.array([values[row % len(values)] for row in range(ROWS)])


#: A column, and what becomes of its first cells: numbers, None where it is left out, or texts.
KINDS = {
    "truth": (column(True, False), [1, 0]),
    "truth with gaps": (column(True, None, False), [1, np.nan, 0]),
    "decimal": (column(Decimal("1.25"), Decimal("2.50")), [1.25, 2.5]),
    "decimal with gaps": (column(Decimal("1.25"), None), [1.25, np.nan]),
    "duration": (column(datetime.timedelta(minutes=1), datetime.timedelta(seconds=2)), [60, 2]),
    "numbered categories": (column(3, 4).dictionary_encode(), [3, 4]),
    "whole with gaps": (column(3, None), [3, np.nan]),
    "half precision": (pa.array(np.arange(ROWS).astype("f2")), [0, 1]),
    "nothing": (pa.nulls(ROWS), [np.nan, np.nan]),
    "categories": (column("u", "v").dictionary_encode(), ["u", "v"]),
    "time of day": (column(datetime.time(1), datetime.time(2)), ["01:00:00", "02:00:00"]),
    "bytes": (column(b"a", b"\xff"), ["b'a'", "b'\\xff'"]),
    "list": (column([1, 2], [3]), None),
    "list of texts": (column(["a"], None), None),
    "group": (column({"u": 1}, {"u": 2}), None),
    "map": (pa.array([[("a", 1)]] * ROWS, type=pa.map_(pa.string(), pa.int64())), None),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_column_is_a_number_a_text_or_left_out(kind):
    given, first = KINDS[kind]
    own = file(x=given)
    table = own.table
    if first is None:
        assert "x" not in table and table.attrs["reading"] == ("Left out, lists and no numbers: x.")
    elif isinstance(first[0], str):
        assert list(table["x"][: len(first)]) == first
    else:
        np.testing.assert_array_equal(table["x"][: len(first)].astype(float), first)
    facts = TableFacts.of(table)
    assert set("abc") <= set(facts.numeric) and facts.rows == ROWS
    assert np.isfinite(from_table(table, clients=2).client_data.dense()).all()
    traffic = read_traffic(own.content, own.name, columns=("a", "b", "c"))
    assert traffic.normal.shape[1] == 3


def test_a_table_of_lists_alone_is_refused():
    with pytest.raises(InvalidInput, match="nothing but lists"):
        plain(pd.DataFrame({"x": [[1], [2]], "y": [{}, {}]}))


def test_a_table_of_numbers_and_texts_is_left_as_it_is():
    table = pd.DataFrame({"a": [1.0, 2.0], "site": ["x", None]})
    assert plain(table) is table


def test_dates_count_in_days_where_they_are_chosen():
    days = [DAY + datetime.timedelta(days=2 * row) for row in range(ROWS)]
    for given in (pa.array(days), pa.array([f"{day}T12:00:00" for day in days])):
        table = file(when=given).table
        assert "when" not in features(table)[0]
        numbers, _ = features(table, ["a", "when"])
        np.testing.assert_allclose(np.diff(numbers["when"]), 2)
        assert "when" in TableFacts.of(table).further
    assert dates(pd.Series(["2020-01-01", "soon"])) is None
    assert dates(pd.Series(["2020-01-01", "2020-13-45"])) is not None  # the second is a gap


def test_texts_become_a_feature_each_where_they_are_chosen():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0, 5.0], "site": ["x", "y", None, "x"]})
    numbers, left_out = features(table, ["a", "site"])
    assert not left_out and list(numbers) == ["a", "site = x", "site = y"]
    np.testing.assert_array_equal(numbers["site = x"], [1, 0, np.nan, 1])
    assert clean_table(table, ["a", "site"]).records.shape == (3, 3)
    many = pd.DataFrame({"a": range(40), "id": [f"t{row}" for row in range(40)]})
    with pytest.raises(InvalidInput, match=r"Not numeric: id\. It holds 40 different texts"):
        features(many, ["a", "id"])


def with_gaps():
    drawn = np.random.default_rng(3)
    table = pd.DataFrame(drawn.standard_normal((200, 6)), columns=list("abcdef"))
    table.loc[::4, "a"] = np.nan
    table.loc[1::4, "b"] = np.inf
    return table


def test_missing_cells_cost_what_is_said():
    table = with_gaps()
    facts = TableFacts.of(table)
    assert (facts.missing, facts.complete_rows, facts.complete_columns) == (100, 100, 4)
    assert "Dropping rows keeps 100 of 200; dropping columns keeps 4 of 6" in facts.gaps()
    sizes = {way: clean_table(table, missing=way) for way in ("drop", "columns", "fill")}
    assert [one.records.shape for one in sizes.values()] == [(100, 6), (200, 4), (200, 6)]
    told = [one.sentences() for one in sizes.values()]
    assert "100 of 200 rows were dropped" in told[0]
    assert "2 columns with missing values left out: a, b." in told[1]
    assert "100 missing values (8.3% of all) were filled" in told[2]
    assert facts.best_for_gaps() == "fill"
    assert TableFacts.of(table.assign(**{"a": 1.0 * table.index})).best_for_gaps() == "fill"
    wide = pd.concat([table, pd.DataFrame(np.eye(200, 30)).add_prefix("x")], axis=1)
    assert TableFacts.of(wide).best_for_gaps() == "columns"
    whole = wide.replace(np.inf, np.nan).dropna()
    assert TableFacts.of(whole).best_for_gaps() == "drop"
    filled = sizes["fill"].records[:, 0]
    np.testing.assert_array_equal(filled[::4], np.nanmedian(table["a"]))
    with pytest.raises(InvalidInput, match="Values are missing in a"):
        clean_table(table, missing="refuse")
    with pytest.raises(InvalidInput, match="What becomes of missing cells is"):
        handled(table, "guess")


def test_what_is_filled_changes_nothing_that_was_there():
    table = with_gaps()
    filled, _ = handled(table, "fill")
    there = np.isfinite(table.to_numpy())
    np.testing.assert_array_equal(filled.to_numpy()[there], table.to_numpy()[there])
    for way in ("drop", "columns", "fill", "refuse"):
        whole, said = handled(table[list("cdef")], way)
        assert said == "" and whole.equals(table[list("cdef")])


def test_anomalies_read_gaps_and_truth_values_as_every_page_does():
    table = with_gaps().assign(flag=[True, False] * 100)
    content = table.to_csv(index=False).encode()
    widths = {
        way: read_traffic(content, "own.csv", missing=way).normal.shape
        for way in ("drop", "columns", "fill")
    }
    assert widths == {"drop": (60, 7), "columns": (120, 5), "fill": (120, 7)}


def test_under_an_epsilon_no_way_with_gaps_looks_at_a_record():
    table, chosen = with_gaps(), list("abc")
    found = {
        way: from_table(table, chosen, clients=2, scaling="none", missing=way, public_schema=True)
        for way in ("drop", "columns", "fill")
    }
    first, *others = (one.client_data.dense() for one in found.values())
    for other in others:
        np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize(("suffix", "said"), [("csv", True), ("parquet", False)])
def test_how_a_file_is_written_is_public_only_of_texts(suffix, said):
    frame = pd.DataFrame(
        {"a": np.arange(9.0), "b": np.arange(9) ** 2, "c": [True, False, True] * 3}
    )
    packed = io.BytesIO()
    frame.to_csv(packed, index=False) if suffix == "csv" else frame.to_parquet(packed)
    table = OwnData(f"own.{suffix}", packed.getvalue()).table
    problem = from_table(table, list("abc"), clients=2, scaling="none", public_schema=True)
    assert any("how the file is written" in words for words in problem.public) == said


@pytest.mark.parametrize(
    ("name", "record"),
    [
        *((name, True) for name in ("patient_id", "rowId", "MRN", "Unnamed: 0", "id")),
        *((name, False) for name in ("valid", "NO", "paid", "covid", "glucose")),
    ],
)
def test_what_names_records_is_no_feature_by_suggestion(name, record):
    sites = ["x", "y"] * 500
    table = pd.DataFrame({name: range(1000), "a": sites, "b": 1.0, "site": sites})
    table["a"], table["b"] = np.random.default_rng(0).standard_normal((2, 1000))
    facts, plainly = TableFacts.of(table), {"client_column": "", "columns": (), "missing": "drop"}
    changes, said = facts.better(plainly)
    assert changes.pop("client_column") == "site"
    assert changes == ({"columns": ("a", "b")} if record else {})
    assert ("no feature" in " ".join(said)) == record
    assert facts.better(plainly | facts.better(plainly)[0]) == ({}, [])
    few = table.assign(**{name: [1, 2] * 500})
    assert TableFacts.of(few).identifiers == ()


@pytest.mark.parametrize(
    ("name", "suggested"),
    [("site", True), ("Hospital_ID", True), ("centre", True), ("opposite", False), ("age", False)],
)
def test_a_column_that_names_clients_is_suggested(name, suggested):
    table = pd.DataFrame({"a": range(40), name: ["x", "y"] * 20})
    assert TableFacts.of(table).suggested == (name if suggested else "")
    assert TableFacts.of(table.assign(wards=["p", "q"] * 20)).suggested == (
        name if suggested else "wards"
    )


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (b"a,a,b\n1,2,3\n2,3,5\n3,5,1\n", ("a", "a.1", "b")),
        (b"a,,b,\n1,2,3,4\n2,3,4,5\n3,5,1,2\n", ("a", "Unnamed: 1", "b", "Unnamed: 3")),
    ],
)
def test_repeated_and_empty_names_are_told_apart(content, names):
    assert TableFacts.of(OwnData("own.csv", content).table).numeric == names


@pytest.mark.parametrize("order", ["<", ">"])
def test_an_array_of_another_machine_reads_the_same(order):
    content = io.BytesIO()
    np.save(content, np.arange(12, dtype=f"{order}f8").reshape(6, 2) ** 2)
    table = OwnData("mine.npy", content.getvalue()).table
    assert TableFacts.of(table).numeric == ("column 1", "column 2")
    assert table["column 2"].tolist() == [1, 9, 25, 49, 81, 121]
