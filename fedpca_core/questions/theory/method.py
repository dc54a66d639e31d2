"""The chosen method against its claims, and beside the other methods on the same problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array, IntArray
from fedpca_core.consensus import bounds, operators
from fedpca_core.consensus.methods import InexactUzawa, Method
from fedpca_core.consensus.problems import ConsensusProblem, Quadratic
from fedpca_core.consensus.run import ConsensusTrace, run
from fedpca_core.questions.theory.claim import Claim, claim
from fedpca_core.questions.theory.settings import LOW, TheorySettings
from fedpca_core.steps import Run, Step
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study, stacked

#: An average this close to the minimiser, relative to its size, has arrived.
ARRIVED = 1e-8


@dataclass(frozen=True, eq=False)
class Course:
    """One run, as far as it is shown (distances are simulation only: they need the minimiser).

    Attributes
    ----------
    norms : (rounds + 1,) float64
        Φ over its first value: the norm of the theorems.
    contractions : (rounds,) float64
        Φ after over Φ before each round; NaN once Φ is down to round-off.
    distances : (rounds + 1,) float64
        ‖z − x*‖/‖x*‖ of the average.
    diverged : bool
    largest : float
        Of ``contractions``; NaN without any.
    arrived : int or None
        Rounds until ``distances`` fell to `ARRIVED`.
    gradients : int or None
        Local gradients of one client until then; None for exact solves.
    bytes_up : int or None
        What all clients had sent until then.
    """

    norms: Array
    contractions: Array
    distances: Array
    diverged: bool
    largest: float
    arrived: int | None
    gradients: int | None
    bytes_up: int | None

    @classmethod
    def of(cls, trace: ConsensusTrace) -> Course:
        """What is shown of a run."""
        seen = trace.contractions[np.isfinite(trace.contractions)]
        arrived, steps = trace.rounds_to(ARRIVED), trace.method.gradients_per_round
        sent: IntArray = trace.bytes_up
        there = None if arrived is None else np.searchsorted(trace.communications, arrived)
        return cls(
            norms=trace.norms / trace.norms[0],
            contractions=trace.contractions,
            distances=trace.distances,
            diverged=trace.diverged,
            largest=float(seen.max()) if len(seen) else float("nan"),
            arrived=arrived,
            gradients=None if arrived is None or steps is None else arrived * steps,
            bytes_up=None if there is None else int(sent[there]),
        )

    @property
    def rounds(self) -> int:
        """Rounds that were run."""
        return len(self.distances) - 1


@dataclass(frozen=True, eq=False)
class Measured:
    """The chosen method beside its claims, and the other methods on the same problem.

    Attributes
    ----------
    course : Course
    claim : Claim
    verdict : {"vacuous", "violated", "holds", "none"}
    spectral : float or None
        Our bound ρ_spec; None for methods it does not cover.
    norm, radius : float or None
        Exact one-step norm and spectral radius on this very problem (quadratics; simulation only).
    rivals : mapping of name to Course
    """

    course: Course
    claim: Claim
    verdict: str
    spectral: float | None
    norm: float | None
    radius: float | None
    rivals: Mapping[str, Course]


class AgainstClaims(Study[TheorySettings, Measured]):
    """Run the chosen method and its rivals on one problem."""

    key: ClassVar[str] = "theory"
    title: ClassVar[str] = "The method against its claims"
    settings: ClassVar[type[TheorySettings]] = TheorySettings
    most: ClassVar[Cost] = Cost(megabytes=100, seconds=4)

    def run(self, settings: TheorySettings, data: OwnData | None = None) -> Run[Measured]:
        yield Step(0.0, "Running the chosen method")
        problem, method = settings.build(data), settings.build_method()
        chosen = Course.of(run(problem, method, settings.rounds, seed=settings.seed))
        yield Step(0.2, "Exact worst cases")
        spectral, norm, radius = _exact(problem, method, settings.high)
        rivals: dict[str, Course] = {}
        others = _rivals(settings)
        for name, other in others.items():
            yield Step(0.3 + 0.7 * len(rivals) / len(others), name)
            rivals[name] = Course.of(run(problem, other, settings.rounds))
        stated = claim(settings)
        verdict = _verdict(chosen, stated)
        return Measured(chosen, stated, verdict, spectral, norm, radius, rivals)

    def tables(self, result: Measured, settings: TheorySettings) -> dict[str, pd.DataFrame]:
        runs = {"chosen": result.course, **result.rivals}

        def there(field: str) -> Array:
            return np.array([getattr(course, field) for course in runs.values()], dtype=float)

        summary = pd.DataFrame(
            {
                "method": list(runs),
                "rounds": [course.rounds for course in runs.values()],
                "rounds_to_1e-8": there("arrived"),
                "gradients_to_1e-8": there("gradients"),
                "bytes_up_to_1e-8": there("bytes_up"),
                "distance": [course.distances[-1] for course in runs.values()],
                "largest_factor": [course.largest for course in runs.values()],
            }
        )
        factors = {
            result.claim.name: result.claim.factor,
            "our bound": result.spectral,
            "exact worst case": result.norm,
            "asymptotic rate": result.radius,
        }
        claims = pd.DataFrame(
            {"factor": list(factors), "value": np.array(list(factors.values()), dtype=float)}
        )
        curves = stacked(
            {
                "method": name,
                "round": np.arange(course.rounds + 1),
                "norm": course.norms,
                "factor": np.concatenate([[np.nan], course.contractions]),
                "distance": course.distances,
            }
            for name, course in runs.items()
        )
        return {"summary": summary, "claims": claims, "curves": curves}


def _rivals(settings: TheorySettings) -> dict[str, Method]:
    low, high = LOW, settings.high
    root = bounds.best_local_steps(low, high)
    return {
        "FedAvg": bounds.fedavg(high, settings.local_steps),
        "Gradient descent (n = 1)": bounds.scaffnew(high, 1),
        f"Scaffnew (n = √κ ≈ {root})": bounds.scaffnew(high, root),
        "Uzawa, exact, r = 0": bounds.uzawa_exact(low, high, 0.0),
        "ADMM, r = √(λL)": bounds.admm(float(np.sqrt(low * high))),
    }


def _exact(
    problem: ConsensusProblem, method: Method, high: float
) -> tuple[float | None, float | None, float | None]:
    """Our bound, the one-step norm and the spectral radius, as far as each speaks."""
    spectral = norm = radius = None
    if isinstance(method, InexactUzawa):
        quadratic = isinstance(problem, Quadratic)
        if quadratic or method.local_steps is None:
            spectral = bounds.spectral(LOW, high, method)
        if isinstance(problem, Quadratic):
            norm = float(operators.one_step_norms(problem, [method])[0])
            radius = float(operators.spectral_radii(problem, [method])[0])
    return spectral, norm, radius


def _verdict(course: Course, stated: Claim) -> str:
    if stated.factor is None:
        return "none"
    if stated.factor >= 1:
        return "vacuous"
    if not stated.every_round:
        return "holds"
    # The reference of a problem without closed form has an accuracy of its own.
    seen = course.contractions[course.norms[:-1] > 1e-8]
    return "violated" if np.nanmax(seen, initial=0.0) > stated.factor * (1 + 1e-7) else "holds"
