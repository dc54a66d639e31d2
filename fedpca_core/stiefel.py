"""Frames with orthonormal columns (the Stiefel manifold) and the subspaces they span.

All functions accept a batch: arrays of shape ``(..., features, components)``. Nothing here forms a
features-by-features projector; every quantity comes from tall or components-by-components products.
"""

from __future__ import annotations

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require

#: A first Cholesky pass whose result is further than this from orthonormal is not trusted.
_TRUSTED_DEPARTURE = 0.1


def transpose(frames: Array) -> Array:
    """Swap the last two axes."""
    return np.swapaxes(frames, -1, -2)


def symmetric_part(matrices: Array) -> Array:
    """Return ``(M + M^T)/2``."""
    return 0.5 * (matrices + transpose(matrices))


def orthonormalise(frames: Array) -> Array:
    """Q factor of the thin QR decomposition with a positive diagonal of R.

    The positive diagonal makes the factor unique, so equal spans reached along different routes
    (and different machines) give equal frames and averages cannot cancel.

    Parameters
    ----------
    frames : (..., features, components) float64

    Returns
    -------
    (..., features, components) float64

    Notes
    -----
    Two Cholesky passes are as accurate as Householder QR up to a condition number of about 1e7 and
    consist of matrix products only; beyond that (or when a column vanishes) Householder QR is used.
    """
    try:
        once = _cholesky_pass(frames, frames.swapaxes(-1, -2) @ frames)
        gram = once.swapaxes(-1, -2) @ once
        departure = np.abs(gram - np.eye(gram.shape[-1])).max(initial=0.0)
        if departure < _TRUSTED_DEPARTURE:
            return _cholesky_pass(once, gram)
    except np.linalg.LinAlgError:
        pass  # not a failure: a (nearly) dependent column, which Householder QR handles
    return householder(frames)


def _cholesky_pass(frames: Array, gram: Array) -> Array:
    lower = np.linalg.cholesky(gram)
    result: Array = frames @ np.linalg.inv(lower).swapaxes(-1, -2)
    return result


def householder(frames: Array) -> Array:
    """Householder QR with the signs fixed so that the diagonal of R is not negative."""
    require(
        bool(np.isfinite(frames).all()),
        "A frame holds NaN or infinite entries, so the run has diverged; "
        "choose a smaller step or noise, or check the data for extreme values.",
    )
    q, r = np.linalg.qr(frames)
    signs = np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0, -1.0, 1.0)
    result: Array = q * signs[..., None, :]
    return result


def random_frame(generator: np.random.Generator, features: int, components: int) -> Array:
    """Frame of a uniform [-1, 1] matrix: the start used throughout FAPS."""
    return orthonormalise(generator.uniform(-1.0, 1.0, (features, components)))


def uniform_frame(generator: np.random.Generator, features: int, components: int) -> Array:
    """Frame drawn uniformly from the manifold (QR of a Gaussian matrix)."""
    return orthonormalise(generator.standard_normal((features, components)))


def polar(frames: Array) -> Array:
    """Nearest orthonormal matrix with the same span, ``F (F^T F)^{-1/2}``, from a thin SVD."""
    left, _, right = np.linalg.svd(frames, full_matrices=False)
    result: Array = left @ right
    return result


def procrustes(frames: Array, reference: Array) -> Array:
    """Orthogonal D minimising ``||F D - reference||_F``, shape (..., components, components)."""
    left, _, right = np.linalg.svd(transpose(frames) @ reference)
    result: Array = left @ right
    return result


def remove_span(frames: Array, of: Array) -> Array:
    """Component of ``frames`` orthogonal to the orthonormal columns of ``of``."""
    result: Array = frames - of @ (transpose(of) @ frames)
    return result


def projector_distance(first: Array, second: Array) -> Array:
    """Projector distance ``||X X^T - Z Z^T||_F`` of two spans of equal dimension.

    Computed from the residual, ``sqrt(2) ||Z - X (X^T Z)||_F``: the textbook form
    ``sqrt(2 (p - ||X^T Z||_F^2))`` cannot fall below about 6e-8.
    """
    residual = remove_span(second, first)
    return np.asarray(np.sqrt(2.0) * np.linalg.norm(residual, axis=(-2, -1)), dtype=float)


def largest_sine(frame: Array, target: Array) -> Array:
    """Sine of the largest principal angle from ``target`` to ``frame``: ``||(I-ZZ^T) U||_2``.

    ``frame`` may have more columns than ``target``: the measure is then one-sided, zero exactly
    when the target is contained in the span of the frame.
    """
    residual = remove_span(target, frame)
    return np.asarray(np.linalg.norm(residual, ord=2, axis=(-2, -1)), dtype=float)


def principal_sines(frame: Array, target: Array) -> Array:
    """All sines of the principal angles, largest first, shape (..., components of the target)."""
    result: Array = np.linalg.svd(remove_span(target, frame), compute_uv=False)
    return result


def tangent(at: Array, matrices: Array) -> Array:
    """Projection of a matrix on the tangent space of the manifold, ``X - U sym(U^T X)``."""
    result: Array = matrices - at @ symmetric_part(transpose(at) @ matrices)
    return result
