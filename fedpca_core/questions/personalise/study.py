"""Personalised PCA beside training alone and one shared model, on one problem or many."""

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import require
from fedpca_core.metrics.personal import angles_between, fresh_ratios, oracles, training_ratios
from fedpca_core.problems.personal_model import PersonalProblem
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import stream
from fedpca_core.protocol.trace import Round
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
from fedpca_core.study import Cost, Measured, OwnData, Study, Sweep, stacked
from fedpca_core.study.facts import Facts

#: Clients between whom angles are measured; their number grows with the square.
SHOWN = 60
#: Seconds between two partial results.
PARTIAL_SECONDS = 1.0


@dataclass(frozen=True, eq=False)
class Collaboration:
    """What the methods reached on one problem; errors are those of `fedpca_core.metrics.personal`.

    Mappings are by key of the method.
    """

    #: fresh, training: (rounds + 1,) float64: Mean error over the clients after each round.
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
    #: Of each baseline, (clients,) float64: By how much each client's fresh error falls with
    #: personalised PCA, in that order.
    gains: Mapping[str, Array]
    #: angles, learned: (shown, shown) float64: Largest principal angle, in degrees, between every
    #: two clients' true subspaces (with a table of one's own: the leading ones of all their
    #: records) and between their personalised models; of `SHOWN` clients at the most.
    angles: Array
    learned: Array
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
        return len(self.fresh[PERSONAL]) - 1

    @property
    def clients(self) -> int:
        return len(self.order)

    @property
    def better(self) -> int:
        """Clients that do better than alone."""
        return int((self.gains[ALONE] > 0).sum())


def _mean(models: Array, problem: PersonalProblem) -> float:
    """Fresh error of models, or of one for all clients, in the mean over them."""
    return float(fresh_ratios(models, problem).mean())


class PersonalComparison(Study[PersonaliseSettings, Collaboration]):
    """The methods side by side, round by round."""

    key = "personalised"
    title = "Who should collaborate"
    seconds = 180.0
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
        best = oracles(problem)
        limits = {ALONE: _mean(best["local"], problem), SHARED: _mean(best["global"], problem)}
        centre = np.nan if problem.centre is None else _mean(problem.centre, problem)
        angles, facts = angles_between(problem.frames[:SHOWN]), Facts.of(problem)
        fresh: dict[str, list[float]] = {key: [] for key in runs}
        training: dict[str, list[float]] = {key: [] for key in runs}
        sent = dict.fromkeys(runs, 0)
        #: Of the last round: no models are kept but these.
        errors, models = dict[str, Array](), problem.frames

        def result() -> Collaboration:
            gains = {key: errors[key] - errors[PERSONAL] for key in (ALONE, SHARED)}
            order = np.argsort(-gains[ALONE], kind="stable")
            return Collaboration(
                fresh={key: np.array(values) for key, values in fresh.items()},
                training={key: np.array(values) for key, values in training.items()},
                planned=rounds,
                limits=limits,
                centre=centre,
                order=order,
                gains={key: values[order] for key, values in gains.items()},
                angles=angles,
                learned=angles_between(models[:SHOWN]),
                bytes_sent=dict(sent),
                facts=facts,
            )

        shown = time.monotonic()
        for entries in zip(*runs.values(), strict=True):
            for key, entry in zip(runs, entries, strict=True):
                errors[key] = fresh_ratios(entry.estimate, problem)
                fresh[key].append(float(errors[key].mean()))
                training[key].append(float(training_ratios(entry.estimate, problem).mean()))
                sent[key] += entry.bytes_up + entry.bytes_down
                if key == PERSONAL:
                    models = entry.estimate
            late = time.monotonic() - shown > PARTIAL_SECONDS
            index = entries[0].index
            yield Step(index / rounds, f"Round {index} of {rounds}", result() if late else None)
            shown = time.monotonic() if late else shown
        return result()

    def tables(
        self, result: Collaboration, settings: PersonaliseSettings
    ) -> dict[str, pd.DataFrame]:
        curves = stacked(
            {
                "method": METHODS[key].title,
                "round": np.arange(result.rounds + 1),
                "fresh_ratio": result.fresh[key],
                "training_ratio": result.training[key],
            }
            for key in COMPARED
        )
        summary = (
            curves[curves["round"] == result.rounds].drop(columns="round").reset_index(drop=True)
        )
        summary["limit"] = [result.limits.get(key, np.nan) for key in COMPARED]
        summary["bytes"] = [result.bytes_sent[key] for key in COMPARED]
        names = result.facts.client_names
        who = np.asarray(names, dtype=object) if names else np.arange(result.clients)
        gains = pd.DataFrame({"client": who[result.order], **result.gains})
        gains = gains.rename(columns={key: f"gain_over_{key}" for key in result.gains})
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
#: A run has settled when its mean error moves by less than this in some rounds.
SETTLED = 1e-5
#: The measure of the sweep.
FRESH = "fresh_ratio"


class CollaborationSweep(Sweep[PersonaliseSettings]):
    """Fresh error of the three methods along one axis.

    The baselines are their closed-form limits; personalised PCA starts from the pooled answer and
    runs until it settles.
    """

    key = "personalised-sweep"
    title = "Between alone and shared"
    axes = AXES
    reads = frozenset(
        set(PersonaliseSettings.parameters()) - {"start_from", "error_on", "exposure"}
    )
    seconds = 180.0

    def cost(self, settings: PersonaliseSettings, data: OwnData | None = None) -> Cost:
        runs = (self.at(settings, value, settings.seed) for value in self.values(settings))
        return sum((costs.personal(one, data, settings.datasets) for one in runs), Cost())

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
        for entry, mine in until_settled(problem, algorithm, settings.rounds, settings.seed):
            yield Step(entry.index / settings.rounds, f"Error {mine:.3f}")
        found = {
            PERSONAL: mine,
            ALONE: _mean(best["local"], problem),
            SHARED: _mean(best["global"], problem),
        }
        return {METHODS[key].title: {FRESH: value} for key, value in found.items()}


def until_settled(
    problem: PersonalProblem, algorithm: Algorithm, rounds: int, seed: int, over: int = 10
) -> Iterator[tuple[Round, float]]:
    """Rounds and their mean fresh error, until ``over`` rounds move that by less than `SETTLED`."""
    wire, errors = Channel(record="estimates"), list[float]()
    for entry in stream(problem, algorithm, rounds=rounds, seed=seed, channel=wire):
        errors.append(_mean(entry.estimate, problem))
        yield entry, errors[-1]
        if len(errors) > over and abs(errors[-1] - errors[-1 - over]) < SETTLED:
            return
