"""Products with stacks of directional derivatives, as single matrix products.

A stack is (features, directions, columns): how a frame moves when the client's matrix moves in each
of many directions.
"""

import numpy as np

from fedpca_core.arrays import Array


def complement(frame: Array) -> Array:
    """Orthonormal basis of what is orthogonal to a frame, (features, features - components)."""
    full = np.linalg.qr(frame, mode="complete")[0]
    return np.ascontiguousarray(full[:, frame.shape[1] :])


def left(matrix: Array, derivatives: Array) -> Array:
    """``matrix @ T`` for every direction."""
    flat = matrix @ derivatives.reshape(len(derivatives), -1)
    return flat.reshape(len(matrix), *derivatives.shape[1:])


def right(derivatives: Array, matrix: Array) -> Array:
    """``T @ matrix`` for every direction."""
    flat = derivatives.reshape(-1, derivatives.shape[2]) @ matrix
    return flat.reshape(*derivatives.shape[:2], matrix.shape[1])


def cross(derivatives: Array, frame: Array) -> Array:
    """``T^T frame`` for every direction, (columns of T, directions, columns of the frame)."""
    flat = frame.T @ derivatives.reshape(len(derivatives), -1)
    return flat.reshape(frame.shape[1], *derivatives.shape[1:]).transpose(2, 1, 0)


def answer_derivative(
    penalty: float,
    frame: Array,
    weight: Array,
    received: Array,
    change: Array,
    d_weight: Array,
    d_penalty: Array,
) -> Array:
    """Derivative of ``Q Z`` with ``Q = beta X X^T - X W^T - W X^T``."""
    along, across = frame.T @ received, weight.T @ received
    d_along, d_across = cross(change, received), cross(d_weight, received)
    result = right(change, penalty * along - across) - right(d_weight, along)
    result += left(frame, penalty * d_along - d_across) - left(weight, d_along)
    if d_penalty.any():
        result += (frame @ along)[:, None, :] * d_penalty[:, None]
    return result
