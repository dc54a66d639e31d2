"""Personalised PCA beside training alone and one shared model, on one problem or many."""

import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedpca_core.algorithms.personalized import PersonalizedPCA
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import require
from fedpca_core.metrics.personal import (
    angles_between,
    crossover,
    fresh_ratios,
    oracles,
    training_ratios,
)
from fedpca_core.problems.personal import PersonalProblem
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import stream
from fedpca_core.questions import costs
from fedpca_core.questions.personalise.settings import (
    ALONE,
    COMPARED,
    PERSONAL,
    SHARED,
    PersonaliseSettings,
)
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Run, Step
from fedpca_core.study.facts import Facts
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study, stacked
from fedpca_core.study.sweep import Band, Measured, Sweep, Swept

#: Clients between whom angles are measured; their number grows with the square.
SHOWN = 60
#: Seconds between two partial results.
PARTIAL_SECONDS = 1.0


@dataclass(frozen=True, eq=False)
class Collaboration:
    """What the three methods reached on one problem (all errors are simulation only).

    Errors are those of records over the noise that no model can explain; 1 is perfect. Of a table
    of one's own they are the share of the records' energy that is missed; 0 is perfect.
    """

    #: fresh, training: mapping of method key to (rounds + 1,) float64: Means over the clients after
    #: each round.
    fresh: Mapping[str, Array]
    training: Mapping[str, Array]
    #: Rounds that were asked for; fewer have run when somebody stopped it.
    planned: int
    #: Closed-form fresh error to which it converges.
    limits: Mapping[str, float]
    #: Fresh error of the true common frame: no shared model can do better for ever. NaN where
    #: nobody knows it, with a table of one's own.
    centre: float
    #: (clients,) int64: Clients by their gain over training alone, largest first.
    order: IntArray
    #: mapping of baseline key to (clients,) float64: By how much each client's fresh error falls
    #: with personalised PCA, in that order.
    gains: Mapping[str, Array]
    #: Clients that do better than alone.
    better: int
    #: angles, learned: (shown, shown) float64: Largest principal angle, in degrees, between every
    #: two clients' true subspaces (with a table of one's own: the leading ones of all their
    #: records) and between their personalised models; the first `SHOWN` clients where there are
    #: more.
    angles: Array
    learned: Array
    #: Of ``angles``, over the pairs.
    median_angle: float
    #: All clients, both directions, rounds so far.
    bytes_sent: Mapping[str, int]
    #: Of the problem, with what noise at the source guarantees. Training alone sends nothing and
    #: learns from its own records, without noise.
    facts: Facts

    @property
    def own(self) -> bool:
        """Whether the records are a visitor's own."""
        return bool(np.isnan(self.centre))

    @property
    def rounds(self) -> int:
        """Rounds that have run."""
        return len(self.fresh[PERSONAL]) - 1

    @property
    def clients(self) -> int:
        """How many clients took part."""
        return len(self.order)


def _mean(models: Array, problem: PersonalProblem) -> float:
    """Fresh error of models, or of one for all clients, in the mean over them."""
    return float(fresh_ratios(models, problem).mean())


