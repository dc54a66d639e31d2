"""The inner loop of FAPS: subspace iterations on ``H = S_i + Lambda_i + beta_i Z Z^T``.

Each iteration costs one product with S_i: the first reuses S_i X_i of the last round, and the
last one gives S_i X_i for this round's W_i. `iterate` is the loop; `fast` and `coordinates` are the
same loop with less work, for rules that need no iterate but the last.
"""

from __future__ import annotations

import numpy as np

from fedpca_core.algorithms.faps.coordinates import iterate_in_coordinates
from fedpca_core.algorithms.faps.fast import iterate_as_planned
from fedpca_core.algorithms.faps.operator import (
    first_image,
    follow,
    leading_direction,
    low_rank_part,
)
from fedpca_core.algorithms.faps.rules import InnerRule, conditions_hold
from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array, IntArray
from fedpca_core.linalg.stiefel import orthonormalise, projector_distance, remove_span, transpose
from fedpca_core.linalg.threads import share_rows
from fedpca_core.problems.client_data import ClientData


def solve(rule: InnerRule, data: ClientData, state: ClientState, received: Array) -> None:
    """Advance X_i, S_i X_i and W_i in ``state`` by this round's iterations ``X <- orth(H X)``."""
    if rule.test != "none":
        made = iterate(rule, data, state, received)
    else:
        made, left = rule.budget, rule
        if data.factors is not None and not rule.follow:
            left = rule.without(~iterate_in_coordinates(rule, data, state, received))
        if left.budget.any():
            iterate_as_planned(left, data, state, received)
    data.charge(made)
    state.steps = made.astype(float)
    state.multiplier = multiplier(state.frame, state.product)


def iterate(rule: InnerRule, data: ClientData, state: ClientState, received: Array) -> IntArray:
    """Put X_i after the iterations of a rule, and S_i X_i, into ``state``.

    Returns
    -------
    (present,) int64
        Iterations that each client made: J_i.
    """
    tall, wide = low_rank_part(state, received)
    frames, products, images = state.frame, state.product, first_image(state, received)
    first, running, made = (frames, images), rule.budget > 0, np.zeros_like(rule.budget)
    while running.any():
        before, pick = frames, running[:, None, None]
        frames = np.where(pick, orthonormalise(images), frames)
        if rule.follow and not made.any():
            fresh = follow(data, state, frames, running)
        else:
            fresh = data.multiply(frames, None if running.all() else running)
        products = np.where(pick, fresh, products)
        images = products + tall @ (wide @ frames)
        made = made + running
        if rule.test == "change":
            running = running & (projector_distance(frames, before) > rule.tolerance)
        elif rule.test == "conditions":
            running = running & ~conditions_hold(rule, state, first, (frames, images))
        running = running & (rule.budget > made)
    state.frame, state.product = frames, products
    return made


def join(data: ClientData, state: ClientState, received: Array | None) -> None:
    """First round of some clients: start from the received frame, or for None from their own.

    It costs one product.
    """
    new = state.rounds == 0
    if not new.any():
        return
    pick = new[:, None, None]
    if received is not None:
        state.frame = np.where(pick, received, state.frame)
    product = data.apply(state.frame, active=new)
    state.product = np.where(pick, product, state.product)
    state.multiplier = multiplier(state.frame, state.product)
    direction = leading_direction(state.multiplier)
    state.direction = np.where(pick, direction, state.direction)


def multiplier(frames: Array, products: Array) -> Array:
    """W_i = -(I - X_i X_i^T) S_i X_i, given X_i and S_i X_i."""
    return -remove_span(products, frames)


def answer(state: ClientState, received: Array) -> Array:
    """Q_i Z with ``Q_i = beta_i X_i X_i^T - X_i W_i^T - W_i X_i^T``, all low rank."""
    frame, weight, penalty = state.frame, state.multiplier, state.penalty[:, None, None]
    product = np.empty_like(frame)

    def some(rows: slice) -> None:
        along = transpose(frame[rows]) @ received
        across = transpose(weight[rows]) @ received
        product[rows] = frame[rows] @ (penalty[rows] * along - across) - weight[rows] @ along

    share_rows(some, len(frame), received.size * received.shape[1])
    return product
