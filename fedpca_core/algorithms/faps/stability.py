"""Stability numbers of FAPS: how many inner steps a client can make without overshooting."""

from __future__ import annotations

import numpy as np

from fedpca_core.arrays import Array, IntArray


def largest_stable_steps(outside: Array, inside: Array, penalty: Array, limit: int) -> IntArray:
    """Largest J_i <= ``limit`` with a stability number of at most 1 (never below 1).

    Parameters
    ----------
    outside : (clients,) float64
        a_i, the largest eigenvalue of S_i on the complement of the frame.
    inside : (clients,) float64
        c_i, the smallest eigenvalue of ``Z^T S_i Z``.
    penalty : (clients,) float64
        beta_i, positive.
    limit : int

    Returns
    -------
    (clients,) int64

    Notes
    -----
    Not in the FAPS paper. The stability number is
    ``kappa_i = beta_i (1 + r_i + ... + r_i^(J-1)) / (c_i + beta_i)`` with
    ``r_i = a_i / (c_i + beta_i)``: one round moves the client's X_i by kappa_i times the step an
    exact consensus would ask for in the slowest direction, so above 2 it overshoots.
    """
    total = inside + penalty
    powers = (outside / total)[:, None] ** np.arange(limit)
    numbers = (penalty / total)[:, None] * np.cumsum(powers, axis=1)
    return np.maximum((numbers <= 1.0).sum(axis=1), 1)
