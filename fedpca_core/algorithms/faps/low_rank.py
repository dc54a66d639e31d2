"""What FAPS adds to S_i in ``H = S_i + Lambda_i + beta_i Z Z^T``: all of low rank."""

from __future__ import annotations

import numpy as np

from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array
from fedpca_core.linalg.stiefel import transpose


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
