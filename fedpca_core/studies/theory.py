"""What is proved about agreeing on one minimiser: the configuration of the Theory page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.consensus import bounds, operators
from fedpca_core.consensus.generators import logistic, quadratics, ridge, scalar_pair
from fedpca_core.consensus.methods import InexactUzawa, Method, ProxSkip
from fedpca_core.consensus.problems import ConsensusProblem, Quadratic
from fedpca_core.consensus.run import ConsensusTrace, run
from fedpca_core.consensus.shift_invert import Exhibit, clients_matrices, exhibit
from fedpca_core.consensus.verdicts import verdicts
from fedpca_core.settings import Settings, parameter

LOW = 0.5
#: Above this many unknowns the sweeps use the two scalar clients for their exact norms.
SWEPT = 120

METHODS = {
    "scaffnew": "Scaffnew (n steps)",
    "exact": "Uzawa, exact solve",
    "steps": "Uzawa, n steps (Theorem 3)",
    "nine": "Uzawa, n steps (Theorem 9)",
    "admm": "ADMM",
    "proxskip": "ProxSkip",
    "fedavg": "FedAvg",
}


@dataclass(frozen=True)
class TheorySettings(Settings):
    """Everything that determines the Theory page."""

    kind: ClassVar[str] = "theory"
    family: ClassVar[str] = "theory"

    problem: str = parameter(
        "quadratics",
        key="t-problem",
        label="Problem",
        help="What each client minimises. The two scalar clients are the hardest case for most "
        "bounds; logistic regression is not quadratic.",
        choices={
            "quadratics": "Quadratics",
            "pair": "Two scalar clients",
            "ridge": "Ridge regression",
            "logistic": "Logistic regression",
        },
    )
    method: str = parameter(
        "exact",
        key="t-method",
        label="Method",
        help="All but FedAvg and ProxSkip are inexact Uzawa iterations: local work on an augmented "
        "Lagrangian, one average, one correction.",
        choices=METHODS,
    )
    condition: float = parameter(
        10.0,
        key="t-kappa",
        label="Condition number κ = L/λ",
        help="Of the worst client: the largest smoothness L over the smallest strong convexity λ. "
        "λ is ½ throughout; with r in units of λ, only the ratio matters.",
        grid=(1.5, 2.0, 4.0, 10.0, 20.0, 30.0, 50.0, 100.0, 300.0, 1000.0),
    )
    heterogeneity: float = parameter(
        1.0,
        key="t-heterogeneity",
        label="Heterogeneity",
        help="0: all clients alike. 1: spectra, rotations and targets of their own.",
        low=0.0, high=1.0, step=0.05,
    )  # fmt: skip
    clients: int = parameter(
        10, key="t-clients", label="Clients", help="N in the theorems.", low=2, high=20, step=1
    )
    features: int = parameter(
        10, key="t-features", label="Unknowns", help="d in the theorems.", low=2, high=20, step=1
    )
    penalty: float = parameter(
        0.2,
        key="t-penalty",
        label="Penalty r, in units of λ",
        help="Weight of ½r‖x − z‖² in the local problem. Scaffnew, ProxSkip and FedAvg have none.",
        grid=(0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0),
    )
    local_steps: int = parameter(
        3,
        key="t-steps",
        label="Local steps n",
        help="Gradient steps between two averages. The best worst case is near √κ.",
        grid=(1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100),
    )
    step_scale: float = parameter(
        1.0,
        key="t-gamma",
        label="Step size γ, relative",
        help="Factor on the step size the theorem prescribes; at any value but 1 its factor no "
        "longer applies, ours does.",
        grid=(0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.9),
    )
    dual_scale: float = parameter(
        1.0,
        key="t-omega",
        label="Dual step ω, relative",
        help="Factor on the dual step the theorem prescribes.",
        grid=(0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0),
    )
    rounds: int = parameter(
        100, key="t-rounds", label="Rounds", help="Communication rounds (steps for ProxSkip).",
        grid=(20, 50, 100, 200, 400),
    )  # fmt: skip
    seed: int = parameter(
        0, key="t-seed", label="Seed", help="Seed of the problem.", low=0, high=9999, step=1
    )

    @property
    def high(self) -> float:
        """L."""
        return LOW * self.condition

    def build(self) -> ConsensusProblem:
        """The problem these settings describe."""
        if self.problem == "pair":
            return scalar_pair(LOW, self.high)
        makers: Mapping[str, Callable[..., ConsensusProblem]] = {
            "quadratics": quadratics,
            "ridge": ridge,
            "logistic": logistic,
        }
        return makers[self.problem](
            clients=self.clients,
            features=self.features,
            strong_convexity=LOW,
            smoothness=self.high,
            heterogeneity=self.heterogeneity,
            seed=self.seed,
        )

    def tuned(self) -> Method:
        """The method with the parameters its theorem prescribes."""
        r, n = self.penalty * LOW, self.local_steps
        makers: Mapping[str, Method] = {
            "scaffnew": bounds.scaffnew(self.high, n),
            "exact": bounds.uzawa_exact(LOW, self.high, r),
            "steps": bounds.uzawa_steps(LOW, self.high, r, n),
            "nine": bounds.uzawa_nine(LOW, self.high, r, n),
            "admm": bounds.admm(max(r, 1e-3 * LOW)),
            "proxskip": bounds.proxskip(LOW, self.high),
            "fedavg": bounds.fedavg(self.high, n),
        }
        return makers[self.method]

    def build_method(self) -> Method:
        """The method with the parameters' step sizes."""
        tuned = self.tuned()
        if isinstance(tuned, InexactUzawa):
            step = None if tuned.step_size is None else tuned.step_size * self.step_scale
            return InexactUzawa(
                tuned.penalty, tuned.dual_step * self.dual_scale, tuned.local_steps, step
            )
        if isinstance(tuned, ProxSkip):
            return ProxSkip(tuned.step_size * self.step_scale, tuned.probability)
        return bounds.fedavg(self.high / self.step_scale, self.local_steps)


