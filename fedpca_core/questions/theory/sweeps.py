"""Factors against the penalty and against the local steps, claimed and exact.

Both axes are finer and longer than the settings' own grids, and at each value an exact norm is
computed instead of a run, so these are curves of their own and not a sweep of the page's run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.consensus import bounds, operators
from fedpca_core.consensus.generators import scalar_pair
from fedpca_core.consensus.methods import InexactUzawa
from fedpca_core.consensus.problems import Quadratic
from fedpca_core.questions.theory.settings import LOW, TheorySettings
from fedpca_core.steps import Part, Run, Step, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.own_table import TABLE_FIELDS
from fedpca_core.study.study import Study

#: Above this many unknowns (clients x features) the chosen problem is left out.
LARGEST = 120
#: Exact norms computed between two steps.
AT_ONCE = 8

Norms = Callable[[Quadratic, Sequence[InexactUzawa]], Array]


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors of a round along both axes.

    Attributes
    ----------
    penalties : (points,) float64
        r in units of λ; the first is 0.
    claimed : (points,) float64
        ρ of Theorem 1.
    admm : (points,) float64
        Our bound for ADMM (ω = r); NaN at 0.
    penalty_norms : mapping of problem to (points,) float64
        Exact one-step norms of exact solves: "two scalar clients", and "this problem" where it is
        quadratic and small enough (simulation only).
    window : (low, high) or None
        Penalties between which Theorem 1 says nothing, in units of λ.
    best : (penalty, factor)
        Where Theorem 1 promises most.
    steps : (points,) int64
        Numbers of local steps n.
    by_steps : mapping of name to (points,) float64
        Theorem 3, Theorem 10 and our bound for Scaffnew, all at r = 0.
    step_norms, step_rates : mapping of problem to (points,) float64
        Exact one-step norms and asymptotic rates of Scaffnew.
    root : float
        √κ.
    """

    penalties: Array
    claimed: Array
    admm: Array
    penalty_norms: Mapping[str, Array]
    window: tuple[float, float] | None
    best: tuple[float, float]
    steps: Array
    by_steps: Mapping[str, Array]
    step_norms: Mapping[str, Array]
    step_rates: Mapping[str, Array]
    root: float


class PenaltyAndSteps(Study[TheorySettings, Factors]):
    """Which penalty, how many local steps: for the chosen condition number and problem."""

    key: ClassVar[str] = "theory-sweeps"
    title: ClassVar[str] = "Which penalty, how many local steps"
    settings: ClassVar[type[TheorySettings]] = TheorySettings
    most: ClassVar[Cost] = Cost(megabytes=100, seconds=4)
    reads: ClassVar[frozenset[str] | None] = frozenset(
        {"problem", "condition", "heterogeneity", "clients", "features", "seed", "target"}
        | set(TABLE_FIELDS)
    )

    def run(self, settings: TheorySettings, data: OwnData | None = None) -> Run[Factors]:
        yield Step(0.0, "Claims")
        low, high = LOW, settings.high
        penalties = np.concatenate([[0.0], np.logspace(-2, 4, 61)])
        steps = np.unique(
            np.round(np.logspace(0, np.log10(max(100.0, 4 * settings.condition)), 45)).astype(int)
        )
        exact = [bounds.uzawa_exact(low, high, low * float(r)) for r in penalties]
        local = [bounds.scaffnew(high, int(n)) for n in steps]
        problems = {"two scalar clients": scalar_pair(low, high)}
        here = settings.build(data)
        if isinstance(here, Quadratic) and 2 < here.clients * here.features <= LARGEST:
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
            root=float(np.sqrt(settings.condition)),
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
