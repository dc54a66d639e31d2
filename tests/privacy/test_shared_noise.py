"""Noise shared under secure aggregation: who is trusted, which methods allow it, what it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.errors import InvalidInput
from fedpca_core.gaussian_privacy import mu_of
from fedpca_core.guarantee import Guarantee
from fedpca_core.privacy import account, noisy
from fedpca_core.privacy.accounting import within
from fedpca_core.problems.perturbation import Trust
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.channel import Channel
from fedpca_core.streams import Streams

SECURE = Channel(secure_aggregation=True)
EPSILON, DELTA = 2.0, 1e-5


@pytest.fixture(scope="module")
def problem() -> Problem:
    return fp.problems.spiked_covariance(features=12, samples=300, clients=8, components=2)


@pytest.fixture(scope="module")
def uneven() -> Problem:
    sizes = (100, 200, 300, 400)
    return fp.problems.spiked_covariance(features=12, samples=sizes, clients=4, components=2)


def shared(problem: Problem, trust: Trust, seed: int = 0) -> Problem:
    return problem.private(EPSILON, DELTA, 1.0, Streams(seed), trust=trust)


# ---------------------------------------------------------------------- how much noise
@pytest.mark.parametrize("trust", [Trust(0), Trust(1), Trust(3, 2)])
def test_honest_clients_alone_add_enough(uneven: Problem, problem: Problem, trust: Trust) -> None:
    """mu of the sum, in the worst client's record, from the noise of h clients only."""
    for one in (problem,) if trust.dropouts else (problem, uneven):
        private = shared(one, trust)
        assert private.source is not None and private.guarantee is not None
        weights, samples = one.client_data.weights, one.client_data.samples
        left = np.sort(weights * private.source.noise)[: trust.honest(one.clients)]
        worst = (weights * np.sqrt(2) / samples).max()
        assert worst / np.linalg.norm(left) == pytest.approx(float(mu_of(EPSILON, DELTA)))
        assert private.guarantee.epsilon == pytest.approx(EPSILON, rel=1e-9)


def test_the_noise_of_the_sum_is_that_of_one_client(problem: Problem) -> None:
    """Full noise of all clients averages to nu/sqrt(N), shared noise to nu/N."""
    full = problem.private(EPSILON, DELTA, 1.0, Streams(0)).source
    everybody = shared(problem, Trust(0)).source
    half = shared(problem, Trust(4)).source
    assert full is not None and everybody is not None and half is not None
    assert np.allclose(full.noise, np.sqrt(8) * everybody.noise)
    assert np.allclose(half.noise, np.sqrt(2) * everybody.noise)
    off = []
    for seed in range(30):
        one = shared(problem, Trust(0), seed)
        assert one.source is not None
        difference = one.client_data.mean() - one.source.clipped.mean()
        off.append(np.diagonal(difference))
    assert np.std(off) == pytest.approx(full.noise[0] / 8, rel=0.15)


def test_who_is_trusted_is_said(problem: Problem) -> None:
    private = shared(problem, Trust(2, 1))
    assert private.guarantee is not None
    for words in (
        "at least 5 of 8 clients",
        "2 may collude",
        "1 may drop out",
        "secure aggregation",
    ):
        assert words in private.guarantee.sentence()
    with pytest.raises(InvalidInput, match="nobody is left to add noise"):
        shared(problem, Trust(7, 1))
    with pytest.raises(InvalidInput, match="counted from 0"):
        Trust(-1)


# ---------------------------------------------------------------------- which methods
@pytest.mark.parametrize(
    "method",
    [
        fp.SSI(2),
        fp.DistributedPower(2),
        fp.BlockKrylov(2),
        fp.Centralized(2),
        fp.FedPower(2, 3, period=1),
        fp.FedPower(2, 3, period=1, alignment=False),
    ],
)
def test_methods_whose_server_sees_one_sum(problem: Problem, method: fp.SSI) -> None:
    """The server's view is a function of sum_i w_i M_i alone: other clients, the same sum."""
    private = shared(problem, Trust(1))
    pooled = private.client_data.mean()
    spread = np.random.default_rng(1).standard_normal((8, 12, 12)) / 50
    spread = spread + spread.swapaxes(1, 2)
    other = pooled + spread - spread.mean(axis=0)
    swapped = replace(private, client_data=replace(private.client_data, grams=other, facts={}))
    runs = [fp.simulate(one, method, rounds=5, channel=SECURE) for one in (private, swapped)]
    assert np.allclose(runs[0].estimates, runs[1].estimates, atol=1e-9)
    for one, two in zip(*(run.transcript.exchanges for run in runs), strict=True):
        assert one.uploads is None and one.sums is not None and two.sums is not None
        assert all(np.allclose(one.sums[key], two.sums[key], atol=1e-9) for key in one.sums)
    assert account(method, runs[0].setting, delta=DELTA) == private.guarantee


