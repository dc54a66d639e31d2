"""Scores, thresholds and metrics against their definitions; the federated autoencoder."""

from typing import Any

import numpy as np
import pytest

from fedpca_core import InvalidInput
from fedpca_core.algorithms import FedPG
from fedpca_core.anomaly import autoencoder, detectors
from fedpca_core.anomaly.evaluation import (
    area,
    best_for_labels,
    caught_at,
    caught_by_type,
    contributions,
    curves,
    evaluate,
    quantile,
    reconstruct,
    score,
)
from fedpca_core.linalg.stiefel import uniform_frame
from fedpca_core.problems import traffic
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate


def done(work):
    """What a generator of progress returns at its end."""
    while True:
        try:
            assert 0 <= next(work) <= 1
        except StopIteration as end:
            return end.value


@pytest.fixture(scope="module")
def detection():
    return traffic.prepare(traffic.synthetic(), clients=100)


def test_the_margin_of_an_area_holds_what_other_draws_give():
    generator, areas = np.random.default_rng(0), []
    for _ in range(400):
        scores = np.concatenate([generator.exponential(1.0, 300), generator.exponential(3.0, 40)])
        attack = np.repeat([False, True], [300, 40])
        at = evaluate(attack, scores, 1.0)
        areas.append((at.auc, at.auc_margin))
    true = 3.0 / (3.0 + 1.0)  # one exponential above another
    held = np.mean([abs(area - true) <= margin for area, margin in areas])
    assert 0.92 <= held <= 0.98
    perfect = evaluate(np.array([True, False]), np.array([1.0, 0.0]), 0.5)
    assert perfect.auc == 1.0 and perfect.auc_margin > 0.9


def test_score_is_the_squared_distance():
    generator = np.random.default_rng(0)
    records = generator.standard_normal((9001, 12))
    frame = uniform_frame(generator, 12, 4)
    rest = records - reconstruct(records, frame)
    np.testing.assert_allclose(score(records, frame), (rest**2).sum(axis=1), rtol=1e-10)
    np.testing.assert_allclose(score(records, None), (records**2).sum(axis=1))
    inside = records[:5] @ frame @ frame.T
    assert (score(inside, frame) >= 0).all() and score(inside, frame).max() < 1e-12
    assert (score(records @ np.eye(12), np.eye(12)) < 1e-10).all()


def test_contributions_add_up_to_the_score():
    generator = np.random.default_rng(1)
    record, frame = generator.standard_normal(8), uniform_frame(generator, 8, 3)
    parts = contributions(record, frame)
    assert parts.sum() == pytest.approx(score(record[None], frame)[0])
    assert contributions(record, None).sum() == pytest.approx(record @ record)


def test_scores_do_not_depend_on_the_basis():
    generator = np.random.default_rng(2)
    records, frame = generator.standard_normal((50, 9)), uniform_frame(generator, 9, 3)
    turn = uniform_frame(generator, 3, 3)
    np.testing.assert_allclose(score(records, frame), score(records, frame @ turn), atol=1e-12)


def test_wrong_features_are_refused():
    with pytest.raises(InvalidInput, match="records have 5 features but the model 6"):
        score(np.zeros((3, 5)), np.eye(6)[:, :2])


# ---------------------------------------------------------------------- metrics
def test_metrics_by_hand():
    attack = np.array([1, 1, 1, 0, 0, 0, 0], dtype=bool)
    scores = np.array([9.0, 8.0, 1.0, 7.0, 2.0, 1.0, 0.0])
    judged = evaluate(attack, scores, 5.0)
    assert (judged.caught, judged.missed, judged.false_alarms, judged.quiet) == (2, 1, 1, 3)
    assert judged.accuracy == pytest.approx(5 / 7)
    assert judged.precision == judged.recall == judged.f1 == pytest.approx(2 / 3)
    assert judged.fnr == pytest.approx(1 / 3)
    assert judged.fpr == pytest.approx(1 / 4)
    pairs = [(a > n) + 0.5 * (a == n) for a in scores[attack] for n in scores[~attack]]
    assert judged.auc == pytest.approx(np.mean(pairs))


