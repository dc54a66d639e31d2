"""The inner loop of FAPS: subspace iterations on ``H = S_i + Lambda_i + beta_i Z Z^T``.

Rules for the number of iterations J_i of a client in a round:

``fixed``
    The same J for all.
``auto``
    The largest J with stability number kappa_i <= 1 (`fedpca_core.rates.stability_numbers`), from
    the client's own a_i and c_i. c_i is the smallest eigenvalue of X_i^T S_i X_i, known already.
    a_i, the largest eigenvalue of S_i on the complement of X_i, is followed by a power iteration
    that advances one step a round: its vector travels as one more column of the first inner
    product. That column is metered: every p of them count as one product.
``change``
    Until the subspace moves by at most ``inner_tolerance * sqrt(p)`` (FAPS paper, measured here on
    subspaces, so that a mere change of basis does not count as movement).
``conditions``
    Until the sufficient decrease and the residual reduction that the FAPS convergence theorem asks
    for hold; h(X) = -tr(X^T H X)/2.

Each iteration costs one product with S_i: the first reuses S_i X_i of the last round, and the
last one gives S_i X_i for this round's W_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.rates import largest_stable_steps
from fedpca_core.stiefel import (
    orthonormalise,
    projector_distance,
    recondition,
    remove_span,
    symmetric_part,
    transpose,
)

if TYPE_CHECKING:
    from fedpca_core.algorithm import Plan
    from fedpca_core.algorithms.faps import FAPS
    from fedpca_core.problems.cohort import Cohort
    from fedpca_core.streams import Streams

INNER_RULES = ("auto", "fixed", "change", "conditions")
#: Sufficient decrease asked for: a gradient step of length 1/L, L <= 2 ||S_i|| + beta_i, lowers h
#: by at least |grad|^2 / (2 L); the theorem leaves the constants open, half of that is asked here.
DECREASE, CURVATURE = 0.25, 2.0
#: Products between two rough orthonormalisations. H has a condition number of about 1/factor + 1 on
#: the spaces it meets, so three products stay far from what a Cholesky pass can bear.
STRETCH = 3


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
        cohort: Cohort,
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
            drawn = generator.integers(1, algorithm.inner_steps + 1, len(cohort.samples))
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
                else _residual_factor(algorithm.penalty_spread, cohort.weights)
            )
        idle: BoolArray = (
            state["penalty"] == 0
        )  # a client whose data are all zero has nothing to pull for
        if not algorithm.private_start:
            idle = idle | joining
        return cls(np.where(idle, 0, budget), test, float(tolerance), follow)


def solve(rule: InnerRule, cohort: Cohort, state: dict[str, Array], received: Array) -> None:
    """Advance X_i, S_i X_i and W_i in ``state`` by this round's inner iterations."""
    ends = set(rule.budget.tolist())  # steps after which some client may stop
    most = max(ends, default=0)
    if most == 0:
        return
    frames, products = state["frame"], state["product"]
    pulled = state["penalty"][:, None, None] * received
    tall = np.concatenate([frames, state["multiplier"], pulled], axis=2)
    wide = np.concatenate(
        [state["multiplier"], frames, np.broadcast_to(received, frames.shape)], axis=2
    ).swapaxes(-1, -2)

    images = products + tall @ (wide @ frames)
    first = frames, images
    running = rule.budget > 0
    whole = 0 not in ends
    for step in range(1, most + 1):
        before = frames
        # QR factors are unique, so between products a rough one serves, and not after each; the
        # last of a client is exact. The vector that follows a_i needs a frame in step 1.
        if rule.test != "none" or step in ends:
            moved = orthonormalise(images)
        elif step % STRETCH == int(rule.follow):
            moved = recondition(images)
        else:
            moved = images
        frames = moved if whole else np.where(running[:, None, None], moved, frames)
        if step == 1 and rule.follow:
            fresh = _follow(cohort, state, frames, running)
        else:
            fresh = cohort.apply(frames, active=None if whole else running)
        products = fresh if whole else np.where(running[:, None, None], fresh, products)
        if step == most:
            break
        images = products + tall @ (wide @ frames)
        if rule.test == "change":
            running = running & (projector_distance(frames, before) > rule.tolerance)
        elif rule.test == "conditions":
            running = running & ~_conditions(rule, state, first, (frames, images))
        elif step not in ends:
            continue
        running = running & (rule.budget > step)
        whole = bool(running.all())
        if not running.any():
            break
    state["frame"], state["product"] = frames, products
    state["multiplier"] = multiplier(frames, products)


def multiplier(frames: Array, products: Array) -> Array:
    """W_i = -(I - X_i X_i^T) S_i X_i, given X_i and S_i X_i."""
    return -remove_span(products, frames)


def leading_direction(matrices: Array) -> Array:
    """Leading left singular vector, (clients, features, 1): the first guess for a_i's vector."""
    vectors = np.linalg.eigh(transpose(matrices) @ matrices)[1]
    return _unit(matrices @ vectors[:, :, -1:])


def _stable_budget(state: dict[str, Array], limit: int) -> IntArray:
    inside = symmetric_part(transpose(state["frame"]) @ state["product"])
    smallest = np.asarray(np.linalg.eigvalsh(inside)[:, 0], dtype=float)
    penalty = np.where(state["penalty"] > 0, state["penalty"], 1.0)
    return largest_stable_steps(state["outside"], smallest, penalty, limit)


def _follow(cohort: Cohort, state: dict[str, Array], frames: Array, running: BoolArray) -> Array:
    """Products with the frames and, as one more column, with the direction of a_i."""
    components = frames.shape[2]
    direction = _unit(remove_span(state["direction"], frames))
    both = cohort.apply(np.concatenate([frames, direction], axis=2), active=running)
    products, image = both[:, :, :components], both[:, :, components:]
    quotient = (direction * image).sum(axis=(1, 2))
    known = running & direction.any(axis=(1, 2))
    state["outside"] = np.where(known, quotient, state["outside"])
    advanced = _unit(remove_span(image, frames))
    state["direction"] = np.where(running[:, None, None], advanced, state["direction"])
    cohort.charge(running & (state["rounds"] % components == 0))
    return products


def _unit(vectors: Array) -> Array:
    """Columns divided by their norm; a zero column stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1.0)


def _residual_factor(spread: float, weights: Array) -> float:
    """delta of the convergence theorem: sqrt(1 - 1/(2 rho d)) / (2 sqrt(rho d)), from public data.

    rho bounds the ratio of penalties in the unscaled objective, where client i counts w_i beta_i.
    """
    crowd = spread * float(weights.max() / weights.min()) * len(weights)
    return float(np.sqrt(1 - 1 / (2 * crowd)) / (2 * np.sqrt(crowd)))


def _conditions(
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
