"""What the answer hands over runs as it is printed."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import nbformat
import numpy as np
import pandas as pd
import pytest

from fedpca_core.algorithms.registry import COMPARED, METHODS
from fedpca_core.problems.table import clean_table
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.which.recommendation import Recommendation, share
from fedpca_core.questions.which.settings import CANDIDATES, FrontierSettings
from fedpca_core.questions.which.use import Use
from fedpca_core.steps import outcome
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import ConvergeSettings

ROOT = Path(__file__).resolve().parents[2]
ASKED = FrontierSettings(features=6, clients=3, components=2, needed_epsilon=2.0, rounds=10)


def use(method: str, noise: bool, sums: bool = False, **changed: object) -> Use:
    row = pd.Series({"method": method, "noise": noise, "sums": sums, "rounds": 4.0})
    settings = FrontierSettings(**{**ASKED.changed(), **changed})
    return Use.of(row, settings)


@pytest.fixture
def table(tmp_path, monkeypatch):
    draw = np.random.default_rng(0)
    rows = pd.DataFrame(draw.standard_normal((90, 6)).round(2), columns=list("abcdef"))
    rows.assign(site=draw.choice(["x", "y", "z"], 90)).to_csv(tmp_path / "records.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("method", [key for key in CANDIDATES if key in COMPARED][:6])
@pytest.mark.parametrize("noise", [False, True])
def test_the_estimator_runs_as_printed(method, noise, table):
    found: dict[str, object] = {}
    exec(use(method, noise).estimator(), found)
    model = found["model"]
    assert model.components_.shape == (2, 6) and (model.guarantee_ is not None) == noise
    assert model.rounds_ <= 4


def test_parameters_of_its_own_come_along(table):
    code = use("local_power", False, local_steps=3).estimator()
    assert "method=fp.LocalPower(2, local_steps=3)" in code
    exec(code, found := {})
    assert found["model"].trace_.algorithm.local_steps == 3
    other = use("local_power_decay", False, local_steps=3)
    exec(other.estimator(), found)
    assert found["model"].trace_.algorithm == METHODS["local_power_decay"].make(other.settings)


def test_a_network_shares_noise_where_everybody_is_in_every_sum(table):
    """As the estimator does, one client may tell its share: both say so in the same words."""
    for method in ("block_krylov", "centralized"):
        shared = use(method, True, sums=True)
        assert shared.refused() == ""
        assert "colluding=1" in shared.commands() and "sharers=2" in shared.commands()
        exec(shared.estimator(), found := {})
        assert "at least 2 of 3 clients" in found["model"].guarantee_.sentence()
    others = use("ssi", True, sums=True)
    assert "in full" in others.refused() and "colluding" not in others.commands()
    assert "secure_aggregation=True" in others.estimator()
    assert use("centralized", True).refused() == ""
    assert "does not run FedPower" in use("fedpower", True).refused()
    assert "fit.py" not in use("fedpower", True).files()


@pytest.mark.parametrize("method", ["ssi", "fedpower"])
def test_the_deployment_file_is_one(method, table):
    made = use(method, method == "fedpower")
    (table / "check.json").write_text(made.files()["check.json"])
    done = subprocess.run(
        [sys.executable, "-m", "fedpca_core", "check", "check.json"],
        cwd=table, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0 and "covariance" in done.stdout.lower(), done.stderr
    assert made.check() == CheckSettings.from_file(made.files()["check.json"])


def test_flower_reads_its_settings_and_the_commands_name_them():
    made = use("faps", True, penalty_factor=0.3)
    read = ConvergeSettings.from_file(made.files()["settings.json"])
    assert read.methods == ("faps",) and read.epsilon == 2.0
    assert METHODS["faps"].make(read) == METHODS["faps"].make(made.settings)
    assert 'method="faps" clients=3 rounds=4' in made.commands()
    assert "epsilon=2.0 delta=1e-06" in made.commands()
    assert "epsilon" not in use("faps", False).commands()
    assert math.isinf(use("faps", False).flower().epsilon)


def test_the_notebook_is_one_and_names_the_visitors_table(table):
    made = use("ssi", False)
    book = nbformat.reads(made.notebook(), as_version=4)
    nbformat.validate(book)
    assert json.loads(made.notebook())["cells"][0]["source"].endswith("records.csv")
    own = FrontierSettings(problem="table", client_column="ward")
    row = pd.Series({"method": "ssi", "noise": False, "sums": False, "rounds": 1.0})
    pd.read_csv("records.csv").rename(columns={"site": "ward"}).to_parquet("mine.parquet")
    mine = Use.of(row, own, OwnData("mine.parquet", Path("mine.parquet").read_bytes()))
    assert (mine.clients, mine.columns) == (3, tuple("abcdef"))
    assert mine.records == pd.read_parquet("mine.parquet")["ward"].value_counts().min() == 27
    for told, samples in ((mine.check(), 27), (mine.flower(), 20)):  # the nearest of its dial
        assert (told.clients, told.samples, told.features) == (3, samples, 6)
    code = mine.estimator()
    assert "Path('mine.parquet')" in code and "client_column='ward'" in code


@pytest.mark.parametrize("missing", ["drop", "columns", "fill"])
def test_gaps_are_handled_as_on_the_page(missing, table):
    rows = pd.read_csv("records.csv")
    rows.loc[:9, "a"] = np.nan
    rows.to_csv("records.csv", index=False)
    exec(use("ssi", False, missing=missing).estimator(), found := {})
    kept = clean_table(rows, list("abcdef"), "site", missing).records
    np.testing.assert_allclose(np.sort(found["X"].to_numpy(), axis=0), np.sort(kept, axis=0))


#: A table with decimal commas, gaps, a category, a date, sites out of order.
def mixed(folder: Path) -> OwnData:
    draw = np.random.default_rng(1)
    rows = pd.DataFrame(draw.standard_normal((120, 4)) * [4, 2, 1, 1], columns=list("abcd"))
    rows = rows.mask(draw.random(rows.shape) < 0.03).round(2)
    rows["kind"], rows["site"] = (
        draw.choice(["red", "blue"], 120),
        draw.choice(["z", "x", "y"], 120),
    )
    rows["day"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(120), "D")
    rows.to_csv(folder / "mine.csv", index=False, sep=";", decimal=",")
    return OwnData.of(folder / "mine.csv")


MIXED = FrontierSettings(
    problem="table", components=2, rounds=10, seeds=1, seed=5, searches=False, clip_norm=5.0,
    candidates=("ssi", "local_power", "block_krylov", "one_shot", "centralized"),
    columns=("a", "b", "c", "d", "kind", "day"), budget_bytes=math.inf, most_lost=math.inf,
)  # fmt: skip


@pytest.mark.parametrize(
    "asked",
    [
        {"client_column": "site", "needed_epsilon": math.inf, "missing": "fill"},
        {"client_column": "site", "needed_epsilon": 5.0, "scaling": "centre", "server": "sums"},
        {"clients": 4, "heterogeneity": 0.5, "needed_epsilon": math.inf, "sizes": "uneven"},
        {"clients": 4, "heterogeneity": 0.0, "needed_epsilon": 5.0, "scaling": "centre"},
    ],
    ids=["sites", "sites-private", "dealt", "dealt-private"],
)
def test_the_script_gives_the_figures_of_the_page(asked, table, capsys):
    """The same records, sites, start and noise: what the first seed's run loses, as printed."""
    own, settings = mixed(table), replace(MIXED, **asked)
    advice = outcome(Recommendation().run(settings, own))
    assert len(advice.table) >= 5
    for _, row in advice.table.iterrows():
        made = Use.of(row, settings, own, advice)
        code = made.estimator().replace("print(model.leaks().to_string())", "")
        capsys.readouterr()
        exec(code, found := {})
        rounds, lost = made.first
        assert found["model"].rounds_ == rounds <= row["rounds"]
        assert found["lost"] == pytest.approx(lost, rel=1e-6, abs=1e-12), made.method
        told = share(max(found["lost"], 0.0))
        assert f"# The page: {told} in this run of seed 5" in code, code
        assert "records with" in capsys.readouterr().out


def test_what_the_script_cannot_repeat_it_says(table):
    own = mixed(table)
    row = pd.Series({"method": "local_power", "noise": False, "sums": False, "rounds": 2.0})
    plain = replace(MIXED, client_column="site", needed_epsilon=math.inf)
    said = {
        "drew its records": use("ssi", False),
        "centred": Use.of(row, replace(plain, scaling="none"), own),
        "messages are exact": Use.of(row, replace(plain, dtype="float32"), own),
        "who is absent": Use.of(row, replace(plain, participation=0.5, absent="present"), own),
    }
    for words, made in said.items():
        assert words in " ".join(made.estimator().replace("\n#", "").split()), words
    assert "others" not in Use.of(row, plain, own).estimator()