def test_always_alarm_has_the_share_of_attacks_as_accuracy(detection):
    judged = evaluate(detection.attack, np.zeros(len(detection.attack)), -np.inf)
    assert judged.accuracy == pytest.approx(detection.attack_share)
    assert judged.recall == judged.fpr == 1
    assert judged.auc == 0.5


def test_metrics_refuse_one_class_and_bad_scores():
    with pytest.raises(InvalidInput, match="hold attacks only"):
        evaluate(np.ones(3, bool), np.arange(3.0), 1)
    with pytest.raises(InvalidInput, match="hold no attacks"):
        area(np.zeros(3, bool), np.arange(3.0))
    with pytest.raises(InvalidInput, match="not finite"):
        area(np.array([True, False]), np.array([np.nan, 1]))
    with pytest.raises(InvalidInput, match="3 scores for 2 labels"):
        area(np.array([True, False]), np.zeros(3))


def test_thin_curves_keep_their_ends_and_area(detection):
    scores = score(detection.records, detection.problem.target(6))
    drawn = curves(detection.attack, scores, points=200)
    assert len(drawn.false_positive_rate) <= 202
    assert drawn.false_positive_rate[0] == 0 and drawn.true_positive_rate[-1] == 1
    under = np.trapezoid(drawn.true_positive_rate, drawn.false_positive_rate)
    assert under == pytest.approx(area(detection.attack, scores), abs=2e-3)
    assert drawn.recall[0] == 0 and drawn.recall[-1] == 1


def test_types_share_out_the_attacks_caught(detection):
    scores = score(detection.records, detection.problem.target(6))
    judged = evaluate(detection.attack, scores, 5.0)
    table = caught_by_type(detection.attack, detection.types, scores, 5.0)
    assert (table["records"] * table["caught"]).sum() == pytest.approx(judged.caught)
    weighted = (table["auc"] * table["records"]).sum() / table["records"].sum()
    assert weighted == pytest.approx(judged.auc)


# ---------------------------------------------------------------------- thresholds
def test_the_oracle_has_the_largest_youden_index(detection):
    scores = score(detection.records, detection.problem.target(6))
    best = evaluate(detection.attack, scores, best_for_labels(detection.attack, scores))
    gain = best.recall - best.fpr
    for threshold in np.quantile(scores, np.linspace(0, 1, 101)):
        judged = evaluate(detection.attack, scores, threshold)
        assert judged.recall - judged.fpr <= gain + 1e-12


def test_the_oracle_may_choose_never_to_alarm():
    attack = np.array([True, False, False])
    scores = np.array([0.0, 1.0, 2.0])
    judged = evaluate(attack, scores, best_for_labels(attack, scores))
    assert judged.recall == judged.fpr


def test_quantiles_hold_on_training_records():
    scores = np.random.default_rng(0).chisquare(3, 8000)
    assert (scores > quantile(scores, 0.9)).mean() == pytest.approx(0.1, abs=1e-3)
    with pytest.raises(InvalidInput, match="strictly between 0 and 1, not at 1"):
        quantile(scores, 1.0)


# ---------------------------------------------------------------------- detectors
def test_fedpg_detects_like_centralised_pca(detection):
    channel = Channel(dtype="float32")
    trace = simulate(detection.problem, FedPG(6), rounds=150, participation=0.1, channel=channel)
    run = detectors.from_run(detection, trace)
    exact = detectors.centralised(detection, 6)
    auc = {run.name: area(detection.attack, run.scores) for run in (run, exact)}
    assert auc["FedPG"] == pytest.approx(auc["Centralised PCA"], abs=0.01)
    baselines = [detectors.norm_only(detection), detectors.random_subspace(detection, 6)]
    assert auc["FedPG"] > 0.1 + max(area(detection.attack, y.scores) for y in baselines)
    assert run.upload_floats == 24 * 6
    assert run.bytes_total == trace.bytes_up[-1] + trace.bytes_down[-1]


def test_one_shot_covariance_is_exact_and_sends_its_triangle(detection):
    once, exact = detectors.one_shot_covariance(detection, 6), detectors.centralised(detection, 6)
    np.testing.assert_array_equal(once.scores, exact.scores)
    assert once.upload_floats == 24 * 25 // 2


