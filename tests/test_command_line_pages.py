"""The files that the Personalise and Theory pages save are runs for the command line."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedpca_core.__main__ import main
from fedpca_core.studies.personalised import PersonaliseSettings
from fedpca_core.studies.theory import TheorySettings


def test_a_saved_personalise_page_runs(tmp_path, capsys) -> None:
    settings = PersonaliseSettings(
        features=12, components=3, clients=5, samples=5, rounds=50, vary="samples"
    )
    file = tmp_path / "personalise.json"
    file.write_text(settings.to_json(), encoding="utf-8")
    assert main(["run", str(file), "--out", str(tmp_path / "out")]) == 0
    assert "PersonalizedPCA" in capsys.readouterr().out
    summary = pd.read_csv(tmp_path / "out" / "summary.csv")
    curves = pd.read_csv(tmp_path / "out" / "curves.csv")
    last = curves[curves["round"] == 50]
    assert list(last["method"]) == list(summary["method"])
    np.testing.assert_allclose(summary["fresh_ratio"], last["fresh_ratio"])
    sweep = pd.read_csv(tmp_path / "out" / "sweep.csv")
    assert sweep["samples"].is_monotonic_increasing
    assert sweep["LocalTraining"].iloc[-1] < sweep["LocalTraining"].iloc[0]


def test_a_saved_theory_page_runs(tmp_path, capsys) -> None:
    settings = TheorySettings(clients=3, features=3, rounds=20)
    file = tmp_path / "theory.json"
    file.write_text(settings.to_json(), encoding="utf-8")
    assert main(["run", str(file), "--out", str(tmp_path / "out")]) == 0
    assert "Theorem 1" in capsys.readouterr().out
    verdicts = pd.read_csv(tmp_path / "out" / "verdicts.csv")
    assert set(verdicts["verdict"]) == {"holds", "false as printed", "corrected: holds"}
    claims = pd.read_csv(tmp_path / "out" / "claims.csv").set_index("factor")["value"]
    assert claims["asymptotic rate"] <= claims["exact worst case"] <= claims["Theorem 1"]


def test_a_value_that_does_not_fit_is_noted_and_replaced(tmp_path, capsys) -> None:
    file = tmp_path / "theory.json"
    text = TheorySettings(clients=2, features=2, rounds=20).to_json()
    file.write_text(text.replace('"penalty": 0.2', '"penalty": -1'), encoding="utf-8")
    assert main(["run", str(file)]) == 0
    assert "Penalty r, in units of λ cannot be -1" in capsys.readouterr().err
