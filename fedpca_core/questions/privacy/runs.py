"""Runs of one method from several seeds, and the ways to spend one ε that they follow."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, cast

import numpy as np
import pandas as pd

from fedpca_core.algorithms import SSI, FedPower
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array, IntArray
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.privacy import Guarantee, noisy
from fedpca_core.problems import Problem
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import Simulation
from fedpca_core.protocol.trace import Trace
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.steps import Part, Step, in_turn, part
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.parts import names
from fedpca_core.study.study import stacked


def run_seeds(seed: int, count: int) -> list[int]:
    """Seeds of repeated runs; the data keep the first."""
    return [seed + 1009 * index for index in range(count)]


@dataclass(frozen=True, eq=False)
class Repeated:
    """Angles of repeated runs."""

    #: (communications + 1,) int64: Local products finished at each communication, where the method
    #: counts them; else the communications.
    times: IntArray
    #: (repetitions, communications + 1) float64: Of the largest angle to the leading space of the
    #: pooled sample (simulation only).
    sines: Array
    #: (communications + 1,) float64: Mean over the repetitions, cumulative over clients.
    bytes_up: Array
    #: Of noise at the source, or what a way to spend a budget states.
    guarantee: Guarantee | None = None

    @property
    def middle(self) -> Array:
        """Median over the repetitions."""
        return np.asarray(np.median(self.sines, axis=0), dtype=float)

    @property
    def quartiles(self) -> tuple[Array, Array]:
        low, high = np.quantile(self.sines, [0.25, 0.75], axis=0)
        return low, high

    @property
    def final(self) -> float:
        """Median of the final angle's sine."""
        return float(self.middle[-1])

    def table(self, name: str, label: str) -> pd.DataFrame:
        """Median and quartiles after each communication; ``label`` in a column ``name``."""
        low, high = self.quartiles
        return pd.DataFrame(
            {
                name: label,
                "communication": np.arange(len(self.middle)),
                "products": self.times,
                "median": self.middle,
                "lower_quartile": low,
                "upper_quartile": high,
                "bytes_up": self.bytes_up,
            }
        )


def communication_times(algorithm: FedPower) -> IntArray:
    """Local products finished at each communication, the start (0) first."""
    times = (0, *algorithm.times)
    return np.array(times if times[-1] == algorithm.products else (*times, algorithm.products))


def traced(
    problem: Problem, run: Algorithm, rounds: int, seed: int, wire: Channel, text: str
) -> Part[Trace]:
    """One run, with a step after each communication."""
    simulation = Simulation(problem, run, rounds=rounds, seed=seed, channel=wire)
    for entry in simulation:
        yield Step(entry.index / rounds, text)
    return simulation.trace()


@dataclass(frozen=True)
class WayRun:
    """One run to make: data as the method sees them, the method, its rounds and its channel."""

    problem: Problem
    algorithm: Algorithm
    rounds: int
    channel: Channel
    guarantee: Guarantee | None = None


def repeated(
    runs: Iterable[WayRun], seeds: Sequence[int], target: Array, text: str
) -> Part[Repeated]:
    """Runs of one method, one from each seed.

    A method may end early (block Krylov, no direction left); it then keeps its estimate.
    """
    traces = []
    for one, (seed, share) in zip(runs, in_turn(seeds), strict=False):
        steps = traced(one.problem, one.algorithm, one.rounds, seed, one.channel, text)
        traces.append((yield from part(steps, *share)))
    sines = [largest_sine(trace.estimates, target) for trace in traces]
    times = np.arange(max(map(len, sines)))

    def even(found: Sequence[Array | IntArray]) -> Array:
        """Curves below each other, each kept at its last value."""
        padded = [np.pad(curve, (0, len(times) - len(curve)), mode="edge") for curve in found]
        return np.stack(padded).astype(np.float64)

    sent = even([trace.bytes_up for trace in traces]).mean(axis=0)
    if one.algorithm.plans_products:
        times = communication_times(cast(FedPower, one.algorithm))
    return Repeated(times, even(sines), sent, one.guarantee)


def tabled(runs: Mapping[str, Repeated], name: str, ends: str) -> dict[str, pd.DataFrame]:
    """Curves of runs by label, and under the name of ``ends`` where each comes to."""
    tables = [run.table(name, label) for label, run in runs.items()]
    return {ends: stacked(table.iloc[[-1]] for table in tables), "curves": stacked(tables)}


#: Rounds of an iterative method on data with noise at the source: they cost no privacy.
ROUNDS = 40


@dataclass(frozen=True)
class Way:
    """One way to spend a budget."""

    key: str
    #: From settings, records, seed and the visitor's own file to the run.
    trial: Callable[[PrivacySettings, Problem, int, OwnData | None], WayRun]
    #: Whether clients rely on each other, and on sums that hide single uploads.
    trusting: bool = False

    def title(self, settings: PrivacySettings) -> str:
        return names("way-names")[self.key].format(method=METHODS[settings.method].title)


