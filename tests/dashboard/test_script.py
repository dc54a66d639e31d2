"""The scripts that the pages offer run as they stand and give the numbers of the page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dashboard.shell import script
from dashboard.views import adversary
from fedpca_core.studies.build import build_problem, compare
from fedpca_core.studies.pca_settings import METHODS, AttackSettings, ConvergeSettings

QUICK = ConvergeSettings(
    features=12, components=2, samples=50, clients=4, rounds=30, starts=2, methods=("ssi", "faps")
)
SMALL = AttackSettings(features=10, components=2, samples=40, rounds=20)


def run(text: str, folder, monkeypatch) -> dict:
    monkeypatch.chdir(folder)
    names: dict = {}
    exec(compile(text, "script", "exec"), names)
    return names


def test_the_script_of_a_comparison_gives_its_numbers(tmp_path, monkeypatch, capsys) -> None:
    names = run(script.comparison(QUICK), tmp_path, monkeypatch)
    assert names["configuration"] == QUICK
    page = compare(QUICK, build_problem(QUICK))
    columns = ["method", "start", "round", "bytes_up", "relative_error"]
    pd.testing.assert_frame_equal(names["comparison"].curves()[columns], page.curves()[columns])
    assert "SSI" in capsys.readouterr().out


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"attack": "symmetric", "participation": 0.5},
        {"attack": "ridge", "upload_noise": 0.01},
        {"attack": "pooled", "secure_aggregation": True, "attacked": ("ssi",)},
        {"attack": "collude", "secure_aggregation": True, "attacked": ("ssi",), "colluders": 2},
        {"attack": "collude", "secure_aggregation": True, "attacked": ("ssi",), "colluders": 4},
    ],
)
def test_the_script_of_an_attack_gives_its_errors(changes, tmp_path, monkeypatch, capsys) -> None:
    chosen = replace(SMALL, **changes)
    names = run(script.attack(chosen), tmp_path, monkeypatch)
    outcome = adversary.attack_all(chosen, build_problem(chosen), lambda fraction, text: True)
    last = chosen.attacked[-1]
    found = names["scores"].relative_errors(names["path"].estimates, names["truth"])
    np.testing.assert_allclose(found, outcome.recoveries[last].errors[0], rtol=1e-9, atol=1e-12)
    assert last in METHODS and last in capsys.readouterr().out


def test_a_table_of_one_s_own_is_read_from_its_file(tmp_path, monkeypatch) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.standard_normal((120, 6)), columns=list("abcdef"))
    table.to_csv(tmp_path / "mine.csv", index=False)
    options = {"scaling": "centre", "clients": 4, "seed": 0, "columns": ["a", "b", "d", "e"]}
    monkeypatch.setattr(script.own_table, "reading", lambda **_: ("mine.csv", options))
    chosen = replace(QUICK, problem="table", methods=("ssi",), starts=1)
    names = run(script.comparison(chosen), tmp_path, monkeypatch)
    assert names["problem"].feature_names == ("a", "b", "d", "e")
    assert names["comparison"].clients == 4


def test_only_what_differs_is_written() -> None:
    assert "configuration = ConvergeSettings()" in script.comparison(ConvergeSettings())
    text = script.attack(replace(SMALL, heterogeneity=0.5))
    assert "heterogeneity=0.5" in text and "seed" not in text
