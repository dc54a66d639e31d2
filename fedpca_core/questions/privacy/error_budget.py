"""Where FedPower's error comes from: effects switched on one by one, and one average taken apart.

Everything here needs raw data (eigenvalues, true angles, every machine's own frame) and is not
covered by any guarantee.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate
from fedpca_core.questions import costs
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.repeated import run_seeds, traced
from fedpca_core.questions.privacy.round_identity import (
    RoundIdentity,
    communication_times,
    largest_drift,
    one_round_identity,
)
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.privacy.theory_terms import TheoryTerms, theory_terms
from fedpca_core.settings import Value
from fedpca_core.steps import Run, Step, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study, stacked

#: What each step of the ablation adds to the one before.
ABLATION = ("centralised power method", "local drift", "client sampling", "privacy noise")


@dataclass(frozen=True, eq=False)
class Ablation:
    """Errors of four runs that share every random stream, each with one effect more.

    Attributes
    ----------
    times : (communications + 1,) int64
        Local products finished.
    sines : (4, communications + 1) float64
        Largest angle of each run, in the order of `ABLATION`.
    """

    times: IntArray
    sines: Array

    @property
    def increments(self) -> Array:
        """Share of sin^2 that each effect adds, (4, communications + 1); small ones may be < 0."""
        squares = self.sines**2
        return np.diff(squares, axis=0, prepend=0.0)


def ablation(problem: Problem, algorithm: FedPower, seed: int = 0) -> Ablation:
    """Counterfactual ablation: centralised, + drift, + sampling, + noise."""
    times = communication_times(algorithm)
    target = problem.target(algorithm.components)
    quiet = Channel(record="estimates")

    def sines(run: FedPower) -> Array:
        trace = simulate(problem, run, rounds=run.rounds, seed=seed, channel=quiet)
        return largest_sine(trace.estimates, target)

    central = replace(algorithm, period=1, noise=0.0, draws=None)
    return Ablation(
        times,
        np.stack(
            [
                sines(central)[times],
                sines(replace(algorithm, noise=0.0, draws=None)),
                sines(replace(algorithm, noise=0.0)),
                sines(algorithm),
            ]
        ),
    )


@dataclass(frozen=True, eq=False)
class Budget:
    """Where the error of the run that is set comes from.

    Attributes
    ----------
    times : (communications + 1,) int64
        Local products finished.
    increments : (4, communications + 1) float64
        What each effect adds to sin^2, mean over the repetitions.
    squared : (communications + 1,) float64
        sin^2 with all effects, mean over the repetitions.
    repetitions : int
        Repetitions that are done.
    identity : RoundIdentity or None
        Of the first repetition; None until it has run.
    terms : TheoryTerms or None
    """

    times: IntArray
    increments: Array
    squared: Array
    repetitions: int
    identity: RoundIdentity | None = None
    terms: TheoryTerms | None = None

    @property
    def shares(self) -> Array:
        """Share of each effect, (4, communications + 1); what an effect takes away counts as 0."""
        risen = np.maximum(self.increments, 0.0)
        shares: Array = risen / risen.sum(axis=0)
        return shares

    @property
    def lowest(self) -> float:
        """The most that any effect takes away."""
        return float(self.increments.min())


class ErrorBudget(Study[PrivacySettings, Budget]):
    """Effects switched on one by one over all repetitions, and one run taken apart exactly."""

    key: ClassVar[str] = "error_budget"
    title: ClassVar[str] = "Where the error comes from"
    opened_by: ClassVar[tuple[str, Value] | None] = ("view", "budget")
    settings: ClassVar[type[PrivacySettings]] = PrivacySettings
    seconds: ClassVar[float] = 300.0

    def cost(self, settings: PrivacySettings, data: OwnData | None = None) -> Cost:
        return costs.private(settings, data, 4 * settings.repetitions)

    def run(self, settings: PrivacySettings, data: OwnData | None = None) -> Run[Budget]:
        build.require_single_uploads(settings)
        run = build.method(settings, build.current_noise(settings, data))
        require(
            settings.calibration != "source",
            "The error budget takes noise on every product apart; noise at the source is one more "
            "effect on the data. Choose exact or published noise.",
        )
        if not isinstance(run, FedPower):
            raise InvalidInput(
                "The error budget takes FedPower apart; choose FedPower as the method (with p = 1 "
                "it is the distributed power method)."
            )
        yield Step(0.0, "Drawing the data")
        problem = build.build_problem(settings, data)
        seeds = run_seeds(settings.seed, settings.repetitions)
        found: list[Ablation] = []
        for index, seed in enumerate(seeds):
            text = "Switching effects on one by one"
            yield Step(0.8 * index / len(seeds), text, _mean(found) if found else None)
            found.append(ablation(problem, run, seed))
        mean = _mean(found)
        wire = Channel()
        steps = traced(problem, run, run.rounds, settings.seed, wire, "Taking one run apart")
        trace = yield from part(steps, 0.8, 0.9)
        yield Step(0.9, "Taking one run apart", mean)
        return replace(
            mean,
            identity=one_round_identity(problem, trace),
            terms=theory_terms(problem, run, trace.setting, largest_drift(problem, trace)),
        )

    def tables(self, result: Budget, settings: PrivacySettings) -> dict[str, pd.DataFrame]:
        tables = {
            "ablation": stacked(
                {
                    "effect": name,
                    "communication": np.arange(len(result.times)),
                    "products": result.times,
                    "added_squared_sine": added,
                    "share": share,
                }
                for name, added, share in zip(
                    ABLATION, result.increments, result.shares, strict=True
                )
            )
        }
        if result.identity is not None:
            identity = pd.DataFrame(asdict(result.identity))
            identity.insert(0, "communication", np.arange(1, len(identity) + 1))
            tables["identity"] = identity
        if result.terms is not None:
            tables["theory"] = pd.DataFrame([asdict(result.terms)])
        return tables


def _mean(found: list[Ablation]) -> Budget:
    return Budget(
        found[0].times,
        np.mean([each.increments for each in found], axis=0),
        np.mean([each.sines[-1] ** 2 for each in found], axis=0),
        len(found),
    )
