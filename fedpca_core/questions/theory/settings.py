"""The settings of the Theory page: one consensus problem, one method, its step sizes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fedpca_core.consensus.generators import (
    RandomProblem,
    own_ridge,
    scalar_pair,
)
from fedpca_core.consensus.methods import ConsensusMethod
from fedpca_core.consensus.problems import ConsensusProblem
from fedpca_core.errors import require
from fedpca_core.problems import Problem
from fedpca_core.problems.table_columns import listed
from fedpca_core.questions.theory.iterations import ITERATIONS, LOW, REASONS
from fedpca_core.settings import Settings, because, choice, number, scale, text
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.own_table import TABLE_FIELDS, own_problem
from fedpca_core.study.world import CLIENTS_NAMED, foreign, shared

#: Unknowns of all clients together for which exact worst cases are computed.
MOST_UNKNOWNS = 400


@dataclass(frozen=True)
class TheorySettings(Settings):
    """Everything that determines the Theory page."""

    kind: ClassVar[str] = "theory"
    family: ClassVar[str] = "theory"

    problem: str = shared("problem", "quadratics")
    client_column: str = shared("client_column")
    columns: tuple[str, ...] = shared("columns")
    scaling: str = shared("scaling")
    missing: str = shared("missing")
    target: str = text("", "Column to predict")
    method: str = choice("exact", "Method")
    kappa: float = scale(10.0, "Condition number κ = L/λ")
    heterogeneity: float = shared("heterogeneity", 1.0)
    clients: int = shared("clients", high=20)
    features: int = shared("features", 10, high=20)
    penalty_factor: float = shared("penalty_factor", 0.2)
    local_steps: int = shared("local_steps", 3)
    step_scale: float = scale(1.0, "Step size γ, relative", key="gamma")
    dual_scale: float = scale(1.0, "Dual step ω, relative", key="omega")
    probability: float = scale(0.0, "Chance of communicating", key="p", names={0.0: "1/√κ"})
    rounds: int = shared("rounds", 100)
    seed: int = shared("seed")
    family_seed: int = number(0, "Seed of the random family", 0, 9999, key="family", view=True)

    def idle(self) -> Mapping[str, str]:
        own, pair = self.problem == "table", self.problem == "pair"
        named, other = own and self.client_column, foreign(self.problem)
        title, without = self.title, ITERATIONS[self.method].without
        return because(
            (not own, other, (*TABLE_FIELDS, "target")),
            (own or pair, other, "features"),
            (pair, other, ("clients", "heterogeneity")),
            (named, CLIENTS_NAMED, ("clients", "heterogeneity")),
            ((named or pair) and "probability" in without, "Nothing is drawn at random.", "seed"),
            *((True, REASONS[name].format(title), name) for name in without),
        )

    @property
    def title(self) -> str:
        """The method's name."""
        return self.parameters()["method"].choices[self.method]

    @property
    def quadratic(self) -> bool:
        """Whether every client's function is a quadratic."""
        return self.problem != "logistic"

    @property
    def high(self) -> float:
        """L."""
        return LOW * self.kappa

    @property
    def penalty(self) -> float:
        """r."""
        return LOW * self.penalty_factor

    @property
    def coupling(self) -> float:
        """The penalty of ADMM and joint solves, their dual step too, which may not vanish."""
        return max(self.penalty, 1e-3 * LOW)

    def table(self, data: OwnData | None) -> Problem:
        """The visitor's table.

        Raises InvalidInput: no table, or one with more unknowns than exact worst cases are computed
        for.
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

        Raises InvalidInput: a table that does not fit.
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
        wanted = RandomProblem(
            clients=self.clients,
            features=self.features,
            strong_convexity=LOW,
            smoothness=self.high,
            heterogeneity=self.heterogeneity,
            seed=self.seed,
        )
        return getattr(wanted, self.problem)()

    def build_method(self) -> ConsensusMethod:
        """The method with these settings' step sizes."""
        return ITERATIONS[self.method].tuned(self).scaled(self.step_scale, self.dual_scale)
