"""Eigenvectors without sizes give few whole-number records away."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core import attacks
from fedpca_core.attacks.attack import Deployment
from fedpca_core.attacks.lattice.span import matrices_of_span
from fedpca_core.findings import Status, Target
from fedpca_core.problems.announced import PublicFacts
from fedpca_core.steps import outcome
from fedpca_core.trial import trial


def drawn(seed: int, features: int, count: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 17, (features, count)).astype(float)


def eigenvectors(block: np.ndarray) -> np.ndarray:
    return np.linalg.svd(block, full_matrices=False)[0]


def found(vectors: np.ndarray, steps: np.ndarray, **told: object) -> attacks.Records | None:
    for factor in matrices_of_span(vectors, steps, **told):
        taken = attacks.records(factor, steps)
        if taken.certified:
            return taken
    return None


def same(taken: attacks.Records | None, block: np.ndarray) -> bool:
    assert taken is not None and taken.whole is not None
    return sorted(map(tuple, taken.whole.T)) == sorted(map(tuple, block.T.astype(int)))


@pytest.mark.parametrize(("features", "count"), [(30, 1), (30, 4), (40, 8), (196, 6), (60, 10)])
def test_every_record_follows_from_the_span(features: int, count: int) -> None:
    for seed in range(3):
        block = drawn(seed, features, count)
        trace = float((block**2).sum() / count)
        assert same(found(eigenvectors(block), np.ones(features), trace=trace), block)


def test_neither_the_trace_nor_full_precision_is_needed() -> None:
    block = drawn(1, 40, 5)
    assert same(found(eigenvectors(block), np.ones(40)), block)
    rounded = eigenvectors(block).astype(np.float32).astype(float)
    assert same(found(rounded, np.ones(40)), block)


def test_columns_may_have_steps_of_their_own() -> None:
    steps = np.where(np.arange(30) % 2 == 0, 1.0, 0.1)
    block = drawn(2, 30, 4)
    assert same(found(eigenvectors(block * steps[:, None]), steps), block)


@pytest.mark.parametrize("count", [2, 5, 8])
def test_a_public_mean_hides_nothing(count: int) -> None:
    everybody = drawn(0, 40, 150)
    mean = everybody.mean(axis=1)
    for seed in range(3):
        block = everybody[:, np.random.default_rng(seed).choice(150, count, replace=False)]
        sent = block - mean[:, None]
        vectors, size = eigenvectors(sent)[:, :count], float((sent**2).sum() / count)
        taken = [
            attacks.records(factor, 1.0, mean, 150)
            for factor in matrices_of_span(vectors, np.ones(40), mean=mean, trace=size)
        ]
        assert same(next((one for one in taken if one.certified), None), block)


def test_real_records_give_nothing() -> None:
    for seed in range(5):
        block = np.random.default_rng(seed).normal(0.0, 5.0, (30, 4))
        assert found(eigenvectors(block), np.ones(30)) is None


def test_what_is_found_has_the_eigenvectors_that_were_sent() -> None:
    block = drawn(3, 30, 4)
    (first, *_) = matrices_of_span(eigenvectors(block), np.ones(30))
    matrix = first.matrix @ first.matrix.T
    np.testing.assert_allclose(matrix, block @ block.T / 4, atol=1e-9)


def test_the_stated_trace_singles_out_the_sizes() -> None:
    """Twice the records send the same vectors: without a trace the smaller ones are taken."""
    block = 2.0 * drawn(4, 30, 3)
    vectors, trace = eigenvectors(block), float((block**2).sum() / 3)
    assert same(found(vectors, np.ones(30), trace=trace), block)
    assert same(found(vectors, np.ones(30)), block / 2.0)
    for one in matrices_of_span(vectors, np.ones(30), trace=trace):
        assert float((one.matrix**2).sum()) == pytest.approx(trace)
    assert not list(matrices_of_span(vectors, np.ones(30), trace=1.3 * trace))


@pytest.mark.parametrize("components", [4, 6])
@pytest.mark.parametrize("centring", ["none", "announced"])
def test_a_run_of_one_shot_averaging_is_open(components: int, centring: str) -> None:
    blocks = [drawn(seed, 30, 4) for seed in range(3)]
    mean = np.hstack(blocks).mean(axis=1) if centring == "announced" else np.zeros(30)
    sent = [one - mean[:, None] for one in blocks]
    algorithm = fp.OneShot(components)
    trace = fp.simulate(fp.problems.problem.from_blocks(sent), algorithm, rounds=1)
    deployment = Deployment(
        30,
        3,
        components,
        1,
        np.full(3, 4),
        algorithm,
        records=PublicFacts(np.ones(30), mean if centring == "announced" else None, 12),
        centring=centring,
        trace=float((sent[1] ** 2).sum() / 4),
    )
    run = outcome(trial(trace.transcript, deployment, 1))
    finding = {one.target: one for one in run.findings}
    assert finding[Target.RECORDS].status is Status.OPEN
    assert finding[Target.COVARIANCE].status is Status.OPEN
    assert same(run.taken["lattice"], blocks[1])
