"""Theorems against runs: one method, factors along two axes, all statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array, IntArray
from fedpca_core.consensus import bounds, operators, verdicts
from fedpca_core.consensus.generators import scalar_pair
from fedpca_core.consensus.methods import ConsensusMethod, InexactUzawa
from fedpca_core.consensus.problems import ConsensusProblem, Quadratic
from fedpca_core.consensus.run import ConsensusTrace, run
from fedpca_core.questions.theory.iterations import LOW, StatedFactor, claim
from fedpca_core.questions.theory.settings import TheorySettings
from fedpca_core.steps import Part, Run, Step, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.own_table import TABLE_FIELDS
from fedpca_core.study.study import Study, stacked

#: An average this close to the minimiser, relative to its size, has arrived.
ARRIVED = 1e-8


@dataclass(frozen=True, eq=False)
class IterationCourse:
    """One run, as far as it is shown (distances are simulation only: they need the minimiser)."""

    #: (rounds + 1,) float64: Φ over its first value: the norm of the theorems.
    norms: Array
    #: (rounds,) float64: Φ after over Φ before each round; NaN once Φ is down to round-off.
    contractions: Array
    #: (rounds + 1,) float64: ‖z − x*‖/‖x*‖ of the average.
    distances: Array
    diverged: bool
    #: Of ``contractions``; NaN without any.
    largest: float
    #: Rounds until ``distances`` fell to `ARRIVED`.
    arrived: int | None
    #: Local gradients of one client until then; None for exact solves.
    gradients: int | None
    #: What all clients had sent until then.
    bytes_up: int | None

    @classmethod
    def of(cls, trace: ConsensusTrace) -> IterationCourse:
        """What is shown of a run."""
        seen = trace.contractions[np.isfinite(trace.contractions)]
        arrived, steps = trace.rounds_to(ARRIVED), trace.method.local_steps
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
    """The chosen method beside its claims, and the other methods on the same problem."""

    course: IterationCourse
    claim: StatedFactor
    #: {"vacuous", "violated", "holds", "none"}.
    verdict: str
    #: Our bound ρ_spec; None for methods it does not cover.
    spectral: float | None
    #: norm, radius: Exact one-step norm and spectral radius on this very problem (quadratics;
    #: simulation only).
    norm: float | None
    radius: float | None
    rivals: Mapping[str, IterationCourse]


class AgainstClaims(Study[TheorySettings, Measured]):
    """Run the chosen method and its rivals on one problem."""

    key: ClassVar[str] = "theory"
    title: ClassVar[str] = "The method against its claims"
    most: ClassVar[Cost] = Cost(megabytes=100, seconds=4)

    def run(self, settings: TheorySettings, data: OwnData | None = None) -> Run[Measured]:
        yield Step(0.0, "Running the chosen method")
        problem, method = settings.build(data), settings.build_method()
        chosen = IterationCourse.of(run(problem, method, settings.rounds, seed=settings.seed))
        yield Step(0.2, "Exact worst cases")
        spectral, norm, radius = _exact(problem, method, settings.high)
        rivals: dict[str, IterationCourse] = {}
        others = _rivals(settings)
        for name, other in others.items():
            yield Step(0.3 + 0.7 * len(rivals) / len(others), name)
            rivals[name] = IterationCourse.of(run(problem, other, settings.rounds))
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


def _rivals(settings: TheorySettings) -> dict[str, ConsensusMethod]:
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
    problem: ConsensusProblem, method: ConsensusMethod, high: float
) -> tuple[float | None, float | None, float | None]:
    """Our bound, the one-step norm and the spectral radius, as far as each speaks."""
    spectral = norm = radius = None
    uzawa, quadratic = method.uzawa, problem.quadratic
    if uzawa is not None and (quadratic is not None or uzawa.local_steps is None):
        spectral = bounds.spectral(LOW, high, uzawa)
    if uzawa is not None and quadratic is not None:
        norm = float(operators.one_step_norms(quadratic, [uzawa])[0])
        radius = float(operators.spectral_radii(quadratic, [uzawa])[0])
    return spectral, norm, radius


def _verdict(course: IterationCourse, stated: StatedFactor) -> str:
    if stated.factor is None:
        return "none"
    if stated.factor >= 1:
        return "vacuous"
    if not stated.every_round:
        return "holds"
    # The reference of a problem without closed form has an accuracy of its own.
    seen = course.contractions[course.norms[:-1] > 1e-8]
    return "violated" if np.nanmax(seen, initial=0.0) > stated.factor * (1 + 1e-7) else "holds"


#: Above this many unknowns (clients x features) the chosen problem is left out.
LARGEST = 120
#: Exact norms computed between two steps.
AT_ONCE = 8

Norms = Callable[[Quadratic, Sequence[InexactUzawa]], Array]


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors of a round along both axes."""

    #: (points,) float64: r in units of λ; the first is 0.
    penalties: Array
    #: (points,) float64: ρ of Theorem 1.
    claimed: Array
    #: (points,) float64: Our bound for ADMM (ω = r); NaN at 0.
    admm: Array
    #: mapping of problem to (points,) float64: Exact one-step norms of exact solves: "two scalar
    #: clients", and "this problem" where it is quadratic and small enough (simulation only).
    penalty_norms: Mapping[str, Array]
    #: (low, high) or None: Penalties between which Theorem 1 says nothing, in units of λ.
    window: tuple[float, float] | None
    #: (penalty, factor): Where Theorem 1 promises most.
    best: tuple[float, float]
    #: (points,) int64: Numbers of local steps n.
    steps: Array
    #: mapping of name to (points,) float64: Theorem 3, Theorem 10 and our bound for Scaffnew, all
    #: at r = 0.
    by_steps: Mapping[str, Array]
    #: step_norms, step_rates: mapping of problem to (points,) float64: Exact one-step norms and
    #: asymptotic rates of Scaffnew.
    step_norms: Mapping[str, Array]
    step_rates: Mapping[str, Array]
    #: √κ.
    root: float


