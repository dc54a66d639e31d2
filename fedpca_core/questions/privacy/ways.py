"""Ways to spend one epsilon: every way states the same budget for one record.

Noise on every product as published, calibrated exactly, with orthogonal probes; noise once at the
source, for any method; and both shared by the clients under secure aggregation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fedpca_core.algorithms import SSI, FedPower, Noisy
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.privacy import Guarantee, noisy
from fedpca_core.problems import Problem
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.channel import Channel
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.study.own_data import OwnData

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
    name : str
        "{method}" stands for the method that is set.
    trial : callable
        From settings, records, seed and the visitor's own file to the run.
    trusting : bool
        Whether clients rely on each other, and on sums that hide single uploads.
    """

    name: str
    trial: Callable[[PrivacySettings, Problem, int, OwnData | None], Trial]
    trusting: bool = False

    def title(self, settings: PrivacySettings) -> str:
        """What the way is called with these settings."""
        return self.name.format(method=METHODS[settings.method].title)


def _on_products(method: str, calibration: str, **changes: Any) -> Callable[..., Trial]:
    """Noise on every product of a method, as `build` calibrates it."""

    def trial(c: PrivacySettings, problem: Problem, seed: int, data: OwnData | None) -> Trial:
        settings: dict[str, Any] = {"trusted": "nobody", "draws": 0} | changes
        chosen = replace(c, method=method, calibration=calibration, **settings)
        run = build.method(chosen, build.noise_for(chosen, data=data))
        assert isinstance(run, FedPower | Noisy)
        rounds = run.rounds if isinstance(run, FedPower) else run.products
        stated = build.stated(chosen, data)
        assert isinstance(stated, Guarantee)
        met = build.bounded(chosen, problem, seed)
        return Trial(met, run, rounds, build.channel(chosen), stated)

    return trial


def _shared(method: str) -> Callable[..., Trial]:
    """Noise on every product that only adds up to enough in the sum over the clients."""
    return _on_products(method, "exact", trusted="clients", local_steps=1)


def _remembered(c: PrivacySettings, problem: Problem, seed: int, data: OwnData | None) -> Trial:
    """SSI whose clients answer from memory what they were asked before."""
    once = replace(c, method="block_krylov", calibration="exact", trusted="nobody", draws=0)
    noise, public = build.noise_for(once, data=data), build.public_setting(once, data)
    run = noisy(SSI(c.components), noise, ROUNDS, remembers=True)
    stated = build.accounted(once, run, public)
    assert isinstance(stated, Guarantee)
    met = build.bounded(once, problem, seed)
    return Trial(met, run, ROUNDS, build.channel(once), stated)


def _at_the_source(
    method: str | None = None, trusted: str | None = None, *, half_colludes: bool = False
) -> Callable[..., Trial]:
    """Noise once, at the source; of the method and the trust that are set, or of others."""

    def trial(c: PrivacySettings, problem: Problem, seed: int, data: OwnData | None) -> Trial:
        chosen = replace(c, method=method or c.method, draws=0, calibration="source")
        if trusted is not None:
            chosen = replace(chosen, trusted=trusted)
        if half_colludes:
            chosen = replace(chosen, colluding=problem.clients // 2)
        private = build.private(chosen, problem, seed)
        assert private.guarantee is not None
        run = build.plain(chosen)
        rounds = run.rounds if isinstance(run, FedPower) else ROUNDS
        wire = replace(build.channel(chosen), upload_noise=0.0)
        return Trial(private, run, rounds, wire, private.guarantee)

    return trial


#: Noise at the source for the method and the trust that are set.
SOURCE = Way("{method}, once at the source", _at_the_source())
#: Every way by its key, those that trust nobody first.
WAYS: Mapping[str, Way] = {
    "published": Way("FedPower, published noise", _on_products("fedpower", "published")),
    "exact": Way("FedPower, exact noise", _on_products("fedpower", "exact")),
    "single": Way(
        "FedPower at p = 1, T = 6",
        _on_products("fedpower", "exact", local_steps=1, products=6),
    ),
    "orthogonal": Way("Block Krylov, probes count as one", _on_products("block_krylov", "exact")),
    "remembered": Way("SSI, answers from memory count as one", _remembered),
    "source": Way(
        "{method}, once at the source",
        _at_the_source(trusted="nobody"),
    ),
    "covariance": Way("Noisy covariance, one round", _at_the_source("centralized", "nobody")),
    "shared_products": Way("FedPower at p = 1, shared noise", _shared("fedpower"), trusting=True),
    "shared_orthogonal": Way("Block Krylov, shared noise", _shared("block_krylov"), trusting=True),
    "shared_covariance": Way(
        "Noisy covariance, shared noise",
        _at_the_source("centralized", "clients"),
        trusting=True,
    ),
    "shared_source": Way(
        "Block Krylov, shared noise once at the source",
        _at_the_source("block_krylov", "clients"),
        trusting=True,
    ),
    "colluding": Way(
        "The same, half may collude",
        _at_the_source("centralized", "clients", half_colludes=True),
        trusting=True,
    ),
}
