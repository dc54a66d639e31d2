"""FedPower: schedules, bytes, alignment, sampling, noise and the output rule."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.algorithms.local_products import align, synchronisation_times
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import (
    largest_sine,
    orthonormalise,
    procrustes,
    projector_distance,
    random_frame,
    uniform_frame,
)
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Setting
from fedpca_core.protocol.channel import Channel
from fedpca_core.streams import Streams


@pytest.fixture(scope="module")
def problem() -> fp.problems.Problem:
    return fp.problems.spiked_covariance(features=30, samples=400, clients=20, seed=3)


@pytest.fixture(scope="module")
def uneven() -> fp.problems.Problem:
    return fp.problems.spiked_covariance(features=12, samples=(100, 200, 400, 100), clients=4)


@pytest.mark.parametrize(
    ("period", "decay", "times"),
    [
        (1, True, tuple(range(1, 11))),
        (2, True, tuple(range(2, 11))),
        (4, True, (4, 7, 9, 10)),
        (5, True, (5, 9)),
        (4, False, (4, 8)),
        (10, False, (10,)),
    ],
)
def test_synchronisation_times(period: int, decay: bool, times: tuple[int, ...]) -> None:
    assert synchronisation_times(10, period, decay) == times


def test_without_noise_and_gaps_it_is_the_central_power_method(
    problem: fp.problems.Problem,
) -> None:
    trace = fp.simulate(problem, FedPower(4, 5, period=1), rounds=10, seed=1)
    frame = trace.estimates[0]
    for found in trace.estimates[1:]:
        frame = np.linalg.qr(problem.covariance @ frame)[0]
        assert np.abs(found @ found.T - frame @ frame.T).max() < 1e-10
    other = fp.simulate(problem, fp.DistributedPower(5, products=10), rounds=99, seed=1)
    assert np.abs(other.estimates - trace.estimates).max() < 1e-12


@pytest.mark.parametrize(
    ("period", "lean", "literal"), [(1, 800, 1600), (2, 800, 1440), (4, 560, 640)]
)
def test_kilobytes_up_at_the_papers_size(period: int, lean: int, literal: int) -> None:
    grams = np.broadcast_to(np.diag(np.linspace(2, 1, 100)), (20, 100, 100))
    client_data = fp.problems.ClientData.from_grams(grams, np.full(20, 7))
    paper = fp.problems.Problem("bytes only", client_data)
    for algorithm, kilobytes in (
        (FedPower(4, 5, period=period), lean),
        (FedPower(4, 5, period=period, literal=True), literal),
    ):
        trace = fp.simulate(paper, algorithm, rounds=algorithm.rounds)
        assert trace.bytes_up[-1] == kilobytes * 1000
        assert trace.bytes_down[-1] == 8 * 100 * 5 * 20 * algorithm.rounds
    if period == 4:
        plain = FedPower(4, 5, period=4, alignment=False)
        assert fp.simulate(paper, plain, rounds=4).bytes_up[-1] == 320_000


def test_literal_uploads_change_bytes_only(problem: fp.problems.Problem) -> None:
    runs = [
        fp.simulate(problem, FedPower(4, 5, period=3, noise=1e-3, literal=literal), rounds=99)
        for literal in (False, True)
    ]
    assert np.array_equal(runs[0].estimates, runs[1].estimates)
    assert runs[0].bytes_up[-1] < runs[1].bytes_up[-1]


def test_alignment_is_the_identity_on_the_reference_and_on_equal_frames() -> None:
    generator = np.random.default_rng(0)
    frames = np.stack([uniform_frame(generator, 12, 3) for _ in range(4)])
    rotations = align(frames, np.array([0, 2, 5, 9]))
    assert np.allclose(rotations[0], np.eye(3), atol=1e-12)
    same = np.broadcast_to(frames[0], frames.shape)
    assert np.allclose(align(same, np.arange(4)), np.eye(3), atol=1e-12)


def test_distance_after_alignment_is_a_function_of_the_angle() -> None:
    generator = np.random.default_rng(1)
    for _ in range(20):
        first, second = uniform_frame(generator, 15, 3), uniform_frame(generator, 15, 3)
        gap = np.linalg.norm(first @ procrustes(first, second) - second, ord=2)
        sine = float(largest_sine(first, second))
        assert gap == pytest.approx(np.sqrt(2 - 2 * np.sqrt(1 - sine**2)), abs=1e-7)


@pytest.mark.parametrize("alignment", [True, False])
@pytest.mark.parametrize(("period", "decay"), [(5, True), (4, False)])
def test_output_when_the_run_does_not_end_with_a_communication(
    problem: fp.problems.Problem, alignment: bool, period: int, decay: bool
) -> None:
    algorithm = FedPower(4, 5, period=period, decay=decay, alignment=alignment, noise=1e-4)
    assert 10 not in algorithm.times
    trace = fp.simulate(problem, algorithm, rounds=99)
    assert trace.rounds == algorithm.rounds == len(algorithm.times) + 1
    final = trace.estimate
    assert np.abs(final.T @ final - np.eye(5)).max() < 1e-12
    assert trace.local_products[-1] == 20 * 10
    last = trace.transcript.exchanges[-1]
    assert last.uploads is not None
    frames = last.uploads["frame"]
    if alignment:
        frames = frames @ align(frames, last.participants)
    expected = orthonormalise(np.tensordot(last.weights, frames, axes=1))
    assert np.abs(final - expected).max() < 1e-12


def test_reference_always_uploads_but_counts_only_when_drawn(problem: fp.problems.Problem) -> None:
    seen_idle = seen_drawn = False
    for seed in range(6):
        trace = fp.simulate(problem, FedPower(4, 5, draws=4), rounds=99, seed=seed)
        for exchange in trace.transcript.exchanges:
            assert exchange.participants[0] == 0
            assert exchange.weights.sum() == pytest.approx(1.0)
            assert np.allclose(exchange.weights * 4, np.round(exchange.weights * 4))
            seen_idle |= exchange.weights[0] == 0
            seen_drawn |= exchange.weights[0] > 0
    assert seen_idle and seen_drawn


def test_sampling_is_unbiased_with_the_stated_variance(problem: fp.problems.Problem) -> None:
    setting = Setting(30, 20, problem.client_data.samples, problem.client_data.weights)
    draws, algorithm = 8, FedPower(4, 5, draws=8)
    server, _ = algorithm.start(problem.client_data, setting, Streams(0))
    weights = np.zeros((4000, 20))
    for seed in range(len(weights)):
        plan = algorithm.plan(server, 1, setting, Streams(seed))
        weights[seed, plan.participants] = plan.weights
    assert np.abs(weights.mean(axis=0) - 1 / 20).max() < 5 * weights.std() / np.sqrt(4000)
    # A machine drawn twice sends the same noise twice: 1/m_eff = 1/K + (K-1)/(Km).
    effective = draws * 20 / (20 + draws - 1)
    assert (weights**2).sum(axis=1).mean() == pytest.approx(1 / effective, rel=0.02)


def test_all_draws_is_not_full_participation(problem: fp.problems.Problem) -> None:
    trace = fp.simulate(problem, FedPower(4, 5, draws=20), rounds=99)
    distinct = [(exchange.weights > 0).sum() for exchange in trace.transcript.exchanges]
    assert 10.5 < np.mean(distinct) < 15  # 20 (1 - (1 - 1/20)^20) = 12.8
    partly = fp.simulate(problem, FedPower(4, 5), rounds=99, participation=0.4)
    drawn = [(exchange.weights > 0).sum() for exchange in partly.transcript.exchanges]
    assert max(drawn) <= 8


def test_noise_is_fresh_and_does_not_move_with_schedule_or_sampling(
    problem: fp.problems.Problem,
) -> None:
    def products(algorithm: FedPower) -> dict[int, np.ndarray]:
        trace = fp.simulate(problem, algorithm, rounds=99, seed=5)
        time, found = 0, {}
        for exchange in trace.transcript.exchanges:
            time += exchange.local_steps
            assert exchange.uploads is not None
            clean = problem.client_data.only(exchange.participants).apply(
                exchange.uploads.get("frame", exchange.downlink["frame"])
            )
            found[time] = np.full((20, 30, 5), np.nan)
            found[time][exchange.participants] = exchange.uploads["product"] - clean
        return found

    full = products(FedPower(4, 5, period=1, noise=0.5))
    gaps = products(FedPower(4, 5, period=4, noise=0.5))
    drawn = products(FedPower(4, 5, period=1, noise=0.5, draws=5))
    for time, noise in gaps.items():
        assert np.allclose(noise, full[time], atol=1e-12)
    for time, noise in drawn.items():
        present = np.isfinite(noise)
        assert np.allclose(noise[present], full[time][present], atol=1e-12)
    stacked = np.stack(list(full.values()))
    assert stacked.std() == pytest.approx(0.5, rel=0.02)
    flat = stacked.reshape(10 * 20, -1)
    correlation = np.corrcoef(flat) - np.eye(len(flat))
    assert np.abs(correlation).max() < 6 / np.sqrt(flat.shape[1])


def test_noise_is_in_proportion_to_sensitivity(uneven: fp.problems.Problem) -> None:
    trace = fp.simulate(uneven, FedPower(2, 3, period=1, products=200, noise=1.0), rounds=200)
    assert np.allclose(trace.setting.weights, [1 / 8, 1 / 4, 1 / 2, 1 / 8])
    spread = []
    for exchange in trace.transcript.exchanges:
        assert exchange.uploads is not None
        spread.append(
            exchange.uploads["product"] - uneven.client_data.apply(exchange.downlink["frame"])
        )
    measured = np.stack(spread).std(axis=(0, 2, 3))
    assert np.allclose(measured, 200 / np.array([100, 200, 400, 100]), rtol=0.05)


def test_angle_is_measured_to_the_space_sought_when_the_iterate_is_wider(
    problem: fp.problems.Problem,
) -> None:
    trace = fp.simulate(problem, FedPower(4, 5, period=1), rounds=10)
    table = fp.metrics.frame(trace, problem)
    expected = largest_sine(trace.estimates, problem.target(4))
    assert np.allclose(table["sin_theta"], expected)
    assert table["sin_theta"].iloc[-1] < 1e-3


def test_longer_gaps_win_at_equal_rounds_without_noise(problem: fp.problems.Problem) -> None:
    errors = {
        p: np.median(
            [
                largest_sine(
                    fp.simulate(problem, FedPower(4, 5, period=p), rounds=4, seed=s).estimate,
                    problem.target(4),
                )
                for s in range(5)
            ]
        )
        for p in (1, 2, 4)
    }
    assert errors[4] < errors[2] < errors[1]


@pytest.mark.parametrize(
    ("algorithm", "words"),
    [
        (FedPower(4, draws=21), "21 machines cannot be drawn from 20"),
        (FedPower(4, draws=0), "choose K between 1 and 20"),
        (FedPower(4, 3), "cannot hold 4 components"),
        (FedPower(4, 30), "choose between 4 and 29 columns"),
        (FedPower(4, noise=-1.0), "standard deviation of at least 0"),
        (FedPower(4, noise=float("nan")), "standard deviation of at least 0"),
        (FedPower(4, period=11), "choose a period between 1 and 10"),
        (FedPower(4, products=0), "at least 1 local product"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(
    problem: fp.problems.Problem, algorithm: FedPower, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        fp.simulate(problem, algorithm, rounds=1)


def test_secure_aggregation_needs_a_method_that_reads_sums(problem: fp.problems.Problem) -> None:
    channel = Channel(secure_aggregation=True)
    with pytest.raises(InvalidInput, match="secure aggregation"):
        fp.simulate(problem, FedPower(4, 5), rounds=2, channel=channel)
    for algorithm in (FedPower(4, 5, period=1), FedPower(4, 5, period=2, alignment=False)):
        hidden = fp.simulate(problem, algorithm, rounds=99, channel=channel)
        open_ = fp.simulate(problem, algorithm, rounds=99)
        assert np.allclose(hidden.estimates, open_.estimates, atol=1e-12)


def test_local_products_leak_the_whole_matrix_soon_after_enough_uploads() -> None:
    generator = np.random.default_rng(4)
    blocks = [generator.standard_normal((20, 60)) for _ in range(5)]
    distinct = fp.problems.problem.from_blocks(blocks)
    algorithm = FedPower(4, products=30, period=2, decay=False)
    trace = fp.simulate(distinct, algorithm, rounds=15, seed=1)
    truth = distinct.client_data.dense()[2]
    found = fp.attacks.symmetric(trace.transcript.until(20 // 4 + 2), client=2)
    assert np.linalg.norm(found - truth) / np.linalg.norm(truth) < 1e-3


@pytest.mark.parametrize("period", [1, 4])
def test_without_noise_and_alignment_it_is_local_power(
    problem: fp.problems.Problem, period: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Algorithm 2 with nothing added, from the same frame: LocalPower with falling local steps."""
    monkeypatch.setattr("fedpca_core.algorithms.fedpower.uniform_frame", random_frame)
    quiet = FedPower(3, products=14, period=period, decay=True, alignment=False)
    power = fp.LocalPower(3, local_steps=period, schedule="decay")
    one = fp.simulate(problem, quiet, rounds=quiet.rounds, seed=4)
    two = fp.simulate(problem, power, rounds=quiet.rounds, seed=4)
    for first, second in zip(one.estimates, two.estimates, strict=True):
        assert projector_distance(first, second) < 1e-8


def test_another_machine_as_reference_is_the_run_in_which_it_is_the_first(
    uneven: fp.problems.Problem,
) -> None:
    """Without noise: the start is public, and nothing but the order of the machines differs."""
    method = FedPower(3, products=12, period=4, decay=False)
    order = np.array([2, 0, 1, 3])
    held = uneven.client_data
    turned = replace(
        uneven, client_data=ClientData.from_grams(held.dense()[order], held.samples[order])
    )
    other = fp.simulate(uneven, replace(method, reference=2), rounds=99, seed=1)
    first = fp.simulate(turned, method, rounds=99, seed=1)
    assert np.abs(other.estimates - first.estimates).max() < 1e-10
    usual = fp.simulate(uneven, method, rounds=99, seed=1)
    assert np.abs(other.estimates - usual.estimates).max() > 1e-6
    drawn = fp.simulate(uneven, replace(method, reference=2, draws=1), rounds=99, seed=1)
    assert all(2 in one.participants for one in drawn.transcript.exchanges)
    for nobody in (-1, 4):
        with pytest.raises(InvalidInput, match="reference"):
            fp.simulate(uneven, replace(method, reference=nobody), rounds=9)
