"""Baselines that need private matrices: only a simulation can draw them.

They say what a server would know of a client if it knew everybody else's data, or exactly the
target of the computation. Nothing here reads a transcript and no attack may use it.
"""

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require


def mean_of_others(matrices: Array, weights: Array, client: int) -> Array:
    """Weighted mean of all other clients' matrices.

    ``matrices``, (clients, features, features) float64: S_i of every client.
    ``weights``, (clients,) float64.
    """
    require(
        len(matrices) > 1,
        "With one client there are no others to average; choose at least two clients.",
    )
    share = np.asarray(weights, dtype=float).copy()
    share[client] = 0.0
    return np.asarray(np.tensordot(share / share.sum(), matrices, axes=1))


def pooled_mean(matrices: Array, weights: Array) -> Array:
    """``S = sum_i w_i S_i``: the best guess at one client that sums over all allow.

    Its error is ``1 - w_i`` times that of `mean_of_others`.
    """
    share = np.asarray(weights, dtype=float)
    return np.asarray(np.tensordot(share / share.sum(), matrices, axes=1))
