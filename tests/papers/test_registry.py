"""The registry of printed numbers and rows, and runs that are killed and go on."""

import json
import os
import subprocess
import sys

import pandas as pd
import pytest

from fedpca_core.__main__ import main
from fedpca_core.errors import InvalidInput
from fedpca_core.papers import iot_runs, personal_runs
from fedpca_core.papers import results as runner
from fedpca_core.papers.experiment import Experiment, Number
from fedpca_core.papers.registry import ENTRIES, EXPERIMENTS, quote, results
from fedpca_core.papers.results import commit, reproduce, shipped, write_results
from fedpca_core.questions.papers.page import PapersSettings
from fedpca_core.steps import Step, outcome
from scripts.stored import add


class Squares(Experiment):
    """Squares of a few numbers, and a list of what was really computed."""

    key, title, source = "squares", "Squares", "faps"

    def __init__(self):
        self.computed = []

    def pieces(self, size):
        return [(str(value), "square", {"value": value, "size": size}) for value in (2, 3)]

    def described(self, size):
        return size

    def run(self, cell, size):
        yield Step(0.5, "squaring")
        self.computed.append(cell.name)
        return [Number("square", "result", cell.configuration["value"] ** 2 + cell.seed)]


def test_a_number_is_quoted_by_its_name():
    assert quote("faps/table-1/ssi/rounds").printed == "207"
    assert quote("iot/table-1/unsw/fedpg/accuracy").value == 81.95
    with pytest.raises(InvalidInput, match="No number called “faps/nowhere”"):
        quote("faps/nowhere")


def test_the_page_offers_every_row_once():
    offered = PapersSettings.parameters()["row"].choices
    assert len(set(offered.values())) == len(offered) == len(ENTRIES) + 1


def test_several_experiments_are_read_together():
    live = {key: {"live": shipped(key)["live"]} for key in ("vary-features", "vary-decay")}
    both = results("vary-features + vary-decay", live)["live"]
    assert {part.split()[0] for part in both.parts} == {"vary-features", "vary-decay"}
    assert results("vary-features + vary-samples", live) == {}


def test_a_run_that_is_stopped_goes_on_where_it_was(tmp_path):
    first, second, whole = Squares(), Squares(), Squares()
    finished = []
    outcome(
        reproduce(first, "live", 2, tmp_path),
        lambda step: finished.append(step) or sum("done" in s.text for s in finished) < 3,
    )
    assert len(first.computed) == 3
    found = outcome(reproduce(second, "live", 2, tmp_path))
    assert second.computed == ["3--square--seed-1"]
    pd.testing.assert_frame_equal(found, outcome(reproduce(whole, "live", 2)))


def test_finished_cells_are_added_to_what_is_stored(tmp_path):
    """What is stored stays to the last byte, what is added is what a run of all gives."""
    first, more, stored = (tmp_path / name for name in ("first", "more", "stored"))
    squares = Squares()
    few = outcome(reproduce(squares, "paper", 1, first))
    write_results(few, squares, "paper", stored)
    whole = outcome(reproduce(squares, "paper", 2, more))
    file, about = stored / "squares-paper.csv", stored / "squares-paper.json"
    before, began = file.read_text(), json.loads(about.read_text())
    with pytest.raises(InvalidInput, match="is stored already; leave it out"):
        add(squares, [more], stored)
    assert file.read_text() == before
    for old in more.rglob("*seed-0.json"):
        old.unlink()
    assert add(squares, [more], stored) == 2
    assert file.read_text().startswith(before)
    found = pd.read_csv(file, dtype={"part": str}).sort_values(["part", "seed"], ignore_index=True)
    pd.testing.assert_frame_equal(found, whole, check_dtype=False)
    now = json.loads(about.read_text())
    assert now["seeds"] == [0, 1] and now["finished"] >= began["finished"]
    with pytest.raises(InvalidInput, match="No finished cell of “squares”"):
        add(squares, [tmp_path / "nowhere"], stored)


def test_a_cell_of_another_configuration_is_run_again(tmp_path):
    outcome(reproduce(Squares(), "live", 1, tmp_path))
    file = next(tmp_path.rglob("2--square*.json"))
    content = json.loads(file.read_text())
    content["configuration"]["value"] = 7
    file.write_text(json.dumps(content))
    again = Squares()
    outcome(reproduce(again, "live", 1, tmp_path))
    assert again.computed == ["2--square--seed-0"]


