"""What a server learns of one client of Scaffnew with a single local step.

The server sees the averages it sent and the points that came back. It can replay the client's
multiplier (which never travels), so each upload reveals one exact gradient; for a quadratic client
as many rounds as features plus one reveal its Hessian and linear term. Secure aggregation hides
single uploads and fits the method unchanged.
"""

from __future__ import annotations

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.consensus.methods import InexactUzawa
from fedpca_core.errors import InvalidInput, require


def gradients(averages: Array, uploads: Array, method: InexactUzawa) -> Array:
    """Gradients of one client's private function at the averages it received.

    Parameters
    ----------
    averages : (rounds + 1, features) float64
        z_0, ..., z_T: everything the server sent.
    uploads : (rounds, features) float64
        x_1, ..., x_T: what the client answered.
    method : InexactUzawa
        Public parameters.

    Returns
    -------
    (rounds, features) float64
        grad f_i(z_0), ..., grad f_i(z_{T-1}).
    """
    if method.local_steps != 1 or method.step_size is None:
        raise InvalidInput(
            "One upload reveals one exact gradient only with a single local gradient step, "
            f"not with {method.local_steps or 'an exact local solve'}; choose n = 1."
        )
    moves = (averages[:-1] - uploads) / method.step_size
    corrections = method.dual_step * (averages[1:] - uploads)
    # H before round t is the sum of all earlier corrections (H_0 = 0).
    multipliers = np.cumsum(corrections, axis=0) - corrections
    # From x = z, the pull penalty (x - z) of the first gradient step vanishes.
    return np.asarray(moves + multipliers, dtype=float)


def quadratic_client(averages: Array, uploads: Array, method: InexactUzawa) -> tuple[Array, Array]:
    """Hessian and linear term of a quadratic client, from at least features + 1 rounds.

    Returns
    -------
    hessian : (features, features) float64
    linear : (features,) float64
        ``grad f_i(x) = hessian x - linear``.
    """
    features = uploads.shape[1]
    require(
        len(uploads) > features,
        f"{len(uploads)} rounds do not determine a quadratic in {features} unknowns; "
        f"watch at least {features + 1}.",
    )
    known = np.column_stack([averages[:-1], -np.ones(len(uploads))])
    answer = np.linalg.lstsq(known, gradients(averages, uploads, method), rcond=None)[0]
    hessian = 0.5 * (answer[:features] + answer[:features].T)
    return hessian, np.asarray(answer[features], dtype=float)
