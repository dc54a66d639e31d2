"""What one run, attacked in every way that fits, may and may not be said to give away."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.attacks.attack import Deployment, Effort
from fedpca_core.attacks.counts import counted
from fedpca_core.attacks.registry import ATTACKS
from fedpca_core.errors import InvalidInput
from fedpca_core.findings import Figure, Finding, Status, Target, in_short
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.steps import Step, outcome
from fedpca_core.trial import LIMITS, Trial, Truth, trial

FEATURES, RECORDS, CLIENTS = 24, 5, 4


def blocks(seed: int = 0, records: int = RECORDS) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    return [generator.integers(0, 10, (FEATURES, records)).astype(float) for _ in range(CLIENTS)]


def attacked(
    algorithm: Algorithm,
    rounds: int = 6,
    *,
    held: list[np.ndarray] | None = None,
    truth: Truth | None = None,
    participation: float = 1.0,
    noise: float = 0.0,
    client: int = 0,
    searched: bool = True,
    told: list[str] | None = None,
) -> Trial:
    held = blocks() if held is None else held
    problem = fp.problems.problem.from_blocks(held)
    channel = fp.Channel(upload_noise=noise)
    trace = fp.simulate(
        problem, algorithm, rounds=rounds, participation=participation, channel=channel
    )
    records = held[client].shape[1]
    deployment = Deployment(
        FEATURES,
        CLIENTS,
        algorithm.components,
        rounds,
        np.full(CLIENTS, records),
        algorithm,
        participation=participation,
        upload_noise=noise,
        records=PublicFacts(np.ones(FEATURES), None, CLIENTS * records),
        trace=float((held[client] ** 2).sum() / records),
    )
    run = trial(
        trace.transcript,
        deployment,
        client,
        truth=truth,
        effort=Effort(longest=math.inf if searched else 0.0),
    )

    def watch(step: Step[Trial]) -> bool:
        if told is not None:
            told.append(step.text)
        return True

    return outcome(run, watch)


def said(found: Trial) -> dict[Target, Finding]:
    return {one.target: one for one in found.findings}


def test_messages_that_determine_the_matrix_give_the_records():
    found = said(attacked(fp.SSI(3)))
    assert {one.status for one in found.values()} == {Status.OPEN}
    assert found[Target.RECORDS].figure == Figure(RECORDS, "records", RECORDS)
    assert found[Target.COVARIANCE].figure == Figure(RECORDS, "directions", RECORDS)


def test_what_was_left_is_not_tried_and_never_not_opened():
    found = said(attacked(fp.FAPS(3), rounds=12, searched=False))
    for target in (Target.COVARIANCE, Target.RECORDS):
        assert found[target].status is Status.NOT_TRIED and found[target].seconds > 0
        assert ATTACKS["replay"].title in found[target].basis
        assert re.search(r"not tried \(about [\d.]+ s on a free core\): ", found[target].words)
        assert "s on a free core" in in_short(found[target])
    days = Finding(Target.RECORDS, Status.NOT_TRIED, basis="a replay", seconds=4e5)
    assert in_short(days) == "not tried: a replay, about 4.6 days on a free core"


def test_certified_records_give_the_matrix_that_the_replay_was_not_sure_of():
    steps: list[str] = []
    run = attacked(fp.FAPS(3), rounds=12, told=steps)
    found = said(run)
    assert any(re.search(r"residual .*; at most .* more", step) for step in steps)
    assert found[Target.RECORDS].status is Status.OPEN
    assert found[Target.COVARIANCE].status is Status.OPEN
    # Without the records a fit that was not checked to be the only one is had in part.
    alone = said(replace(run, taken={}, beliefs=_unsure(run)))[Target.COVARIANCE]
    assert alone.status is Status.PARTLY and "was not checked" in alone.basis


def _unsure(run: Trial) -> dict:
    return {
        key: [replace(state, sure=False) for state in states] for key, states in run.beliefs.items()
    }


def test_directions_below_the_noise_are_not_had():
    found = said(attacked(fp.SSI(3), noise=0.3))[Target.COVARIANCE]
    assert found.status is Status.PARTLY and found.figure.value < RECORDS == found.figure.of
    assert "noise" in found.basis


def test_nothing_is_closed_but_by_counting_or_because_nothing_was_sent():
    """A client that is absent has sent nothing; one that was heard once has."""
    heard = [attacked(fp.SSI(2), rounds=1, participation=0.5, client=k).heard for k in range(4)]
    assert sorted(heard) == [False, False, True, True]
    for client, present in enumerate(heard):
        run = attacked(fp.SSI(2), rounds=1, participation=0.5, client=client)
        closed = {one.basis for one in run.findings if one.status is Status.PROVED_CLOSED}
        assert closed == (set() if present else {"nothing has been sent"})


def test_a_certificate_counts_from_the_round_that_it_needs():
    run = attacked(fp.SSI(2), rounds=6)
    needed = min(one.round for one in run.taken.values() if one.round is not None)
    assert needed > 1
    before, after = run.until(needed - 1), run.until(needed)
    assert said(before)[Target.RECORDS].status is not Status.OPEN
    assert said(after)[Target.RECORDS].status is Status.OPEN


def test_the_truth_decides_where_there_is_one_and_is_never_needed():
    held = blocks(3)
    truth = Truth(held[0] @ held[0].T / RECORDS, 3, held[0])
    with_truth = said(attacked(fp.SSI(3), held=held, truth=truth))
    without = said(attacked(fp.SSI(3), held=held))
    for target, one in without.items():
        assert with_truth[target].status is one.status
    assert with_truth[Target.COVARIANCE].figure.value < LIMITS[Target.COVARIANCE][0] / 1e6


@pytest.mark.parametrize("status", [Status.OPEN, Status.PARTLY, Status.NOT_OPENED])
def test_a_status_needs_what_it_stands_on(status: Status):
    with pytest.raises(InvalidInput, match="needs"):
        Finding(Target.RECORDS, status, basis="said so")
    for every in Status:
        with pytest.raises(InvalidInput, match="no basis"):
            Finding(Target.RECORDS, every, figure=Figure(1.0, "records"), tried=1)


def summed(held: list[np.ndarray], centring: str, components: int = 8) -> Trial:
    """A run under secure sums, attacked."""
    features, counts = len(held[0]), np.array([one.shape[1] for one in held])
    mean = np.hstack(held).mean(axis=1) if centring == "announced" else None
    own = [one.mean(axis=1, keepdims=True) for one in held]
    taken = {
        "none": lambda k: 0.0,
        "announced": lambda k: np.hstack(held).mean(axis=1, keepdims=True),
        "own": lambda k: own[k],
    }[centring]
    problem = fp.problems.problem.from_blocks([one - taken(k) for k, one in enumerate(held)])
    algorithm = fp.SSI(components)
    channel = fp.Channel(secure_aggregation=centring != "own")
    trace = fp.simulate(problem, algorithm, rounds=8, channel=channel)
    deployment = Deployment(
        features,
        len(held),
        components,
        8,
        counts,
        algorithm,
        sums=centring != "own",
        records=PublicFacts(np.ones(features), mean, int(counts.sum())),
        centring=centring,
    )
    return outcome(trial(trace.transcript, deployment, 0))


@pytest.mark.parametrize("seed", range(4))
def test_sums_of_few_small_clients_give_every_record_of_every_client(seed: int):
    generator = np.random.default_rng(seed)
    held = [generator.integers(0, 17, (60, 4)).astype(float) for _ in range(3)]
    for centring in ("none", "announced"):
        run = summed(held, centring)
        finding = said(run)[Target.RECORDS]
        assert finding.status is Status.OPEN and finding.figure.value == 12, finding.words
        (whole,) = (one.whole for one in run.taken.values() if one.whole is not None)
        assert set(map(tuple, whole.T)) == set(map(tuple, np.hstack(held).T)), centring


@pytest.mark.parametrize("count", [6, 15, 30])
def test_a_client_centred_on_its_own_mean_gives_every_difference(count: int):
    generator = np.random.default_rng(count)
    held = [generator.integers(0, 17, (64, count)).astype(float) for _ in range(3)]
    run = summed(held, "own")
    finding = said(run)[Target.RECORDS]
    assert finding.status is Status.OPEN and finding.attack == "differences", finding.words
    assert finding.figure.unit == "records, less what is common to them"


def test_a_count_says_open_of_clients_that_take_part():
    """One round of which a client may be absent: what it did not send nobody has."""
    algorithm = fp.OneShot(3)
    public = Deployment(FEATURES, CLIENTS, 3, 1, np.full(CLIENTS, RECORDS), algorithm)
    assert not counted(public)[Target.LEADING].basis.startswith("as soon as")
    partly = replace(public, participation=0.5)
    assert counted(partly)[Target.LEADING].basis.startswith("as soon as it takes part")


def test_a_ranking_of_no_pairs_is_no_figure():
    """All strangers are equal to members: who has the records tells none of them apart."""
    held = blocks(5)
    strangers = {"equal": held[0], "others": blocks(6)[0]}
    matrix = held[0] @ held[0].T / RECORDS
    for kind, some in strangers.items():
        truth = Truth(matrix, 3, held[0], held[0], some)
        got = attacked(fp.SSI(3), held=held, truth=truth).got[Target.MEMBERSHIP]
        assert (got.figure == 1.0) == (kind == "others") and not (kind == "equal" and got.open)


@pytest.mark.parametrize(("rounds", "told"), [(4, False), (8, False), (16, True)])
def test_sums_over_changing_clients_are_open_only_once_they_single_one_out(rounds, told):
    problem = fp.problems.decay_spectrum(features=12, samples=[40] * 4, decay=1.2, seed=0)
    method, channel = fp.SSI(3), fp.Channel(secure_aggregation=True)
    run = fp.simulate(problem, method, rounds=rounds, participation=0.5, channel=channel)
    samples = problem.client_data.samples
    deployment = Deployment(12, 4, 3, rounds, samples, method, participation=0.5, sums=True)
    found = outcome(trial(run.transcript, deployment))
    assert found is not None
    private = problem.client_data.dense()[0]
    error = np.linalg.norm(found.best[1][-1].matrix - private) / np.linalg.norm(private)
    assert (error < 1e-6) == told
    assert found.findings[0].status is (Status.OPEN if told else Status.NOT_OPENED)
