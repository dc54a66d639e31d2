"""The comparison of methods as a study: what it runs, when it stops, what it counts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fedpca_core.__main__ import main
from fedpca_core.algorithms.registry import COMPARED
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.converge import study as convergence
from fedpca_core.questions.converge.study import Comparison, Convergence
from fedpca_core.steps import Step, outcome
from fedpca_core.study.build import attacked_run, build_problem
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings

TINY = ConvergeSettings(
    features=12, clients=3, samples=100, components=2, rounds=30, starts=2, decay=1.1
)


def compare(settings: ConvergeSettings = TINY) -> Comparison:
    found = outcome(Convergence().run(settings))
    assert found is not None
    return found


def test_every_method_of_the_menu_runs_or_says_why() -> None:
    found = compare(replace(TINY, methods=tuple(COMPARED), starts=1))
    assert set(found.tables) | set(found.refusals) == set(COMPARED)
    assert set(found.refusals) <= {"variable_splitting_free"}, found.refusals
    for method in ("ssi", "local_power", "faps", "variable_splitting", "block_krylov"):
        assert found.tables[method][0]["relative_error"].iloc[-1] < 1e-4, method
    assert found.tables["centralized"][0]["sin_theta"].iloc[-1] < 1e-10


def test_starts_share_the_data_and_differ_in_the_frame() -> None:
    first, second = compare().tables["ssi"]
    assert first["relative_error"][0] != second["relative_error"][0]
    assert first["bytes_up"].equals(second["bytes_up"])
    again = compare().tables["ssi"][1]
    assert again.drop(columns="seconds").equals(second.drop(columns="seconds"))


def test_methods_start_from_the_same_frame() -> None:
    assert len({tables[0]["sin_theta"][0] for tables in compare().tables.values()}) == 1


def test_summary_counts_what_it_takes() -> None:
    table = compare().tables["ssi"][0]
    accuracy = float(table["relative_error"][10])
    row = compare().summary("relative_error", accuracy).set_index("method").loc["SSI"]
    assert row["reached"] >= 1 and row["starts"] == 2
    one = compare(replace(TINY, starts=1, methods=("ssi",)))
    row = one.summary("relative_error", accuracy).iloc[0]
    assert row["round"] == 10
    assert row["bytes"] == table["bytes_up"][10] + table["bytes_down"][10]
    assert np.isnan(one.summary("relative_error", 1e-300).iloc[0]["round"])


def test_stopping_keeps_what_there_is(monkeypatch) -> None:
    monkeypatch.setattr(convergence, "PARTIAL_SECONDS", 0.0)
    steps: list[Step[Comparison]] = []

    def watch(step: Step[Comparison]) -> bool:
        steps.append(step)
        return len(steps) < 4

    long = replace(TINY, rounds=1000, decay=1.01)
    found = outcome(Convergence().run(long), watch)
    assert found is not None and not found.complete and found.unfinished == "ssi"
    assert 0 < found.rounds < 1000
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions)


def test_a_run_at_rest_ends() -> None:
    found = compare(replace(TINY, decay=1.3, rounds=500, methods=("block_krylov",)))
    assert found.rounds < 100
    assert found.tables["block_krylov"][0]["sin_theta"].iloc[-1] < 1e-10


@pytest.mark.parametrize("participation", [0.1, 0.2, 0.3, 0.4])
def test_a_server_that_waits_for_absent_clients_is_not_at_rest(participation: float) -> None:
    """Between two answers of the last client nothing moves; the run still gets all the way."""
    waiting = ConvergeSettings(
        features=12,
        clients=10,
        samples=100,
        components=2,
        decay=1.2,
        rounds=500,
        starts=1,
        participation=participation,
        methods=("block_krylov", "centralized"),
    )
    for seed in range(10):
        found = compare(replace(waiting, seed=seed))
        for method, tables in found.tables.items():
            assert tables[0]["relative_error"].iloc[-1] < 1e-12, (method, seed)
            assert tables[0]["sin_theta"].iloc[-1] < 1e-12, (method, seed)


@pytest.mark.parametrize("measure", ["relative_error", "sin_theta"])
def test_the_guide_of_ssi_has_the_predicted_slope(measure: str) -> None:
    found = compare(ConvergeSettings(methods=("ssi",), starts=1, rounds=150))
    guide = found.guide("ssi", measure)
    assert guide is not None
    values = found.facts.eigenvalues
    rate = values[5] / values[4]
    expected = rate**2 if measure == "relative_error" else rate
    # The linear map holds every direction; in the end the slowest is left.
    assert np.allclose((guide[1][1:] / guide[1][:-1])[-3:], expected, rtol=2e-3)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": ()}, "No method is chosen"),
        ({"problem": "table"}, "a link cannot carry"),
    ],
)
def test_refusals(changes, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        compare(replace(TINY, **changes))


def test_attacked_run_records_everything() -> None:
    chosen = AttackSettings(features=12, components=2, rounds=10, samples=50)
    found = outcome(attacked_run(build_problem(chosen), "ssi", chosen))
    assert found is not None
    trace, table = found
    assert len(trace.transcript.pairs(0)) == 10 and len(table) == 11


def test_command_line_prints_configurations_and_refuses_in_sentences(tmp_path, capsys) -> None:
    assert main(["config", "converge", "features=60", "methods=ssi,faps"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["features"] == 60 and content["methods"] == ["ssi", "faps"]
    assert main(["config", "attack", "moons=3"]) == 2
    assert "“moons=3” is not a setting" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "none.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert main(["presets", "nothing"]) == 2
    assert "There is no preset “nothing”" in capsys.readouterr().err


def test_what_a_method_says_of_its_parameters_comes_with_its_run() -> None:
    chosen = replace(TINY, methods=("ssi", "variable_splitting_free"), rounds=10, starts=1)
    found = compare(replace(chosen, penalty_factor=0.5))
    assert not found.notes["ssi"] and "diverges" in found.notes["variable_splitting_free"][0]
    assert not any(compare(replace(chosen, penalty_factor=3.0)).notes.values())
