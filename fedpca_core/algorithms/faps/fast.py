"""The inner loop of FAPS, orthonormalised rarely: for rules that say before how often it runs.

QR factors are unique, so only the last iterate has to be a frame; in between a rough one serves,
and not after each product. Where S_i is at hand and small, H itself is formed.
"""

import numpy as np

from fedpca_core.algorithms.faps.coordinates import iterate_in_coordinates
from fedpca_core.algorithms.faps.inner import (
    first_image,
    follow,
    iterate,
    low_rank_part,
    multiplier,
)
from fedpca_core.algorithms.faps.rules import InnerRule
from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array, IntArray
from fedpca_core.linalg.stiefel import orthonormalise, recondition, reconditioned, transpose
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


def iterate_as_planned(
    rule: InnerRule, data: ClientData, state: ClientState, received: Array
) -> None:
    """Put X_i after as many iterations as a rule without a test says, and S_i X_i, into ``state``.

    The same as `inner.iterate`.
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
        fresh = follow(data, state, images, running, alone=formed)
        products = None if formed else fresh
    if whole is not None:
        images, most = _multiplied(whole, images, rule.budget, stretch, since), 0
    for step in range(2, most + 1):
        if since == stretch:
            images, since = recondition(images), 0
        going = None if step <= least else rule.budget >= step
        fresh = data.multiply(images, going) if products is None else products
        moved, products = fresh + tall @ (wide @ images), None
        images = moved if going is None else np.where(going[:, None, None], moved, images)
        since += 1
    frames = orthonormalise(images)
    products = data.multiply(frames, running if least == 0 else None)
    pick = running[:, None, None]
    state.frame = frames if least > 0 else np.where(pick, frames, state.frame)
    state.product = products if least > 0 else np.where(pick, products, state.product)


def _multiplied(whole: Array, images: Array, budget: IntArray, stretch: int, since: int) -> Array:
    """The images after the other products with H itself, of which the first was made before."""
    order = np.argsort(-budget) if budget.min() < budget.max() else None
    if order is not None:  # who goes on is in front
        whole, images = whole[order], images[order]
    for step in range(2, int(budget.max()) + 1):
        if since == stretch:
            images, since = recondition(images), 0
        front = len(images) if order is None else np.count_nonzero(budget >= step)
        # H is symmetric, and this is quicker.
        moved = transpose(transpose(images[:front]) @ whole[:front])
        if front == len(images):
            images = moved
        else:
            images[:front] = moved
        since += 1
    return images if order is None else images[np.argsort(order)]
