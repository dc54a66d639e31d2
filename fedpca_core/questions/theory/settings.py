"""The settings of the Theory page: one consensus problem, one method, its step sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from fedpca_core.consensus import bounds
from fedpca_core.consensus.generators import (
    logistic,
    own_ridge,
    quadratics,
    ridge,
    scalar_pair,
)
from fedpca_core.consensus.methods import InexactUzawa, Method, ProxSkip
from fedpca_core.consensus.problems import ConsensusProblem
from fedpca_core.errors import require
from fedpca_core.problems import Problem
from fedpca_core.problems.table_cleaning import listed
from fedpca_core.settings import Settings, because, parameter
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.own_table import TABLE_FIELDS, own_problem
from fedpca_core.study.world import CLIENTS_NAMED, PROBLEMS, foreign, shared

#: Unknowns of all clients together for which exact worst cases are computed.
MOST_UNKNOWNS = 400
#: λ throughout; with r in units of λ only the ratio L/λ matters.
LOW = 0.5

#: The methods of this page: iterations on vectors, not federated PCA.
ITERATIONS = {
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
    former_keys: ClassVar[Mapping[str, str]] = {
        "t-problem": "problem",
        "t-method": "method",
        "t-kappa": "condition",
        "t-heterogeneity": "heterogeneity",
        "t-clients": "clients",
        "t-features": "features",
        "t-penalty": "penalty_factor",
        "t-steps": "local_steps",
        "t-gamma": "step_scale",
        "t-omega": "dual_scale",
        "t-rounds": "rounds",
        "t-seed": "seed",
        "t-family": "family_seed",
    }
    former_fields: ClassVar[Mapping[str, str]] = {"penalty": "penalty_factor"}

    problem: str = shared(
        "problem",
        default="quadratics",
        help="What each client minimises. The two scalar clients are the hardest case for most "
        "bounds; logistic regression is not quadratic. With a table of your own it is ridge "
        "regression of one column on the others.",
        choices={
            key: PROBLEMS[key] for key in ("quadratics", "pair", "ridge", "logistic", "table")
        },
    )
    client_column: str = shared("client_column")
    columns: tuple[str, ...] = shared("columns")
    scaling: str = shared("scaling")
    target: str = parameter(
        "",
        key="target",
        label="Column to predict",
        help="The column of your own table that is regressed on the others.",
    )
    method: str = parameter(
        "exact",
        key="method",
        label="Method",
        help="All but FedAvg and ProxSkip are inexact Uzawa iterations: local work on an augmented "
        "Lagrangian, one average, one correction.",
        choices=ITERATIONS,
    )
    condition: float = parameter(
        10.0,
        key="kappa",
        label="Condition number κ = L/λ",
        help="Of the worst client: the largest smoothness L over the smallest strong convexity λ. "
        "λ is ½ throughout; with r in units of λ, only the ratio matters. On a table of your own "
        "the ridge is chosen so that it is reached.",
        grid=(1.5, 2.0, 4.0, 10.0, 20.0, 30.0, 50.0, 100.0, 300.0, 1000.0),
    )
    heterogeneity: float = shared(
        "heterogeneity",
        default=1.0,
        help="0: all clients alike. 1: spectra, rotations and targets of their own.",
    )
    clients: int = shared("clients", high=20, help="N in the theorems.")
    features: int = shared(
        "features",
        default=10,
        high=20,
        help="Unknowns: the length of the vector on which clients agree (d in the theorems).",
    )
    penalty_factor: float = shared(
        "penalty_factor",
        default=0.2,
        help="Penalty r in units of λ: the weight of ½r‖x − z‖² in the local problem. Scaffnew, "
        "ProxSkip and FedAvg have none.",
        grid=(0.0, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0),
    )
    local_steps: int = shared(
        "local_steps",
        default=3,
        help="Gradient steps n between two averages. The best worst case is near √κ.",
        grid=(1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100),
    )
    step_scale: float = parameter(
        1.0,
        key="gamma",
        label="Step size γ, relative",
        help="Factor on the step size the theorem prescribes; at any value but 1 its factor no "
        "longer applies, ours does.",
        grid=(0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.9),
    )
    dual_scale: float = parameter(
        1.0,
        key="omega",
        label="Dual step ω, relative",
        help="Factor on the dual step the theorem prescribes.",
        grid=(0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0),
    )
    rounds: int = shared(
        "rounds",
        default=100,
        help="Communication rounds (steps for ProxSkip).",
        grid=(20, 50, 100, 200, 400),
    )
    seed: int = shared("seed")
    family_seed: int = parameter(
        0,
        key="family",
        label="Seed of the random family",
        help="Seed of the random clients on which every statement is checked.",
        low=0,
        high=9999,
        step=1,
        view=True,
    )

    def idle(self) -> Mapping[str, str]:
        own = self.problem == "table"
        named, other, title = own and self.client_column, foreign(self.problem), self.title
        return because(
            (not own, other, (*TABLE_FIELDS, "target")),
            (self.problem in ("table", "pair"), other, "features"),
            (named, CLIENTS_NAMED, ("clients", "heterogeneity")),
            (named and self.method != "proxskip", "Nothing is drawn at random.", "seed"),
            (
                self.method in ("scaffnew", "proxskip", "fedavg"),
                f"{title} has no penalty.",
                "penalty_factor",
            ),
            (
                self.method in ("exact", "admm"),
                f"{title} takes no steps: its local problems are solved exactly.",
                "step_scale",
            ),
            (self.method in ("proxskip", "fedavg"), f"{title} has no dual step.", "dual_scale"),
        )

    @property
    def title(self) -> str:
        """The method's name."""
        return ITERATIONS[self.method]

    @property
    def high(self) -> float:
        """L."""
        return LOW * self.condition

    @property
    def penalty(self) -> float:
        """r."""
        return LOW * self.penalty_factor

    @property
    def coupling(self) -> float:
        """The penalty of ADMM, which is its dual step too and may not vanish."""
        return max(self.penalty, 1e-3 * LOW)

    def table(self, data: OwnData | None) -> Problem:
        """The visitor's table.

        Raises
        ------
        InvalidInput
            No table, or one with more unknowns than exact worst cases are computed for.
        """
        apart = None if self.client_column else self.heterogeneity
        also = (self.target,) if self.target else ()
        found = own_problem(self, data, also, heterogeneity=apart)
        unknowns = found.clients * (found.features - 1)
        require(
            unknowns <= MOST_UNKNOWNS,
            f"{found.clients} clients with {found.features - 1} unknowns each are {unknowns:,} in "
            f"all, and exact worst cases are computed for up to {MOST_UNKNOWNS}; choose fewer "
            "columns or clients.",
        )
        return found

    def build(self, data: OwnData | None = None) -> ConsensusProblem:
        """The problem these settings describe.

        Raises
        ------
        InvalidInput
            A table that does not fit.
        """
        if self.problem == "pair":
            return scalar_pair(LOW, self.high)
        if self.problem == "table":
            own = self.table(data)
            names = own.feature_names
            require(
                self.target in ("", *names),
                f"There is no numeric column “{self.target}” to predict; choose one of "
                f"{listed(names)}.",
            )
            assert own.blocks is not None  # a table keeps them
            return own_ridge(
                own.blocks,
                names.index(self.target) if self.target else len(names) - 1,
                strong_convexity=LOW,
                smoothness=self.high,
                name=own.name,
            )
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
        """The method with the step sizes its theorem prescribes."""
        r, n = self.penalty, self.local_steps
        makers: Mapping[str, Method] = {
            "scaffnew": bounds.scaffnew(self.high, n),
            "exact": bounds.uzawa_exact(LOW, self.high, r),
            "steps": bounds.uzawa_steps(LOW, self.high, r, n),
            "nine": bounds.uzawa_nine(LOW, self.high, r, n),
            "admm": bounds.admm(self.coupling),
            "proxskip": bounds.proxskip(LOW, self.high),
            "fedavg": bounds.fedavg(self.high, n),
        }
        return makers[self.method]

    def build_method(self) -> Method:
        """The method with these settings' step sizes."""
        tuned = self.tuned()
        if isinstance(tuned, InexactUzawa):
            step = None if tuned.step_size is None else tuned.step_size * self.step_scale
            return InexactUzawa(
                tuned.penalty, tuned.dual_step * self.dual_scale, tuned.local_steps, step
            )
        if isinstance(tuned, ProxSkip):
            return ProxSkip(tuned.step_size * self.step_scale, tuned.probability)
        return bounds.fedavg(self.high / self.step_scale, self.local_steps)
