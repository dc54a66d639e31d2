"""A visitor's own table: what is used, what is left out and said, and what is refused."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.problems import clean_table, from_table, read_csv
from fedpca_core.problems.data_sets import files_of


def blocks(problem):
    """The raw blocks, which small problems keep."""
    assert problem.blocks is not None
    return problem.blocks


def table(rows=60):
    rng = np.random.default_rng(0)
    mixed = rng.standard_normal((rows, 3)) @ rng.standard_normal((3, 3))
    return pd.DataFrame(
        {
            "site": np.array(["north", "south", "west"])[np.arange(rows) % 3],
            "height": mixed[:, 0] * 100 + 1700,
            "weight": mixed[:, 1] + 70,
            "age": mixed[:, 2],
            "remark": "text",
            "version": 7,
        }
    )


def test_natural_clients_keep_their_rows_and_names():
    frame = table()
    problem = from_table(frame, client_column="site", scaling="none")
    assert problem.client_names == ("north", "south", "west")
    assert problem.feature_names == ("height", "weight", "age")
    for name, block in zip(problem.client_names, blocks(problem), strict=True):
        own = frame.loc[frame["site"] == name, list(problem.feature_names)].to_numpy()
        np.testing.assert_array_equal(np.sort(block.T, axis=0), np.sort(own, axis=0))
    assert "Left out, not numeric: remark." in problem.note
    assert "Left out, constant: version." in problem.note
    assert "Neither centred nor scaled." in problem.note


def test_scaling_is_pooled():
    def pooled(scaling):
        problem = from_table(table(), client_column="site", scaling=scaling)
        return np.concatenate(blocks(problem), axis=1)

    np.testing.assert_allclose(pooled("standardise").mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(pooled("standardise").std(axis=1), 1)
    np.testing.assert_allclose(pooled("centre").mean(axis=1), 0, atol=1e-10)
    assert pooled("centre")[0].std() == pytest.approx(pooled("none")[0].std())
    assert pooled("none")[0].mean() > 1000
    problem = from_table(table(), client_column="site")
    expected = np.corrcoef(table()[["height", "weight", "age"]].T)
    np.testing.assert_allclose(problem.covariance, expected)


def test_the_dial_deals_rows_between_natural_clients():
    frame = table(600)
    frame.loc[frame["site"] == "north", "height"] += 1500
    etas = [
        from_table(frame, client_column="site", heterogeneity=t).heterogeneity
        for t in np.linspace(0, 1, 21)
    ]
    # A drop of 1 % of the maximum is what two rows make here.
    assert (np.maximum.accumulate(etas) - etas).max() <= 0.01 * etas[-1]
    assert etas[-1] > 3 * etas[0]
    natural = from_table(frame, client_column="site")
    assert natural.heterogeneity == etas[-1]
    np.testing.assert_array_equal(natural.client_data.samples, [200, 200, 200])


def test_without_a_client_column_the_dial_sorts_by_the_leading_score():
    frame = table(600).drop(columns="site")
    problems = [
        from_table(frame, clients=6, heterogeneity=t, scaling="centre")
        for t in np.linspace(0, 1, 11)
    ]
    etas = [problem.heterogeneity for problem in problems]
    assert etas == sorted(etas)
    leading = problems[0].target(1)[:, 0]
    ends = [leading @ block for block in blocks(problems[-1])]
    ranges = sorted((own.min(), own.max()) for own in ends)
    assert all(low[1] <= high[0] for low, high in pairwise(ranges))
    np.testing.assert_allclose(problems[-1].covariance, problems[0].covariance)


def test_sizes_seeds_and_weights():
    frame = table().drop(columns="site")
    assert list(from_table(frame, clients=4, split="uneven").client_data.samples) == [6, 12, 18, 24]
    assert from_table(frame, seed=1).digest == from_table(frame, seed=1).digest
    assert from_table(frame, seed=1).digest != from_table(frame, seed=2).digest
    np.testing.assert_allclose(
        from_table(frame, clients=4, split="uneven", weights="equal").client_data.weights, 0.25
    )


def test_missing_values_are_dropped_and_counted_or_refused():
    frame = table()
    frame.loc[[3, 7], "weight"] = np.nan
    frame.loc[7, "age"] = np.inf
    frame.loc[9, "site"] = None
    frame["nothing"] = np.nan
    report = clean_table(frame, client_column="site")
    assert report.missing == {"weight": 2, "age": 1, "site": 1}
    assert (report.rows_read, len(report.records)) == (60, 57)
    assert (
        report.counts == {"north": 17, "south": 19, "west": 20} or sum(report.counts.values()) == 57
    )
    assert report.left_out["without a value"] == ["nothing"]
    assert "3 of 60 rows were dropped for missing values, most of them in “weight” (2)." in (
        report.sentences()
    )
    with pytest.raises(InvalidInput, match=r"missing in weight \(2\), age \(1\), site \(1\); drop"):
        clean_table(frame, client_column="site", missing="refuse")


def test_clients_without_a_complete_row_are_named():
    frame = table()
    frame.loc[frame["site"] == "west", "age"] = np.nan
    report = clean_table(frame, client_column="site")
    assert report.clients_lost == ("west",)
    assert "Clients without a complete row: west." in report.sentences()


def test_numeric_client_columns_and_flags():
    frame = table()
    frame["ward"] = np.arange(60) % 4 + 1.0
    frame["smoker"] = np.arange(60) % 5 == 0
    problem = from_table(frame, client_column="ward")
    assert problem.client_names == ("1", "2", "3", "4")
    assert "ward" not in problem.feature_names
    assert "smoker" in problem.feature_names


def many(columns):
    return pd.DataFrame(np.random.default_rng(0).standard_normal((3, columns)))


@pytest.mark.parametrize(
    ("frame", "arguments", "sentence"),
    [
        (table(), {"columns": ["height", "size"]}, "no column “size”; the columns are site, "),
        (table(), {"client_column": "hospital"}, "no column “hospital”"),
        (
            table(),
            {"columns": ["height", "remark"]},
            "Not numeric: remark. It holds 1 diff",
        ),
        (table(), {"columns": ["height", "version"]}, r"Only 1 numeric column varies .*version"),
        (table()[["site", "remark"]], {}, "Only 0 numeric columns vary .*left out: site, remark"),
        (table(), {"client_column": "remark"}, "“text” in the client column .* one client"),
        (table(60), {"clients": 1}, "number of clients is 1"),
        (table(), {"clients": 61}, r"more clients \(61\) than samples \(60\), "),
        (table(1), {}, "Only 1 of 1 rows can be used; give more rows"),
        (table(0), {}, "Only 0 of 0 rows can be used"),
        (table(), {"scaling": "log"}, "'log'"),
        (table(), {"missing": "guess"}, "'guess'"),
        (table(), {"heterogeneity": 7}, "not 7"),
        (many(1001), {}, "1,001 numeric columns, more than 1,000"),
        (many(3).set_axis(["a", "b", "a"], axis=1), {}, "Several columns are called a; rename"),
        (
            pd.DataFrame({"a": range(300), "b": np.arange(300.0) ** 2, "id": range(300)}),
            {"client_column": "id"},
            "“id” names 300 clients, more than 200",
        ),
        (
            pd.DataFrame({"a": [1.0, np.nan, 3], "b": [np.nan, 2, np.nan], "c": [1, 2, 4]}),
            {},
            "Only 0 of 3 rows can be used for want of “b” \\(2 values\\); leave that column out",
        ),
        (
            pd.DataFrame({"a": [1e200, 2, 3], "b": [1, 2, 4]}),
            {},
            r"“a” holds values up to 1e\+200, whose squares overflow",
        ),
        (
            pd.DataFrame({"a": [1e-310, 2e-310, 4e-310], "b": [1, 2, 4], "c": [3, 1, 2]}),
            {},
            "“a” varies by 3e-310 only, whose square vanishes; rescale the column",
        ),
    ],
)
def test_what_does_not_fit_is_refused(frame, arguments, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        from_table(frame, **arguments)


# ---------------------------------------------------------------------- real tables
@pytest.mark.data("beijing")
def test_air_quality_by_station(data_folder):
    problem = from_table(
        read_csv((data_folder / "beijing_air_daily.csv").read_bytes()), client_column="station"
    )
    assert (problem.clients, problem.features) == (12, 11)
    assert problem.client_data.samples.sum() == 16_966
    assert "Left out, not numeric: date." in problem.note
    assert np.trace(problem.covariance) == pytest.approx(11)


def test_heart_disease_by_hospital():
    frame = read_csv(files_of("heart")[0].read_bytes())
    columns = [c for c in frame.columns if c not in ("hospital", "ca", "thal", "slope", "num")]
    problem = from_table(frame, columns, "hospital")
    assert problem.client_names == ("Cleveland", "Hungarian", "Switzerland", "VA_Long_Beach")
    assert "180 of 920 rows were dropped" in problem.note
    everything = clean_table(frame, client_column="hospital")
    assert len(everything.records) == 299
    assert "most of them in “ca” (611)" in everything.sentences()
    assert everything.clients_lost == ("Switzerland",)
