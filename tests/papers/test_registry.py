"""The registry of printed numbers and rows, and runs that are killed and go on."""

import json
import os
import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from fedpca_core.__main__ import main
from fedpca_core.errors import InvalidInput
from fedpca_core.papers import iot_runs, personal_runs
from fedpca_core.papers import reproduce as runner
from fedpca_core.papers.experiment import Cell, Experiment, Number, tidy
from fedpca_core.papers.quoted import Quoted, by_name
from fedpca_core.papers.registry import EXPERIMENTS, QUOTED, ROWS, quote, rows_of
from fedpca_core.papers.reproduce import reproduce
from fedpca_core.papers.results import commit, shipped
from fedpca_core.papers.row import (
    KINDS,
    WORDS,
    Row,
    Verdict,
    at_least,
    averaged,
    judge,
    number,
    ratio,
    within,
    within_factor,
)
from fedpca_core.questions.papers.page import judged, reason
from fedpca_core.steps import Step, outcome


class Squares(Experiment):
    """Squares of a few numbers, and a list of what was really computed."""

    key, title, source = "squares", "Squares", "faps"

    def __init__(self):
        self.computed = []

    def cells(self, size, seeds):
        return [
            Cell(str(value), "square", seed, {"value": value, "size": size})
            for value in (2, 3)
            for seed in range(seeds)
        ]

    def described(self, size):
        return size

    def run(self, cell, size):
        yield Step(0.5, "squaring")
        self.computed.append(cell.name)
        return [Number("square", "result", cell.configuration["value"] ** 2 + cell.seed)]


def test_names_are_unique_and_every_row_has_its_experiment():
    assert [n for n, times in Counter(row.name for row in ROWS).items() if times > 1] == []
    assert all(row.experiment in EXPERIMENTS for row in ROWS if row.experiment)
    assert all(row.quoted is None or QUOTED[row.quoted.name] is row.quoted for row in ROWS)
    assert all(row.place and row.claim.endswith(".") for row in ROWS)
    assert all(judge(row, {}).word in WORDS for row in ROWS)
    # The page offers rows by their place and claim.
    offered = Counter((row.source, row.place, row.claim) for row in ROWS)
    assert [claim for claim, times in offered.items() if times > 1] == []


def test_every_printed_number_of_a_paper_with_rows_has_one():
    papers = {row.source for row in ROWS if row.quoted is not None}
    quoted = {row.quoted.name for row in ROWS if row.quoted is not None}
    assert {name for name, one in QUOTED.items() if one.source in papers} == quoted


def test_a_number_is_quoted_once_and_by_its_name():
    one = Quoted("faps/here/row/measure", "Table 9", "row", "measure", "1.50", "s")
    assert (one.value, str(one), one.source) == (1.5, "1.50 s", "faps")
    with pytest.raises(InvalidInput, match="quoted twice"):
        by_name([one, one])
    with pytest.raises(InvalidInput, match="No number called “faps/nowhere”"):
        quote("faps/nowhere")
    with pytest.raises(InvalidInput, match="There is no paper “other”"):
        Quoted("other/here/row/measure", "Table 9", "row", "measure", "1")


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
    command = ["reproduce", "dfl-formulas", "--seeds", "1", "--out", str(tmp_path)]
    assert main(command) == 0
    file = next((tmp_path / "cells" / "dfl-formulas-live").glob("*.json"))
    made = json.loads(file.read_text())
    file.write_text(json.dumps(made | {"commit": "0123456789", "peak_memory_mb": 1e6}))
    assert main(command) == 0
    record = json.loads((tmp_path / "dfl-formulas-live.json").read_text())
    assert record["commit"] == ", ".join(sorted({"0123456789", commit()} - {""}))
    assert record["peak_memory_mb"] == 1e6
    del made["commit"], made["peak_memory_mb"]  # a cell of a time when nobody wrote them down
    file.write_text(json.dumps(made))
    assert main(command) == 0
    record = json.loads((tmp_path / "dfl-formulas-live.json").read_text())
    assert "unknown" in record["commit"] and record["peak_memory_mb"] is None


def table(*results, part="", series="A", measure="m"):
    cell = [Cell(part, series, seed) for seed in range(len(results))]
    return pd.concat(
        [
            tidy(Squares(), "paper", c, [Number(series, measure, r)])
            for c, r in zip(cell, results, strict=True)
        ]
    )


def row(agreement, text="10", **changes):
    quoted = Quoted("faps/x/y/z", "Table 9", "y", "z", text)
    given = {"quoted": quoted, "ours": number("A", "m"), "agreement": agreement} | changes
    return Row("name", "faps", "Table 9", "A claim.", **given)


