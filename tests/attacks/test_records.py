"""From a second-moment matrix to the very records, certified or not at all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core import attacks
from fedpca_core.attacks.lattice.records import Records
from fedpca_core.attacks.low_rank import Factor
from fedpca_core.attacks.scores import recovered_records
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import images
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.streams import Streams

DIGITS = images("digits", centre=False)
FACTS = DIGITS.announced
POOL = np.rint(np.hstack(DIGITS.blocks) * 16.0)  # whole numbers from 0 to 16
MEAN, TOTAL = POOL.mean(axis=1), POOL.shape[1]


def some(count: int, seed: int = 0) -> np.ndarray:
    return POOL[:, np.random.default_rng(seed).choice(TOTAL, count, replace=False)]


def moment(block: np.ndarray) -> Factor:
    return attacks.factor_of(block @ block.T / block.shape[1], block.shape[1])


def exact(found: Records, truth: np.ndarray) -> bool:
    steps = np.ones(len(truth))
    return found.certified and recovered_records(found.values, truth, steps) == truth.shape[1]


@pytest.mark.parametrize("count", [1, 2, 5, 12, 30])
def test_centred_records_are_found_exactly_and_nothing_else_explains_them(count):
    block = some(count, count)
    found = attacks.records(moment(block - MEAN[:, None]), 1.0, MEAN, TOTAL)
    assert exact(found, block), found.note
    assert found.certificate.unique
    assert not found.certificate.ambiguity
    assert found.certificate.largest_distance < 1e-6
    assert found.certificate.log10_chance < -12
    assert "Certified" in found.note


@pytest.mark.parametrize("count", [1, 5, 12, 30])
def test_uncentred_records_are_found_with_the_sign_that_is_brighter(count):
    block = some(count, count)
    found = attacks.records(moment(block))
    assert exact(found, block), found.note
    certificate = found.certificate
    assert not certificate.unique
    assert certificate.ambiguity == "each record may be its negative" and "negative" in found.note
    # The schema decides them: a pixel is never below 0.
    bounds = np.tile([0.0, 16.0], (64, 1))
    bounded = attacks.records(moment(block), bounds=bounds)
    assert (
        exact(bounded, block) and bounded.certificate.unique and not bounded.certificate.ambiguity
    )
    # Records that are negative by their schema are found as such.
    turned = attacks.records(moment(-block), bounds=-bounds[:, ::-1])
    assert exact(turned, -block) and turned.certificate.unique


def test_the_first_message_of_a_run_gives_the_records_of_every_client_away():
    problem = images("digits", 20, max_samples=200)
    facts = problem.announced
    run = fp.simulate(problem, fp.SSI(10), rounds=1).transcript
    for client, block in enumerate(problem.blocks):
        factor = attacks.low_rank(run, client)
        found = attacks.records(factor, facts.grid, facts.mean, facts.records_total)
        raw = block + facts.mean[:, None]
        assert found.certified, found.note
        assert recovered_records(found.values, raw, facts.grid) == 10
        np.testing.assert_allclose(found.values, found.whole * facts.grid[:, None])


def test_float32_messages_do_not_stop_it():
    problem = images("digits", 20, max_samples=200)
    facts = problem.announced
    run = fp.simulate(problem, fp.SSI(12), rounds=1, channel=fp.Channel(dtype="float32"))
    factor = attacks.low_rank(run.transcript, 3)
    found = attacks.records(factor, facts.grid, facts.mean, facts.records_total)
    raw = problem.blocks[3] + facts.mean[:, None]
    assert recovered_records(found.values, raw, facts.grid) == 10, found.note


def test_the_order_of_records_and_features_does_not_matter():
    block, generator = some(9), np.random.default_rng(1)
    there = generator.permutation(64)
    shuffled = block[there][:, generator.permutation(9)]
    first = attacks.records(moment(block - MEAN[:, None]), 1.0, MEAN, TOTAL)
    second = attacks.records(moment(shuffled - MEAN[there, None]), 1.0, MEAN[there], TOTAL)
    assert exact(first, block)
    assert recovered_records(second.values, first.values[there], np.ones(64)) == 9


def test_the_same_input_gives_the_same_result():
    factor = moment(some(8) - MEAN[:, None])
    one, two = (attacks.records(factor, 1.0, MEAN, TOTAL) for _ in range(2))
    np.testing.assert_array_equal(one.whole, two.whole)
    assert one.note == two.note


def test_repeated_and_empty_records_are_counted():
    block = some(6)
    twice = np.hstack([block, block[:, :2]])
    found = attacks.records(moment(twice - MEAN[:, None]), 1.0, MEAN, TOTAL)
    assert exact(found, twice), found.note
    blank = np.hstack([block, block[:, :1], np.zeros((64, 1))])
    assert exact(attacks.records(moment(blank)), blank)


@pytest.mark.parametrize("mean", [None, MEAN], ids=["uncentred", "centred"])
def test_records_of_length_one_are_found_up_to_their_common_divisor(mean):
    block = some(10)
    block[0] = 1.0  # a pixel of 1 leaves no common divisor
    centre = None if mean is None else np.where(np.arange(64) == 0, 0.5, mean)
    sent = block if centre is None else block - centre[:, None]
    sent = sent / np.linalg.norm(sent, axis=0)
    found = attacks.records(moment(sent), 1.0, centre, 2 * TOTAL, unit_length=True)
    assert exact(found, block), found.note


def test_columns_with_steps_of_their_own_and_one_hot_columns():
    generator = np.random.default_rng(2)
    ages, amounts = generator.integers(20, 80, (4, 300)), generator.integers(0, 400, (4, 300))
    codes = np.eye(4)[generator.integers(0, 4, 300)].T
    table = np.vstack([ages, amounts / 10.0, codes])
    steps = np.where((np.arange(12) >= 4) & (np.arange(12) < 8), 0.1, 1.0)
    mean, deviation = table.mean(axis=1), table.std(axis=1)
    facts = PublicFacts(steps, mean, 300).scaled(deviation)
    sent = (table - mean[:, None]) / deviation[:, None]
    block = table[:, :5]
    found = attacks.records(moment(sent[:, :5]), facts.grid, facts.mean, facts.records_total)
    assert found.certified, found.note
    assert recovered_records(found.values * deviation[:, None], block, steps) == 5


@pytest.mark.data("olivetti")
def test_faces_from_the_first_message(data_folder):
    problem = images("olivetti", resolution=32, folder=data_folder, heterogeneity=1.0)
    facts = problem.announced
    run = fp.simulate(problem, fp.SSI(10), rounds=1).transcript
    for client in (0, 17, 39):
        factor = attacks.low_rank(run, client)
        found = attacks.records(factor, facts.grid, facts.mean, facts.records_total)
        raw = problem.blocks[client] + facts.mean[:, None]
        assert recovered_records(found.values, raw, facts.grid) == 10, found.note
        assert found.certificate.unique


def failing(kind: str, seed: int) -> tuple[Factor, dict[str, Any]]:
    """An attack that has no right answer, or is told a wrong fact."""
    generator = np.random.default_rng(seed)
    block = some(int(generator.integers(3, 15)) if kind != "too many" else 62, seed)
    block = block - MEAN[:, None]
    matrix = block @ block.T / block.shape[1]
    facts: dict[str, Any] = {"grid": 1.0, "mean": MEAN, "records_total": TOTAL, "budget": 1e8}
    if kind == "noise":
        noise = generator.standard_normal(matrix.shape)
        matrix = matrix + 10 ** generator.uniform(0, 2) * (noise + noise.T)
    elif kind == "wrong grid":
        facts["grid"] = generator.uniform(1.02, 1.9)
    elif kind == "wrong mean":
        facts["mean"] = generator.permutation(MEAN)
    elif kind == "mean kept back":
        facts["mean"] = facts["records_total"] = None
    return attacks.factor_of(matrix, block.shape[1]), facts


@pytest.mark.parametrize(
    "kind", ["noise", "too many", "wrong grid", "wrong mean", "mean kept back"]
)
def test_nothing_is_certified_where_it_must_fail(kind):
    for seed in range(12):
        factor, facts = failing(kind, seed)
        found = attacks.records(factor, **facts)
        assert not found.certified
        assert found.whole is None and found.values is None
        assert found.note.startswith("Not certified")


@pytest.mark.parametrize("total", [TOTAL - 13, 2**20])
def test_a_mean_needs_no_exact_denominator(total):
    block = some(8, 3)
    found = attacks.records(moment(block - MEAN[:, None]), 1.0, MEAN, total)
    assert exact(found, block), found.note
    assert found.certificate.largest_distance < 1e-3


def test_where_more_than_one_set_explains_the_matrix_none_is_certified():
    # The rows of X generate D_4 only, whose dual has three orthonormal sets.
    rows = np.array([[1, 1, 0, 0], [1, -1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 1, -1]])
    block = np.vstack([rows, 3 * rows, 5 * rows]).astype(float)
    found = attacks.records(moment(block))
    assert not found.certified
    assert "3 sets of whole records" in found.note


def test_bounds_of_the_features_decide_between_sets_of_whole_records():
    # The rows generate D_4 again, but only one of its three sets has no negative entries.
    rows = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [2, 0, 0, 0]])
    block = np.vstack([rows, 3 * rows, 5 * rows, 7 * rows]).astype(float)
    bounds = np.tile([0.0, np.inf], (len(block), 1))
    assert not attacks.records(moment(block)).certified
    found = attacks.records(moment(block), bounds=bounds)
    assert exact(found, block), found.note
    assert "Of 3 sets of whole records" in found.note
    above = attacks.records(moment(block), bounds=bounds + 1.0)
    assert not above.certified and "0 sets of whole records" in above.note


def test_an_index_two_lattice_is_completed_by_its_dual():
    generator = np.random.default_rng(4)
    block = generator.integers(0, 9, (40, 6)).astype(float)
    block[:, 0] += block.sum(axis=1) % 2  # every row has an even sum: the rows generate D_6 only
    found = attacks.records(moment(block))
    assert exact(found, block), found.note
    assert found.attempts[-1].only


def test_noise_at_the_source_leaves_nothing_to_read():
    problem = images("digits", 20, max_samples=200, centre=False)
    clip = max(float(np.linalg.norm(block, axis=0).max()) for block in problem.blocks)
    private = problem.private(10.0, 1e-6, clip, Streams(0))
    run = fp.simulate(private, fp.SSI(10), rounds=2).transcript
    for noisy in (
        attacks.low_rank(run, 0),
        attacks.factor_of(private.client_data.dense()[0], 10),
        attacks.factor_of(private.client_data.dense()[0], 10, error=1.0),
    ):
        found = attacks.records(noisy, private.announced.grid, budget=1e7)
        assert not found.certified
    assert "noise buries" in found.note


def test_it_can_be_watched_and_stopped():
    factor, facts = failing("wrong grid", 1)
    stages = list(attacks.record_stages(factor, **facts))
    assert [len(stage.attempts) for stage in stages] == list(range(len(stages)))
    assert len(stages) > 2
    frugal = attacks.records(factor, **{**facts, "budget": 0.0})
    assert frugal.attempts == ()


def test_facts_that_do_not_fit_are_refused():
    factor = moment(some(3))
    with pytest.raises(InvalidInput, match="A mean needs the number of records"):
        attacks.records(factor, 1.0, MEAN)
    with pytest.raises(InvalidInput, match="not shape \\(3,\\)"):
        attacks.records(factor, 1.0, np.zeros(3), 10)
    with pytest.raises(InvalidInput, match="64 of 64 have none"):
        attacks.records(factor, 0.0)


def test_public_facts_fit_the_blocks_they_are_announced_for():
    assert FACTS is not None and FACTS.mean is None
    centred = images("digits")
    facts = centred.announced
    whole = (np.hstack(centred.blocks) + facts.mean[:, None]) / facts.grid[:, None]
    np.testing.assert_allclose(whole, np.rint(whole), atol=1e-9)
    assert facts.records_total == TOTAL
