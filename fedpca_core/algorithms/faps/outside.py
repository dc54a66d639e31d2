"""a_i, which the rule "auto" follows: the largest eigenvalue of S_i on the complement of X_i.

Its vector advances by one step of the power iteration a round.
"""

import numpy as np

from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array, BoolArray
from fedpca_core.linalg.stiefel import remove_span, transpose
from fedpca_core.problems.client_data import ClientData


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
