"""One malicious client, and what heals."""

import numpy as np
import pytest

from fedpca_core import InvalidInput
from fedpca_core.anomaly.poisoning import RULES, poison
from fedpca_core.problems import traffic
from fedpca_core.protocol import simulate


@pytest.fixture(scope="module")
def runs():
    detection = traffic.prepare(traffic.synthetic(normal=4000, test=1600), clients=100)
    options = {"rounds": 320, "first": 121, "last": 180, "every": 10}
    return {rule: poison(detection, 6, "scan", rule, **options) for rule in RULES}


def auc(run, low, high):
    return run.auc[(run.rounds >= low) & (run.rounds <= high)]


def test_one_client_of_a_hundred_hides_its_attack_for_good(runs):
    run = runs["nothing"]
    assert auc(run, 110, 120).min() > 0.95
    assert auc(run, 130, 180).min() < 0.6
    assert auc(run, 300, 320).max() < 0.8, "the duals keep the lie after the attacker has left"
    assert run.dual_sum[run.rounds <= 120].max() < 1e-6
    assert run.dual_sum[-1] > 1


def test_resetting_the_duals_heals(runs):
    run = runs["reset"]
    assert auc(run, 130, 180).min() < 0.6
    assert auc(run, 300, 320).min() > 0.95
    assert run.dual_sum[-1] < 1e-6


def test_the_printed_average_heals_by_itself(runs):
    assert auc(runs["printed"], 130, 180).min() < 0.7
    assert auc(runs["printed"], 300, 320).min() > 0.9


def test_orthonormal_uploads_weaken_one_attacker(runs):
    assert auc(runs["polar"], 130, 180).mean() > auc(runs["nothing"], 130, 180).mean()


def test_nobody_lying_changes_nothing():
    detection = traffic.prepare(traffic.synthetic(normal=2000, test=400), clients=20)
    honest = poison(detection, 4, "scan", malicious=0, rounds=30, first=5, last=20, every=30)
    assert honest.dual_sum[-1] < 1e-9


def test_long_runs_keep_no_states(monkeypatch):
    """The duals are read round by round, so no limit on memory can end the run."""
    detection = traffic.prepare(traffic.synthetic(normal=2000, test=400), clients=20)
    options = {"rounds": 12, "first": 3, "last": 5}
    kept = poison(detection, 4, "scan", **options)
    monkeypatch.setattr(simulate, "STATE_BYTES", 0)
    np.testing.assert_array_equal(poison(detection, 4, "scan", **options).dual_sum, kept.dual_sum)


def test_refusals():
    detection = traffic.prepare(traffic.synthetic(normal=1000, test=80), clients=20)
    with pytest.raises(InvalidInput, match="no attack type 'worm' in Synthetic traffic"):
        poison(detection, 3, "worm")
    with pytest.raises(InvalidInput, match="rule is one of nothing, reset, printed, polar"):
        poison(detection, 3, "scan", "median")
    with pytest.raises(InvalidInput, match="leave nobody honest among 20"):
        poison(detection, 3, "scan", malicious=20)
    assert np.isfinite(detection.records).all()
