"""The settings of the Theory page: a consensus problem, and one method as its theorem tunes it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
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
        return ITERATIONS[self.method].tuned(self).scaled(self.step_scale, self.dual_scale)

    def claim(self) -> StatedFactor:
        """The theorem that speaks of the method at these parameters.

        Theorem 3 is stated for any strongly convex smooth functions and holds for them
        (`fedpca_core.consensus.bounds.theorem_3`); Theorems 9 and 10 are proved for quadratics
        only.
        """
        one = ITERATIONS[self.method]
        changed = {name for name in ("step_scale", "dual_scale") if getattr(self, name) != 1}
        stated = one.claim(self)
        if stated is WRONG or changed <= set(one.without):
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


@dataclass(frozen=True)
class TheoryMethod:
    """One method; iterations on vectors."""

    #: Dials that it has no use for.
    without: tuple[str, ...]
    #: With the step sizes that its theorem prescribes.
    tuned: Callable[[TheorySettings], ConsensusMethod]
    #: What the theorem states at these.
    claim: Callable[[TheorySettings], StatedFactor]


def _nothing(remark: str) -> StatedFactor:
    return StatedFactor("none", None, remark)


def _scaffnew(c: TheorySettings) -> StatedFactor:
    if c.local_steps == 1:
        return StatedFactor("Corollary 2", bounds.corollary_2(LOW, c.high))
    return _nothing("The claims for n > 1 are false as printed; ours is drawn.")


def _nine(c: TheorySettings) -> StatedFactor:
    factor = bounds.theorem_9(LOW, c.high, c.penalty, c.local_steps)
    return StatedFactor("Theorem 10" if c.penalty == 0 else "Theorem 9", factor, proved=c.quadratic)


def _proxskip(c: TheorySettings) -> StatedFactor:
    tuned = bounds.proxskip(LOW, c.high, c.probability)
    squared = bounds.theorem_12(LOW, c.high, tuned.step_size, tuned.probability)
    remark = "In expectation over the coin, not in each step."
    return StatedFactor("Theorem 12", math.sqrt(squared), remark, every_round=False)


WRONG = _nothing("Nothing is proved: FedAvg has a wrong fixed point.")
_SOLVED, _STEPPED = ("step_scale", "probability"), ("probability",)
#: By key; their titles stand in `values.toml`.
ITERATIONS: Mapping[str, TheoryMethod] = {
    "scaffnew": TheoryMethod(
        ("penalty_factor", "probability"),
        lambda c: bounds.scaffnew(c.high, c.local_steps),
        _scaffnew,
    ),
    "exact": TheoryMethod(
        _SOLVED,
        lambda c: bounds.uzawa_exact(LOW, c.high, c.penalty),
        lambda c: StatedFactor("Theorem 1", bounds.theorem_1(LOW, c.high, c.penalty)),
    ),
    "steps": TheoryMethod(
        _STEPPED,
        lambda c: bounds.uzawa_steps(LOW, c.high, c.penalty, c.local_steps),
        lambda c: StatedFactor(
            "Theorem 3", bounds.theorem_3(LOW, c.high, c.penalty, c.local_steps)
        ),
    ),
    "nine": TheoryMethod(
        _STEPPED,
        lambda c: bounds.uzawa_nine(LOW, c.high, c.penalty, c.local_steps),
        _nine,
    ),
    "admm": TheoryMethod(
        _SOLVED,
        lambda c: bounds.admm(c.coupling),
        lambda c: StatedFactor("Theorem 11", bounds.theorem_11(LOW, c.high, c.coupling)),
    ),
    "joint": TheoryMethod(
        _SOLVED,
        lambda c: JointUzawa(c.coupling, c.coupling),
        lambda c: StatedFactor(
            "Theorem 4(2)", bounds.theorem_4_two(c.high, c.coupling), proved=c.quadratic
        ),
    ),
    "proxskip": TheoryMethod(
        ("penalty_factor", "dual_scale"),
        lambda c: bounds.proxskip(LOW, c.high, c.probability),
        _proxskip,
    ),
    "fedavg": TheoryMethod(
        ("penalty_factor", "dual_scale", "probability"),
        lambda c: bounds.fedavg(c.high, c.local_steps),
        lambda c: WRONG,
    ),
}
