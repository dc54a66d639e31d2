"""What counting says of a deployment the attacks find: nothing closed opens, all open do."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.attacks import counts
from fedpca_core.attacks.attack import Deployment
from fedpca_core.attacks.counts import counted
from fedpca_core.findings import Target
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.steps import outcome
from fedpca_core.streams import Streams
from fedpca_core.trial import Trial, Truth, trial

METHODS = (fp.SSI, fp.BlockKrylov, fp.LocalPower, fp.OneShot, fp.Centralized)


def drawn(seed: int) -> Trial:
    """A small deployment, run and attacked in every way that fits; the truth is known."""
    generator = np.random.default_rng([22, seed])

    def one(*of: object) -> object:
        return of[generator.integers(len(of))]

    features, clients = int(generator.integers(6, 15)), int(generator.integers(2, 5))
    records, components = int(generator.integers(2, 12)), int(generator.integers(2, 5))
    rounds, centring = int(one(1, 2, 4)), str(one("none", "announced", "own"))
    on_grid, private = bool(one(True, False)), bool(one(True, False, False))
    held = [5.0 + 3.0 * generator.standard_normal((features, records)) for _ in range(clients)]
    held = [np.rint(block) if on_grid else block for block in held]
    everybody = np.hstack(held).mean(axis=1, keepdims=True)
    mean = everybody[:, 0] if centring == "announced" else None
    sent = held
    if centring == "own":
        sent = [block - block.mean(axis=1, keepdims=True) for block in held]
    elif centring == "announced":
        sent = [block - everybody for block in held]
    facts = PublicFacts(np.ones(features), mean, clients * records) if on_grid else None
    problem = fp.problems.problem.from_blocks(sent, public=("the columns",))
    truth = problem
    if private:
        clip = float(np.linalg.norm(np.hstack(sent), axis=0).max())
        problem = problem.private(1.0, 1e-6, clip, Streams(seed))
    algorithm = METHODS[generator.integers(len(METHODS))](components)
    sums = bool(one(True, False, False)) and not algorithm.needs_individual_uploads
    trace = fp.simulate(
        problem, algorithm, rounds=rounds, channel=fp.Channel(secure_aggregation=sums)
    )
    block = sent[0]
    members, count = block, 40
    strangers = 5.0 + 3.0 * generator.standard_normal((features, count))
    strangers = np.rint(strangers) if on_grid else strangers
    if mean is not None:
        strangers = strangers - mean[:, None]
    matrix = truth.client_data.only(np.array([0])).dense()[0]
    deployment = Deployment(
        features,
        clients,
        components,
        len(trace.transcript.exchanges),
        np.full(clients, records),
        algorithm,
        sums=sums,
        guarantee=problem.guarantee,
        records=facts,
        centring=centring,
        trace=float(np.trace(matrix)),
    )
    known = Truth(matrix, components, held[0] if on_grid else None, members, strangers)
    return outcome(trial(trace.transcript, deployment, 0, truth=known))


@pytest.fixture(scope="module")
def trials() -> list[Trial]:
    return [drawn(seed) for seed in range(300)]


def test_no_attack_opens_what_counting_calls_closed(trials: list[Trial]) -> None:
    said: Counter[Target] = Counter()
    ranks = []
    for run in trials:
        for target, theorem in counted(run.deployment).items():
            if theorem.open:
                continue
            said[target] += 1
            if target is Target.RECORDS:
                assert all(one.whole is None for one in run.taken.values()), theorem
            if target is Target.MEMBERSHIP:
                ranks.append(run.got[target].figure)
    assert said[Target.RECORDS] > 50 and said[Target.MEMBERSHIP] > 20
    # A bound on the average: of one release, and of the right one of two records.
    assert np.mean(ranks) < counts.CLOSED_RANKING + 3 * np.std(ranks) / np.sqrt(len(ranks))


def test_attacks_open_what_counting_calls_open(trials: list[Trial]) -> None:
    said: Counter[Target] = Counter()
    for run in trials:
        for target, theorem in counted(run.deployment).items():
            if theorem.open and run.heard:
                said[target] += 1
                assert run.got[target].open, (theorem, run.got[target], run.deployment)
    assert said[Target.COVARIANCE] > 30 and said[Target.LEADING] > 30


def test_one_real_record_is_not_called_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its matrix is x x^T: the record follows up to its sign, and no rotation hides it."""
    alone = Deployment(8, 3, 2, 1, np.full(3, 1), fp.SSI(2))
    two = Deployment(8, 3, 2, 1, np.full(3, 2), fp.SSI(2))
    assert Target.RECORDS not in counted(alone) and Target.RECORDS in counted(two)
    monkeypatch.setattr(counts, "_ROTATED", 1)
    assert Target.RECORDS in counted(alone)


def test_a_weak_epsilon_closes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = [np.random.default_rng(k).normal(size=(8, 50)) for k in range(3)]
    problem = fp.problems.problem.from_blocks(blocks, public=("the columns",))

    def closed(epsilon: float) -> set[Target]:
        noisy = problem.private(epsilon, 1e-6, 5.0, Streams(0))
        public = Deployment(8, 3, 2, 1, np.full(3, 50), fp.SSI(2), guarantee=noisy.guarantee)
        return {one.target for one in counted(public).values() if not one.open}

    assert Target.MEMBERSHIP in closed(1.0) and Target.MEMBERSHIP not in closed(10.0)
    monkeypatch.setattr(counts, "CLOSED_RANKING", 1.0)
    assert Target.MEMBERSHIP in closed(10.0)
