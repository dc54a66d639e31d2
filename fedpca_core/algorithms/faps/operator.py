"""H of FAPS beside S_i: what is of low rank in it, and the direction that the rule "auto" follows.

``H = S_i + Lambda_i + beta_i Z Z^T`` is never formed here. a_i is the largest eigenvalue of S_i on
the complement of X_i; its vector advances by one step of the power iteration a round.
"""

from __future__ import annotations

import numpy as np

from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array, BoolArray
from fedpca_core.linalg.stiefel import remove_span, transpose
from fedpca_core.problems.client_data import ClientData


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
