"""The inner loop of FAPS: subspace iterations on ``H = S_i + Lambda_i + beta_i Z Z^T``.

Each iteration costs one product with S_i: the first reuses S_i X_i of the last round, and the
last one gives S_i X_i for this round's W_i. `fast` is the same loop for clients of few records.

QR factors are unique, so an iterate has to be a frame only where a rule's test looks at it and at
the end; in between a rough one serves, and not after each product. Where S_i is at hand and small,
H itself is formed.
"""

import numpy as np

from fedpca_core.algorithms.faps.rules import InnerRule, conditions_hold, follow, leading_direction
from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.linalg.stiefel import (
    orthonormalise,
    projector_distance,
    reconditioned,
    remove_span,
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


def iterate(rule: InnerRule, data: ClientData, state: ClientState, received: Array) -> IntArray:
    """Put X_i and S_i X_i after ``X <- orth(H X)`` by a rule into ``state``; J_i, (present,)."""
    tested, least, most = rule.test != "none", int(rule.budget.min()), int(rule.budget.max())
    stretch = STRETCH if state.norm.min() > _LEAST and state.norm.max() < _MOST else 1
    begun = ClientState(**state.arrays())
    low_rank = None if tested else low_rank_part(begun, received)  # a test may end before it
    formed = None if low_rank is None else _formed(data, *low_rank, most)
    images, since = first_image(state, received), 1
    running, made, first = rule.budget > 0, rule.budget, (state.frame, images)
    for step in range(1, most + 1):
        exact, follows = tested or step == most, rule.follow and step == 1
        # Who needs this product, None for all: it leads to the next iterate, or it is S_i X_i.
        if tested:
            asked = None if running.all() else running
        else:
            fewer = 0 if exact else step
            asked = None if fewer < least else rule.budget > fewer
        frames = images
        if exact:
            frames = orthonormalise(images)
        elif follows or since == stretch:  # the vector that follows a_i needs a frame
            frames, apart = reconditioned(images)
            since = 0
            if follows and stretch > 1 and apart ** (most - 1) < BEARABLE:
                stretch = most
        if follows:
            products = follow(data, state, frames, running, alone=formed is not None and not exact)
        elif exact or formed is None:
            products = data.multiply(frames, asked)
        if exact:
            before = state.frame
            state.frame = _replaced(state.frame, frames, asked)
            state.product = _replaced(state.product, products, asked)
        if step == most:
            break
        if rule.test == "change":
            goes_on = projector_distance(state.frame, before) > rule.tolerance
            if not (running & goes_on & (rule.budget > step)).any():
                made = np.where(running, step, made)
                break  # most rounds end here, and nobody goes on from an image
        if formed is None:
            tall, wide = low_rank = low_rank or low_rank_part(begun, received)
            moved = products + tall @ (wide @ frames)
        else:  # H is symmetric, and this is quicker
            moved = (frames.mT @ formed).mT
        images, since = _replaced(frames, moved, asked), since + 1
        if tested:
            if rule.test == "conditions":
                goes_on = ~conditions_hold(rule, state, first, (state.frame, images))
            made = np.where(running & ~goes_on, step, made)
            running = running & goes_on & (rule.budget > step)
            if not running.any():
                break
    return made


def _formed(data: ClientData, tall: Array, wide: Array, most: int) -> Array | None:
    """H where S_i is held and forming it pays.

    It costs features^2 x 3p multiplications and saves 2 features x 3p^2 in every product.
    """
    if data.grams is None or data.features > 2 * tall.shape[2] // 3 * (most - 1):
        return None
    matrices = tall @ wide
    matrices += data.dense()
    return matrices


def _replaced(before: Array, after: Array, chosen: BoolArray | None) -> Array:
    """``after`` for the chosen clients, None for all, and ``before`` for the others."""
    return after if chosen is None else np.where(chosen[:, None, None], after, before)


def join(data: ClientData, state: ClientState, received: Array | None) -> None:
    """First round of some clients: start from the received frame, or for None from their own."""
    new = state.rounds == 0
    if not new.any():
        return
    pick = new[:, None, None]
    if received is not None:
        state.frame = np.where(pick, received, state.frame)
    product = data.apply(state.frame, active=new)  # one product, metered
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
        along = frame[rows].mT @ received
        across = weight[rows].mT @ received
        product[rows] = frame[rows] @ (penalty[rows] * along - across) - weight[rows] @ along

    share_rows(some, len(frame), received.size * received.shape[1])
    return product


# ------------------------------------------------------------------ H
def low_rank_part(state: ClientState, received: Array) -> tuple[Array, Array]:
    """``Lambda_i + beta_i Z Z^T`` as a tall matrix times a wide one, of 3p columns and rows.

    Lambda_i = X_i W_i^T + W_i X_i^T (FAPS, section 3), so this is
    ``[X_i, W_i, beta_i Z] [W_i, X_i, Z]^T``, with X_i and W_i of the beginning of the round.
    """
    pulled = state.penalty[:, None, None] * received
    tall = _side_by_side(state.frame, state.multiplier, pulled)
    return tall, _side_by_side(state.multiplier, state.frame, received).mT


def first_image(state: ClientState, received: Array) -> Array:
    """H X_i of the beginning of the round, where ``Lambda_i X_i = W_i``: W_i^T X_i = 0."""
    pulled = state.penalty[:, None, None] * received
    return state.product + state.multiplier + pulled @ (received.mT @ state.frame)


def _side_by_side(first: Array, second: Array, third: Array) -> Array:
    """Three frames a client as one; slices are filled, which is quicker than concatenating.

    The columns lie in memory one after the other: filling rows of 3p takes twice as long.
    """
    clients, features, columns = first.shape
    joined = np.empty((clients, 3 * columns, features))
    for position, part in enumerate((first, second, third)):
        joined[:, position * columns : (position + 1) * columns] = part.mT
    return joined.mT
