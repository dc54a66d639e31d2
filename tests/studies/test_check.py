"""The leak check agrees with attacks on records it never saw, and never plays a leak down."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import parse_qs

import numpy as np
import pytest

from bench.bench_check import WIDEST, compared, random_deployment
from fedpca_core.__main__ import main
from fedpca_core.errors import InvalidInput
from fedpca_core.streams import Streams
from fedpca_core.studies.check.rules import Expected, expected
from fedpca_core.studies.check.settings import CheckSettings
from fedpca_core.studies.check.shares import averaged, counted
from fedpca_core.studies.check.stand_in import drawn
from fedpca_core.studies.check.study import LeakCheck, _verdict
from fedpca_core.studies.check.trial import TARGETS, Got, run_settings, runnable
from fedpca_core.studies.frontier.runs import made
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
    assert (sums["records"], sums["newcomer"]) == ("closed", "open")
    assert sums["covariance"] != "open"
    assert {formal[target] for target in TARGETS} == {"closed"}
    asis = few.defences.iloc[0]  # no other answer than above
    assert {one.target: one.answer for one in few.verdicts} == {t: asis[t] for t in TARGETS}
    assert formal["sine"] > sums["sine"]  # what it costs


def test_what_is_stated_holds_for_as_many_fresh_attacks():
    """Five random deployments, each attacked on records that the check has not seen."""
    generator, seen = Streams(3).generator("deployments"), 0
    while seen < 5:
        deployment = random_deployment(generator)
        quick = deployment.method not in ("faps", "fedpg")
        if not quick or not runnable(deployment):
            continue
        try:
            statements, _ = compared(deployment)
        except InvalidInput:
            continue
        seen += 1
        rules = expected(deployment)
        for one in statements:
            assert one.agrees, (one, deployment.changed())
            rule = rules[one.verdict.target].open
            assert one.event != "got" or rule is None or rule == (one.fresh > 0.5)


@pytest.mark.parametrize("method", ["faps", "fedpg"])
def test_what_is_stated_of_a_method_whose_attack_searches_holds_as_well(method):
    small = CheckSettings(
        method=method, features=5, samples=20, clients=4, components=2, rounds=3, values="real"
    )
    statements, _ = compared(small)
    assert all(one.agrees for one in statements)
    found = {one.verdict.target: one.verdict.answer for one in statements}
    assert found["covariance"] == "open"


@pytest.mark.parametrize("draws", [12, 60])
@pytest.mark.parametrize("chance", [0.02, 0.1, 0.3, 0.5, 0.8])
def test_the_interval_of_a_share_holds_what_as_many_further_draws_give(chance, draws):
    generator = np.random.default_rng(1)
    happened = generator.random((400, 2, draws)) < chance
    held = [counted(list(some)).holds(other.mean()) for some, other in happened]
    assert np.mean(held) > 0.985
    ranked = np.where(happened, 0.55, 1.0)  # an attack that fails in some draws
    held = [averaged(list(some)).holds(other.mean()) for some, other in ranked]
    assert np.mean(held) > 0.985
    values = generator.normal(0.7, 0.2, (400, 2, draws))
    held = [averaged(list(some)).holds(float(other.mean())) for some, other in values]
    assert np.mean(held) > 0.985
    far = [averaged(list(some)).holds(float(other.mean()) - 0.6) for some, other in values]
    assert not any(far)  # an interval that always holds would say nothing


def test_a_few_draws_that_agree_say_little_of_as_many_others():
    assert counted([True] * 4).low == 0 and counted([True] * 12).low < 0.75
    assert averaged([1.0] * 4).low < 0.75 < averaged([1.0] * 20).low
    assert averaged([0.5] * 4).high > 0.75 > averaged([0.5] * 20).high


def test_shares_say_the_same_of_success_and_failure():
    for hits in range(21):
        share, other = (
            counted([k < hits for k in range(20)]),
            counted([k >= hits for k in range(20)]),
        )
        assert (share.low, share.high) == pytest.approx((1 - other.high, 1 - other.low))
        assert share.low <= share.seen <= share.high
    assert counted([True] * 9 + [False]).settled and not counted([True] * 8 + [False]).settled


def test_the_first_answer_comes_after_two_draws_and_others_refine_it():
    counts = [step.result.draws for step in LeakCheck().run(FEW) if step.result is not None]
    assert counts[:3] == [2, 3, 4] and max(counts) == 20


def test_a_search_is_run_where_it_takes_seconds():
    searched = CheckSettings(method="fedpg", features=20)
    assert runnable(searched) and not runnable(replace(searched, features=21))
    assert runnable(replace(searched, features=21, secure_aggregation=True))
    assert not runnable(replace(searched, method="faps"))


def test_what_the_draws_do_not_agree_on_is_said_as_a_share():
    rule = Expected(None, "")

    def said(*places):
        return _verdict("covariance", rule, [Got("linear", place, place) for place in places])

    assert said(*[0.3] * 20).answer == "open" and said(*[1.2] * 20).answer == "closed"
    assert said(*[0.7] * 20).answer == "partly"
    split = said(*[0.3] * 40, *[0.7] * 20)
    assert split.answer == "split" and split.open
    assert split.got.seen == pytest.approx(2 / 3) and split.got.width < WIDEST
    members = [Got("score", figure, 0.0) for figure in (0.6, 0.7, 0.65, 0.7)]
    verdict = _verdict("membership", rule, members)
    assert verdict.answer == "partly" and verdict.got.seen == pytest.approx(0.6625)


def test_an_epsilon_does_not_cover_a_mean_that_nobody_paid_for():
    formal = CheckSettings(epsilon=1.0, repeats=True)
    for target in ("membership", "newcomer"):
        for centring in ("own", "pooled", "secret"):
            why = expected(replace(formal, centring=centring))[target].why
            assert why.endswith("is outside it and has to be paid for")
        assert "outside" not in expected(replace(formal, centring="none"))[target].why


def test_an_epsilon_of_fedpower_is_for_the_records_as_they_were_clipped():
    settings = CheckSettings(method="fedpower", epsilon=1.0, rounds=3, samples=40)
    problem, _ = drawn(settings, 0)
    clip = 30.0  # not what the settings of a page have
    private = replace(problem, own_mean=None).private(1.0, settings.delta, clip, Streams(0))
    run = made("fedpower", run_settings(settings), private, 3)
    assert run.guarantee.clip_norm == clip


def test_what_is_too_large_to_run_is_counted_and_cautious():
    large = CheckSettings(features=2000, samples=10, rounds=100, components=20)
    found, said = checked(large), {True: "open", False: "closed", None: "depends"}
    assert not found.draws and found.defences.empty
    assert answers(found) == {name: said[one.open] for name, one in expected(large).items()}
    assert answers(found)["records"] == "open"
    unsure = answers(checked(replace(large, method="variable_splitting")))
    assert unsure["covariance"] == "depends"  # nobody has shown that it hides anything


def test_a_count_does_not_rely_on_rounds_that_a_client_may_miss():
    few = CheckSettings(features=30, samples=12, components=4, rounds=4, participation=0.75)
    assert expected(few)["covariance"].open is None  # 12 columns on average, often fewer
    assert expected(replace(few, rounds=12))["covariance"].open
    assert expected(replace(few, participation=1.0))["covariance"].open


def test_a_matrix_that_is_sent_under_noise_is_not_counted_as_known():
    sent = CheckSettings(method="centralized")
    assert expected(sent)["leading"].open
    assert expected(replace(sent, upload_noise=0.3))["leading"].open is None


def test_faps_is_open_to_replay():
    masked = CheckSettings(method="faps", features=8, components=2, rounds=10, clients=4)
    rule = expected(masked)["covariance"]
    assert rule.open and "replayed" in rule.why
    assert expected(replace(masked, rounds=1))["covariance"].open is None
    few = CheckSettings(method="faps", features=1000, samples=10, components=10, rounds=6)
    assert expected(few)["covariance"].open  # the messages span where ten records lie
    assert expected(few)["records"].open
    assert expected(replace(few, rounds=1))["covariance"].open is None
    assert expected(replace(few, samples=990))["covariance"].open is None


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