def test_self_learning_fails_by_its_threshold_on_a_sorted_split():
    source = traffic.synthetic(normal=20_000, test=4000)
    shuffled, cut = traffic.prepare(source, split="iid"), traffic.prepare(source)
    even = done(detectors.self_learning(shuffled, 6, clients=12))
    narrow = done(detectors.self_learning(cut, 6, clients=12))
    assert np.median(even.false_alarms) < 0.11
    assert narrow.false_alarms.max() > 1.5 * even.false_alarms.max()
    exact = detectors.centralised(traffic.prepare(source, split="iid"), 6)
    attack = traffic.prepare(source).attack
    assert even.auc == pytest.approx(area(attack, exact.scores), abs=0.02)


# ---------------------------------------------------------------------- autoencoder
def test_backpropagation_against_differences():
    generator = np.random.default_rng(3)
    layers = (5, 4, 3, 5)
    flat: Any = generator.standard_normal((2, autoencoder.parameters(layers)))
    batch: Any = generator.standard_normal((2, 7, 5))
    _, slope = autoencoder.gradient(layers, flat, batch)
    for index in range(0, flat.shape[1], 5):
        shift = np.zeros_like(flat)
        shift[:, index] = 1e-6
        ahead = autoencoder.gradient(layers, flat + shift, batch)[0]
        behind = autoencoder.gradient(layers, flat - shift, batch)[0]
        np.testing.assert_allclose(slope[:, index], (ahead - behind) / 2e-6, rtol=1e-5, atol=1e-7)


def test_federated_autoencoder_learns_and_counts_its_bytes(detection):
    network = autoencoder.Network(24)
    model = done(autoencoder.training(detection.problem, network, rounds=15, local_epochs=2))
    assert model.losses[-1] < 0.75 * model.losses[0]
    assert network.parameters == autoencoder.parameters((24, 32, 16, 32, 24)) == len(model.weights)
    assert model.bytes_up == model.bytes_down == 15 * 10 * 4 * network.parameters
    again = done(autoencoder.training(detection.problem, network, rounds=15, local_epochs=2))
    np.testing.assert_array_equal(model.weights, again.weights)


def test_sizes_of_the_published_autoencoder():
    assert autoencoder.parameters((39, *autoencoder.FEDAE, 39)) == 3639


@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.25])
def test_attacks_caught_at_few_false_alarms_are_those_of_the_best_threshold(share):
    generator = np.random.default_rng(3)
    attack = generator.random(3000) < 0.4
    scores = np.round(generator.standard_normal(3000) + 1.5 * attack, 1)  # with ties
    best = 0.0
    for threshold in np.unique(scores):
        alarm = scores > threshold
        if alarm[~attack].mean() <= share:
            best = max(best, alarm[attack].mean())
    assert caught_at(attack, scores, share) == best


def test_a_task_says_what_every_client_holds():
    found = traffic.prepare(traffic.synthetic(), clients=12, split="pathological", each=2)
    assert found.held.sum() == len(found.source.normal) and len(found.held) == 12
    assert ((found.held > 0).sum(axis=1) <= 2).all()


def test_a_plain_step_is_the_rate_times_the_slope():
    made = np.random.default_rng(0)
    network = autoencoder.Network(5, (4, 2, 4), rate=0.1, plain=True)
    start = made.standard_normal(network.parameters).astype(np.float32).astype(float)
    records = made.standard_normal((40, 5)).astype(np.float32)
    rows = np.arange(40).reshape(2, 1, 20)
    stepped, _ = network.descend(start, records, rows, made)
    flat = np.repeat(start.astype(np.float32)[None], 2, axis=0)
    _, slope = autoencoder.gradient(network.stacks[0], flat, records[rows[:, 0]])
    np.testing.assert_allclose(stepped, start - 0.1 * slope, atol=1e-6)


def test_inputs_are_clipped_where_the_network_says(detection):
    def learnt(clip):
        network = autoencoder.Network(24, clip=clip)
        return done(autoencoder.training(detection.problem, network, rounds=2, batch=32))

    far, never, near = learnt(1e6), learnt(np.inf), learnt(1.0)
    np.testing.assert_array_equal(far.weights, never.weights)
    assert not np.array_equal(far.weights, near.weights)
    inside = np.clip(detection.records, -1, 1)
    np.testing.assert_array_equal(
        autoencoder.score(near, detection.records), autoencoder.score(near, inside)
    )
