"""The three methods along one axis: heterogeneity, samples or clients."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.personalized import PersonalizedPCA
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import require
from fedpca_core.metrics import personal as metrics
from fedpca_core.problems.personal import PersonalProblem
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import stream
from fedpca_core.questions import costs
from fedpca_core.questions.personalise.settings import ALONE, PERSONAL, SHARED, PersonaliseSettings
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Step
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.sweep import Measured, Sweep, Swept

#: Values of the three axes.
AXES: Mapping[str, Sequence[Value]] = {
    "heterogeneity": (0.03, 0.1, 0.15, 0.2, 0.25, 0.3, 0.5, 1.0),
    "samples": (2, 5, 10, 20, 40, 80, 160, 320),
    "clients": (3, 5, 10, 20, 50, 100),
}
#: At most so many clients take part, unless their number is what varies.
MOST_CLIENTS = 50
#: A run has settled when its mean error moves by less than this in ten rounds.
SETTLED = 1e-5
#: The measure of the sweep.
FRESH = "fresh_ratio"


class CollaborationSweep(Sweep[PersonaliseSettings]):
    """Fresh error of the three methods along one axis.

    The baselines are their closed-form limits; personalised PCA starts from the pooled answer and
    runs until it settles.
    """

    key: ClassVar[str] = "personalised-sweep"
    title: ClassVar[str] = "Between alone and shared"
    settings: ClassVar[type[PersonaliseSettings]] = PersonaliseSettings
    reads: ClassVar[frozenset[str] | None] = frozenset(
        set(PersonaliseSettings.parameters()) - {"start_from", "measure", "exposure"}
    )
    seconds: ClassVar[float] = 180.0

    def cost(self, settings: PersonaliseSettings, data: OwnData | None = None) -> Cost:
        points = self.values(settings)
        runs = [self.at(settings, value, settings.seed) for value in points]
        all_ = (costs.personal(one, data, settings.datasets) for one in runs)
        return sum(all_, Cost())

    def parameter(self, settings: PersonaliseSettings) -> str:
        return settings.vary

    def values(self, settings: PersonaliseSettings) -> Sequence[Value]:
        return AXES[settings.vary]

    def seeds(self, settings: PersonaliseSettings) -> Sequence[int]:
        return [(settings.seed + index) % 100_000 for index in range(settings.datasets)]

    def at(self, settings: PersonaliseSettings, value: Value, seed: int) -> PersonaliseSettings:
        few = replace(settings, clients=min(settings.clients, MOST_CLIENTS))
        return super().at(few, value, seed)

    def identity(self, settings: PersonaliseSettings, data: OwnData | None = None) -> Hashable:
        """The page's own value of what varies is not read, nor clients beyond the limit."""
        return super().identity(self.at(settings, self.values(settings)[0], settings.seed), data)

    def measure(self, settings: PersonaliseSettings, data: OwnData | None) -> Part[Measured]:
        require(
            (settings.vary, settings.problem) != ("clients", "table") or not settings.client_column,
            "A column of your table names the clients, so their number stays; vary heterogeneity "
            "or samples, or let a rule split the rows.",
        )
        problem = settings.build(data)
        best = metrics.oracles(problem)
        # With fewer records than that the pooled answer is a stationary point.
        enough = problem.clients * settings.samples > settings.components
        start = "pooled" if enough else "independent"
        algorithm = replace(settings.personalised(), start_from=start)
        found = {
            PERSONAL: (yield from _settled(problem, algorithm, settings.rounds, settings.seed)),
            ALONE: float(metrics.fresh_ratios(best["local"], problem).mean()),
            SHARED: float(metrics.fresh_ratios(best["global"], problem).mean()),
        }
        return {METHODS[key].title: {FRESH: value} for key, value in found.items()}


def _settled(
    problem: PersonalProblem, algorithm: PersonalizedPCA, rounds: int, seed: int
) -> Part[float]:
    """Mean fresh error of personalised PCA after it has settled, or after ``rounds``."""
    wire = Channel(record="estimates")
    errors: list[float] = []
    for entry in stream(problem, algorithm, rounds=rounds, seed=seed, channel=wire):
        errors.append(float(metrics.fresh_ratios(entry.estimate, problem).mean()))
        if len(errors) > 10 and abs(errors[-1] - errors[-11]) < SETTLED:
            break
        yield Step(entry.index / rounds, "")
    return errors[-1]


def crossing(found: Swept) -> float | None:
    """Where one shared model stops or starts being better than training alone."""
    alone, shared = (found.band(METHODS[key].title, FRESH) for key in (ALONE, SHARED))
    return metrics.crossover(alone.x, shared.middle, alone.middle)


def better_at_the_end(found: Swept) -> str:
    """Key of the baseline that is ahead at the last value."""
    last = {key: found.band(METHODS[key].title, FRESH).middle[-1] for key in (ALONE, SHARED)}
    return min(last, key=lambda key: float(last[key]))


def largest_gain(found: Swept) -> tuple[float, float]:
    """Where personalised PCA gains most over the better baseline, and how much."""
    mine, alone, shared = (
        found.band(METHODS[key].title, FRESH) for key in (PERSONAL, ALONE, SHARED)
    )
    gain = np.minimum(alone.middle, shared.middle) - mine.middle
    at = int(gain.argmax())
    return float(mine.x[at]), float(gain[at])
