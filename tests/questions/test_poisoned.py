"""A few malicious clients, and what heals."""

from dataclasses import replace

import numpy as np
import pytest

from fedpca_core import InvalidInput
from fedpca_core.problems import traffic
from fedpca_core.protocol import run as any_run
from fedpca_core.questions.anomaly import poisoned
from fedpca_core.questions.anomaly.poisoned import RULES, Courses, Poisoned, hidden_type, poison
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.steps import outcome

SETTINGS = AnomalySettings(problem="synthetic", components=6, view="poisoning")


@pytest.fixture(scope="module")
def runs():
    task = traffic.prepare(traffic.synthetic(normal=4000, test=1600), clients=100)
    return {rule: outcome(poison(SETTINGS, task, "scan", rule, 320)) for rule in RULES}


def auc(run, low, high):
    return run.auc[run["round"].between(low, high)]


def stages(run):
    return Courses(None, "scan", 1, run).stages()[run["rule"][0]]


def test_one_client_of_a_hundred_hides_its_attack_for_good(runs):
    run = runs["nothing"]
    assert auc(run, 90, 100).min() > 0.95
    before, worst, _ = stages(run)
    assert before == run.auc[run["round"] == 100].item() and worst < 0.6
    assert auc(run, 300, 320).max() < 0.85, "the duals keep the lie after the attacker has left"
    assert run.dual_sum[run["round"] <= 100].max() < 1e-6
    assert run.dual_sum.iloc[-1] > 1


def test_resetting_the_duals_heals(runs):
    run = runs["reset"]
    assert stages(run)[1] < 0.6
    assert auc(run, 300, 320).min() > 0.95
    assert run.dual_sum.iloc[-1] < 1e-6


def test_the_printed_average_heals_by_itself(runs):
    _, worst, after = stages(runs["printed"])
    assert worst < 0.7 and after > 0.9


def test_orthonormal_uploads_weaken_one_attacker(runs):
    assert auc(runs["polar"], 110, 180).mean() > auc(runs["nothing"], 110, 180).mean()


def test_long_runs_keep_no_states(monkeypatch):
    """The duals are read round by round, so no limit on memory can end the run."""
    task = traffic.prepare(traffic.synthetic(normal=2000, test=400), clients=20)
    settings = replace(SETTINGS, components=4)
    kept = outcome(poison(settings, task, "scan", "nothing", 12))
    monkeypatch.setattr(any_run, "STATE_BYTES", 0)
    again = outcome(poison(settings, task, "scan", "nothing", 12))
    np.testing.assert_array_equal(again.dual_sum, kept.dual_sum)


def test_a_scan_is_hidden_unless_another_attack_is_chosen():
    task = traffic.prepare(traffic.synthetic(normal=1000, test=80), clients=20)
    assert hidden_type(SETTINGS, task) == "scan"
    assert hidden_type(replace(SETTINGS, hidden="beacon"), task) == "beacon"
    assert poisoned.preferred(["ddos", "xss"]) == "ddos"


def test_refusals():
    with pytest.raises(InvalidInput, match="no attack type “worm” in Synthetic traffic"):
        outcome(Poisoned().run(replace(SETTINGS, hidden="worm")))
    with pytest.raises(InvalidInput, match="2 malicious clients leave nobody honest among 2"):
        outcome(Poisoned().run(replace(SETTINGS, clients=2, malicious=2)))
