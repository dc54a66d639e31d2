"""Block Krylov: optimal over its basis, safe at breakdown and restart, patient with absentees."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.block_krylov import CentredBlockKrylov
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.problems.client_data import ClientData
from tests.algorithms.small_problems import COMPONENTS, mixed


def rounds_to_relative_error(problem: fp.problems.Problem, algorithm: fp.BlockKrylov) -> int:
    table = fp.metrics.frame(fp.simulate(problem, algorithm, rounds=20), problem)
    return int((table.relative_error <= 1.07e-7).to_numpy().argmax())


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_few_rounds_on_the_rotated_uneven_spectrum(seed: int) -> None:
    sizes = [1000 * i for i in range(1, 9)]
    problem = fp.problems.decay_spectrum(200, sizes, 1.01, seed=seed)
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.standard_normal((200, 200)))[0]
    client_data = ClientData.from_grams(
        turn @ problem.client_data.dense() @ turn.T, np.array(sizes)
    )
    rotated = fp.problems.Problem(name="rotated", client_data=client_data)
    assert 1 <= rounds_to_relative_error(rotated, fp.BlockKrylov(10)) <= 13
    assert 1 <= rounds_to_relative_error(rotated, fp.BlockKrylov(10, blocks=40)) <= 12


def test_estimate_is_the_best_of_everything_the_server_was_sent() -> None:
    problem = mixed()
    trace = fp.simulate(problem, fp.BlockKrylov(COMPONENTS), rounds=6)
    probes = [exchange.downlink["frame"] for exchange in trace.transcript.exchanges]
    basis = np.concatenate(probes, axis=1)
    assert np.abs(basis.T @ basis - np.eye(basis.shape[1])).max() < 1e-13
    # The Krylov space of the pooled matrix, formed directly from the same start.
    powers = [probes[0]]
    for _ in range(5):
        powers.append(np.linalg.qr(problem.covariance @ powers[-1])[0])
    assert largest_sine(basis, np.linalg.qr(np.concatenate(powers, axis=1))[0]) < 1e-6
    _, vectors = np.linalg.eigh(basis.T @ problem.covariance @ basis)
    best = basis @ vectors[:, ::-1][:, :COMPONENTS]
    assert largest_sine(trace.estimate, best) < 1e-10


def test_it_stops_when_the_start_is_exhausted() -> None:
    problem = mixed()
    trace = fp.simulate(problem, fp.BlockKrylov(5, blocks=10), rounds=50)
    widths = [exchange.downlink["frame"].shape[1] for exchange in trace.transcript.exchanges]
    assert widths == [5, 5, 5, 5, 4]  # 24 features
    assert np.diff(trace.bytes_up).tolist() == [8 * 24 * 4 * width for width in widths]
    assert fp.metrics.frame(trace, problem).sin_theta.iloc[-1] < 1e-13


def test_breakdown_drops_columns() -> None:
    # Rank 4: after the first product there are at most 4 new directions, then none.
    matrix = np.diag([4.0, 3.0, 2.0, 1.0, *[0.0] * 8])
    client_data = ClientData.from_grams(np.stack([matrix, matrix]), np.array([5, 5]))
    problem = fp.problems.Problem(name="low rank", client_data=client_data)
    trace = fp.simulate(problem, fp.BlockKrylov(3), rounds=30)
    widths = [exchange.downlink["frame"].shape[1] for exchange in trace.transcript.exchanges]
    assert widths == [3, 3, 1]
    assert largest_sine(trace.estimate, problem.target(3)) < 1e-12


def test_restarts_keep_converging_to_rounding() -> None:
    problem = fp.problems.decay_spectrum(60, (3000, 2000), 1.01)
    trace = fp.simulate(problem, fp.BlockKrylov(4, blocks=3), rounds=120)
    table = fp.metrics.frame(trace, problem)
    assert trace.rounds == 120
    assert table.sin_theta.iloc[-1] < 1e-10


def test_with_memory_the_probe_waits_until_everyone_has_answered_it_once() -> None:
    problem = mixed()
    full = fp.simulate(problem, fp.BlockKrylov(COMPONENTS), rounds=6, seed=1)
    part = fp.simulate(problem, fp.BlockKrylov(COMPONENTS), rounds=40, participation=0.5, seed=1)
    estimates = [part.estimates[0]]
    for estimate in part.estimates[1:]:
        if not np.array_equal(estimate, estimates[-1]):
            estimates.append(estimate)
    for waited, direct in zip(estimates[1:], full.estimates[1:], strict=False):
        assert largest_sine(waited, direct) < 1e-8
    answers = np.zeros(problem.clients)
    for exchange in part.transcript.exchanges:
        answers[exchange.participants] += 1
    assert np.ptp(answers) <= 1
    assert len(estimates) - 1 == answers.min()
    secret = fp.simulate(
        problem,
        fp.BlockKrylov(COMPONENTS),
        rounds=40,
        participation=0.5,
        seed=1,
        channel=fp.Channel(secure_aggregation=True),
    )
    assert np.array_equal(secret.estimates, part.estimates)


def test_present_clients_only_leave_a_floor() -> None:
    problem = mixed()
    trace = fp.simulate(
        problem, fp.BlockKrylov(COMPONENTS), rounds=60, participation=0.5, absent="present"
    )
    assert fp.metrics.frame(trace, problem).sin_theta.min() > 1e-3


def test_too_small_a_basis_is_refused() -> None:
    with pytest.raises(InvalidInput, match="2 blocks leaves no room"):
        fp.simulate(mixed(), fp.BlockKrylov(3, blocks=2), rounds=1)


# ---------------------------------------------------------------------- centred by a constant
CONSTANT = 0.7


def constant_added(noise: float = 0.0) -> tuple[fp.problems.Problem, np.ndarray, np.ndarray]:
    """Records with one more feature, their mean, and their covariance about it."""
    rng = np.random.default_rng(4)
    blocks = [rng.standard_normal((6, m)) + 3 * np.arange(6.0)[:, None] for m in (20, 30, 50)]
    pooled = np.concatenate(blocks, axis=1)
    wider = [np.vstack([block, np.full(block.shape[1], CONSTANT)]) for block in blocks]
    data = ClientData.from_blocks(wider)
    if noise:
        moments = data.dense()
        added = noise * rng.standard_normal(moments.shape)
        grams = moments + added + added.transpose(0, 2, 1)
        data = ClientData.from_grams(grams, data.samples)
    return fp.problems.Problem("wider", data), pooled.mean(axis=1), np.cov(pooled, bias=True)


def test_a_constant_column_centres_the_records() -> None:
    """The answer of plain block Krylov on records that were centred beforehand; no mean is told."""
    problem, mean, covariance = constant_added()
    trace = fp.simulate(problem, CentredBlockKrylov(2), rounds=5)
    leading = np.linalg.eigh(covariance)[1][:, ::-1][:, :2]
    assert largest_sine(trace.estimate[:-1], leading) < 1e-10
    assert np.abs(trace.estimate[-1]).max() == 0.0
    first = trace.transcript.exchanges[0]
    column = np.einsum("c,ci->i", problem.client_data.weights, first.uploads["product"][:, :, -1])
    np.testing.assert_allclose(column[:-1] / CONSTANT, mean, rtol=1e-12)
    assert np.diff(trace.bytes_up).tolist() == [8 * 7 * 3 * width for width in (3, 2, 2)]


def test_under_noise_it_answers_as_the_noisy_matrix_says() -> None:
    """All that it does is computed from the one matrix that was released."""
    problem, _, _ = constant_added(noise=0.1)
    pooled = problem.covariance
    column, last = pooled[:-1, -1:], pooled[-1, -1]
    leading = np.linalg.eigh(pooled[:-1, :-1] - column @ column.T / last)[1][:, ::-1][:, :2]
    trace = fp.simulate(problem, CentredBlockKrylov(2), rounds=5)
    assert largest_sine(trace.estimate[:-1], leading) < 1e-10


def test_without_a_constant_it_says_what_to_add() -> None:
    problem, _, _ = constant_added()
    empty = problem.client_data.dense()
    empty[:, -1], empty[:, :, -1] = 0.0, 0.0
    data = ClientData.from_grams(empty, problem.client_data.samples)
    with pytest.raises(InvalidInput, match="add it to every file"):
        fp.simulate(fp.problems.Problem("none", data), CentredBlockKrylov(2), rounds=2)
