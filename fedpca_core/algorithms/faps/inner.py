"""The inner loop of FAPS: subspace iterations on ``H = S_i + Lambda_i + beta_i Z Z^T``.

Each iteration costs one product with S_i: the first reuses S_i X_i of the last round, and the
last one gives S_i X_i for this round's W_i.
"""

from __future__ import annotations

import numpy as np

from fedpca_core.algorithms.faps.direction import follow, leading_direction
from fedpca_core.algorithms.faps.in_coordinates import fits, iterate_in_coordinates
from fedpca_core.algorithms.faps.rules import InnerRule, conditions_hold
from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array
from fedpca_core.linalg.stiefel import (
    orthonormalise,
    projector_distance,
    recondition,
    reconditioned,
    remove_span,
    transpose,
)
from fedpca_core.linalg.threads import share_rows
from fedpca_core.problems.client_data import ClientData

#: Products between two rough orthonormalisations. H has a condition number of about 1/factor + 1 on
#: the spaces it meets first, and that of its leading block near the solution, so five products stay
#: within what a Cholesky pass bears; `orthonormalise` checks, and falls back to Householder.
STRETCH = 5
#: The condition number meant by that. Where one product has been measured, as many follow as stay
#: within it.
BEARABLE = 1e4
#: Five products with matrices beyond these norms, squared for a Gram matrix, overflow or vanish.
_LEAST, _MOST = 1e-25, 1e25


def solve(rule: InnerRule, data: ClientData, state: ClientState, received: Array) -> None:
    """Advance X_i, S_i X_i and W_i in ``state`` by this round's iterations ``X <- orth(H X)``."""
    if fits(rule, data):
        left = iterate_in_coordinates(rule, data, state, received)
        if not left.any():
            return
        rule = rule.without(~left)
    if rule.budget.any():
        iterate = iterate_as_planned if rule.test == "none" else iterate_until
        iterate(rule, data, state, received)
    state.multiplier = multiplier(state.frame, state.product)


def low_rank_part(state: ClientState, received: Array) -> tuple[Array, Array]:
    """``Lambda_i + beta_i Z Z^T`` as a tall matrix times a wide one, of 3p columns and rows.

    Lambda_i = X_i W_i^T + W_i X_i^T (FAPS, section 3), so this is
    ``[X_i, W_i, beta_i Z] [W_i, X_i, Z]^T``, with X_i and W_i of the beginning of the round.
    """
    pulled = state.penalty[:, None, None] * received
    tall = _side_by_side(state.frame, state.multiplier, pulled)
    return tall, transpose(_side_by_side(state.multiplier, state.frame, received))


def first_image(state: ClientState, received: Array) -> Array:
    """H X_i of the beginning of the round, where ``Lambda_i X_i = W_i``: W_i^T X_i = 0."""
    pulled = state.penalty[:, None, None] * received
    return state.product + state.multiplier + pulled @ (transpose(received) @ state.frame)


def iterate_as_planned(
    rule: InnerRule, data: ClientData, state: ClientState, received: Array
) -> None:
    """Put X_i after as many iterations as a rule without a test says, and S_i X_i, into ``state``.

    QR factors are unique, so only the last iterate has to be a frame; in between a rough one
    serves, and not after each product.
    """
    stretch = STRETCH if state.norm.min() > _LEAST and state.norm.max() < _MOST else 1
    running, least, most = rule.budget > 0, int(rule.budget.min()), int(rule.budget.max())
    tall, wide = low_rank_part(state, received)
    # H itself costs features^2 x 3p multiplications and saves 2 features x 3p^2 in every product.
    formed = data.grams is not None and data.features <= 2 * tall.shape[2] // 3 * (most - 1)
    whole = tall @ wide if formed else None
    if whole is not None:
        whole += data.dense()
    images, since = first_image(state, received), 1
    products = None
    if rule.follow:  # the vector that follows a_i needs a frame
        images, apart = reconditioned(images)
        since = 0
        if stretch > 1 and apart ** (most - 1) < BEARABLE:
            stretch = most
        products = follow(data, state, images, running, alone=formed)
    order = np.argsort(-rule.budget) if whole is not None and least < most else None
    if whole is not None and order is not None:  # who goes on is in front
        whole, images = whole[order], images[order]
    for step in range(2, most + 1):
        if since == stretch:
            images, since = recondition(images), 0
        going = None if step <= least else rule.budget >= step
        if whole is None:
            fresh = data.multiply(images, going) if products is None else products
            moved, products = fresh + tall @ (wide @ images), None
            images = moved if going is None else np.where(going[:, None, None], moved, images)
        else:
            front = len(images) if going is None else np.count_nonzero(going)
            # H is symmetric, and this is quicker.
            moved = transpose(transpose(images[:front]) @ whole[:front])
            if going is None:
                images = moved
            else:
                images[:front] = moved
        since += 1
    if order is not None:
        images = images[np.argsort(order)]
    frames = orthonormalise(images)
    products = data.multiply(frames, running if least == 0 else None)
    pick = running[:, None, None]
    state.frame = frames if least > 0 else np.where(pick, frames, state.frame)
    state.product = products if least > 0 else np.where(pick, products, state.product)
    data.charge(rule.budget)


def iterate_until(rule: InnerRule, data: ClientData, state: ClientState, received: Array) -> None:
    """Put X_i after the iterations of a rule with a test, and S_i X_i, into ``state``."""
    tall, wide = low_rank_part(state, received)
    frames, products = state.frame, state.product
    images = first_image(state, received)
    first = frames, images
    running = rule.budget > 0
    for step in range(1, int(rule.budget.max()) + 1):
        before, pick = frames, running[:, None, None]
        frames = np.where(pick, orthonormalise(images), frames)
        products = np.where(pick, data.apply(frames, active=running), products)
        images = products + tall @ (wide @ frames)
        if rule.test == "change":
            running = running & (projector_distance(frames, before) > rule.tolerance)
        else:
            running = running & ~conditions_hold(rule, state, first, (frames, images))
        running = running & (rule.budget > step)
        if not running.any():
            break
    state.frame, state.product = frames, products


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


def _side_by_side(first: Array, second: Array, third: Array) -> Array:
    """Three frames a client as one; slices are filled, which is quicker than concatenating.

    The columns lie in memory one after the other: filling rows of 3p takes twice as long.
    """
    clients, features, columns = first.shape
    joined = np.empty((clients, 3 * columns, features))
    for position, part in enumerate((first, second, third)):
        joined[:, position * columns : (position + 1) * columns] = transpose(part)
    return transpose(joined)


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
