"""Ways to spend one epsilon: every way states the same budget for one record.

Noise on every product as published, calibrated exactly, with orthogonal probes; noise once at the
source, for any method; and both shared by the clients under secure aggregation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from fedpca_core.algorithms import DistributedPower, FedPower, Noisy
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.privacy import Guarantee, account, noisy
from fedpca_core.privacy.accounting import within
from fedpca_core.problems import Problem
from fedpca_core.problems.perturbation import Trust
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.channel import Channel
from fedpca_core.streams import Streams
from fedpca_core.studies.private import build
from fedpca_core.studies.private.settings import PrivacySettings

#: Rounds of an iterative method on data with noise at the source: they cost no privacy.
ROUNDS = 40


@dataclass(frozen=True)
class Trial:
    """One run to make: data as the method sees them, the method, its rounds and its channel."""

    problem: Problem
    algorithm: Algorithm
    rounds: int
    channel: Channel
    guarantee: Guarantee


@dataclass(frozen=True)
class Way:
    """One way to spend a budget.

    Attributes
    ----------
    title : callable
        From the settings, since some ways are for the method that is set.
    trial : callable
        From settings, problem and seed to the run.
    trusting : bool
        Whether clients rely on each other, and on sums that hide single uploads.
    """

    title: Callable[[PrivacySettings], str]
    trial: Callable[[PrivacySettings, Problem, int], Trial]
    trusting: bool = False


def _summed(trust: Trust | None) -> Channel:
    return Channel(record="estimates", secure_aggregation=trust is not None)


def _accounted(
    c: PrivacySettings, problem: Problem, run: FedPower | Noisy, trust: Trust | None = None
) -> Trial:
    """A run with noise on its products, and what the accountant says of it."""
    rounds = run.rounds if isinstance(run, FedPower) else run.products
    norm, public = build.treatment(c)[1], build.public_setting(c)
    stated = account(run, public, delta=c.delta, clip_norm=norm, trust=trust)
    assert isinstance(stated, Guarantee)
    return Trial(problem, run, rounds, _summed(trust), stated)


def _on_products(method: str, calibration: str) -> Callable[..., Trial]:
    """Noise on every product of a method, as `build` calibrates it."""

    def trial(c: PrivacySettings, problem: Problem, seed: int) -> Trial:
        chosen = replace(c, method=method, draws=0)
        run = build.method(chosen, build.noise_for(chosen, calibration))
        assert isinstance(run, FedPower | Noisy)
        return _accounted(chosen, problem, run)

    return trial


def _shared(method: Callable[[PrivacySettings], Algorithm]) -> Callable[..., Trial]:
    """Noise on every product that only adds up to enough in the sum over the clients."""

    def trial(c: PrivacySettings, problem: Problem, seed: int) -> Trial:
        trust = Trust(0)
        run = within(
            noisy(method(c), 1.0, c.products, summed=True),
            build.public_setting(c),
            c.epsilon,
            c.delta,
            clip_norm=build.treatment(c)[1],
            trust=trust,
        )
        return _accounted(c, problem, run, trust)

    return trial


def _at_the_source(
    method: str | None = None, colluding: Callable[[int], int] | None = None
) -> Callable[..., Trial]:
    """Noise once, at the source; of the method that is set, or of another.

    With ``colluding`` clients the others share it, under secure aggregation.
    """

    def trial(c: PrivacySettings, problem: Problem, seed: int) -> Trial:
        chosen = replace(c, method=method or c.method, draws=0)
        trust = None if colluding is None else Trust(colluding(problem.clients))
        norm = build.treatment(c)[1]
        private = problem.private(c.epsilon, c.delta, norm, Streams(seed), trust=trust)
        assert private.guarantee is not None
        run = build.plain(chosen)
        rounds = run.rounds if isinstance(run, FedPower) else ROUNDS
        return Trial(private, run, rounds, _summed(trust), private.guarantee)

    return trial


def _krylov(c: PrivacySettings) -> Algorithm:
    return build.plain(replace(c, method="block_krylov"))


def _power(c: PrivacySettings) -> Algorithm:
    return DistributedPower(build.columns(replace(c, method="fedpower")), products=c.products)


def _half(clients: int) -> int:
    return clients // 2


def _nobody(clients: int) -> int:
    return 0


def _always(title: str) -> Callable[[PrivacySettings], str]:
    return lambda settings: title


#: Every way by its key, those that trust nobody first.
WAYS: Mapping[str, Way] = {
    "published": Way(_always("FedPower, published noise"), _on_products("fedpower", "published")),
    "exact": Way(_always("FedPower, exact noise"), _on_products("fedpower", "exact")),
    "orthogonal": Way(
        _always("Block Krylov, probes count as one"), _on_products("block_krylov", "exact")
    ),
    "source": Way(lambda c: f"{METHODS[c.method].title}, once at the source", _at_the_source()),
    "covariance": Way(_always("Noisy covariance, one round"), _at_the_source("centralized")),
    "shared_products": Way(
        _always("FedPower at p = 1, shared noise"), _shared(_power), trusting=True
    ),
    "shared_orthogonal": Way(
        _always("Block Krylov, shared noise"), _shared(_krylov), trusting=True
    ),
    "shared_covariance": Way(
        _always("Noisy covariance, shared noise"),
        _at_the_source("centralized", _nobody),
        trusting=True,
    ),
    "colluding": Way(
        _always("The same, half may collude"),
        _at_the_source("centralized", _half),
        trusting=True,
    ),
}
