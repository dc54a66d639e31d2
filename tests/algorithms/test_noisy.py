"""Noise on products: what the wrapped method may see, and what its run costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.algorithms import SSI, BlockKrylov, DistributedPower
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.errors import InvalidInput
from fedpca_core.guarantee import Guarantee
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.privacy.accounting import account, mutually_orthogonal, noisy


@pytest.fixture(scope="module")
def problem() -> fp.problems.Problem:
    return fp.problems.spiked_covariance(features=24, samples=500, clients=6, seed=2)


@pytest.mark.parametrize("method", [SSI(3), DistributedPower(3, products=7), BlockKrylov(3)])
def test_without_noise_the_wrapped_method_is_unchanged(
    problem: fp.problems.Problem, method: SSI | DistributedPower | BlockKrylov
) -> None:
    plain = fp.simulate(problem, method, rounds=7, seed=4)
    wrapped = fp.simulate(problem, noisy(method, 0.0, 7), rounds=99, seed=4)
    assert wrapped.rounds == 7
    assert np.array_equal(plain.estimates, wrapped.estimates)
    assert np.array_equal(plain.bytes_up, wrapped.bytes_up)


def test_distributed_power_with_noise_is_fedpower_without_gaps(
    problem: fp.problems.Problem,
) -> None:
    wrapped = noisy(DistributedPower(3, products=6), 1e-3, 6)
    own = fp.FedPower(3, products=6, period=1, noise=1e-3)
    first = fp.simulate(problem, wrapped, rounds=6, seed=8)
    second = fp.simulate(problem, own, rounds=6, seed=8)
    assert np.abs(first.estimates - second.estimates).max() < 1e-12


def test_a_record_costs_all_orthogonal_probes_together_no_more_than_one(
    problem: fp.problems.Problem,
) -> None:
    trace = fp.simulate(problem, noisy(BlockKrylov(2), 1e-3, 9), rounds=9, seed=1)
    probes = np.concatenate([e.downlink["frame"] for e in trace.transcript.exchanges], axis=1)
    assert np.abs(probes.T @ probes - np.eye(probes.shape[1])).max() < 1e-10
    generator = np.random.default_rng(0)
    worst = 0.0
    for _ in range(200):
        records = generator.standard_normal((24, 2))
        records /= np.linalg.norm(records, axis=0)
        change = np.outer(records[:, 0], records[:, 0]) - np.outer(records[:, 1], records[:, 1])
        worst = max(worst, float(np.linalg.norm(change @ probes)))
    assert 1.0 < worst <= np.sqrt(2)
    setting = trace.setting
    short = account(noisy(BlockKrylov(2), 1e-3, 9), setting, delta=1e-5)
    long = account(noisy(BlockKrylov(2), 1e-3, 10), setting, delta=1e-5)
    assert isinstance(short, Guarantee) and isinstance(long, Guarantee)
    assert short.composition == 1 and long.composition == 10
    assert long.mu == pytest.approx(np.sqrt(10) * short.mu)
    assert mutually_orthogonal(BlockKrylov(2, blocks=3), 4)
    assert not mutually_orthogonal(BlockKrylov(2, blocks=3), 5)
    assert not mutually_orthogonal(SSI(2), 2)


def test_probes_after_a_restart_are_no_longer_orthogonal_to_all(
    problem: fp.problems.Problem,
) -> None:
    method = noisy(BlockKrylov(2, blocks=3), 1e-3, 8)
    trace = fp.simulate(problem, method, rounds=8, seed=1)
    probes = np.concatenate([e.downlink["frame"] for e in trace.transcript.exchanges], axis=1)
    overlap = np.abs(probes.T @ probes - np.eye(probes.shape[1]))
    assert overlap[:8, :8].max() < 1e-10
    assert overlap.max() > 1e-3


def test_fewer_products_need_less_noise(problem: fp.problems.Problem) -> None:
    """At one budget and in six rounds DP block Krylov ends closer than DP SSI."""
    setting = fp.simulate(problem, SSI(2), rounds=1).setting
    finals = {}
    for method in (SSI(3), BlockKrylov(3)):
        noise = float(fp.privacy.product_noise("exact", 20.0, 1e-4, 6, 3, 500))
        if isinstance(method, BlockKrylov):
            noise /= np.sqrt(6)
        algorithm = noisy(method, noise, 6)
        angles = [
            largest_sine(
                fp.simulate(problem, algorithm, rounds=6, seed=seed).estimate, problem.target(3)
            )
            for seed in range(7)
        ]
        run = account(algorithm, setting, delta=1e-4)
        assert isinstance(run, Guarantee)
        assert run.epsilon == pytest.approx(20.0, rel=1e-6)
        finals[type(method).__name__] = float(np.median(angles))
    assert finals["BlockKrylov"] < finals["SSI"]


@dataclass(frozen=True)
class Greedy(SSI):
    """A method that asks for more than one product with an orthonormal frame."""

    title: ClassVar[str] = "Greedy"
    wish: str = "second"

    def client(self, client_data, clients, plan, streams):
        frame = plan.downlink["frame"]
        if self.wish == "second":
            client_data.apply(frame)
        elif self.wish == "norms":
            client_data.spectral_norms()
        elif self.wish == "matrix":
            return {"product": client_data.dense() @ frame}, clients
        elif self.wish == "scaled":
            frame = 2.0 * frame
        return {"product": client_data.apply(frame)}, clients


@pytest.mark.parametrize("wish", ["second", "norms", "matrix", "scaled"])
def test_nothing_leaves_a_client_unaccounted(problem: fp.problems.Problem, wish: str) -> None:
    with pytest.raises(InvalidInput, match="the noise does not cover"):
        fp.simulate(problem, Noisy(Greedy(3, wish), 0.1, 4), rounds=4)


@pytest.mark.parametrize("method", [fp.FAPS(3), fp.FedPE(3), fp.FedPG(3), fp.LocalPower(3)])
def test_methods_that_cannot_be_accounted_say_why(method: fp.FAPS) -> None:
    with pytest.raises(InvalidInput, match="no ε") as refusal:
        noisy(method, 0.1, 5)
    assert method.title.split(" ")[0] in str(refusal.value)
