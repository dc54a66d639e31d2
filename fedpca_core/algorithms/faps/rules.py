"""What a FAPS client decides by itself: how many inner iterations it makes, and when beta_i grows.

Rules for the number of iterations J_i of a client in a round:

``fixed``
    The same J for all.
``auto``
    The largest J with stability number kappa_i <= 1 (`largest_stable_steps`), from the client's
    own a_i and c_i. c_i is the smallest eigenvalue of X_i^T S_i X_i, known already. a_i, the
    largest eigenvalue of S_i on the complement of X_i, is followed by a power iteration that
    advances one step a round: its vector travels as one more column of the first inner product,
    which is metered: every p of them count as one product.
``change``
    Until the subspace moves by at most ``inner_tolerance * sqrt(p)`` (FAPS paper, measured here on
    subspaces, so that a mere change of basis does not count as movement).
``conditions``
    Until the sufficient decrease and the residual reduction that the FAPS convergence theorem asks
    for hold; h(X) = -tr(X^T H X)/2. A gradient step of length 1/L, L <= 2 ||S_i|| + beta_i, lowers
    h by at least |grad|^2 / (2 L); the theorem leaves the constants open, half of that is usual.

The penalty rule compares the gap ``d_i = ||X_i X_i^T - Z Z^T||_F`` to the received Z at every fifth
of the client's own rounds with that of the check before, and raises beta_i by 10% where the gap
fell by less than 1% (FAPS, theta = 0.1 and mu = 0.01).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.linalg.stiefel import projector_distance, remove_span
from fedpca_core.problems.client_data import ClientData

INNER_RULES = ("auto", "fixed", "change", "conditions")
CONSTANTS = ("tolerance", "decrease", "curvature", "residual")
#: Checks are this many of the client's own rounds apart ...
CHECK_EVERY = 5
#: ... and the first that may raise beta is this one. Corrected here: since X_i = Z in round 1, the
#: check of round 5 compares with a gap of zero and would always fire.
FIRST_CHECK = 10
RAISE, PROGRESS = 0.1, 0.01
#: Below this gap rounding decides. Corrected here: without the floor beta grows for ever.
SETTLED = 1e-9


@dataclass(frozen=True)
class InnerRule:
    """One round's iteration budget of every participant and the test that may end it earlier."""

    #: (present,) int64: Most iterations of each client; 0 for one that joins in this round.
    budget: IntArray
    #: {"none", "change", "conditions"}.
    test: str = "none"
    #: Largest movement (for "change") or residual factor delta (for "conditions").
    tolerance: float = 0.0
    #: c_1 and c_1' of sufficient decrease (for "conditions").
    decrease: float = 0.25
    curvature: float = 2.0
    #: Advance the power iteration for a_i.
    follow: bool = False

    def without(self, idle: BoolArray) -> InnerRule:
        """The same rule where some clients make no step."""
        return replace(self, budget=np.where(idle, 0, self.budget)) if idle.any() else self


def stable_budget(state: ClientState, limit: int) -> IntArray:
    """J_i of the rule "auto", (present,)."""
    inside = state.frame.mT @ state.product  # symmetric to rounding; one half is read
    smallest = np.asarray(np.linalg.eigvalsh(inside)[:, 0], dtype=float)
    penalty = np.where(state.penalty > 0, state.penalty, 1.0)
    return largest_stable_steps(state.outside, smallest, penalty, limit)


def residual_bound(spread: float, weights: Array) -> float:
    """What delta of the theorem lies below: sqrt(1 - 1/(2 rho d)) / (2 sqrt(rho d)); public.

    rho bounds the ratio of penalties in the unscaled objective, where client i counts w_i beta_i.
    """
    crowd = spread * float(weights.max() / weights.min()) * len(weights)
    return float(np.sqrt(1 - 1 / (2 * crowd)) / (2 * np.sqrt(crowd)))