class PenaltyAndSteps(Study[TheorySettings, Factors]):
    """Which penalty, how many local steps: for the chosen condition number and problem."""

    key: ClassVar[str] = "theory-sweeps"
    title: ClassVar[str] = "Which penalty, how many local steps"
    most: ClassVar[Cost] = Cost(megabytes=100, seconds=4)
    reads: ClassVar[frozenset[str] | None] = frozenset(
        {"problem", "kappa", "heterogeneity", "clients", "features", "seed", "target"}
        | set(TABLE_FIELDS)
    )

    def run(self, settings: TheorySettings, data: OwnData | None = None) -> Run[Factors]:
        yield Step(0.0, "Claims")
        low, high = LOW, settings.high
        penalties = np.concatenate([[0.0], np.logspace(-2, 4, 61)])
        steps = np.unique(
            np.round(np.logspace(0, np.log10(max(100.0, 4 * settings.kappa)), 45)).astype(int)
        )
        exact = [bounds.uzawa_exact(low, high, low * float(r)) for r in penalties]
        local = [bounds.scaffnew(high, int(n)) for n in steps]
        problems = {"two scalar clients": scalar_pair(low, high)}
        here = settings.build(data).quadratic
        if here is not None and 2 < here.clients * here.features <= LARGEST:
            problems["this problem"] = here
        share = 1 / len(problems)
        penalty_norms: dict[str, Array] = {}
        step_norms: dict[str, Array] = {}
        step_rates: dict[str, Array] = {}
        for index, (name, problem) in enumerate(problems.items()):
            begin = index * share
            kinds = ((penalty_norms, operators.one_step_norms, exact),
                     (step_norms, operators.one_step_norms, local),
                     (step_rates, operators.spectral_radii, local))  # fmt: skip
            for number, (found, norms, methods) in enumerate(kinds):
                ends = begin + share * number / 3, begin + share * (number + 1) / 3
                found[name] = yield from part(_batches(norms, problem, methods), *ends)
        window = bounds.vacuous_penalties(low, high)
        best, factor = bounds.best_penalty(low, high)
        return Factors(
            penalties=penalties,
            claimed=np.array([bounds.theorem_1(low, high, low * float(r)) for r in penalties]),
            admm=np.array(
                [np.nan]
                + [bounds.spectral(low, high, bounds.admm(low * float(r))) for r in penalties[1:]]
            ),
            penalty_norms=penalty_norms,
            window=None if window is None else (window[0] / low, window[1] / low),
            best=(best / low, factor),
            steps=steps,
            by_steps={
                "Theorem 3": np.array([bounds.theorem_3(low, high, 0.0, int(n)) for n in steps]),
                "Theorem 10": np.array([bounds.theorem_9(low, high, 0.0, int(n)) for n in steps]),
                "our bound for Scaffnew": np.array(
                    [bounds.spectral(low, high, method) for method in local]
                ),
            },
            step_norms=step_norms,
            step_rates=step_rates,
            root=float(np.sqrt(settings.kappa)),
        )

    def tables(self, result: Factors, settings: TheorySettings) -> dict[str, pd.DataFrame]:
        by_penalty = {"Theorem 1": result.claimed, "our bound for ADMM": result.admm}
        by_penalty |= {f"exact, {name}": found for name, found in result.penalty_norms.items()}
        by_steps = dict(result.by_steps)
        by_steps |= {f"Scaffnew, {name}": found for name, found in result.step_norms.items()}
        by_steps |= {
            f"Scaffnew, asymptotic, {name}": found for name, found in result.step_rates.items()
        }
        return {
            "penalty": pd.DataFrame({"penalty_factor": result.penalties} | by_penalty),
            "local-steps": pd.DataFrame({"local_steps": result.steps} | by_steps),
        }


def _batches(norms: Norms, problem: Quadratic, methods: Sequence[InexactUzawa]) -> Part[Array]:
    """Exact norms of many methods on one problem, a few at a time."""
    found = []
    for begin in range(0, len(methods), AT_ONCE):
        yield Step(begin / len(methods), f"Exact norms, {problem.name.lower()}")
        found.append(norms(problem, methods[begin : begin + AT_ONCE]))
    return np.concatenate(found)


class Statements(Study[TheorySettings, pd.DataFrame]):
    """Every statement against an adversarial and a random family of clients.

    Columns of the result: theorem, setting, claim, verdict, cases, vacuous, violated, worst,
    printed; see `fedpca_core.consensus.verdicts.Verdict`.
    """

    key: ClassVar[str] = "theory-verdicts"
    title: ClassVar[str] = "Statements and verdicts"
    most: ClassVar[Cost] = Cost(megabytes=100, seconds=4)
    reads: ClassVar[frozenset[str] | None] = frozenset({"family_seed"})

    def run(self, settings: TheorySettings, data: OwnData | None = None) -> Run[pd.DataFrame]:
        yield Step(0.0, "Checking the statements")
        rows = verdicts.verdicts(seed=settings.family_seed)
        return pd.DataFrame([{**asdict(row), "verdict": row.verdict} for row in rows])

    def tables(self, result: pd.DataFrame, settings: TheorySettings) -> dict[str, pd.DataFrame]:
        return {"statements": result}