def test_a_killed_process_leaves_whole_cells_only(tmp_path, monkeypatch, capsys):
    """The process dies while a cell is being written: its file is not there, the others are."""
    command = ["reproduce", "table-1", "--seeds", "2", "--only", "SSI", "--out", str(tmp_path)]
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "from fedpca_core.study import files\n"
        "from fedpca_core.__main__ import main\n"
        "real, count = Path.replace, []\n"
        "def replace(self, target):\n"
        "    count.append(target)\n"
        "    if len(count) == 2: os._exit(9)\n"
        "    return real(self, target)\n"
        "Path.replace = replace\n"
        f"main({command!r})"
    )
    environment = {**os.environ, "PYTHONPATH": os.getcwd()}
    died = subprocess.run([sys.executable, "-c", code], env=environment, check=False)
    assert died.returncode == 9
    cells = tmp_path / "cells" / "table-1-live"
    assert [file.name for file in cells.glob("*.json")] == ["SSI--seed-0.json"]
    before = (cells / "SSI--seed-0.json").read_bytes()
    ran = []
    real = runner.keep
    monkeypatch.setattr(
        runner, "keep", lambda file, *rest: ran.append(file.name) or real(file, *rest)
    )
    assert (
        main(["reproduce", "table-1", "--seeds", "2", "--only", "SSI", "--out", str(tmp_path)]) == 0
    )
    assert ran == ["SSI--seed-1.json"]
    assert (cells / "SSI--seed-0.json").read_bytes() == before
    table = pd.read_csv(tmp_path / "table-1-live.csv")
    assert sorted(table["seed"].unique()) == [0, 1]
    assert pd.read_parquet(tmp_path / "table-1-live.parquet").shape == table.shape
    record = json.loads((tmp_path / "table-1-live.json").read_text())
    assert "medians over the seeds" in capsys.readouterr().out
    assert record["seeds"] == [0, 1] and record["versions"]["numpy"] and record["machine"]


def test_a_result_names_the_commits_of_all_its_cells(tmp_path):
    command = ["reproduce", "fedpower-noise", "--paper-size", "--out", str(tmp_path)]
    assert main(command) == 0
    file = next((tmp_path / "cells" / "fedpower-noise-paper").glob("*.json"))
    made = json.loads(file.read_text())
    file.write_text(json.dumps(made | {"commit": "0123456789", "peak_memory_mb": 1e6}))
    assert main(command) == 0
    record = json.loads((tmp_path / "fedpower-noise-paper.json").read_text())
    assert record["commit"] == ", ".join(sorted({"0123456789", commit()} - {""}))
    assert record["peak_memory_mb"] == 1e6
    del made["commit"], made["peak_memory_mb"]  # a cell of a time when nobody wrote them down
    file.write_text(json.dumps(made))
    assert main(command) == 0
    record = json.loads((tmp_path / "fedpower-noise-paper.json").read_text())
    assert "unknown" in record["commit"] and record["peak_memory_mb"] is None


def test_with_few_clients_a_round_a_printed_run_is_followed_as_far(monkeypatch):
    monkeypatch.setattr(iot_runs, "SOLVES", {"live": 2})
    experiment = EXPERIMENTS["iot-printed"]
    rounds = {}
    for cell in experiment.cells("live", 1):
        texts = []
        outcome(experiment.run(cell, "live"), lambda step, texts=texts: texts.append(step) or True)
        rounds[cell.series] = texts[-1].text if texts else ""
    assert rounds["average corrected"].endswith("round 20")
    assert rounds["projection corrected"].endswith("round 0")


def test_what_cannot_be_run_is_a_sentence(capsys, tmp_path):
    assert main(["reproduce", "figure-9", "--out", str(tmp_path)]) == 2
    assert "There is no experiment “figure-9”" in capsys.readouterr().err
    assert main(["reproduce", "table-1", "--only", "X", "--out", str(tmp_path)]) == 2
    assert "“table-1” has no series “X”; choose among" in capsys.readouterr().err
    assert main(["reproduce", "table-1", "--seeds", "0", "--out", str(tmp_path)]) == 2
    assert main(["reproduce", "--list"]) == 0
    assert "table-1" in capsys.readouterr().out


def test_the_paper_s_clients_are_not_bound_to_what_a_page_offers(monkeypatch):
    experiment = EXPERIMENTS["perpca-1d"]
    monkeypatch.setattr(personal_runs, "LONGEST", 1)
    cells = experiment.cells("paper", 1)
    most = max(cells, key=lambda cell: cell.configuration["clients"])
    assert most.configuration["clients"] == 400
    assert {number.measure for number in outcome(experiment.run(most, "paper"))} > {"fresh"}