def _on_products(method: str, calibration: str, **changes: Any) -> Callable[..., WayRun]:
    """Noise on every product of a method, as `build` calibrates it."""

    def trial(c: PrivacySettings, problem: Problem, seed: int, data: OwnData | None) -> WayRun:
        settings: dict[str, Any] = {"trusted": "nobody", "draws": 0} | changes
        chosen = replace(c, method=method, calibration=calibration, **settings)
        run = build.method(chosen, build.noise_for(chosen, data=data))
        assert run.rounds is not None
        stated = build.stated(chosen, data).stated()
        met = build.bounded(chosen, problem, seed)
        return WayRun(met, run, run.rounds, build.channel(chosen), stated)

    return trial


def _shared(method: str) -> Callable[..., WayRun]:
    """Noise on every product that only adds up to enough in the sum over the clients."""
    return _on_products(method, "exact", trusted="clients", local_steps=1)


def _remembered(c: PrivacySettings, problem: Problem, seed: int, data: OwnData | None) -> WayRun:
    """SSI whose clients answer from memory what they were asked before."""
    once = replace(c, method="block_krylov", calibration="exact", trusted="nobody", draws=0)
    noise, public = build.noise_for(once, data=data), build.public_setting(once, data)
    run = noisy(SSI(c.components), noise, ROUNDS, remembers=True)
    stated = build.accounted(once, run, public).stated()
    return WayRun(build.bounded(once, problem, seed), run, ROUNDS, build.channel(once), stated)


def _at_the_source(
    method: str | None = None, trusted: str | None = None, *, half_colludes: bool = False
) -> Callable[..., WayRun]:
    """Noise once, at the source; of the method and the trust that are set, or of others."""

    def trial(c: PrivacySettings, problem: Problem, seed: int, data: OwnData | None) -> WayRun:
        chosen = replace(c, method=method or c.method, draws=0, calibration="source")
        if trusted is not None:
            chosen = replace(chosen, trusted=trusted)
        if half_colludes:
            chosen = replace(chosen, colluding=problem.clients // 2)
        private = build.private(chosen, problem, seed)
        assert private.guarantee is not None
        run = build.plain(chosen)
        wire = replace(build.channel(chosen), upload_noise=0.0)
        return WayRun(private, run, run.rounds or ROUNDS, wire, private.guarantee)

    return trial


#: Noise at the source for the method and the trust that are set.
SOURCE = Way("source", _at_the_source())
#: Every way by its key, those that trust nobody first.
WAYS: Mapping[str, Way] = {
    way.key: way
    for way in (
        Way("published", _on_products("fedpower", "published")),
        Way("exact", _on_products("fedpower", "exact")),
        Way("single", _on_products("fedpower", "exact", local_steps=1, products=6)),
        Way("orthogonal", _on_products("block_krylov", "exact")),
        Way("remembered", _remembered),
        Way("source", _at_the_source(trusted="nobody")),
        Way("covariance", _at_the_source("centralized", "nobody")),
        Way("shared_products", _shared("fedpower"), trusting=True),
        Way("shared_orthogonal", _shared("block_krylov"), trusting=True),
        Way("shared_covariance", _at_the_source("centralized", "clients"), trusting=True),
        Way("shared_source", _at_the_source("block_krylov", "clients"), trusting=True),
        Way("colluding", _at_the_source("centralized", "clients", half_colludes=True), True),
    )
}
#: Kinds of runs without an ε.
QUIET, MASKED = "none", "masked"


def spend(
    way: Way,
    settings: PrivacySettings,
    problem: Problem,
    seeds: Sequence[int],
    data: OwnData | None = None,
) -> Part[Repeated]:
    """Run one way from several seeds, each with noise of its own."""
    trials = (way.trial(settings, problem, seed, data) for seed in seeds)
    return repeated(trials, seeds, problem.target(settings.components), way.title(settings))


def noisy_runs(
    settings: PrivacySettings, kind: str, seeds: Sequence[int], data: OwnData | None
) -> Part[Repeated]:
    """The run that is set with noise of a kind (`build.kinds`), masked, or without any.

    Without noise the records are neither clipped nor centred on a noisy mean.
    """
    c = settings
    if kind == "source":
        return spend(SOURCE, c, build.records(c, data), seeds, data)
    if kind in (QUIET, MASKED):
        problem, run = build.records(c, data), build.method(c, 0.0)
        open_ = replace(c, trusted="nobody", upload_noise=c.upload_noise * (kind == MASKED))
        wire, text = build.channel(open_), "Masked" if kind == MASKED else "Without noise"
    else:
        problem = build.build_problem(c, data)
        run = build.method(c, build.noise_for(c, kind, data=data))
        wire, text = build.channel(c), f"With {kind} noise"
    rounds = build.rounds(c)
    at_source = c.calibration == "source" and math.isfinite(c.epsilon)
    if at_source and not run.plans_products:
        rounds = ROUNDS  # as the run it is compared with
    # A stand-in for FedPower has its surplus columns as components.
    sought = problem.target(c.components)
    return repeated(repeat(WayRun(problem, run, rounds, wire)), seeds, sought, text)
