"""The inner loop of FAPS: subspace iterations on ``H = S_i + Lambda_i + beta_i Z Z^T``.

Each iteration costs one product with S_i: the first reuses S_i X_i of the last round, and the
last one gives S_i X_i for this round's W_i. `iterate` is the loop; `fast` and `coordinates` are the
same loop with less work, for rules that need no iterate but the last. H is never formed here.

a_i, which the rule "auto" follows, is the largest eigenvalue of S_i on the complement of X_i; its
vector advances by one step of the power iteration a round.
"""

import numpy as np

from fedpca_core.algorithms.faps.rules import InnerRule, conditions_hold
from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.linalg.stiefel import orthonormalise, projector_distance, remove_span, transpose
from fedpca_core.linalg.threads import share_rows
from fedpca_core.problems.client_data import ClientData


def iterate(rule: InnerRule, data: ClientData, state: ClientState, received: Array) -> IntArray:
    """Put X_i after the iterations of a rule, and S_i X_i, into ``state``.

    Returns (present,) int64: iterations that each client made: J_i.
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


# ------------------------------------------------------------------ H, and a_i beside it
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


def _side_by_side(first: Array, second: Array, third: Array) -> Array:
    """Three frames a client as one; slices are filled, which is quicker than concatenating.

    The columns lie in memory one after the other: filling rows of 3p takes twice as long.
    """
    clients, features, columns = first.shape
    joined = np.empty((clients, 3 * columns, features))
    for position, part in enumerate((first, second, third)):
        joined[:, position * columns : (position + 1) * columns] = transpose(part)
    return transpose(joined)


def leading_direction(matrices: Array) -> Array:
    """Leading left singular vector, (clients, features, 1): the first guess for a_i's vector."""
    vectors = np.linalg.eigh(transpose(matrices) @ matrices)[1]
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
