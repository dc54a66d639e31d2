"""The scripts that the pages offer run as they stand and give the numbers of the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pandas as pd
import pytest

from dashboard.shell import bundle, share
from fedpca_core.questions.attack.differencing import OneMoreRecord
from fedpca_core.questions.attack.reconstruction import ClientReconstruction
from fedpca_core.questions.converge.study import Convergence
from fedpca_core.questions.which import frontier
from fedpca_core.questions.which.frontier import Frontier
from fedpca_core.questions.which.settings import VALUES, FrontierSettings
from fedpca_core.questions.which.use import point
from fedpca_core.settings import Settings
from fedpca_core.steps import outcome
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.study.study import Study

QUICK = ConvergeSettings(
    features=12, components=2, samples=50, clients=4, rounds=30, starts=2, methods=("ssi", "faps")
)
SMALLER = FrontierSettings(features=6, components=2, samples=500, clients=4, rounds=20)
SMALL = AttackSettings(features=10, components=2, samples=40, rounds=20)


def run(text: str, folder, monkeypatch) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(compile(text, "script", "exec"), names)
    return names


CASES: list[tuple[Study[Any, Any], Settings]] = [
    (Convergence(), QUICK),
    (ClientReconstruction(), SMALL),
    (ClientReconstruction(), replace(SMALL, attack="ridge", upload_noise=0.01, starts=2)),
    (ClientReconstruction(), replace(SMALL, secure_aggregation=True, attacked=("ssi",))),
    (OneMoreRecord(), replace(SMALL, differencing=True, record=4, participation=0.5)),
]


@pytest.mark.parametrize(("study", "settings"), CASES)
def test_a_script_gives_the_numbers_of_its_page(
    study, settings, tmp_path, monkeypatch, capsys
) -> None:
    names = run(bundle.script(settings, [study]), tmp_path, monkeypatch)
    assert names["settings"] == settings
    assert study.title in capsys.readouterr().out
    page = study.tables(outcome(study.run(settings)), settings)
    for name, table in study.tables(names["result"], settings).items():
        timed = [column for column in table if column == "seconds"]
        pd.testing.assert_frame_equal(table.drop(columns=timed), page[name].drop(columns=timed))


@pytest.mark.parametrize(
    ("page", "count"),
    [
        (replace(SMALLER, seeds=2), 16),
        (replace(SMALLER, seeds=2, secure_aggregation=True, candidates=("ssi", "centralized")), 4),
        (FrontierSettings(seeds=2, candidates=("ssi", "fedpower")), 4),
    ],
    ids=["every method", "secure sums", "at the page's size"],
)
def test_every_point_reproduces_from_its_link_and_its_script_to_the_last_digit(
    page, count, tmp_path, monkeypatch
) -> None:
    """Every method with a budget and without, each with its seeds: medians, spans and runs."""
    study = Frontier()
    monkeypatch.setattr(frontier, "VALUES", {**VALUES, "epsilon": (np.inf, 1.0)})
    monkeypatch.setattr(frontier, "_pieces", frontier._pieces.__wrapped__)  # remembers nothing
    whole = outcome(study.run(page))
    points = whole.points()
    assert len(points) == count and len(whole.table) == 2 * count
    for _, row in points.iterrows():
        method, value = row["method"], row["value"]
        alone = point(page, method, value)
        link = share.link(alone.query(), "https://lab.example/which")
        read = FrontierSettings.from_query(parse_qs(urlsplit(link).query, keep_blank_values=True))
        names = run(bundle.script(alone, [study]), tmp_path, monkeypatch)
        assert not read.notes and read.configuration == names["settings"]  # what is run, once
        runs = whole.table[(whole.table["method"] == method) & (whole.table["value"] == value)]
        same(names["result"].table, runs)
        same(names["result"].points(), row.to_frame().T)


def same(again: pd.DataFrame, before: pd.DataFrame) -> None:
    """Equal bit for bit, but for the clock and the name of what varied in the whole picture."""
    clock = [name for name in before if str(name).startswith(("seconds", "parameter", "value"))]
    pd.testing.assert_frame_equal(
        again.drop(columns=clock),
        before.drop(columns=clock).reset_index(drop=True).astype(again.dtypes.drop(clock)),
        check_exact=True,
    )


def test_a_table_of_one_s_own_is_read_from_its_file(tmp_path, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((120, 6)), columns=list("abcdef"))
    table.to_csv(tmp_path / "mine.csv", index=False)
    data = OwnData.of(tmp_path / "mine.csv")
    chosen = replace(
        QUICK,
        problem="table",
        columns=("a", "b", "d", "e"),
        scaling="centre",
        methods=("ssi",),
        starts=1,
    )
    names = run(bundle.script(chosen, [Convergence()], data), tmp_path, monkeypatch)
    assert names["result"].facts.clients == 4 and names["result"].facts.features == 4


def test_only_what_differs_is_written() -> None:
    text = bundle.script(ConvergeSettings(), [Convergence()])
    assert "settings = ConvergeSettings()" in text
    text = bundle.script(replace(QUICK, heterogeneity=0.5), [Convergence()])
    assert "heterogeneity=0.5" in text and "seed" not in text
