"""The inner loop of FAPS in coordinates of a client's records, where these are few.

Every iterate of ``M <- H M`` from X_i has the form ``F c + B u`` with ``S_i = F F^T`` and
``B = [X_i, W_i, Z]``, because ``H = F F^T + B K B^T`` with a small matrix K. In these coordinates

    c <- F^T M = (F^T F) c + (F^T B) u,    u <- K B^T M = K ((F^T B)^T c + (B^T B) u).

An iteration then multiplies by F^T F (records x records) instead of by F and F^T (features x
records), and F itself is read twice a round instead of twice an iteration.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag, solve_triangular

from fedpca_core.algorithms.faps.rules import InnerRule
from fedpca_core.algorithms.faps.state import ClientState
from fedpca_core.arrays import Array, BoolArray
from fedpca_core.linalg.stiefel import orthonormalise
from fedpca_core.linalg.threads import share_out
from fedpca_core.problems.client_data import ClientData

#: Where the diagonal of a triangular factor varies more than this, its inverse is not trusted.
TRUSTED = 1e-4


def fits(rule: InnerRule, data: ClientData) -> bool:
    """Whether the rule needs no iterate but the last, and clients hold records rather than S_i."""
    return data.factors is not None and rule.test == "none" and not rule.follow


def iterate_in_coordinates(
    rule: InnerRule, data: ClientData, state: ClientState, received: Array
) -> BoolArray:
    """Put X_i after this round's iterations and S_i X_i into ``state``.

    Returns
    -------
    (present,) bool
        Clients that were left as they were: they have no step to make, or H maps the columns of an
        iterate so close to each other that coordinates lose what tells them apart.
    """
    frames, products = state.frame.copy(), state.product.copy()
    left = np.ones(len(frames), dtype=bool)

    def one(row: int) -> None:
        steps = int(rule.budget[row])
        solved = _solve(data, state, received, row, steps) if steps > 0 else None
        if solved is not None:
            frames[row], products[row] = solved
            left[row] = False

    largest = int(data.samples[data.members].max(initial=0))
    share_out(one, len(frames), data.features * largest * received.shape[1])
    data.charge(np.where(left, 0, rule.budget))
    state.frame, state.product = frames, products
    return left


def _solve(
    data: ClientData, state: ClientState, received: Array, row: int, steps: int
) -> tuple[Array, Array] | None:
    factor, gram = data.coordinates(row)
    basis = np.hstack([state.frame[row], state.multiplier[row], received])
    # F^T W_i, too, is taken from W_i itself: an identity in its place would let rounding grow from
    # round to round.
    across = factor.T @ basis
    overlap = basis.T @ basis
    components = received.shape[1]
    core = _core(components, float(state.penalty[row]))

    # F^T M and B^T M of the iterate M, at first X_i.
    pulled, seen = across[:, :components], overlap[:, :components]
    inside, outside = np.zeros_like(pulled), np.eye(len(core), components)
    for _ in range(steps):
        # QR factors are unique, so columns may be recombined to keep them apart.
        inverse = _inverse_factor(inside.T @ pulled + outside.T @ seen)
        if inverse is None:
            return None
        inside, outside = pulled @ inverse, core @ (seen @ inverse)
        pulled = gram @ inside + across @ outside
        seen = across.T @ inside + overlap @ outside
    images = factor @ np.hstack([inside, pulled])
    iterate = images[:, :components] + basis @ outside
    solved = orthonormalise(iterate[None])[0]
    # M = X R, so S X = S M R^-1.
    triangle = solved.T @ iterate
    if not _is_trusted(triangle):
        return None
    return solved, solve_triangular(triangle, images[:, components:].T, trans="T").T


def _inverse_factor(gram: Array) -> Array | None:
    """R^-1 of ``M^T M = R^T R``, or None where M has nearly dependent columns."""
    try:
        triangle = np.asarray(np.linalg.cholesky(gram).T, dtype=float)
    except np.linalg.LinAlgError:
        return None
    if not _is_trusted(triangle):
        return None
    return np.asarray(solve_triangular(triangle, np.eye(len(gram))))


def _is_trusted(triangle: Array) -> bool:
    diagonal = np.diagonal(triangle)
    return bool(diagonal.min() > TRUSTED * diagonal.max())


def _core(components: int, penalty: float) -> Array:
    """K of ``H - S_i = X W^T + W X^T + beta Z Z^T = B K B^T``."""
    unit = np.eye(components)
    swapped = np.kron(np.array([[0.0, 1.0], [1.0, 0.0]]), unit)
    return np.asarray(block_diag(swapped, penalty * unit))
