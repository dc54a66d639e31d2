"""The inner loop of FAPS: subspace iterations on ``H = S_i + Lambda_i + beta_i Z Z^T``.

Each iteration costs one product with S_i: the first reuses S_i X_i of the last round, and the
last one gives S_i X_i for this round's W_i.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fedpca_core.algorithms.faps.in_coordinates import fits, iterate_in_coordinates
from fedpca_core.algorithms.faps.rules import InnerRule, conditions_hold
from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array, BoolArray
from fedpca_core.linalg.stiefel import (
    orthonormalise,
    projector_distance,
    recondition,
    remove_span,
    transpose,
)
from fedpca_core.linalg.threads import share_rows
from fedpca_core.problems.client_data import ClientData

#: Products between two rough orthonormalisations. H has a condition number of about 1/factor + 1 on
#: the spaces it meets first, and that of its leading block near the solution, so five products stay
#: within what a Cholesky pass bears; `orthonormalise` checks, and falls back to Householder.
STRETCH = 5
#: Five products with matrices beyond these norms, squared for a Gram matrix, overflow or vanish.
_LEAST, _MOST = 1e-25, 1e25


def image_under_h(state: ClientState, received: Array) -> Callable[[Array, Array], Array]:
    """The function H(M) = S_i M + Lambda_i M + beta_i Z Z^T M of M and the product S_i M.

    Lambda_i = X_i W_i^T + W_i X_i^T (FAPS, section 3), so all but S_i is of rank 3p:
    ``[X_i, W_i, beta_i Z] [W_i, X_i, Z]^T``. X_i and W_i are those at the beginning of the round.
    """
    pulled = state.penalty[:, None, None] * received
    tall = _side_by_side(state.frame, state.multiplier, pulled)
    wide = transpose(_side_by_side(state.multiplier, state.frame, received))

    def image(frames: Array, products: Array) -> Array:
        return products + tall @ (wide @ frames)

    return image


def solve(rule: InnerRule, data: ClientData, state: ClientState, received: Array) -> None:
    """Advance X_i, S_i X_i and W_i in ``state`` by this round's iterations ``X <- orth(H X)``."""
    if fits(rule, data):
        left = iterate_in_coordinates(rule, data, state, received)
        if not left.any():
            return
        rule = rule.without(~left)
    iterate(rule, data, state, received)
    state.multiplier = multiplier(state.frame, state.product)


def iterate(rule: InnerRule, data: ClientData, state: ClientState, received: Array) -> None:
    """Put X_i after this round's iterations and S_i X_i into ``state``."""
    ends = set(rule.budget.tolist())  # steps after which some client may stop
    most = max(ends, default=0)
    if most == 0:
        return
    image = image_under_h(state, received)
    frames, products = state.frame, state.product
    # H X itself costs less: X_i^T X_i = I and W_i^T X_i = 0, so Lambda_i X_i is W_i.
    pulled = state.penalty[:, None, None] * received
    images = products + state.multiplier + pulled @ (transpose(received) @ frames)
    first = frames, images
    running = rule.budget > 0
    whole = 0 not in ends
    stretch = STRETCH if state.norm.min() > _LEAST and state.norm.max() < _MOST else 1
    for step in range(1, most + 1):
        before = frames
        # QR factors are unique, so between products a rough one serves, and not after each; the
        # last of a client is exact. The vector that follows a_i needs a frame in step 1.
        if rule.test != "none" or step in ends:
            moved = orthonormalise(images)
        elif step % stretch == int(rule.follow and stretch > 1):
            moved = recondition(images)
        else:
            moved = images
        frames = moved if whole else np.where(running[:, None, None], moved, frames)
        if step == 1 and rule.follow:
            fresh = _follow(data, state, frames, running)
        else:
            fresh = data.apply(frames, active=None if whole else running)
        products = fresh if whole else np.where(running[:, None, None], fresh, products)
        if step == most:
            break
        images = image(frames, products)
        if rule.test == "change":
            running = running & (projector_distance(frames, before) > rule.tolerance)
        elif rule.test == "conditions":
            running = running & ~conditions_hold(rule, state, first, (frames, images))
        elif step not in ends:
            continue
        running = running & (rule.budget > step)
        whole = bool(running.all())
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
    """Three frames a client as one; slices are filled, which is quicker than concatenating."""
    clients, features, columns = first.shape
    joined = np.empty((clients, features, 3 * columns))
    for position, part in enumerate((first, second, third)):
        joined[:, :, position * columns : (position + 1) * columns] = part
    return joined


def multiplier(frames: Array, products: Array) -> Array:
    """W_i = -(I - X_i X_i^T) S_i X_i, given X_i and S_i X_i."""
    return -remove_span(products, frames)


def leading_direction(matrices: Array) -> Array:
    """Leading left singular vector, (clients, features, 1): the first guess for a_i's vector."""
    vectors = np.linalg.eigh(transpose(matrices) @ matrices)[1]
    return _unit(matrices @ vectors[:, :, -1:])


def _follow(data: ClientData, state: ClientState, frames: Array, running: BoolArray) -> Array:
    """Products with the frames and, as one more column, with the direction of a_i."""
    components = frames.shape[2]
    direction = _unit(remove_span(state.direction, frames))
    both = data.apply(np.concatenate([frames, direction], axis=2), active=running)
    products, image = both[:, :, :components], both[:, :, components:]
    quotient = (direction * image).sum(axis=(1, 2))
    known = running & direction.any(axis=(1, 2))
    state.outside = np.where(known, quotient, state.outside)
    advanced = _unit(remove_span(image, frames))
    state.direction = np.where(running[:, None, None], advanced, state.direction)
    data.charge(running & (state.rounds % components == 0))
    return products


def _unit(vectors: Array) -> Array:
    """Columns divided by their norm; a zero column stays zero."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(norms > 0, norms, 1.0)


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