@dataclass(frozen=True)
class Claim:
    """The factor a theorem claims for the chosen method, or why there is none.

    ``proved`` is False where the theorem is stated for quadratics only and the problem is none.
    """

    name: str
    factor: float | None
    remark: str = ""
    proved: bool = True

    @property
    def vacuous(self) -> bool:
        """Whether the factor says nothing."""
        return self.factor is not None and self.factor >= 1


def claim(configuration: TheorySettings) -> Claim:
    """The theorem that speaks of the chosen method and parameters."""
    low, high = LOW, configuration.high
    r, n = configuration.penalty * LOW, configuration.local_steps
    method = configuration.method
    quadratic = configuration.problem != "logistic"
    if method == "fedavg":
        return Claim("none", None, "Nothing is proved: FedAvg has a wrong fixed point.")
    # Theorem 12 covers any step up to 1/L; every other tuning is part of its theorem.
    retuned = configuration.step_scale != 1 and method not in ("exact", "admm")
    if retuned or (configuration.dual_scale != 1 and method != "proxskip"):
        return Claim("none", None, "No theorem speaks of these step sizes; our bound does.")
    if method == "scaffnew":
        if n == 1:
            return Claim("Corollary 2", bounds.corollary_2(low, high))
        return Claim("none", None, "The claims for n > 1 are false as printed; ours is drawn.")
    if method == "exact":
        return Claim("Theorem 1", bounds.theorem_1(low, high, r))
    if method == "steps":
        return Claim("Theorem 3", bounds.theorem_3(low, high, r, n))
    if method == "nine":
        name = "Theorem 10" if r == 0 else "Theorem 9"
        return Claim(name, bounds.theorem_9(low, high, r, n), proved=quadratic)
    if method == "admm":
        return Claim("Theorem 11", bounds.theorem_11(low, high, max(r, 1e-3 * LOW)))
    tuned = configuration.tuned()
    assert isinstance(tuned, ProxSkip)
    squared = bounds.theorem_12(low, high, tuned.step_size, tuned.probability)
    return Claim(
        "Theorem 12", float(np.sqrt(squared)), "In expectation over the coin, not in each step."
    )


@dataclass(frozen=True, eq=False)
class Study:
    """A run of the chosen method beside its claims, and the other methods on the same problem.

    Attributes
    ----------
    trace : ConsensusTrace
    claim : Claim
    spectral : float or None
        Our bound rho_spec; None for methods it does not cover.
    norm, radius : float or None
        Exact one-step norm and spectral radius on this very problem (quadratics).
    rivals : mapping of name to ConsensusTrace
    """

    trace: ConsensusTrace
    claim: Claim
    spectral: float | None
    norm: float | None
    radius: float | None
    rivals: Mapping[str, ConsensusTrace]

    @property
    def verdict(self) -> str:
        """ "vacuous", "violated", "holds", or "none" without a claim."""
        factor = self.claim.factor
        if factor is None:
            return "none"
        if factor >= 1:
            return "vacuous"
        if self.claim.name == "Theorem 12":
            return "holds"  # in expectation; single steps may exceed it
        # The reference of a problem without closed form has an accuracy of its own.
        alive = self.trace.norms[:-1] > 1e-8 * self.trace.norms[0]
        seen = self.trace.contractions[alive]
        return "violated" if np.nanmax(seen, initial=0.0) > factor * (1 + 1e-7) else "holds"


def study(configuration: TheorySettings) -> Study:
    """Run the chosen method and its rivals on one problem."""
    problem = configuration.build()
    method = configuration.build_method()
    low, high = LOW, configuration.high
    spectral = norm = radius = None
    if isinstance(method, InexactUzawa):
        exact = method.local_steps is None
        if exact or isinstance(problem, Quadratic):
            spectral = bounds.spectral(low, high, method)
        if isinstance(problem, Quadratic):
            norm = float(operators.one_step_norms(problem, [method])[0])
            radius = float(operators.spectral_radii(problem, [method])[0])
    root = bounds.best_local_steps(low, high)
    others: Mapping[str, Method] = {
        "FedAvg": bounds.fedavg(high, configuration.local_steps),
        "Gradient descent (n = 1)": bounds.scaffnew(high, 1),
        f"Scaffnew (n = √κ ≈ {root})": bounds.scaffnew(high, root),
        "Uzawa, exact, r = 0": bounds.uzawa_exact(low, high, 0.0),
        "ADMM, r = √(λL)": bounds.admm(float(np.sqrt(low * high))),
    }
    rounds = configuration.rounds
    return Study(
        trace=run(problem, method, rounds, seed=configuration.seed),
        claim=claim(configuration),
        spectral=spectral,
        norm=norm,
        radius=radius,
        rivals={name: run(problem, other, rounds) for name, other in others.items()},
    )


