"""Stability numbers of FAPS: how many inner steps a client can make without overshooting."""

from __future__ import annotations

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import require


def stability_numbers(outside: Array, inside: Array, penalty: Array, inner_steps: int) -> Array:
    """kappa_i of every client: FAPS is stable while all of them stay below about 2.

    Parameters
    ----------
    outside : (clients,) float64
        a_i, the largest eigenvalue of S_i on the complement of the frame.
    inside : (clients,) float64
        c_i, the smallest eigenvalue of ``Z^T S_i Z``.
    penalty : (clients,) float64
        beta_i, positive.
    inner_steps : int
        J, at least 1.

    Returns
    -------
    (clients,) float64
        ``beta_i (1 + r_i + ... + r_i^(J-1)) / (c_i + beta_i)`` with ``r_i = a_i / (c_i + beta_i)``.

    Notes
    -----
    Not in the FAPS paper. One round moves the client's X_i by kappa_i times the step an exact
    consensus would ask for in the slowest direction, so above 2 it overshoots.
    """
    require(inner_steps >= 1, f"There is at least 1 inner step, not {inner_steps}.")
    return _partial_sums(outside, inside, penalty, inner_steps)[:, -1]


def largest_stable_steps(outside: Array, inside: Array, penalty: Array, limit: int) -> IntArray:
    """Largest J_i <= ``limit`` with a stability number of at most 1 (never below 1); (clients,)."""
    sums = _partial_sums(outside, inside, penalty, limit)
    return np.maximum((sums <= 1.0).sum(axis=1), 1)


def _partial_sums(outside: Array, inside: Array, penalty: Array, steps: int) -> Array:
    """kappa_i for J = 1 .. steps, (clients, steps)."""
    total = inside + penalty
    ratio = outside / total
    powers = ratio[:, None] ** np.arange(steps)
    return (penalty / total)[:, None] * np.cumsum(powers, axis=1)
