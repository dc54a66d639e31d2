"""One reading on every page: any table of a visitor's becomes data there, or a sentence."""

from __future__ import annotations

import io
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import task
from fedpca_core.questions.catalogue import OWN_TABLE
from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.questions.privacy.build import build_problem as private_problem
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.theory.settings import TheorySettings
from fedpca_core.questions.which.runs import problem_of
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.steps import outcome
from fedpca_core.study.build import build_problem
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import ConvergeSettings
from tests.mutants import SEED

#: What each page makes of a file.
PAGES: dict[str, tuple[Any, Any]] = {
    "converge": (ConvergeSettings(problem="table", clients=2, components=1), build_problem),
    "which": (FrontierSettings(problem="table", clients=2, components=1), problem_of),
    "privacy": (
        PrivacySettings(problem="table", clients=3, components=1, columns=("c", "e")),
        private_problem,
    ),
    "personalise": (
        PersonaliseSettings(problem="table", clients=2, components=1, samples=20),
        lambda settings, data: settings.build(data),
    ),
    "theory": (
        TheorySettings(problem="table", clients=3, target="c"),
        lambda settings, data: settings.build(data),
    ),
    "anomaly": (AnomalySettings(problem="own", clients=2, components=1), task),
}


def table() -> pd.DataFrame:
    drawn = np.random.default_rng(SEED)
    return pd.DataFrame(drawn.standard_normal((160, 5)), columns=list("abcde"))


def parquet(frame: pd.DataFrame) -> OwnData:
    file = io.BytesIO()
    frame.to_parquet(file)
    return OwnData("own.parquet", file.getvalue())


def csv(frame: pd.DataFrame) -> OwnData:
    return OwnData("own.csv", frame.to_csv(index=False).encode())


def far_future() -> OwnData:
    """Seconds that as nanoseconds would be no 64-bit number."""
    file, when = io.BytesIO(), pa.array(range(2**40, 2**40 + 160), type=pa.timestamp("s"))
    pq.write_table(pa.Table.from_pandas(table()).append_column("x", when), file)
    return OwnData("own.parquet", file.getvalue())


ODD = {
    "truth": lambda: parquet(table().assign(x=[True, False] * 80)),
    "truth with gaps": lambda: parquet(table().assign(x=[True, None, False, True] * 40)),
    "lists": lambda: parquet(table().assign(x=[[1, 2]] * 160)),
    "groups": lambda: parquet(table().assign(x=[{"u": 1}] * 160)),
    "categories": lambda: parquet(table().assign(x=pd.Categorical(["u", "v"] * 80))),
    "decimals": lambda: parquet(table().assign(x=[Decimal("1.5"), Decimal("-3")] * 80)),
    "durations": lambda: parquet(table().assign(x=pd.to_timedelta(range(160), unit="min"))),
    "dates": lambda: parquet(table().assign(x=pd.date_range("2020-01-01", periods=160))),
    "dates without end": lambda: csv(table().assign(x=["2020-01-01", "9999-12-31"] * 80)),
    "dates of the far future": far_future,
    "gaps": lambda: csv(table().mask(np.random.default_rng(SEED + 1).random((160, 5)) < 0.05)),
    "repeated names": lambda: csv(table().set_axis(list("aacde"), axis=1)),
    "empty names": lambda: csv(table().set_axis(["", "b", "c", " ", "e"], axis=1)),
    "infinite": lambda: csv(table().replace(table().iloc[3, 1], np.inf)),
}
#: Not to be analysed, and said so.
REFUSED = {
    "only lists": lambda: parquet(pd.DataFrame({"x": [[1]] * 9})),
    "only texts": lambda: csv(pd.DataFrame({"x": ["u", "v"] * 9, "c": ["s", "t"] * 9})),
    "wide": lambda: csv(pd.DataFrame(np.eye(3, 1500)).assign(c=1.0)),
    "only gaps": lambda: csv(table() * np.nan),
    "a hundred thousand columns": lambda: OwnData("own.csv", b"a," * 100_000 + b"\n" + b"1," * 9),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("page", PAGES)
def test_every_page_reads_an_odd_table(page, kind):
    settings, build = PAGES[page]
    try:
        build(settings, ODD[kind]())
    except InvalidInput as refusal:
        assert kind in ("empty names", "repeated names"), refusal


@pytest.mark.parametrize("kind", ODD)
def test_what_a_page_offers_of_an_odd_table(kind):
    facts = outcome(OWN_TABLE.run(ConvergeSettings(), ODD[kind]()))
    assert facts.rows == 160
    if kind.startswith("dates"):
        assert "x" in facts.further
        chosen = replace(PAGES["converge"][0], columns=("a", "x"))
        assert build_problem(chosen, ODD[kind]()).features == 2


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("page", PAGES)
def test_every_page_says_why_it_cannot_read_a_table(page, kind):
    settings, build = PAGES[page]
    if (page, kind) == ("privacy", "only gaps"):
        build(settings, REFUSED[kind]())  # under an ε an empty cell is a zero
        return
    with pytest.raises(InvalidInput) as refusal:
        build(settings, REFUSED[kind]())
    assert str(refusal.value).endswith(".") and len(str(refusal.value)) < 600


@pytest.mark.parametrize("way", ["drop", "columns", "fill"])
@pytest.mark.parametrize("page", PAGES)
def test_every_page_has_the_same_ways_with_gaps(page, way):
    settings, build = PAGES[page]
    gaps = table().assign(a=lambda frame: frame["a"].where(frame.index % 4 > 0))
    build(replace(settings, missing=way), csv(gaps))
