"""Products with stacks of tangents, (features, directions, columns), as single matrix products."""

from __future__ import annotations

import numpy as np

from fedpca_core.arrays import Array


def complement(frame: Array) -> Array:
    """Orthonormal basis of what is orthogonal to a frame, (features, features - components)."""
    full = np.linalg.qr(frame, mode="complete")[0]
    return np.ascontiguousarray(full[:, frame.shape[1] :])


def left(matrix: Array, tangents: Array) -> Array:
    """``matrix @ T`` for every direction of tangents (features, directions, columns)."""
    flat = matrix @ tangents.reshape(len(tangents), -1)
    return flat.reshape(len(matrix), *tangents.shape[1:])


def right(tangents: Array, matrix: Array) -> Array:
    """``T @ matrix`` for every direction."""
    flat = tangents.reshape(-1, tangents.shape[2]) @ matrix
    return flat.reshape(*tangents.shape[:2], matrix.shape[1])


def cross(tangents: Array, frame: Array) -> Array:
    """``T^T frame`` for every direction, (columns of T, directions, columns of the frame)."""
    flat = frame.T @ tangents.reshape(len(tangents), -1)
    return flat.reshape(frame.shape[1], *tangents.shape[1:]).transpose(2, 1, 0)


def answer_tangent(
    penalty: float,
    frame: Array,
    weight: Array,
    received: Array,
    change: Array,
    d_weight: Array,
    d_penalty: Array,
) -> Array:
    """Tangent of ``Q Z`` with ``Q = beta X X^T - X W^T - W X^T``."""
    along, across = frame.T @ received, weight.T @ received
    d_along, d_across = cross(change, received), cross(d_weight, received)
    result = right(change, penalty * along - across) - right(d_weight, along)
    result += left(frame, penalty * d_along - d_across) - left(weight, d_along)
    if d_penalty.any():
        result += (frame @ along)[:, None, :] * d_penalty[:, None]
    return result
