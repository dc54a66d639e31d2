"""The leak check agrees with attacks on records it never saw, and never plays a leak down."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from urllib.parse import parse_qs

import numpy as np
import pandas as pd
import pytest

from bench.bench_check import compared, random_deployment
from fedpca_core.__main__ import main
from fedpca_core.attacks import matrices
from fedpca_core.attacks.counts import CLOSED_RANKING
from fedpca_core.attacks.counts import counted as theorems
from fedpca_core.attacks.registry import ATTACKS
from fedpca_core.errors import InvalidInput
from fedpca_core.findings import Status, Target, lasting
from fedpca_core.questions.check import figures
from fedpca_core.questions.check.settings import CheckSettings
from fedpca_core.questions.check.study import (
    LeakCheck,
    attacked,
    drawn,
    run_settings,
    runnable,
    stated,
)
from fedpca_core.questions.trace.opened import OpenedSettings
from fedpca_core.questions.which.runs import made
from fedpca_core.shares import averaged, counted
from fedpca_core.steps import outcome
from fedpca_core.streams import Streams
from fedpca_core.study import parts
from fedpca_core.trial import Got, Trial, findings

FEW = CheckSettings(features=16, samples=7, clients=5, components=3, rounds=8, repeats=True)
ASKED = set(Target) - {Target.SUM}


def checked(settings):
    return outcome(LeakCheck().run(settings))


def statuses(found):
    return {one.target: one.status for one in found.findings}


@pytest.fixture(scope="module")
def few():
    return checked(FEW)


def test_few_records_on_a_grid_are_open_to_everything(few):
    assert statuses(few) == dict.fromkeys(ASKED, Status.OPEN)
    records = next(one for one in few.findings if one.target is Target.RECORDS)
    assert (records.figure.value, records.figure.of) == (FEW.samples, FEW.samples)
    assert all(one.attack in ATTACKS for one in few.findings)


def test_secure_sums_leave_the_newcomer_open_and_an_epsilon_opens_nothing(few):
    table = few.defences.set_index("defence")
    sums, formal = table.loc["Secure sums"], table.loc["Private source, ε = 1"]
    assert (sums["records"], sums["newcomer"]) == ("not opened", "open")
    assert sums["covariance"] != "open"
    assert "open" not in set(formal[[target.name.lower() for target in ASKED]])
    asis = few.defences.iloc[0]  # no other answer than above
    assert statuses(few) == {target: asis[target.name.lower()] for target in ASKED}
    assert formal["sine"] > sums["sine"]  # what it costs


def test_the_table_of_defences_tells_every_status_that_there_is_and_no_other(few):
    table = figures._defences(few.defences).set_index("Changed")
    assert "records" in table.loc["Secure sums", "Not opened"]
    told = {column for column in table if column.lower() in set(Status)}
    there = set(few.defences[[target.name.lower() for target in ASKED]].to_numpy().ravel())
    assert told == {status.capitalize() for status in there | {"open"} if status in set(Status)}


def test_what_is_stated_holds_for_as_many_fresh_attacks():
    """Five random deployments, each attacked on records that the check has not seen."""
    generator, seen = Streams(3).generator("deployments"), 0
    while seen < 5:
        deployment = random_deployment(generator)
        quick = deployment.method not in ("faps", "fedpg")
        if not quick or not runnable(deployment):
            continue
        try:
            found = compared(deployment)
        except InvalidInput:
            continue
        seen += 1
        for one in found.statements:
            assert one.agrees, (one, deployment.changed())
        assert found.refuted == ()


@pytest.mark.parametrize("method", ["faps", "fedpg"])
def test_what_is_stated_of_a_method_whose_attack_searches_holds_as_well(method):
    small = CheckSettings(
        method=method, features=5, samples=20, clients=4, components=2, rounds=3, values="real"
    )
    found = compared(small)
    assert all(one.agrees for one in found.statements) and found.refuted == ()
    assert found.findings[0].status is Status.OPEN


def test_no_attack_contradicts_a_theorem():
    """Small drawn deployments of every rule, each attacked once by everything that fits."""
    generator = Streams(17).generator("deployments")
    met, ranks, tries = Counter(), {}, 0
    while (
        min((met[t] for t in (Target.RECORDS, Target.MEMBERSHIP, Target.NEWCOMER)), default=0) < 60
    ):
        tries += 1
        assert tries < 3000
        one = replace(
            random_deployment(generator),
            features=int(generator.integers(5, 10)),
            rounds=int(generator.integers(1, 6)),
            clients=int(generator.integers(2, 5)),
            repeats=True,
        )
        one = replace(one, samples=int(generator.integers(2, 14)), components=2)
        if generator.random() < 0.5:
            one = replace(one, epsilon=float(generator.choice([0.2, 1.0])), centring="none")
        ruled = theorems(stated(one))
        if all(met[target] >= 60 for target in ruled) or one.method in ("faps", "fedpg"):
            continue
        try:
            trial = attacked(one, one.seed).trial
        except InvalidInput:
            continue
        for target, theorem in theorems(trial.deployment).items():
            got = trial.got.get(target)
            if got is None:  # real numbers: no record is counted as found
                assert not any(taken.whole is not None for taken in trial.taken.values())
                met[target] += 1
            elif target in (Target.MEMBERSHIP, Target.NEWCOMER):
                ranks.setdefault(target, []).append(got.figure)
                met[target] += 1
            else:
                assert got.open == theorem.open, (target, got, one.changed())
                met[target] += 1
    for seen in ranks.values():  # a bound on an average
        assert np.mean(seen) < CLOSED_RANKING + 2 * np.std(seen) / np.sqrt(len(seen))


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


def test_the_first_answer_comes_after_two_draws_and_others_refine_it():
    counts = [step.result.draws for step in LeakCheck().run(FEW) if step.result is not None]
    assert counts[:3] == [2, 3, 4] and max(counts) == 20


def test_a_search_under_an_epsilon_is_granted_the_released_matrix_where_that_tells_nothing():
    """A replay gets no more than that; where it tells of any target, the replay is run."""
    masked = CheckSettings(method="faps", features=8, samples=30, components=2, values="real")
    masked = replace(masked, rounds=6)
    closed = attacked(replace(masked, epsilon=0.5), 0).trial
    (released,) = closed.beliefs["replay"]  # and no belief after every round
    assert not closed.waiting and all(one.place >= 1.0 for one in closed.got.values())
    assert np.linalg.eigvalsh(released.matrix)[0] < 0, "noise and all"
    told = attacked(replace(masked, epsilon=100.0, samples=5000), 0).trial
    assert len(told.beliefs["replay"]) == 7


def test_under_noise_a_replay_that_came_as_near_as_others_is_the_last(monkeypatch):
    """Five more starts of this run ended at the same residual and no nearer to the matrix."""
    ended = []

    class Watched(matrices.Replaying):
        @property
        def result(self):
            ended.append(super().result)
            return ended[-1]

    monkeypatch.setattr(matrices, "Replaying", Watched)
    hospitals = CheckSettings(method="faps", features=24, samples=45, values="real", rounds=40)
    found = attacked(replace(hospitals, clients=5, upload_noise=0.03), 7919).trial
    (replay,) = ended
    assert (replay.ended, replay.starts, replay.succeeded) == ("noise", 1, False)
    assert replay.tolerance < replay.residual < 1.5 * replay.tolerance
    assert found.got[Target.COVARIANCE].attack == "replay" and found.got[Target.COVARIANCE].open


def test_the_change_whose_answer_is_least_off_is_named_first_with_its_costs(few):
    settings = few.settings
    row = {"covariance": "not opened", "refusal": "", "draws": 6.0, "bytes_client": 2e3}
    names = ["Secure sums", "Private source, ε = 10", "Private source, ε = 1"]
    sines = (0.01, 0.2, 0.1, 0.99)

    def told(*statuses):
        rows = [
            {**row, "defence": name, "covariance": status, "sine": sine}
            for name, status, sine in zip(["As it is", *names], statuses, sines, strict=True)
        ]
        return figures.stopped(pd.DataFrame(rows), settings)

    said = told("open", "not opened", "proved closed", "not opened")
    assert said.startswith("**Private source, ε = 10**: in ")
    assert "in 6 random sets" in said and "off by 0.1 (as it is: 0.01; sine" in said
    assert "trusts nobody with a record" in said and "trusts the secure sum" in said
    assert said.index("**Secure sums**") < said.index(
        "**Private source, ε = 1**: none of our attacks got any of it, but the answer is gone"
    )
    assert "cannot" not in said and said.count("2 kB") == 4
    for left in ("partly", "open", "not tried"):  # a search that was not run closes nothing
        only = told("open", left, left, "not opened")
        assert only.startswith("No change that was tried") and "**Private source, ε = 1**" in only
    assert "answer is gone" not in told("open", "partly", "partly", "partly")


def test_beside_an_opened_run_the_check_tells_what_stops_it_and_nothing_twice(few):
    alone = list(figures.checked(few, OpenedSettings(remedy=True)))
    whole = list(figures.checked(few, few.settings))
    tables = [
        [one.label for one in some if isinstance(one, parts.Table)] for some in (alone, whole)
    ]
    assert tables == [["Defences"], ["What is known of every target", "Defences"]]
    assert isinstance(alone[0], parts.Note) and alone[0] in whole
    growing = replace(few, defences=few.defences[:2])
    assert not any(
        isinstance(one, parts.Note) for one in figures.checked(growing, OpenedSettings())
    )


def test_a_ranking_is_told_plainly(few):
    (one,) = (one for one in few.findings if one.target is Target.MEMBERSHIP)
    assert "a member ranked above a stranger, in 100% of pairs" in one.words


def test_what_is_deployed_already_is_no_defence_of_its_own():
    names = ["As it is", "Secure sums", "Private source, ε = 1", "Noise of 3% on uploads (masking)"]
    assert LeakCheck().pieces(replace(FEW, participation=1.0, epsilon=10.0)) == names
    assert LeakCheck().pieces(replace(FEW, features=500)) == ()


def test_what_the_draws_do_not_agree_on_is_said_as_a_share():
    def said(*places, target=Target.COVARIANCE):
        deployment = stated(CheckSettings(values="real"))
        trials = [
            Trial(deployment, 0, {"linear": ()}, got={target: Got("linear", place, place)})
            for place in places
        ]
        return next(one for one in findings(trials) if one.target is target)

    assert said(*[0.3] * 20).status is Status.OPEN
    assert said(*[1.2] * 20).status is Status.NOT_OPENED
    assert said(*[0.7] * 20).status is Status.PARTLY
    split = said(*[0.3] * 40, *[0.7] * 20)
    assert split.status is Status.PARTLY and split.share.seen == pytest.approx(2 / 3)
    once = said(0.3, *[1.2] * 19)  # "none of our attacks" would be false
    assert once.status is Status.PARTLY and once.share.seen == pytest.approx(0.05)
    member = said(0.6, 0.7, 0.65, 0.7, target=Target.MEMBERSHIP)
    assert member.status is Status.PARTLY and member.share.seen == pytest.approx(0.6625)


def test_an_epsilon_does_not_cover_a_mean_that_nobody_paid_for():
    formal = CheckSettings(epsilon=0.5, repeats=True, values="real")
    for centring in ("own", "pooled", "secret"):
        assert Target.MEMBERSHIP not in theorems(stated(replace(formal, centring=centring)))
    covered = theorems(stated(replace(formal, centring="none")))
    for target in (Target.MEMBERSHIP, Target.NEWCOMER):
        assert not covered[target].open and "δ" in covered[target].basis


def test_an_epsilon_of_fedpower_is_for_the_records_as_they_were_clipped():
    settings = CheckSettings(method="fedpower", epsilon=1.0, rounds=3, samples=40)
    problem, _ = drawn(settings, 0)
    clip = 30.0  # not what the settings of a page have
    private = replace(problem, own_mean=None).private(1.0, settings.delta, clip, Streams(0))
    run = made("fedpower", run_settings(settings), private, 3)
    assert run.guarantee.clip_norm == clip


def test_what_is_too_large_to_run_is_counted_or_not_tried():
    large = CheckSettings(features=2000, samples=10, rounds=100, components=20)
    found = checked(large)
    assert not found.draws and found.defences.empty
    said = {one.target: one for one in found.findings}
    assert said[Target.COVARIANCE].status is Status.OPEN  # 20 columns, 10 directions
    assert said[Target.RECORDS].status is Status.NOT_TRIED and said[Target.RECORDS].seconds > 0
    assert "lattice" in said[Target.RECORDS].words
    unsure = statuses(checked(replace(large, method="variable_splitting")))
    assert unsure[Target.COVARIANCE] is Status.NOT_TRIED
    real = statuses(checked(replace(large, values="real")))
    assert real[Target.RECORDS] is Status.PROVED_CLOSED


def test_a_count_speaks_of_exact_messages_only():
    sent = CheckSettings(method="centralized")
    assert theorems(stated(sent))[Target.LEADING].open
    assert Target.LEADING not in theorems(stated(replace(sent, upload_noise=0.3)))
    assert Target.LEADING not in theorems(stated(replace(sent, dtype="float32")))
    one = CheckSettings(features=30, samples=4, components=4, rounds=4, participation=0.75)
    assert theorems(stated(one))[Target.COVARIANCE].open
    assert Target.COVARIANCE not in theorems(stated(replace(one, components=3)))


def test_the_command_line_and_the_link_answer_alike(tmp_path, capsys, few):
    file = tmp_path / "mine.json"
    file.write_text(FEW.to_json())
    assert main(["check", str(file), "--out", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "lattice" in said and (tmp_path / "leak_check-findings.csv").exists()
    assert CheckSettings.from_query(parse_qs(FEW.query_string())).configuration == FEW
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"kind": "converge", "version": 2}))
    assert main(["check", str(other)]) == 2
    assert "describes no deployment" in capsys.readouterr().err


def test_a_description_that_cannot_be_is_refused():
    with pytest.raises(InvalidInput, match="leave nothing to find"):
        checked(CheckSettings(features=4, components=4))


# ------------------------------------------------ deployments whose records are open after all
@pytest.mark.parametrize(
    "deployment",
    [
        # Sums over few small clients hold fewer records than features.
        CheckSettings(features=40, samples=4, clients=3, components=8, rounds=8, centring="none",
                      secure_aggregation=True),
        CheckSettings(features=40, samples=4, clients=3, components=8, rounds=8, centring="pooled",
                      secure_aggregation=True),
        # A client's own mean, which nobody tells.
        CheckSettings(features=30, samples=10, clients=5, components=10, rounds=4, centring="own"),
        # More codes than features: their counts are told, and with them the records.
        CheckSettings(features=8, samples=60, clients=5, components=4, rounds=10, values="codes",
                      centring="none"),
        CheckSettings(features=8, samples=60, clients=5, components=4, rounds=10, values="codes",
                      centring="pooled"),
    ],
)  # fmt: skip
def test_records_that_messages_determine_are_open(deployment: CheckSettings) -> None:
    found = checked(deployment)
    records = next(one for one in found.findings if one.target is Target.RECORDS)
    assert records.status is Status.OPEN, records.words
    assert records.figure.of == deployment.samples


def test_on_faps_the_replay_is_named_with_its_price_and_the_way_to_run_it():
    """Too large to be run here, it is not tried; read plainly its messages are masked."""
    settings = CheckSettings(method="faps", features=500, clients=12, samples=200)
    found = outcome(LeakCheck().run(settings))
    parts_ = list(figures.checked(found, settings))
    said = " ".join(one.text for one in parts_ if isinstance(one, parts.Note))
    assert "replay of the update" in said and "about 37 hours on a free core" in said
    (link,) = (one for one in parts_ if isinstance(one, parts.Link))
    assert link.settings.attacked == ("faps",) and link.settings.replay
    assert f"{link.settings.features} features" in link.label
    small = checked(replace(FEW, method="faps"))
    assert not any(isinstance(one, parts.Link) for one in figures.checked(small, settings))


def test_how_long_something_takes_is_said_in_a_unit_of_its_size():
    assert [lasting(one) for one in (0.05, 18.04, 110, 5000, 130275, 1e6)] == [
        "0.05 s", "18 s", "1.8 minutes", "83 minutes", "36 hours", "12 days",
    ]  # fmt: skip