def conditions_hold(
    rule: InnerRule, state: ClientState, first: tuple[Array, Array], now: tuple[Array, Array]
) -> BoolArray:
    """Whether both conditions hold of pairs (X, H X), before and after, (present,) bool."""
    start_residual = np.linalg.norm(remove_span(first[1], first[0]), axis=(1, 2))
    residual = np.linalg.norm(remove_span(now[1], now[0]), axis=(1, 2))
    fallen = 0.5 * ((now[0] * now[1]).sum(axis=(1, 2)) - (first[0] * first[1]).sum(axis=(1, 2)))
    curvature = rule.curvature * state.norm + state.penalty
    decreased = curvature * fallen >= rule.decrease * start_residual**2
    return decreased & (residual <= rule.tolerance * start_residual)


def largest_stable_steps(outside: Array, inside: Array, penalty: Array, limit: int) -> IntArray:
    """Largest J_i <= ``limit`` with a stability number of at most 1 (never below 1), (clients,).

    ``outside`` a_i, ``inside`` c_i and ``penalty`` beta_i > 0 are (clients,) float64.

    Not in the FAPS paper. The stability number is
    ``kappa_i = beta_i (1 + r_i + ... + r_i^(J-1)) / (c_i + beta_i)`` with
    ``r_i = a_i / (c_i + beta_i)``: one round moves the client's X_i by kappa_i times the step an
    exact consensus would ask for in the slowest direction, so above 2 it overshoots.
    """
    total = inside + penalty
    powers = (outside / total)[:, None] ** np.arange(limit)
    numbers = (penalty / total)[:, None] * np.cumsum(powers, axis=1)
    return np.maximum((numbers <= 1.0).sum(axis=1), 1)


def adapt(state: ClientState, received: Array) -> None:
    """Update beta_i and d_i of the clients of a round, which their ``rounds`` include."""
    due = state.rounds % CHECK_EVERY == 0
    if not due.any():
        return
    gap = projector_distance(state.frame, received)
    slow = state.gap <= (1 + PROGRESS) * gap
    raised = due & (state.rounds >= FIRST_CHECK) & slow & (gap >= SETTLED)
    higher = np.minimum((1 + RAISE) * state.penalty, state.ceiling)
    state.penalty = np.where(raised, higher, state.penalty)
    state.gap = np.where(due, gap, state.gap)


# ---------------------------------------------------------------------- a_i of the rule "auto"
def leading_direction(matrices: Array) -> Array:
    """Leading left singular vector, (clients, features, 1): the first guess for a_i's vector."""
    vectors = np.linalg.eigh(matrices.mT @ matrices)[1]
    return _unit(matrices @ vectors[:, :, -1:])


def follow(
    data: ClientData, state: ClientState, frames: Array, running: BoolArray, alone: bool = False
) -> Array:
    """Advance the direction of a_i by one product, made alone or as one more column of S_i X_i.

    Returns S_i X_i; made alone, nothing of use. A column beside others costs little where S_i has
    to be fetched from memory.
    """
    components = frames.shape[2]
    direction = _unit(remove_span(state.direction, frames))
    asked = direction if alone else np.concatenate([frames, direction], axis=2)
    found = data.multiply(asked, None if running.all() else running)
    image = found[:, :, -1:]
    quotient = np.einsum("cfk,cfk->c", direction, image)
    known = running & direction.any(axis=(1, 2))
    state.outside = np.where(known, quotient, state.outside)
    advanced = _unit(remove_span(image, frames))
    state.direction = np.where(running[:, None, None], advanced, state.direction)
    data.charge(running & (state.rounds % components == 0))
    return found[:, :, :components]


def _unit(vectors: Array) -> Array:
    """Columns divided by their norm; a zero column stays zero."""
    norms = np.sqrt(np.einsum("cfk,cfk->ck", vectors, vectors))[:, None]
    return vectors / np.where(norms > 0, norms, 1.0)
