"""From a configuration to results: what the pages and the command line share."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fedpca_core.__main__ import main
from fedpca_core.errors import InvalidInput
from fedpca_core.studies import build as laboratory
from fedpca_core.studies.pca_settings import METHODS, AttackSettings, ConvergeSettings

TINY = ConvergeSettings(
    features=12, clients=3, samples=100, components=2, rounds=30, starts=2, decay=1.1
)


def test_every_method_of_the_menu_runs_or_says_why() -> None:
    chosen = replace(TINY, methods=tuple(METHODS), starts=1)
    found = laboratory.compare(chosen, laboratory.build_problem(chosen))
    assert set(found.tables) | set(found.refusals) == set(METHODS)
    assert set(found.refusals) <= {"variable_splitting_free"}, found.refusals
    for method in ("ssi", "local_power", "faps", "variable_splitting", "block_krylov"):
        assert found.tables[method][0]["relative_error"].iloc[-1] < 1e-4, method
    assert found.tables["centralized"][0]["sin_theta"].iloc[-1] < 1e-10


def test_starts_share_the_data_and_differ_in_the_frame() -> None:
    found = laboratory.compare(TINY, laboratory.build_problem(TINY))
    first, second = found.tables["ssi"]
    assert first["relative_error"][0] != second["relative_error"][0]
    assert first["bytes_up"].equals(second["bytes_up"])
    again = laboratory.compare(TINY, laboratory.build_problem(TINY))
    assert again.tables["ssi"][1].drop(columns="seconds").equals(second.drop(columns="seconds"))


def test_methods_start_from_the_same_frame() -> None:
    found = laboratory.compare(TINY, laboratory.build_problem(TINY))
    starts = {tables[0]["sin_theta"][0] for tables in found.tables.values()}
    assert len(starts) == 1


def test_summary_counts_what_it_takes() -> None:
    found = laboratory.compare(TINY, laboratory.build_problem(TINY))
    table = found.tables["ssi"][0]
    accuracy = float(table["relative_error"][10])
    row = found.summary("relative_error", accuracy).set_index("method").loc["SSI"]
    assert row["reached"] >= 1 and row["starts"] == 2
    alone = replace(TINY, starts=1, methods=("ssi",))
    one = laboratory.compare(alone, laboratory.build_problem(alone))
    row = one.summary("relative_error", accuracy).iloc[0]
    assert row["round"] == 10
    assert row["bytes"] == table["bytes_up"][10] + table["bytes_down"][10]
    assert np.isnan(one.summary("relative_error", 1e-300).iloc[0]["round"])


def test_stopping_keeps_what_there_is() -> None:
    long = replace(TINY, rounds=1000, decay=1.01)
    calls = []

    def progress(fraction: float, text: str) -> bool:
        calls.append(fraction)
        return len(calls) < 4

    found = laboratory.compare(long, laboratory.build_problem(long), progress)
    assert not found.complete and found.unfinished == "ssi"
    assert 0 < found.rounds < 1000
    assert calls == sorted(calls)


def test_partial_results_come_while_a_run_lasts(monkeypatch) -> None:
    monkeypatch.setattr(laboratory, "PARTIAL_SECONDS", 0.0)
    parts = []
    laboratory.compare(TINY, laboratory.build_problem(TINY), partial=parts.append)
    assert parts and not parts[0].complete and "ssi" in parts[0].tables


def test_a_run_at_rest_ends() -> None:
    steep = replace(TINY, decay=1.3, rounds=500, methods=("block_krylov",))
    found = laboratory.compare(steep, laboratory.build_problem(steep))
    assert found.rounds < 100
    assert found.tables["block_krylov"][0]["sin_theta"].iloc[-1] < 1e-10


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": ()}, "No method is chosen"),
        ({"problem": "table"}, "a link cannot carry"),
    ],
)
def test_refusals(changes, words: str) -> None:
    chosen = replace(TINY, **changes)
    with pytest.raises(InvalidInput, match=words):
        laboratory.compare(chosen, laboratory.build_problem(chosen))


def test_attacked_run_records_everything() -> None:
    chosen = AttackSettings(features=12, components=2, rounds=10, samples=50)
    trace, table = laboratory.attacked_run(laboratory.build_problem(chosen), "ssi", chosen)
    assert len(trace.transcript.pairs(0)) == 10 and len(table) == 11


def test_command_line_runs_a_file_and_writes_curves(tmp_path, capsys) -> None:
    file = tmp_path / "run.json"
    file.write_text(replace(TINY, accuracy=1e-3).to_json())
    assert main(["run", str(file), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert "SSI" in printed and "Block Krylov" in printed
    curves = (tmp_path / "out" / "curves.csv").read_text().splitlines()
    assert curves[0].startswith("method,start,round,bytes_up")


def test_command_line_prints_configurations_and_refuses_in_sentences(tmp_path, capsys) -> None:
    assert main(["config", "features=60", "methods=ssi,faps"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["features"] == 60 and content["methods"] == ["ssi", "faps"]
    assert main(["config", "moons=3"]) == 2
    assert "“moons=3” is not a setting" in capsys.readouterr().err
    assert main(["run", str(tmp_path / "none.json")]) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert main(["presets", "nothing"]) == 2
    assert "There is no preset “nothing”" in capsys.readouterr().err


def test_command_line_reads_a_table(tmp_path, capsys, data_folder) -> None:
    file = tmp_path / "run.json"
    file.write_text(replace(TINY, problem="table", components=2, accuracy=1e-1).to_json())
    table = str(data_folder / "beijing_air_daily.csv")
    arguments = ["run", str(file), "--table", table, "--client-column", "station"]
    assert main(arguments) == 0
    assert "SSI" in capsys.readouterr().out
