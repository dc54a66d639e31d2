"""Runs of one method from several seeds, and the ways to spend one ε that they follow."""

import math
from collections.abc import Iterable, Mapping, Sequence
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
    tables = []
    for label, run in runs.items():
        low, high = run.quartiles
        columns = {
            name: label,
            "communication": np.arange(len(run.times)),
            "products": run.times,
            "median": run.middle,
            "lower_quartile": low,
            "upper_quartile": high,
            "bytes_up": run.bytes_up,
        }
        tables.append(pd.DataFrame(columns))
    return {ends: stacked(table.iloc[[-1]] for table in tables), "curves": stacked(tables)}


#: Rounds of an iterative method on data with noise at the source: they cost no privacy.
ROUNDS = 40


@dataclass(frozen=True)
class Way:
    """One way to spend a budget."""

    key: str
    #: Settings that make it, besides exact noise of clients who trust nobody.
    changes: dict[str, Any]

    @property
    def trusting(self) -> bool:
        """Whether clients rely on each other, and on sums that hide single uploads."""
        return self.changes.get("trusted") == "clients"

    def title(self, settings: PrivacySettings) -> str:
        return names("way-names")[self.key].format(method=METHODS[settings.method].title)

    def trial(
        self, settings: PrivacySettings, problem: Problem, seed: int, data: OwnData | None
    ) -> WayRun:
        """Its run on the records of a problem; ``data`` are the visitor's own file."""
        usual: dict[str, Any] = {"calibration": "exact", "trusted": "nobody", "draws": 0}
        c = replace(settings, **usual | self.changes)
        if self.key == "colluding":
            c = replace(c, colluding=problem.clients // 2)
        if c.calibration == "source":
            private, run = build.private(c, problem, seed), build.plain(c)
            wire = replace(build.channel(c), upload_noise=0.0)
            return WayRun(private, run, run.rounds or ROUNDS, wire, private.guarantee)
        noise = build.noise_for(c, data=data)
        if self.key == "remembered":  # SSI whose clients answer from memory
            run = noisy(SSI(c.components), noise, ROUNDS, remembers=True)
            stated = build.accounted(c, run, build.public_setting(c, data)).stated()
        else:
            run, stated = build.method(c, noise), build.stated(c, data).stated()
        met, rounds = build.bounded(c, problem, seed), run.rounds
        assert rounds is not None
        return WayRun(met, run, rounds, build.channel(c), stated)


_SHARED = {"trusted": "clients"}
#: Every way by its key, those that trust nobody first.
WAYS: Mapping[str, Way] = {
    way.key: way
    for way in (
        Way("published", {"method": "fedpower", "calibration": "published"}),
        Way("exact", {"method": "fedpower"}),
        Way("single", {"method": "fedpower", "local_steps": 1, "products": 6}),
        Way("orthogonal", {"method": "block_krylov"}),
        Way("remembered", {"method": "block_krylov"}),
        Way("source", {"calibration": "source"}),
        Way("covariance", {"method": "centralized", "calibration": "source"}),
        Way("shared_products", {"method": "fedpower", **_SHARED, "local_steps": 1}),
        Way("shared_orthogonal", {"method": "block_krylov", **_SHARED, "local_steps": 1}),
        Way("shared_covariance", {"method": "centralized", **_SHARED, "calibration": "source"}),
        Way("shared_source", {"method": "block_krylov", **_SHARED, "calibration": "source"}),
        Way("colluding", {"method": "centralized", **_SHARED, "calibration": "source"}),
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
        as_set = Way(kind, {"calibration": kind, "trusted": c.trusted})
        return spend(as_set, c, build.records(c, data), seeds, data)
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