def test_verdicts_follow_from_numbers():
    cells = {"paper": table(9.0, 10.0, 12.0)}
    assert judge(row(within_factor(1.0)), cells).word == "reproduced"
    assert judge(row(within_factor(1.0), "12.5"), cells).word == "not reproduced"
    assert judge(row(within_factor(1.1), "12.5"), cells).word == "reproduced"
    assert judge(row(within(0.5), "10.4", correction="Ours."), cells).word == "with a correction"
    assert judge(row(at_least(9.5), quoted=None), cells).word == "not reproduced"
    assert judge(row(within(1.0), unreadable="No digits."), cells).word == "values unreadable"
    assert judge(row(within(1.0), out_of_scope="No data."), cells).word == "out of scope"
    found = judge(row(within(1.0)), cells)
    assert (found.middle, found.low, found.high, found.seeds, found.size) == (10, 9, 12, 3, "paper")


def test_live_results_judge_only_what_does_not_depend_on_the_size():
    cells = {"live": table(10.0)}
    assert judge(row(within(1.0)), cells).word == "not run yet"
    assert judge(row(within(1.0), scale_free=True), cells).word == "reproduced"
    assert judge(row(within(1.0), scale_free=True), {}).word == "not run yet"


def verdicts(key, cells):
    return {one.name: judge(one, {"paper": cells}).word for one in rows_of(key)}


def test_curves_that_never_fall_reproduce_nothing():
    """All of them end at one error then, and every ratio of two is 1."""
    for key in ("fedpower-figure-4", "fedpower-figure-4-raw", "fedpower-figure-4-many"):
        flat = shipped(key)["live"].assign(result=1.0)
        assert set(verdicts(key, flat).values()) == {"not reproduced"}
    flat = shipped("fedpower-figure-3")["live"].assign(result=1.0)
    found = verdicts("fedpower-figure-3", flat)
    assert found["fedpower-figure-3-p"] == found["fedpower-figure-3-converges"] == "not reproduced"


def test_a_tie_is_no_lead():
    for key in ("perpca-1a", "perpca-1c", "perpca-2a", "perpca-2b", "table-1", "figure-1a"):
        level = verdicts(key, shipped(key)["live"].assign(result=1.0))
        led = {name for name, word in level.items() if word in ("reproduced", "with a correction")}
        assert led <= {"faps-table-1-time", "faps-figure-1a-faps"}, key


def test_a_client_that_is_never_recovered_is_not_recovered_first():
    cells = shipped("figure-1b")["live"]
    name = "faps-figure-1b"
    assert verdicts("figure-1b", cells)[name] == "reproduced"
    lost = (cells["measure"] == "recovered") & (cells["part"] == "60")
    never = cells.assign(result=cells["result"].mask(lost))
    assert verdicts("figure-1b", never)[name] == "not reproduced"
    slow = cells.assign(result=cells["result"].mask(cells["measure"] == "converged"))
    assert verdicts("figure-1b", slow)[name] == "reproduced"


def test_schedules_that_end_apart_do_not_end_at_the_same_error():
    cells = shipped("fedpower-figure-3")["live"]
    worse = (cells["series"] == "p = 4") & (cells["measure"] == "plateau")
    apart = cells.assign(result=cells["result"].where(~worse, 4 * cells["result"]))
    name = "fedpower-figure-3-same-plateau"
    assert verdicts("fedpower-figure-3", cells)[name] == "reproduced"
    assert verdicts("fedpower-figure-3", apart)[name] == "not reproduced"


def test_a_factor_that_no_penalty_lowers_is_not_lowered():
    cells = shipped("dfl-figure-1")["live"]
    rising = cells.assign(result=cells["result"].where(cells["measure"] != "least_penalty", 0.0))
    rising.loc[rising["measure"] == "gain", "result"] = 1.0  # what a factor least at 0 gives
    assert verdicts("dfl-figure-1", cells)["dfl-figure-1"] == "reproduced"
    assert verdicts("dfl-figure-1", rising)["dfl-figure-1"] == "not reproduced"


def test_what_is_read_off_the_cells():
    both = pd.concat([table(2.0, 4.0, part="a"), table(4.0, part="b")])
    assert averaged("A", "m")(both).dropna().to_dict() == {0: 3.0}
    other = pd.concat([both, table(1.0, 2.0, part="a", series="B")])
    halves = ratio(number("A", "m", "a"), number("B", "m", "a"))(other)
    assert halves.to_dict() == {0: 2.0, 1: 2.0}
    assert np.isnan(judge(row(within(1.0)), {"paper": both.iloc[:0]}).middle)


