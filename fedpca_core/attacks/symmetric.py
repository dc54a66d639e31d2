"""Symmetric completion: the smallest *symmetric* matrix that explains all answers.

A second-moment matrix is symmetric, so every probed direction also reveals what the unprobed ones
say about it, and only the block of unprobed against unprobed directions stays unknown (FedPower,
reconstruction from uploads). A known trace fills that block with its most even content.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.linear import Estimate, follow
from fedpca_core.attacks.linear_system import (
    Decomposition,
    LinearSystem,
    check_prior,
    growing,
    read,
)
from fedpca_core.protocol.transcript import Transcript


def symmetric(
    transcript: Transcript,
    client: int = 0,
    rounds: int | None = None,
    prior: Array | None = None,
    *,
    trace: float | None = None,
) -> Array:
    """Symmetric minimum-norm reconstruction of one client's S_i.

    Parameters
    ----------
    transcript, client, rounds, prior
        As in `linear`; the prior counts with its symmetric part.
    trace : float, optional
        tr S_i where it is public (for example 1 when every record is scaled to norm 1). What the
        estimate lacks of it is spread evenly over the unprobed directions.

    Returns
    -------
    (features, features) float64, symmetric

    Notes
    -----
    In the basis of the stacked broadcasts' singular vectors the entry (a, b) is seen twice, with
    strengths sigma_a and sigma_b; the least-squares combination of both is
    ``(E_ab sigma_b + E_ba sigma_a) / (sigma_a^2 + sigma_b^2)``. On exact messages this equals the
    closed form ``C Q^T + Q C^T - Q Q^T C Q^T``; with rounding it is far better, because a weakly
    probed direction is still seen well from every strongly probed one.
    """
    known = symmetric_prior(prior, transcript.features)
    return complete(read(transcript, client, rounds), known, trace)[0]


def symmetric_rounds(
    transcript: Transcript,
    client: int = 0,
    rounds: int | None = None,
    prior: Array | None = None,
    *,
    trace: float | None = None,
) -> Iterator[Estimate]:
    """`symmetric` after each round; parameters as there."""
    known = symmetric_prior(prior, transcript.features)
    return follow(
        growing(transcript, client, rounds),
        lambda system: system.decompose(known),
        lambda decomposition: _solve(decomposition, known, trace),
    )


def complete(system: LinearSystem, prior: Array | None, trace: float | None) -> tuple[Array, int]:
    """Symmetric completion of stacked pairs, and the number of directions they span."""
    found = system.decompose(prior)
    return _solve(found, prior, trace), found.rank


def symmetric_prior(prior: Array | None, features: int) -> Array | None:
    """Symmetric part of a checked prior."""
    matrix = check_prior(prior, features)
    return None if matrix is None else 0.5 * (matrix + matrix.T)


def filtered(found: Decomposition, inner: Array, outer: Array) -> Array:
    """Symmetric matrix with given content inside the probed space and towards the rest."""
    half = found.left @ inner * 0.5 + outer
    return half @ found.left.T + found.left @ half.T


def _solve(found: Decomposition, prior: Array | None, trace: float | None) -> Array:
    sigma, cutoff = found.sigma, found.cutoff
    seen_twice = found.inner * sigma
    strength = sigma[:, None] ** 2 + sigma**2
    inner = np.where(strength > cutoff**2, (seen_twice + seen_twice.T) / strength, 0.0)
    outer = np.where(sigma > cutoff, found.outer / sigma, 0.0)
    step = filtered(found, inner, outer)
    estimate = step if prior is None else prior + step
    missing = len(estimate) - found.rank
    if trace is None or missing == 0:
        return estimate
    probed = found.left[:, sigma > cutoff]
    unprobed = np.eye(len(estimate)) - probed @ probed.T
    return estimate + (trace - np.trace(estimate)) / missing * unprobed
