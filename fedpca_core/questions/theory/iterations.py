"""The methods of the Theory page, iterations on vectors: how each is tuned and what is claimed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedpca_core.consensus import bounds
from fedpca_core.consensus.methods import ConsensusMethod, JointUzawa
from fedpca_core.study.parts import names

#: λ throughout; with r in units of λ only the ratio L/λ matters.
LOW = 0.5
#: Why a dial has no effect, by its name.
REASONS = names("theory-idle")


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
    """One method; callables are given the page's settings."""

    #: Dials that it has no use for.
    without: tuple[str, ...]
    #: With the step sizes that its theorem prescribes.
    tuned: Callable[[Any], ConsensusMethod]
    #: What the theorem states at these.
    claim: Callable[[Any], StatedFactor]


def _nothing(remark: str) -> StatedFactor:
    return StatedFactor("none", None, remark)


def claim(settings: Any) -> StatedFactor:
    """The theorem that speaks of the chosen method and parameters.

    Theorem 3 is stated for any strongly convex smooth functions and holds for them
    (`fedpca_core.consensus.bounds.theorem_3`); Theorems 9 and 10 are proved for quadratics only.
    """
    one = ITERATIONS[settings.method]
    changed = {name for name in ("step_scale", "dual_scale") if getattr(settings, name) != 1}
    stated = one.claim(settings)
    if stated is WRONG or changed <= set(one.without):
        return stated
    return _nothing("No theorem speaks of these step sizes; our bound does.")


def _scaffnew(c: Any) -> StatedFactor:
    if c.local_steps == 1:
        return StatedFactor("Corollary 2", bounds.corollary_2(LOW, c.high))
    return _nothing("The claims for n > 1 are false as printed; ours is drawn.")


def _nine(c: Any) -> StatedFactor:
    factor = bounds.theorem_9(LOW, c.high, c.penalty, c.local_steps)
    name = "Theorem 10" if c.penalty == 0 else "Theorem 9"
    return StatedFactor(name, factor, proved=c.quadratic)


def _proxskip(c: Any) -> StatedFactor:
    tuned = bounds.proxskip(LOW, c.high, c.probability)
    squared = bounds.theorem_12(LOW, c.high, tuned.step_size, tuned.probability)
    remark = "In expectation over the coin, not in each step."
    return StatedFactor("Theorem 12", float(np.sqrt(squared)), remark, every_round=False)


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
