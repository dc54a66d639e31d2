"""The leak check agrees with attacks on records it never saw, and never plays a leak down."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import parse_qs

import pytest

from bench.bench_check import compared, random_deployment
from fedpca_core.__main__ import main
from fedpca_core.errors import InvalidInput
from fedpca_core.streams import Streams
from fedpca_core.studies.check.rules import Expected, expected
from fedpca_core.studies.check.settings import CheckSettings
from fedpca_core.studies.check.study import MORE_TRIES, TRIES, LeakCheck, _verdict
from fedpca_core.studies.check.trial import TARGETS, Got, runnable
from fedpca_core.studies.study import outcome

FEW = CheckSettings(features=16, samples=7, clients=5, components=3, rounds=8, repeats=True)


def checked(settings):
    return outcome(LeakCheck().run(settings))


def answers(found):
    return {one.target: one.answer for one in found.verdicts}


@pytest.fixture(scope="module")
def few():
    return checked(FEW)


def test_few_records_on_a_grid_are_open_to_everything(few):
    assert answers(few) == dict.fromkeys(TARGETS, "open")
    assert {one.evidence for one in few.verdicts} == {"both"}
    assert next(one for one in few.verdicts if one.target == "records").figure == FEW.samples


def test_secure_sums_stop_all_but_the_newcomer_and_an_epsilon_stops_that(few):
    table = few.defences.set_index("defence")
    sums, formal = table.loc["Secure sums"], table.loc["Private source, ε = 1"]
    assert not sums["records"] and not sums["covariance"] and sums["newcomer"]
    assert not any(formal[target] for target in TARGETS)
    assert formal["sine"] > sums["sine"]  # what it costs


def test_an_attack_that_succeeds_is_never_said_to_fail():
    """Six random deployments, each attacked on records that the check has not seen."""
    generator, seen = Streams(3).generator("deployments"), 0
    while seen < 6:
        deployment = random_deployment(generator)
        quick = deployment.method not in ("faps", "fedpg")
        if not quick or not runnable(deployment):
            continue
        try:
            found = compared(deployment)
        except InvalidInput:
            continue
        seen += 1
        for verdict, rule, got in found.values():
            assert verdict.answer != "closed" or not got.open, (verdict, deployment.changed())
            assert rule is None or rule == got.open or not got.clear


def test_more_runs_decide_where_a_few_leave_it_open():
    """A member stands out a little in every run: said to be open in part, after more of them."""
    rule = Expected(None, "")

    def seen(*places):
        return _verdict("membership", rule, [Got("score", place, place) for place in places]).answer

    few, many = TRIES, MORE_TRIES
    assert seen(*[0.7] * few) == "depends" and seen(*[0.7] * many) == "partly"
    assert seen(*[0.3] * many) == "open" and seen(*[0.3] * (many - 1), 0.7) == "depends"
    assert seen(*[1.0] * few) == "closed" and seen(*[1.0] * (many - 1), 0.6) == "partly"
    assert seen(*[0.0] * few) == "open" and seen(*[0.0] * (few - 1), 1.0) == "depends"


def test_what_is_too_large_to_run_is_counted_and_cautious():
    large = CheckSettings(features=2000, samples=10, rounds=100, components=20)
    found, said = checked(large), {True: "open", False: "closed", None: "depends"}
    assert not found.ran and found.defences.empty
    assert answers(found) == {name: said[one.open] for name, one in expected(large).items()}
    assert answers(found)["records"] == "open"
    unsure = answers(checked(replace(large, method="variable_splitting")))
    assert unsure["covariance"] == "depends"  # nobody has shown that it hides anything


def test_faps_is_open_to_replay():
    masked = CheckSettings(method="faps", features=8, components=2, rounds=10, clients=4)
    rule = expected(masked)["covariance"]
    assert rule.open and "replayed" in rule.why
    assert expected(replace(masked, rounds=1))["covariance"].open is None


def test_the_command_line_and_the_link_answer_alike(tmp_path, capsys, few):
    file = tmp_path / "mine.json"
    file.write_text(FEW.to_json())
    assert main(["check", str(file), "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "lattice reduction" in said and (tmp_path / "leak_check-verdicts.csv").exists()
    assert CheckSettings.from_query(parse_qs(FEW.query_string())).configuration == FEW
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"kind": "converge", "version": 2}))
    assert main(["check", str(other)]) == 2
    assert "describes no deployment" in capsys.readouterr().err


def test_a_description_that_cannot_be_is_refused():
    with pytest.raises(InvalidInput, match="leave nothing to find"):
        checked(CheckSettings(features=4, components=4))
