"""How many inner iterations a FAPS client makes in a round.

Rules for the number of iterations J_i of a client in a round:

``fixed``
    The same J for all.
``auto``
    The largest J with stability number kappa_i <= 1 (`fedpca_core.algorithms.faps.stability`),
    from the client's own a_i and c_i. c_i is the smallest eigenvalue of X_i^T S_i X_i, known
    already. a_i, the largest eigenvalue of S_i on the complement of X_i, is followed by a power
    iteration that advances one step a round: its vector travels as one more column of the first
    inner product. That column is metered: every p of them count as one product.
``change``
    Until the subspace moves by at most ``inner_tolerance * sqrt(p)`` (FAPS paper, measured here on
    subspaces, so that a mere change of basis does not count as movement).
``conditions``
    Until the sufficient decrease and the residual reduction that the FAPS convergence theorem asks
    for hold; h(X) = -tr(X^T H X)/2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.algorithms.faps.stability import largest_stable_steps
from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.linalg.stiefel import remove_span, transpose

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
    test: str = "none"
    tolerance: float = 0.0
    follow: bool = False

    def without(self, idle: BoolArray) -> InnerRule:
        """The same rule where some clients make no step."""
        return replace(self, budget=np.where(idle, 0, self.budget)) if idle.any() else self


def inner_rule(
    name: str, state: ClientState, steps: int, limit: int, tolerance: float
) -> InnerRule:
    """A rule by its name: J for "fixed", the most iterations and the tolerance for the others."""
    clients = len(state.rounds)
    if name == "fixed":
        return InnerRule(np.full(clients, steps))
    if name == "auto":
        return InnerRule(stable_budget(state, limit), follow=True)
    return InnerRule(np.full(clients, limit), name, tolerance)


def stable_budget(state: ClientState, limit: int) -> IntArray:
    """J_i of the rule "auto", (present,)."""
    inside = transpose(state.frame) @ state.product  # symmetric to rounding; one half is read
    smallest = np.asarray(np.linalg.eigvalsh(inside)[:, 0], dtype=float)
    penalty = np.where(state.penalty > 0, state.penalty, 1.0)
    return largest_stable_steps(state.outside, smallest, penalty, limit)


def residual_factor(spread: float, weights: Array) -> float:
    """delta of the convergence theorem: sqrt(1 - 1/(2 rho d)) / (2 sqrt(rho d)), from public data.

    rho bounds the ratio of penalties in the unscaled objective, where client i counts w_i beta_i.
    """
    crowd = spread * float(weights.max() / weights.min()) * len(weights)
    return float(np.sqrt(1 - 1 / (2 * crowd)) / (2 * np.sqrt(crowd)))


def conditions_hold(
    rule: InnerRule,
    state: ClientState,
    first: tuple[Array, Array],
    now: tuple[Array, Array],
) -> BoolArray:
    """Whether sufficient decrease and residual reduction hold, (present,) bool.

    ``first`` and ``now`` are pairs (X, H X) before the iterations and after the last one.
    """
    start_residual = np.linalg.norm(remove_span(first[1], first[0]), axis=(1, 2))
    residual = np.linalg.norm(remove_span(now[1], now[0]), axis=(1, 2))
    fallen = 0.5 * ((now[0] * now[1]).sum(axis=(1, 2)) - (first[0] * first[1]).sum(axis=(1, 2)))
    decreased = (CURVATURE * state.norm + state.penalty) * fallen >= DECREASE * start_residual**2
    return decreased & (residual <= rule.tolerance * start_residual)
