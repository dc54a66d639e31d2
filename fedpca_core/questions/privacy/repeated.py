"""Runs of one method from several seeds, on one data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedpca_core.algorithms import FedPower
from fedpca_core.arrays import Array, IntArray
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.problems import Problem
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import Simulation
from fedpca_core.protocol.trace import Trace
from fedpca_core.questions.privacy.round_identity import communication_times
from fedpca_core.steps import Part, Step, part


def run_seeds(seed: int, count: int) -> list[int]:
    """Seeds of repeated runs; the data keep the first."""
    return [seed + 1009 * index for index in range(count)]


@dataclass(frozen=True, eq=False)
class Repeated:
    """Angles of repeated runs.

    Attributes
    ----------
    times : (communications + 1,) int64
        Local products finished at each communication, where the method counts them; else the
        communications.
    sines : (repetitions, communications + 1) float64
        Of the largest angle to the leading space of the pooled sample (simulation only).
    bytes_up : (communications + 1,) float64
        Mean over the repetitions, cumulative over clients.
    """

    times: IntArray
    sines: Array
    bytes_up: Array

    @property
    def middle(self) -> Array:
        """Median over the repetitions."""
        return np.asarray(np.median(self.sines, axis=0), dtype=float)

    @property
    def quartiles(self) -> tuple[Array, Array]:
        """Lower and upper quartile over the repetitions."""
        low, high = np.quantile(self.sines, [0.25, 0.75], axis=0)
        return low, high

    @property
    def final(self) -> float:
        """Median of the final angle's sine."""
        return float(self.middle[-1])

    def table(self, name: str, label: str) -> pd.DataFrame:
        """Median and quartiles after each communication, with ``label`` in a column ``name``."""
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


def traced(
    problem: Problem, run: Algorithm, rounds: int, seed: int, wire: Channel, text: str
) -> Part[Trace]:
    """One run, with a step after each communication."""
    simulation = Simulation(problem, run, rounds=rounds, seed=seed, channel=wire)
    for entry in simulation:
        yield Step(entry.index / rounds, text)
    return simulation.trace()


def repeat(
    problem: Problem,
    run: Algorithm,
    rounds: int,
    wire: Channel,
    seeds: Sequence[int],
    text: str,
    components: int | None = None,
) -> Part[Repeated]:
    """Run a method from several seeds; ``components`` are sought, by default the method's own."""
    traces = []
    for index, seed in enumerate(seeds):
        steps = traced(problem, run, rounds, seed, wire, text)
        traces.append((yield from part(steps, index / len(seeds), (index + 1) / len(seeds))))
    return gathered(traces, problem.target(components or run.components))


def gathered(traces: Sequence[Trace], target: Array) -> Repeated:
    """Runs of one method side by side.

    A method may end early (block Krylov, no direction left); it then keeps its estimate.
    """
    sines = [largest_sine(trace.estimates, target) for trace in traces]
    longest = max(len(values) for values in sines)
    run = traces[0].algorithm
    times = communication_times(run) if isinstance(run, FedPower) else np.arange(longest)
    sent = _even([trace.bytes_up for trace in traces], longest)
    return Repeated(times, _even(sines, longest), sent.mean(axis=0))


def _even(found: Sequence[Array | IntArray], longest: int) -> Array:
    """Curves below each other, each kept at its last value."""
    padded = [np.pad(one, (0, longest - len(one)), mode="edge") for one in found]
    return np.stack(padded).astype(np.float64)
