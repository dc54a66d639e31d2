"""How many inner iterations a FAPS client makes in a round.

Rules for the number of iterations J_i of a client in a round:

``fixed``
    The same J for all.
``auto``
    The largest J with stability number kappa_i <= 1
    (`fedpca_core.metrics.rates.stability_numbers`), from the client's own a_i and c_i. c_i is the
    smallest eigenvalue of X_i^T S_i X_i, known already. a_i, the largest eigenvalue of S_i on the
    complement of X_i, is followed by a power iteration that advances one step a round: its vector
    travels as one more column of the first inner product. That column is metered: every p of them
    count as one product.
``change``
    Until the subspace moves by at most ``inner_tolerance * sqrt(p)`` (FAPS paper, measured here on
    subspaces, so that a mere change of basis does not count as movement).
``conditions``
    Until the sufficient decrease and the residual reduction that the FAPS convergence theorem asks
    for hold; h(X) = -tr(X^T H X)/2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.linalg.stiefel import remove_span, symmetric_part, transpose
from fedpca_core.metrics.rates import largest_stable_steps

if TYPE_CHECKING:
    from fedpca_core.algorithms.faps.faps import FAPS
    from fedpca_core.problems.client_data import ClientData
    from fedpca_core.protocol.algorithm import Plan
    from fedpca_core.streams import Streams

INNER_RULES = ("auto", "fixed", "change", "conditions")
#: Sufficient decrease asked for: a gradient step of length 1/L, L <= 2 ||S_i|| + beta_i, lowers h
#: by at least |grad|^2 / (2 L); the theorem leaves the constants open, half of that is asked here.
DECREASE, CURVATURE = 0.25, 2.0


@dataclass(frozen=True)
class InnerRule:
    """One round's iteration budget of every participant and the test that may end it earlier.

    Attributes
    ----------
    budget : (present,) int64
        Most iterations of each client; 0 for one that joins in this round.
    test : {"none", "change", "conditions"}
    tolerance : float
        Largest movement (for "change") or residual factor delta (for "conditions").
    follow : bool
        Advance the power iteration for a_i.
    """

    budget: IntArray
    test: str
    tolerance: float
    follow: bool

    @classmethod
    def of(
        cls,
        algorithm: FAPS,
        data: ClientData,
        state: dict[str, Array],
        joining: BoolArray,
        plan: Plan,
        streams: Streams,
    ) -> InnerRule:
        """The rule an algorithm's parameters stand for in this round."""
        rule = algorithm.inner_rule
        test, tolerance, follow = "none", 0.0, False
        if algorithm.random_inner_steps:
            # Drawn for all clients and indexed, so participation never shifts the stream.
            generator = streams.generator("private", 2, plan.round)
            drawn = generator.integers(1, algorithm.inner_steps + 1, len(data.samples))
            budget = drawn[plan.participants]
        elif rule == "fixed":
            budget = np.full(len(joining), algorithm.inner_steps)
        elif rule == "auto":
            follow = True
            budget = _stable_budget(state, algorithm.inner_limit)
        else:
            test = rule
            budget = np.full(len(joining), algorithm.inner_limit)
            tolerance = (
                algorithm.inner_tolerance * np.sqrt(algorithm.components)
                if rule == "change"
                else _residual_factor(algorithm.penalty_spread, data.weights)
            )
        # A client whose data are all zero has nothing to pull for.
        idle: BoolArray = state["penalty"] == 0
        if not algorithm.private_start:
            idle = idle | joining
        return cls(np.where(idle, 0, budget), test, float(tolerance), follow)


def _stable_budget(state: dict[str, Array], limit: int) -> IntArray:
    inside = symmetric_part(transpose(state["frame"]) @ state["product"])
    smallest = np.asarray(np.linalg.eigvalsh(inside)[:, 0], dtype=float)
    penalty = np.where(state["penalty"] > 0, state["penalty"], 1.0)
    return largest_stable_steps(state["outside"], smallest, penalty, limit)


def _residual_factor(spread: float, weights: Array) -> float:
    """delta of the convergence theorem: sqrt(1 - 1/(2 rho d)) / (2 sqrt(rho d)), from public data.

    rho bounds the ratio of penalties in the unscaled objective, where client i counts w_i beta_i.
    """
    crowd = spread * float(weights.max() / weights.min()) * len(weights)
    return float(np.sqrt(1 - 1 / (2 * crowd)) / (2 * np.sqrt(crowd)))


def conditions_hold(
    rule: InnerRule,
    state: dict[str, Array],
    first: tuple[Array, Array],
    now: tuple[Array, Array],
) -> BoolArray:
    """Whether sufficient decrease and residual reduction hold, (present,) bool."""
    start_residual = np.linalg.norm(remove_span(first[1], first[0]), axis=(1, 2))
    residual = np.linalg.norm(remove_span(now[1], now[0]), axis=(1, 2))
    fallen = 0.5 * ((now[0] * now[1]).sum(axis=(1, 2)) - (first[0] * first[1]).sum(axis=(1, 2)))
    curvature = CURVATURE * state["ceiling"] / 2.0 + state["penalty"]
    result: BoolArray = (curvature * fallen >= DECREASE * start_residual**2) & (
        residual <= rule.tolerance * start_residual
    )
    return result
