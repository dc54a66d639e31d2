"""The settings of the Theory page: a consensus problem, and one method as its theorem tunes it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from fedpca_core.consensus import bounds
from fedpca_core.consensus.methods import ConsensusMethod, JointUzawa
from fedpca_core.consensus.problems import ConsensusProblem, RandomProblem, own_ridge, scalar_pair
from fedpca_core.errors import require
from fedpca_core.problems.table_columns import listed
from fedpca_core.settings import Settings, because, choice, number, scale, text
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.own_table import TABLE_FIELDS, own_problem
from fedpca_core.study.parts import names
from fedpca_core.study.world import CLIENTS_NAMED, foreign, shared

#: λ throughout; with r in units of λ only the ratio L/λ matters.
LOW = 0.5
#: Unknowns of all clients together for which exact worst cases are computed.
MOST_UNKNOWNS = 400
#: Why a dial has no effect, by its name.
REASONS = names("theory-idle")


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
        title, without = self.title, ITERATIONS[self.method]
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

    def build(self, data: OwnData | None = None) -> ConsensusProblem:
        """The problem these settings describe.

        Raises InvalidInput: no table, one that does not fit, or one with more unknowns than exact
        worst cases are computed for.
        """
        if self.problem == "pair":
            return scalar_pair(LOW, self.high)
        if self.problem == "table":
            apart = None if self.client_column else self.heterogeneity
            also = (self.target,) if self.target else ()
            own = own_problem(self, data, also, heterogeneity=apart)
            unknowns = own.clients * (own.features - 1)
            require(
                unknowns <= MOST_UNKNOWNS,
                f"{own.clients} clients with {own.features - 1} unknowns each are {unknowns:,} in "
                f"all, and exact worst cases are computed for up to {MOST_UNKNOWNS}; choose fewer "
                "columns or clients.",
            )
            names = own.feature_names
            require(
                self.target in ("", *names),
                f"There is no numeric column “{self.target}” to predict; choose one of "
                f"{listed(names)}.",
            )
            assert own.blocks is not None  # a table keeps them
            column = names.index(self.target) if self.target else len(names) - 1
            return own_ridge(
                own.blocks, column, strong_convexity=LOW, smoothness=self.high, name=own.name
            )
        sizes = self.clients, self.features
        wanted = RandomProblem(*sizes, LOW, self.high, self.heterogeneity, self.seed)
        return getattr(wanted, self.problem)()

    def build_method(self) -> ConsensusMethod:
        """The chosen method with step sizes relative to those that its theorem prescribes."""
        high, r, both, n = self.high, self.penalty, self.coupling, self.local_steps
        tuned: Mapping[str, ConsensusMethod] = {
            "scaffnew": bounds.scaffnew(high, n),
            "exact": bounds.uzawa_exact(LOW, high, r),
            "steps": bounds.uzawa_steps(LOW, high, r, n),
            "nine": bounds.uzawa_nine(LOW, high, r, n),
            "admm": bounds.admm(both),
            "joint": JointUzawa(both, both),
            "proxskip": bounds.proxskip(LOW, high, self.probability),
            "fedavg": bounds.fedavg(high, n),
        }
        return tuned[self.method].scaled(self.step_scale, self.dual_scale)

    def claim(self) -> StatedFactor:
        """The theorem that speaks of the method at these parameters.

        Theorem 3 is stated for any strongly convex smooth functions and holds for them
        (`fedpca_core.consensus.bounds.theorem_3`); Theorems 9 and 10 are proved for quadratics
        only.
        """
        high, r, both, n = self.high, self.penalty, self.coupling, self.local_steps
        skipping, quadratic = bounds.proxskip(LOW, high, self.probability), self.quadratic
        squared = bounds.theorem_12(LOW, high, skipping.step_size, skipping.probability)
        remark = "In expectation over the coin, not in each step."
        claims = {
            "scaffnew": StatedFactor("Corollary 2", bounds.corollary_2(LOW, high))
            if n == 1
            else _nothing("The claims for n > 1 are false as printed; ours is drawn."),
            "exact": StatedFactor("Theorem 1", bounds.theorem_1(LOW, high, r)),
            "steps": StatedFactor("Theorem 3", bounds.theorem_3(LOW, high, r, n)),
            "nine": StatedFactor(
                "Theorem 9" if r else "Theorem 10",
                bounds.theorem_9(LOW, high, r, n),
                proved=quadratic,
            ),
            "admm": StatedFactor("Theorem 11", bounds.theorem_11(LOW, high, both)),
            "joint": StatedFactor(
                "Theorem 4(2)", bounds.theorem_4_two(high, both), proved=quadratic
            ),
            "proxskip": StatedFactor("Theorem 12", math.sqrt(squared), remark, every_round=False),
            "fedavg": WRONG,
        }
        stated = claims[self.method]
        changed = {name for name in ("step_scale", "dual_scale") if getattr(self, name) != 1}
        if stated is WRONG or changed <= set(ITERATIONS[self.method]):
            return stated
        return _nothing("No theorem speaks of these step sizes; our bound does.")


@dataclass(frozen=True)
class StatedFactor:
    """The factor a theorem claims for the chosen method, or why there is none."""

    name: str
    factor: float | None
    remark: str = ""
    #: False where the theorem is proved for quadratics only and the problem is none.
    proved: bool = True
    #: False where the factor is an expectation, which single steps may exceed.
    every_round: bool = True


def _nothing(remark: str) -> StatedFactor:
    return StatedFactor("none", None, remark)


WRONG = _nothing("Nothing is proved: FedAvg has a wrong fixed point.")

#: Methods by key, whose titles stand in `values.toml`, and the dials that each has no use for.
ITERATIONS: Mapping[str, tuple[str, ...]] = {
    "scaffnew": ("penalty_factor", "probability"),
    "exact": ("step_scale", "probability"),
    "steps": ("probability",),
    "nine": ("probability",),
    "admm": ("step_scale", "probability"),
    "joint": ("step_scale", "probability"),
    "proxskip": ("penalty_factor", "dual_scale"),
    "fedavg": ("penalty_factor", "dual_scale", "probability"),
}
