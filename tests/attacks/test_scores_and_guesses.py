"""Baselines, truth-side scores, records from S_i, row membership, the table of adversaries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core import attacks
from fedpca_core.arrays import Array
from fedpca_core.attacks import random_subspace, scaled_identity, scores
from fedpca_core.attacks.registry import ON_MATRICES
from fedpca_core.errors import InvalidInput
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.questions.attack.client_trial import ADVERSARIES
from fedpca_core.study.parts import names
from fedpca_core.study.pca_settings import AttackSettings
from tests.attacks.runs import problem, relative, transcript, truth


def test_public_baselines_have_the_stated_trace():
    generator = np.random.default_rng(0)
    np.testing.assert_allclose(scaled_identity(4, 2.0), 0.5 * np.eye(4))
    random = random_subspace(12, 3, 2.0, generator)
    assert np.trace(random) == pytest.approx(2.0)
    assert np.linalg.matrix_rank(random) == 3
    with pytest.raises(InvalidInput, match="20 components does not fit 12 features"):
        random_subspace(12, 20, 2.0, generator)


def test_the_pooled_mean_is_nearer_than_the_others_by_the_clients_own_share():
    of = fp.problems.decay_spectrum(12, [30, 60, 90], condition=10.0, seed=0)
    data = of.client_data
    for client, own in enumerate(data.dense()):
        others = data.only(np.delete(np.arange(3), client)).mean()
        ratio = relative(data.mean(), own) / relative(others, own)
        assert ratio == pytest.approx(1 - data.weights[client])


def test_scores_of_a_perfect_and_of_a_useless_guess():
    private = truth(problem(16, 40))
    assert scores.relative_error(private, private) == 0
    assert scores.relative_error(0 * private, private) == 1
    assert scores.top_space_sines(private[None], private, 3)[0] < 1e-7
    values, vectors = np.linalg.eigh(private)
    swapped = (vectors * values[::-1]) @ vectors.T
    assert scores.top_space_sines(swapped[None], private, 3)[0] == pytest.approx(1.0)
    stack = np.stack([private, 0 * private])
    np.testing.assert_allclose(scores.relative_errors(stack, private), [0, 1])


def test_eigen_images_are_compared_after_turning_signs():
    private = truth(problem(64, 100))
    perfect = scores.eigen_image_scores(private, private, (8, 8), 3)
    assert all(score.psnr == float("inf") and score.ssim == pytest.approx(1) for score in perfect)
    rng = np.random.default_rng(0)
    blurred = private + 0.02 * rng.standard_normal(private.shape)
    for score in scores.eigen_image_scores(blurred, private, (8, 8), 3):
        assert 0 < score.psnr < 60 and score.ssim < 1
    flipped = scores.aligned(-np.eye(4)[:, :2], np.eye(4)[:, :2])
    np.testing.assert_array_equal(flipped, np.eye(4)[:, :2])
    picture = rng.random(9)
    with pytest.raises(InvalidInput, match="do not fill 4 x 4"):
        scores.image_score(picture, picture, (4, 4))
    with pytest.raises(InvalidInput, match="true picture is constant"):
        scores.image_score(picture, np.ones(9), (3, 3))


def test_one_record_is_recovered_exactly_from_what_ssi_sends():
    rng = np.random.default_rng(5)
    blocks = [rng.random((20, 1)), *[rng.random((20, 60)) for _ in range(3)]]
    of = fp.problems.problem.from_blocks(blocks)
    run = transcript(of, fp.SSI(4), 10)
    record = attacks.recover_samples(attacks.symmetric(run), samples=1)
    np.testing.assert_allclose(record, blocks[0], atol=1e-6)


def test_few_records_are_recovered_up_to_a_rotation():
    rng = np.random.default_rng(6)
    records = rng.standard_normal((30, 4))
    found = attacks.recover_samples(records @ records.T / 4, samples=4)
    np.testing.assert_allclose(found @ found.T, records @ records.T, atol=1e-10)
    np.testing.assert_allclose(scores.aligned(found, records, rotate=True), records, atol=1e-10)
    with pytest.raises(InvalidInput, match="between 1 and 29 of them, not 30"):
        attacks.recover_samples(np.eye(30), samples=30)


def neighbours() -> tuple[Array, Array]:
    """Two candidates for client 0's matrix that differ in one record."""
    rng = np.random.default_rng(8)
    block = rng.standard_normal((12, 30))
    other = block.copy()
    other[:, 0] = rng.standard_normal(12)
    return block @ block.T / 30, other @ other.T / 30


def with_answers(run: Transcript, answers: list[Array]) -> Transcript:
    """The same broadcasts with other answers of client 0."""
    exchanges = tuple(
        replace(exchange, uploads={"product": answer[None]}, participants=np.array([0]))
        for exchange, answer in zip(run.exchanges, answers, strict=True)
    )
    return replace(run, exchanges=exchanges)


def test_membership_scores_follow_their_theory():
    first, second = neighbours()
    rng = np.random.default_rng(9)
    plain = transcript(problem(12, 60), fp.SSI(3), 6)
    noise = 0.35
    probes = [probe for probe, _ in plain.pairs(0)]
    runs: dict[int, list[float]] = {0: [], 1: []}
    for label, matrix in enumerate((first, second)):
        for _ in range(400):
            answers = [matrix @ p + noise * rng.standard_normal(p.shape) for p in probes]
            run = with_answers(plain, answers)
            runs[label].append(attacks.membership_score(run, first, second, noise)[0])
    separation = attacks.membership_score(plain, first, second, noise)[1]
    assert 0.5 < separation < 3
    spread = separation / np.sqrt(400)
    assert np.mean(runs[0]) == pytest.approx(separation**2 / 2, abs=4 * spread)
    assert np.mean(runs[1]) == pytest.approx(-(separation**2) / 2, abs=4 * spread)
    measured = attacks.empirical_auc(np.array(runs[0]), np.array(runs[1]))
    assert measured == pytest.approx(attacks.theoretical_auc(separation), abs=0.05)


def test_area_under_the_curve():
    assert attacks.theoretical_auc(0.0) == 0.5
    assert attacks.empirical_auc(np.array([2.0, 3.0]), np.array([0.0, 1.0])) == 1.0
    assert attacks.empirical_auc(np.ones(3), np.ones(3)) == 0.5
    with pytest.raises(InvalidInput, match="runs of both candidates, not 0 and 1"):
        attacks.empirical_auc(np.array([]), np.ones(1))


def test_membership_needs_noise():
    run = transcript(problem(12, 60), fp.SSI(3), 2)
    with pytest.raises(InvalidInput, match="question about noisy answers, and the noise is 0"):
        attacks.membership_score(run, *neighbours(), noise=0.0)


def test_every_adversary_is_an_attack_of_the_registry():
    for key in AttackSettings.parameters()["attack"].choices:
        assert ADVERSARIES[key] in ON_MATRICES
        assert names("adversary-knows")[key] and names("adversary-does")[key]