@dataclass(frozen=True, eq=False)
class Sweeps:
    """Factors against the penalty r and against the local steps n.

    ``worst`` is the exact one-step norm on the two scalar clients; ``here`` on the chosen problem,
    where that is quadratic and small enough.
    """

    penalties: Array
    by_penalty: Mapping[str, Array]
    window: tuple[float, float] | None
    best: tuple[float, float]
    steps: Array
    by_steps: Mapping[str, Array]
    root: float


def sweeps(configuration: TheorySettings) -> Sweeps:
    """The two sweeps for the chosen condition number and problem."""
    low, high = LOW, configuration.high
    penalties = np.concatenate([[0.0], low * np.logspace(-2, 4, 61)])
    top = max(100.0, 4 * high / low)
    steps = np.unique(np.round(np.logspace(0, np.log10(top), 45)).astype(int))
    exact = [bounds.uzawa_exact(low, high, float(r)) for r in penalties]
    local = [bounds.scaffnew(high, int(n)) for n in steps]
    pair = scalar_pair(low, high)
    by_penalty = {
        "ρ of Theorem 1": np.array([bounds.theorem_1(low, high, float(r)) for r in penalties]),
        "our bound for ADMM (ω = r)": np.array(
            [np.nan, *(bounds.spectral(low, high, bounds.admm(float(r))) for r in penalties[1:])]
        ),
        "measured, two scalar clients": operators.one_step_norms(pair, exact),
    }
    by_steps = {
        "Theorem 3": np.array([bounds.theorem_3(low, high, 0.0, int(n)) for n in steps]),
        "Theorem 10": np.array([bounds.theorem_9(low, high, 0.0, int(n)) for n in steps]),
        "our bound for Scaffnew": np.array([bounds.spectral(low, high, m) for m in local]),
        "Scaffnew measured, two scalar clients": operators.one_step_norms(pair, local),
    }
    problem = configuration.build()
    if isinstance(problem, Quadratic) and 2 < problem.clients * problem.features <= SWEPT:
        by_penalty["measured, this problem"] = operators.one_step_norms(problem, exact)
        by_steps["Scaffnew measured, this problem"] = operators.one_step_norms(problem, local)
        by_steps["Scaffnew, asymptotic rate here"] = operators.spectral_radii(problem, local)
    return Sweeps(
        penalties=penalties,
        by_penalty=by_penalty,
        window=bounds.vacuous_penalties(low, high),
        best=bounds.best_penalty(low, high),
        steps=steps,
        by_steps=by_steps,
        root=float(np.sqrt(high / low)),
    )


def bridge(configuration: TheorySettings) -> Exhibit:
    """Shift-and-invert on clients as different as the parameter says (20 features, a gap of 5%)."""
    matrices = clients_matrices(
        clients=configuration.clients,
        features=20,
        heterogeneity=configuration.heterogeneity,
        samples=5000,
        gap=0.05,
        seed=configuration.seed,
    )
    return exhibit(matrices, rounds=400)


def tables(
    configuration: TheorySettings, report: Callable[[float, str], bool]
) -> dict[str, pd.DataFrame]:
    """What the command line prints and writes: summary, claims, curves and verdicts."""
    report(0.0, "Running the methods")
    found = study(configuration)
    runs = {"chosen": found.trace, **found.rivals}
    summary = pd.DataFrame(
        {
            "method": list(runs),
            "rounds": [trace.rounds for trace in runs.values()],
            "rounds_to_1e-8": [trace.rounds_to(1e-8) for trace in runs.values()],
            "distance": [trace.distances[-1] for trace in runs.values()],
            "largest_factor": [np.nanmax(trace.contractions) for trace in runs.values()],
        }
    )
    claims = pd.DataFrame(
        {
            "factor": [found.claim.name, "our bound", "exact worst case", "asymptotic rate"],
            "value": np.array(
                [found.claim.factor, found.spectral, found.norm, found.radius], dtype=float
            ),
        }
    )
    curves = pd.concat(
        pd.DataFrame(
            {
                "method": name,
                "round": np.arange(trace.rounds + 1),
                "norm": trace.norms,
                "distance": trace.distances,
            }
        )
        for name, trace in runs.items()
    )
    report(0.5, "Checking the theorems")
    rows = [{**asdict(row), "verdict": row.verdict} for row in verdicts(seed=configuration.seed)]
    return {
        "summary": summary,
        "claims": claims,
        "curves": curves,
        "verdicts": pd.DataFrame(rows),
    }
