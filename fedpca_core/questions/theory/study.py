"""Theorems against runs: one method, factors along two axes, all statements."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.consensus import bounds, operators, verdicts
from fedpca_core.consensus.methods import ConsensusMethod, ConsensusTrace, InexactUzawa, run
from fedpca_core.consensus.problems import ConsensusProblem, Quadratic, scalar_pair
from fedpca_core.questions.theory.settings import LOW, StatedFactor, TheorySettings
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.study import Cost, OwnData, Study, stacked
from fedpca_core.study.own_table import TABLE_FIELDS

#: An average this close to the minimiser, relative to its size, has arrived.
ARRIVED = 1e-8
#: The chosen method among all.
CHOSEN = "chosen"


@dataclass(frozen=True, eq=False)
class Measured:
    """The chosen method beside its claims, and the other methods on the same problem.

    Distances are simulation only: they need the minimiser.
    """

    #: A row a method, the chosen one first: the rounds that were run and those until the average
    #: was within `ARRIVED`; local gradients of one client (NaN for exact solves) and bytes of all
    #: until then; the last distance, and the largest factor of a round.
    summary: pd.DataFrame
    #: method, round, norm (Φ over its first value: the norm of the theorems), factor (Φ after over
    #: Φ before the round; NaN once Φ is down to round-off), distance (‖z − x*‖/‖x*‖).
    curves: pd.DataFrame
    #: Of the chosen method.
    diverged: bool
    claim: StatedFactor
    #: {"vacuous", "violated", "holds", "none"}.
    verdict: str
    #: Our bound ρ_spec; None for methods it does not cover.
    spectral: float | None
    #: norm, radius: Exact one-step norm and spectral radius on this very problem (quadratics;
    #: simulation only).
    norm: float | None
    radius: float | None

    def of(self, method: str = CHOSEN) -> pd.DataFrame:
        return self.curves[self.curves["method"] == method]


class AgainstClaims(Study[TheorySettings, Measured]):
    """The chosen method and its rivals on one problem."""

    key = "theory"
    title = "The method against its claims"
    most = Cost(megabytes=100, seconds=4)

    def run(self, settings: TheorySettings, data: OwnData | None = None) -> Run[Measured]:
        yield Step(0.0, "Running the chosen method")
        problem, method = settings.build(data), settings.build_method()
        chosen = run(problem, method, settings.rounds, seed=settings.seed)
        yield Step(0.2, "Exact worst cases")
        low, high = LOW, settings.high
        steps = max(1, round(math.sqrt(high / low)))  # near which Scaffnew contracts fastest
        exact = _exact(problem, method, high)
        rivals: dict[str, ConsensusMethod] = {
            "FedAvg": bounds.fedavg(high, settings.local_steps),
            "Gradient descent (n = 1)": bounds.scaffnew(high, 1),
            f"Scaffnew (n = √κ ≈ {steps})": bounds.scaffnew(high, steps),
            "Uzawa, exact, r = 0": bounds.uzawa_exact(low, high, 0.0),
            "ADMM, r = √(λL)": bounds.admm(math.sqrt(low * high)),
        }
        runs = {CHOSEN: chosen}
        for (name, other), share in in_turn(rivals.items(), 0.3):
            yield Step(share[0], name)
            runs[name] = run(problem, other, settings.rounds)
        stated = settings.claim()
        summary = pd.DataFrame([_summary(name, trace) for name, trace in runs.items()])
        curves = stacked(
            {
                "method": name,
                "round": np.arange(trace.rounds + 1),
                "norm": trace.norms / trace.norms[0],
                "factor": np.concatenate([[np.nan], trace.contractions]),
                "distance": trace.distances,
            }
            for name, trace in runs.items()
        )
        return Measured(summary, curves, chosen.diverged, stated, _verdict(chosen, stated), *exact)

    def tables(self, result: Measured, settings: TheorySettings) -> dict[str, pd.DataFrame]:
        factors = {
            result.claim.name: result.claim.factor,
            "our bound": result.spectral,
            "exact worst case": result.norm,
            "asymptotic rate": result.radius,
        }
        claims = pd.DataFrame(
            {"factor": list(factors), "value": np.array(list(factors.values()), dtype=float)}
        )
        return {"summary": result.summary, "claims": claims, "curves": result.curves}


def _summary(name: str, trace: ConsensusTrace) -> dict[str, object]:
    """What a run came to, and what it took; NaN where it did not arrive."""
    arrived, steps, factors = trace.rounds_to(ARRIVED), trace.method.local_steps, trace.contractions
    rounds, sent = math.nan, math.nan
    if arrived is not None:
        rounds = float(arrived)
        sent = float(trace.bytes_up[np.searchsorted(trace.communications, arrived)])
    return {
        "method": name,
        "rounds": trace.rounds,
        "rounds_to_1e-8": rounds,
        "gradients_to_1e-8": math.nan if steps is None else rounds * steps,
        "bytes_up_to_1e-8": sent,
        "distance": trace.distances[-1],
        "largest_factor": pd.Series(factors[np.isfinite(factors)]).max(),
    }


def _exact(
    problem: ConsensusProblem, method: ConsensusMethod, high: float
) -> tuple[float | None, float | None, float | None]:
    """Our bound, the one-step norm and the spectral radius, as far as each speaks."""
    if (uzawa := method.uzawa) is None:
        return None, None, None
    spectral = bounds.spectral(LOW, high, uzawa)
    if (quadratic := problem.quadratic) is None:
        return spectral if uzawa.local_steps is None else None, None, None
    measured = operators.one_step_norms, operators.spectral_radii
    norm, radius = (float(of(quadratic, [uzawa])[0]) for of in measured)
    return spectral, norm, radius


def _verdict(trace: ConsensusTrace, stated: StatedFactor) -> str:
    if stated.factor is None:
        return "none"
    if stated.factor >= 1:
        return "vacuous"
    if not stated.every_round:
        return "holds"
    # The reference of a problem without closed form has an accuracy of its own.
    seen = trace.contractions[trace.norms[:-1] > 1e-8 * trace.norms[0]]
    return "violated" if np.nanmax(seen, initial=0.0) > stated.factor * (1 + 1e-7) else "holds"


#: Above this many unknowns (clients x features) the chosen problem is left out.
LARGEST = 120
#: Exact norms computed between two steps.
AT_ONCE = 8

Norms = Callable[[Quadratic, Sequence[InexactUzawa]], Array]


class PenaltyAndSteps(Study[TheorySettings, dict[str, pd.DataFrame]]):
    """Factors of a round, claimed and exact, in two tables.

    ``penalty``: Against r in units of λ. ``local-steps``: Against n at r = 0. Exact ones are of
    "two scalar clients", and of "this problem" where it is quadratic and small enough (simulation
    only).
    """

    key = "theory-sweeps"
    title = "Which penalty, how many local steps"
    most = Cost(megabytes=100, seconds=4)
    reads = frozenset(
        {"problem", "kappa", "heterogeneity", "clients", "features", "seed", "target"}
        | set(TABLE_FIELDS)
    )

    def run(
        self, settings: TheorySettings, data: OwnData | None = None
    ) -> Run[dict[str, pd.DataFrame]]:
        yield Step(0.0, "Claims")
        low, high = LOW, settings.high
        factors = np.concatenate([[0.0], np.logspace(-2, 4, 61)])
        penalties = (low * factors).tolist()
        most = max(100.0, 4 * settings.kappa)
        steps = np.unique(np.round(np.logspace(0, np.log10(most), 45)).astype(int)).tolist()
        exact = [bounds.uzawa_exact(low, high, r) for r in penalties]
        local = [bounds.scaffnew(high, n) for n in steps]
        coupled = [bounds.spectral(low, high, bounds.admm(r)) for r in penalties[1:]]
        by_penalty = {
            "penalty_factor": factors,
            "Theorem 1": [bounds.theorem_1(low, high, r) for r in penalties],
            "our bound for ADMM": [np.nan, *coupled],
        }
        by_steps = {
            "local_steps": steps,
            "Theorem 3": [bounds.theorem_3(low, high, 0.0, n) for n in steps],
            "Theorem 10": [bounds.theorem_9(low, high, 0.0, n) for n in steps],
            "our bound for Scaffnew": [bounds.spectral(low, high, one) for one in local],
        }
        problems = {"two scalar clients": scalar_pair(low, high)}
        here = settings.build(data).quadratic
        if here is not None and 2 < here.clients * here.features <= LARGEST:
            problems["this problem"] = here
        kinds = (
            (by_penalty, "exact", operators.one_step_norms, exact),
            (by_steps, "Scaffnew", operators.one_step_norms, local),
            (by_steps, "Scaffnew, asymptotic", operators.spectral_radii, local),
        )
        for ((found, what, norms, methods), name), share in in_turn([*product(kinds, problems)]):
            work = _batches(norms, problems[name], methods)
            found[f"{what}, {name}"] = yield from part(work, *share)
        return {"penalty": pd.DataFrame(by_penalty), "local-steps": pd.DataFrame(by_steps)}


def _batches(norms: Norms, problem: Quadratic, methods: Sequence[InexactUzawa]) -> Part[Array]:
    """Exact norms of many methods on one problem, a few at a time."""
    found = []
    for begin in range(0, len(methods), AT_ONCE):
        yield Step(begin / len(methods), f"Exact norms, {problem.name.lower()}")
        found.append(norms(problem, methods[begin : begin + AT_ONCE]))
    return np.concatenate(found)


class Statements(Study[TheorySettings, pd.DataFrame]):
    """Every statement against an adversarial and a random family of clients."""

    key = "theory-verdicts"
    title = "Statements and verdicts"
    most = Cost(megabytes=100, seconds=4)
    reads = frozenset({"family_seed"})

    def run(self, settings: TheorySettings, data: OwnData | None = None) -> Run[pd.DataFrame]:
        yield Step(0.0, "Checking the statements")
        return verdicts.verdicts(seed=settings.family_seed)

    def tables(self, result: pd.DataFrame, settings: TheorySettings) -> dict[str, pd.DataFrame]:
        return {"statements": result}
