"""Predicted local rates and stability numbers: guide lines for charts, and FAPS's inner-step rule.

Every rate is the factor by which the largest principal angle shrinks in one round near the
solution. The relative error and the objective gap are quadratic in the angle: square it for those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fedpca_core.algorithms.faps.stability import largest_stable_steps, stability_numbers
from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import remove_span, transpose

if TYPE_CHECKING:
    from fedpca_core.problems.client_data import ClientData

__all__ = [
    "client_spectra",
    "faps_rate",
    "largest_stable_steps",
    "ssi_rate",
    "stability_numbers",
]


def ssi_rate(eigenvalues: Array, components: int) -> float:
    """Angle factor a round of SSI (and of LocalPower once it takes single steps).

    Parameters
    ----------
    eigenvalues : (features,) float64
        Of S = sum_i w_i S_i, largest first.
    components : int

    Returns
    -------
    float
        lambda_{p+1} / lambda_p.
    """
    _check(eigenvalues, components)
    return float(eigenvalues[components] / eigenvalues[components - 1])


def faps_rate(
    eigenvalues: Array, components: int, penalty: float, inner_steps: int | None = None
) -> float:
    """Angle factor a round of FAPS with identical clients.

    Parameters
    ----------
    eigenvalues : (features,) float64
        Of the common S_i = S, largest first.
    components : int
    penalty : float
        beta, in units of S (not the penalty factor).
    inner_steps : int or None
        Inner subspace iterations J of a round; None stands for exact inner solves.

    Returns
    -------
    float
        The largest over all pairs l <= p < j of ``1 - c g / (g + beta)`` with the gap
        ``g = lambda_l - lambda_j`` and ``c = 1 - (lambda_j / (lambda_l + beta))^J``; c = 1 for
        exact solves.
    """
    _check(eigenvalues, components)
    require(penalty > 0, f"The penalty must be positive, not {penalty}.")
    inside = np.asarray(eigenvalues[:components], dtype=float)[:, None]
    outside = np.asarray(eigenvalues[components:], dtype=float)[None, :]
    gap = inside - outside
    solved: Array | float = 1.0
    if inner_steps is not None:
        solved = 1.0 - (outside / (inside + penalty)) ** inner_steps
    return float((1.0 - solved * gap / (gap + penalty)).max())


def client_spectra(client_data: ClientData, frame: Array) -> tuple[Array, Array]:
    """The a_i and c_i of `stability_numbers` at a frame, exactly (simulation only).

    Parameters
    ----------
    frame : (features, components) float64, orthonormal

    Returns
    -------
    outside, inside : (clients,) float64
    """
    dense = client_data.dense()
    inside = np.linalg.eigvalsh(transpose(frame) @ dense @ frame)[:, 0]
    projected = transpose(remove_span(transpose(remove_span(dense, frame)), frame))
    outside = np.linalg.eigvalsh(projected)[:, -1]
    return np.asarray(outside, dtype=float), np.asarray(inside, dtype=float)


def _check(eigenvalues: Array, components: int) -> None:
    require(
        1 <= components < len(eigenvalues),
        f"{components} components leave no gap in {len(eigenvalues)} eigenvalues; "
        f"choose between 1 and {len(eigenvalues) - 1} components.",
    )