class _Meters:
    """Errors and bytes of the runs so far; no model is kept but the last of each."""

    def __init__(self, problem: PersonalProblem, planned: int) -> None:
        self._problem, self._models = problem, problem.frames
        best, angles = oracles(problem), angles_between(problem.frames[:SHOWN])
        #: What stays the same from round to round.
        self._known: dict[str, Any] = {
            "planned": planned,
            "limits": {
                ALONE: _mean(best["local"], problem),
                SHARED: _mean(best["global"], problem),
            },
            "centre": np.nan if problem.centre is None else _mean(problem.centre, problem),
            "angles": angles,
            "median_angle": float(np.median(angles[np.triu_indices(len(angles), 1)])),
            "facts": Facts.of(problem),
        }
        self._fresh: dict[str, list[float]] = {key: [] for key in COMPARED}
        self._training: dict[str, list[float]] = {key: [] for key in COMPARED}
        self._bytes = dict.fromkeys(COMPARED, 0)
        self._latest: dict[str, Array] = {}

    def read(self, key: str, estimate: Array, sent: int) -> None:
        """Measure one method after one round."""
        self._latest[key] = fresh_ratios(estimate, self._problem)
        self._fresh[key].append(float(self._latest[key].mean()))
        self._training[key].append(float(training_ratios(estimate, self._problem).mean()))
        self._bytes[key] += sent
        if key == PERSONAL:
            self._models = estimate

    def result(self) -> Collaboration:
        """Everything measured so far."""
        mine = self._latest[PERSONAL]
        gains = {key: self._latest[key] - mine for key in (ALONE, SHARED)}
        order = np.argsort(-gains[ALONE], kind="stable")
        return Collaboration(
            fresh={key: np.array(values) for key, values in self._fresh.items()},
            training={key: np.array(values) for key, values in self._training.items()},
            order=order,
            gains={key: values[order] for key, values in gains.items()},
            better=int((gains[ALONE] > 0).sum()),
            learned=angles_between(self._models[:SHOWN]),
            bytes_sent=dict(self._bytes),
            **self._known,
        )


class PersonalComparison(Study[PersonaliseSettings, Collaboration]):
    """The three methods side by side, round by round."""

    key: ClassVar[str] = "personalised"
    title: ClassVar[str] = "Who should collaborate"
    seconds: ClassVar[float] = 180.0
    look: ClassVar[Mapping[str, Any]] = {"rounds": 50}

    def cost(self, settings: PersonaliseSettings, data: OwnData | None = None) -> Cost:
        return costs.personal(settings, data, len(COMPARED))

    def run(self, settings: PersonaliseSettings, data: OwnData | None = None) -> Run[Collaboration]:
        yield Step(0.0, "Drawing the clients")
        problem, rounds = settings.build(data), settings.rounds
        wire, runs = Channel(record="estimates"), {}
        for key, algorithm in settings.methods().items():
            # Who sends nothing needs no noise.
            own = problem.unperturbed if key == ALONE else problem
            runs[key] = stream(own, algorithm, rounds=rounds, seed=settings.seed, channel=wire)
        meters = _Meters(problem, rounds)
        shown = time.monotonic()
        for entries in zip(*runs.values(), strict=True):
            for key, entry in zip(runs, entries, strict=True):
                meters.read(key, entry.estimate, entry.bytes_up + entry.bytes_down)
            late = time.monotonic() - shown > PARTIAL_SECONDS
            index = entries[0].index
            yield Step(
                index / rounds, f"Round {index} of {rounds}", meters.result() if late else None
            )
            shown = time.monotonic() if late else shown
        return meters.result()

    def tables(
        self, result: Collaboration, settings: PersonaliseSettings
    ) -> dict[str, pd.DataFrame]:
        titles = {key: METHODS[key].title for key in COMPARED}
        summary = pd.DataFrame(
            {
                "method": list(titles.values()),
                "fresh_ratio": [result.fresh[key][-1] for key in titles],
                "training_ratio": [result.training[key][-1] for key in titles],
                "limit": [result.limits.get(key, np.nan) for key in titles],
                "bytes": [result.bytes_sent[key] for key in titles],
            }
        )
        curves = stacked(
            {
                "method": title,
                "round": np.arange(result.rounds + 1),
                "fresh_ratio": result.fresh[key],
                "training_ratio": result.training[key],
            }
            for key, title in titles.items()
        )
        names = result.facts.client_names
        who = np.asarray(names, dtype=object) if names else np.arange(result.clients)
        gains = pd.DataFrame(
            {"client": who[result.order]}
            | {f"gain_over_{key}": g for key, g in result.gains.items()}
        )
        first, second = np.triu_indices(len(result.angles), 1)
        angles = pd.DataFrame(
            {
                "client": who[first],
                "other": who[second],
                "true_degrees": result.angles[first, second],
                "learned_degrees": result.learned[first, second],
            }
        )
        return {"summary": summary, "curves": curves, "gains": gains, "angles": angles}


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
    reads: ClassVar[frozenset[str] | None] = frozenset(
        set(PersonaliseSettings.parameters()) - {"start_from", "error_on", "exposure"}
    )
    seconds: ClassVar[float] = 180.0

    def cost(self, settings: PersonaliseSettings, data: OwnData | None = None) -> Cost:
        points = self.values(settings)
        runs = [self.at(settings, value, settings.seed) for value in points]
        all_ = (costs.personal(one, data, settings.datasets) for one in runs)
        return sum(all_, Cost())

    def parameter(self, settings: PersonaliseSettings) -> str:
        return settings.sweep

    def values(self, settings: PersonaliseSettings) -> Sequence[Value]:
        return AXES[settings.sweep]

    def seeds(self, settings: PersonaliseSettings) -> Sequence[int]:
        return [(settings.seed + index) % 100_000 for index in range(settings.datasets)]

    def at(self, settings: PersonaliseSettings, value: Value, seed: int) -> PersonaliseSettings:
        few = replace(settings, clients=min(settings.clients, MOST_CLIENTS))
        return super().at(few, value, seed)

    def identity(self, settings: PersonaliseSettings, data: OwnData | None = None) -> Hashable:
        """The page's own value of what varies is not read, nor clients beyond the limit."""
        return super().identity(self.at(settings, self.values(settings)[0], settings.seed), data)

    def measure(
        self, settings: PersonaliseSettings, seed: int, data: OwnData | None
    ) -> Part[Measured]:
        require(
            (settings.sweep, settings.problem) != ("clients", "table")
            or not settings.client_column,
            "A column of your table names the clients, so their number stays; vary heterogeneity "
            "or samples, or let a rule split the rows.",
        )
        problem = settings.build(data)
        best = oracles(problem)
        # With fewer records than that the pooled answer is a stationary point.
        enough = problem.clients * settings.samples > settings.components
        start = "pooled" if enough else "independent"
        algorithm = replace(settings.personalised(), start_from=start)
        found = {
            PERSONAL: (yield from _settled(problem, algorithm, settings.rounds, settings.seed)),
            ALONE: _mean(best["local"], problem),
            SHARED: _mean(best["global"], problem),
        }
        return {METHODS[key].title: {FRESH: value} for key, value in found.items()}


