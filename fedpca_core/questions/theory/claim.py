"""The theorem that speaks of a method at its settings, and what it claims."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpca_core.consensus import bounds
from fedpca_core.consensus.methods import ProxSkip
from fedpca_core.questions.theory.settings import LOW, TheorySettings


@dataclass(frozen=True)
class Claim:
    """The factor a theorem claims for the chosen method, or why there is none.

    Attributes
    ----------
    name : str
    factor : float or None
    remark : str
    proved : bool
        False where the theorem is proved for quadratics only and the problem is none.
    every_round : bool
        False where the factor is an expectation, which single steps may exceed.
    """

    name: str
    factor: float | None
    remark: str = ""
    proved: bool = True
    every_round: bool = True


def claim(settings: TheorySettings) -> Claim:
    """The theorem that speaks of the chosen method and parameters.

    Theorem 3 is stated for any strongly convex smooth functions and holds for them
    (`fedpca_core.consensus.bounds.theorem_3`); Theorems 9 and 10 are proved for quadratics only.
    """
    low, high, r, n = LOW, settings.high, settings.penalty, settings.local_steps
    method = settings.method
    if method == "fedavg":
        return Claim("none", None, "Nothing is proved: FedAvg has a wrong fixed point.")
    # Theorem 12 covers any step up to 1/L; every other tuning is part of its theorem.
    retuned = settings.step_scale != 1 and method not in ("exact", "admm")
    if retuned or (settings.dual_scale != 1 and method != "proxskip"):
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
        quadratic = settings.problem != "logistic"
        return Claim(name, bounds.theorem_9(low, high, r, n), proved=quadratic)
    if method == "admm":
        return Claim("Theorem 11", bounds.theorem_11(low, high, settings.coupling))
    tuned = settings.tuned()
    assert isinstance(tuned, ProxSkip)
    squared = bounds.theorem_12(low, high, tuned.step_size, tuned.probability)
    return Claim(
        "Theorem 12",
        float(np.sqrt(squared)),
        "In expectation over the coin, not in each step.",
        every_round=False,
    )