@pytest.mark.parametrize(
    "method",
    [
        fp.FAPS(2),
        fp.LocalPower(2),
        fp.VariableSplitting(2),
        fp.FedPE(2),
        fp.FedPG(2),
        fp.PersonalizedPCA(2),
        fp.LocalTraining(2),
        fp.GlobalAveraging(2),
        fp.FedPower(2, 3, period=2, alignment=False),
        fp.FedPower(2, 3, period=1, draws=8),
        fp.FedPower(2, 3, period=1, noise=0.1),
    ],
)
def test_other_methods_are_refused_with_a_way_out(problem: Problem, method: fp.FAPS) -> None:
    with pytest.raises(InvalidInput, match="only the sum over all of them is covered") as refusal:
        fp.simulate(shared(problem, Trust(1)), method, rounds=5, channel=SECURE)
    assert "one release at the source covers every method" in str(refusal.value)
    private = problem.private(EPSILON, DELTA, 1.0, Streams(0))
    assert fp.simulate(private, method, rounds=2).rounds >= 1


@dataclass(frozen=True)
class Squaring(fp.SSI):
    """Asks for an honest product, and uploads something else made from it."""

    title: ClassVar[str] = "Squaring"

    def client(self, data, clients, plan, streams):  # type: ignore[no-untyped-def]
        return {"product": data.apply(plan.downlink["frame"]) ** 2}, clients


@pytest.mark.parametrize("per_product", [False, True])
def test_uploads_made_from_answers_are_refused(problem: Problem, per_product: bool) -> None:
    """Not by the name of the class: by what the clients see go out."""
    run = Noisy(Squaring(2), 0.1, 3, summed=True) if per_product else Squaring(2)
    data = problem if per_product else shared(problem, Trust(1))
    with pytest.raises(InvalidInput, match="uploads “product”, made from answers"):
        fp.simulate(data, run, rounds=3, channel=SECURE)


def test_shared_noise_needs_secure_sums_over_everybody(problem: Problem) -> None:
    for data, method in (
        (shared(problem, Trust(1)), fp.SSI(2)),
        (problem, noisy(fp.SSI(2), 0.1, 3, summed=True)),
    ):
        with pytest.raises(InvalidInput, match="switch secure aggregation on"):
            fp.simulate(data, method, rounds=3)
        with pytest.raises(InvalidInput, match="subtract the sums of two rounds"):
            fp.simulate(data, method, rounds=3, channel=SECURE, participation=0.5)


# ---------------------------------------------------------------------- on every product
@pytest.mark.parametrize("method", [fp.SSI(2), fp.BlockKrylov(2)])
def test_products_with_shared_noise_are_accounted(
    problem: Problem, uneven: Problem, method: fp.SSI
) -> None:
    for data in (problem, uneven):
        setting = fp.simulate(data, method, rounds=1).setting
        full = within(noisy(method, 1.0, 5), setting, EPSILON, DELTA)
        for trust in (Trust(0), Trust(1, 1)):
            summed = noisy(method, 1.0, 5, summed=True)
            run = within(summed, setting, EPSILON, DELTA, trust=trust)
            left = trust.honest(data.clients)
            assert run.noise == pytest.approx(full.noise / np.sqrt(left))
            found = account(run, setting, delta=DELTA, trust=trust)
            assert isinstance(found, Guarantee)
            assert found.epsilon == pytest.approx(EPSILON, rel=1e-9)
            assert f"at least {left} of {data.clients}" in found.terms()["towards"]
            assert fp.simulate(data, run, rounds=5, channel=SECURE).rounds == 5


def test_float32_sums_work(problem: Problem) -> None:
    channel = Channel(dtype="float32", secure_aggregation=True)
    private = shared(problem, Trust(1))
    for data, method in (
        (private, fp.BlockKrylov(2)),
        (problem, noisy(fp.BlockKrylov(2), 1e-4, 4, summed=True)),
    ):
        assert fp.simulate(data, method, rounds=4, channel=channel).rounds == 4