def _settled(
    problem: PersonalProblem, algorithm: PersonalizedPCA, rounds: int, seed: int
) -> Part[float]:
    """Mean fresh error of personalised PCA after it has settled, or after ``rounds``."""
    wire = Channel(record="estimates")
    errors: list[float] = []
    for entry in stream(problem, algorithm, rounds=rounds, seed=seed, channel=wire):
        errors.append(_mean(entry.estimate, problem))
        if len(errors) > 10 and abs(errors[-1] - errors[-11]) < SETTLED:
            break
        yield Step(entry.index / rounds, "")
    return errors[-1]


def _bands(found: Swept) -> dict[str, Band]:
    return {key: found.band(METHODS[key].title, FRESH) for key in (PERSONAL, ALONE, SHARED)}


def crossing(found: Swept) -> float | None:
    """Where one shared model stops or starts being better than training alone."""
    bands = _bands(found)
    alone, shared = bands[ALONE], bands[SHARED]
    return crossover(alone.x, shared.middle, alone.middle)


def better_at_the_end(found: Swept) -> str:
    """Key of the baseline that is ahead at the last value."""
    bands = _bands(found)
    return min((ALONE, SHARED), key=lambda key: float(bands[key].middle[-1]))


def largest_gain(found: Swept) -> tuple[float, float]:
    """Where personalised PCA gains most over the better baseline, and how much."""
    mine, alone, shared = _bands(found).values()
    gain = np.minimum(alone.middle, shared.middle) - mine.middle
    at = int(gain.argmax())
    return float(mine.x[at]), float(gain[at])