def test_what_has_not_run_says_how_long_it_takes():
    rows = {one.name: one for one in rows_of("vary-features")}
    said = reason(rows["faps-vary-features-ssi-kkt"], Verdict("not run yet"))
    assert f"about {EXPERIMENTS['vary-features'].hours:g} hours" in said
    assert "not run yet" not in reason(rows["faps-vary-features-ssi-kkt"], Verdict("reproduced"))


def test_what_is_not_reproduced_says_why_and_is_counted_by_kind():
    found = judged()
    missed = [(row, one) for row, one in found.rows if one.word == "not reproduced"]
    assert [row.name for row, _ in missed if not row.why] == []
    assert all(reason(row, one).startswith(f"{row.kind.capitalize()}. ") for row, one in missed)
    many = found.why_not
    assert list(many.columns) == [*KINDS, "all"]
    assert many["all"].sum() == many[list(KINDS)].to_numpy().sum() == len(missed)
    assert many.loc["DFL", "all"] == many.loc["DFL", "false as printed"] > 0
    kinds = set(found.table().query("verdict != 'not reproduced'")["kind"])
    assert kinds == {""}
    with pytest.raises(InvalidInput, match="“luck” is no reason"):
        row(within(1.0), kind="luck")


def test_a_claim_about_all_experiments_waits_for_all_of_them():
    (one,) = (row for row in ROWS if row.across)
    live = {key: {"live": shipped(key)["live"]} for key in one.across}
    found = judged(live).verdicts[one.name]
    assert found.word == "not reproduced" and found.size == "live"
    some = live | {"table-1": shipped("table-1")}  # one of them at the paper's size, too
    assert judged(some).verdicts[one.name] == found
    assert judged({"table-1": live["table-1"]}).verdicts[one.name].word == "not run yet"


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


@pytest.mark.data("unsw")
def test_the_public_scripts_leave_the_basis_where_it_started():
    experiment = EXPERIMENTS["iot-recall-unsw"]
    cell = experiment.cells("paper", 1)[0]
    found = {one.measure: one.result for one in outcome(experiment.run(cell, "paper"))}
    assert cell.part == "public scripts" and found["distance"] > 0.8
    printed = quote("iot/table-1/unsw/fedpg/auc").value
    assert found["auc"] == pytest.approx(printed, abs=0.02)


def test_a_row_without_a_judgement_must_say_why():
    with pytest.raises(InvalidInput, match="nor why not"):
        Row("name", "faps", "Table 9", "A claim.")


def test_what_cannot_be_run_is_a_sentence(capsys, tmp_path):
    assert main(["reproduce", "figure-9", "--out", str(tmp_path)]) == 2
    assert "There is no experiment “figure-9”" in capsys.readouterr().err
    assert main(["reproduce", "table-1", "--only", "X", "--out", str(tmp_path)]) == 2
    assert "“table-1” has no series “X”; choose among" in capsys.readouterr().err
    assert main(["reproduce", "table-1", "--seeds", "0", "--out", str(tmp_path)]) == 2
    assert main(["reproduce", "--list"]) == 0
    assert "table-1" in capsys.readouterr().out


#: One of the theorems on distributed optimisation: the others differ by a name.
DEMONSTRATIONS = list(
    {
        "dfl" if row.source == "dfl" else row.name: row.demonstration
        for row in ROWS
        if row.demonstration
    }.values()
)


def test_every_paper_has_an_error_shown_in_two_lines():
    assert {row.source for row in ROWS if row.demonstration} == {row.source for row in ROWS}


@pytest.mark.parametrize("number", range(len(DEMONSTRATIONS)))
def test_demonstrations_run_and_show_something(number, capsys):
    demonstration = DEMONSTRATIONS[number]
    assert len(demonstration.splitlines()) == 2
    exec(compile(demonstration, "demonstration", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_the_paper_s_clients_are_not_bound_to_what_a_page_offers(monkeypatch):
    experiment = EXPERIMENTS["perpca-1d"]
    monkeypatch.setattr(personal_runs, "LONGEST", 1)
    cells = experiment.cells("paper", 1)
    most = max(cells, key=lambda cell: cell.configuration["clients"])
    assert most.configuration["clients"] == 400
    assert {number.measure for number in outcome(experiment.run(most, "paper"))} > {"fresh"}
