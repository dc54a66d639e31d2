"""Frames with orthonormal columns (the Stiefel manifold) and the subspaces they span.

All functions accept a batch: arrays of shape ``(..., features, components)``. Nothing here forms a
features-by-features projector; every quantity comes from tall or components-by-components products.
"""

from __future__ import annotations

from functools import cache, lru_cache

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require

#: A first Cholesky pass whose result is further than this from orthonormal is not trusted.
_TRUSTED_DEPARTURE = 0.1
#: Scaled Gram matrices this close to the identity (Frobenius norm) are inverted by products.
_NEAR_IDENTITY = 0.8
#: Below this departure the second pass is taken to first order (error: its square).
_FIRST_ORDER_DEPARTURE = 1e-8
#: Gram matrices closer than this to the identity (in the infinity norm) need no eigenvectors.
_NEWTON_SCHULZ_DEPARTURE = 0.7


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
    Where the first pass leaves a departure E from orthonormality below 1e-8, the second one takes
    its factor to first order in E, whose error is of order E^2.
    """
    try:
        once = _cholesky_pass(frames, _gram(frames))
        excess = _gram(once) - np.eye(frames.shape[-1])
        departure = np.abs(excess).max(initial=0.0)
        if departure < _FIRST_ORDER_DEPARTURE:
            return once - once @ (_upper_half(frames.shape[-1]) * excess)
        if departure < _TRUSTED_DEPARTURE:
            return _cholesky_pass(once, excess + np.eye(frames.shape[-1]))
    except np.linalg.LinAlgError:
        pass  # not a failure: a (nearly) dependent column, which Householder QR handles
    return householder(frames)


def recondition(frames: Array) -> Array:
    """`orthonormalise` up to rounding times the squared condition number: one Cholesky pass.

    Half the work. For use between the products of a power iteration, where the last step is a full
    `orthonormalise`: QR factors are unique, so a rough one in between changes only rounding.
    """
    try:
        return _cholesky_pass(frames, _gram(frames))
    except np.linalg.LinAlgError:
        return householder(frames)


@lru_cache(maxsize=64)
def _upper_half(columns: int) -> Array:
    """Strict upper triangle of ones with halves on the diagonal: R - I of a Gram matrix I + E."""
    mask = np.triu(np.ones((columns, columns)), 1) + 0.5 * np.eye(columns)
    mask.flags.writeable = False
    return mask


def _gram(frames: Array) -> Array:
    """``F^T F``; a copy keeps numpy from its rank-k update, slow for a batch of small matrices."""
    result: Array = frames.swapaxes(-1, -2) @ (frames.copy() if frames.ndim > 2 else frames)
    return result


def _cholesky_pass(frames: Array, gram: Array) -> Array:
    lower = np.linalg.cholesky(gram)
    result: Array = frames @ np.linalg.inv(lower).swapaxes(-1, -2)
    return result


def check_finite(frames: Array) -> None:
    """Refuse frames (or their Gram matrices) with NaN or infinite entries: the run has diverged.

    Raises
    ------
    InvalidInput
    """
    require(
        bool(np.isfinite(frames).all()),
        "A frame holds NaN or infinite entries, so the run has diverged; "
        "choose a smaller step or noise, or check the data for extreme values.",
    )


def householder(frames: Array) -> Array:
    """Householder QR with the signs fixed so that the diagonal of R is not negative."""
    check_finite(frames)
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
    """Nearest orthonormal matrix with the same span, ``F (F^T F)^{-1/2}``.

    Raises
    ------
    InvalidInput
        Entries that are not finite or whose squares overflow.

    Notes
    -----
    The inverse root is that of the components-by-components Gram matrix: by Newton-Schulz steps of
    fifth order (products only) where the singular values differ by less than about 1.5 to 1, else
    by an eigendecomposition and one step that squares away its rounding. Frames of condition
    number above 1e4 take a thin SVD.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gram = _gram(frames)
    # The traces are sums of squares: finite exactly when every entry is (and does not overflow).
    size = np.einsum("...ii->...", gram)
    if not float(size.sum()) < np.inf:
        check_finite(gram)
    if frames.ndim > 2 and float(size.min(initial=1.0)) > 0:  # a single one is quicker below
        scale = size[..., None, None] / gram.shape[-1]
        scaled = gram / scale
        excess = _identity(gram.shape[-1]) - scaled
        departure = float(np.einsum("...ij,...ij->...", excess, excess).max(initial=0.0)) ** 0.5
        if departure < _NEAR_IDENTITY:
            near: Array = frames @ (_newton_schulz(scaled, excess, departure) / np.sqrt(scale))
            return near
    values, vectors = np.linalg.eigh(gram)
    if bool((values[..., 0] > 1e-8 * values[..., -1]).all()):
        near = frames @ ((vectors / np.sqrt(values)[..., None, :]) @ vectors.swapaxes(-1, -2))
        polished: Array = 1.5 * near - near @ (0.5 * _gram(near))
        return polished
    left, _, right = np.linalg.svd(frames, full_matrices=False)
    result: Array = left @ right
    return result


def _newton_schulz(gram: Array, excess: Array, departure: float) -> Array:
    """Inverse square root of ``gram = I - excess`` with ||excess|| <= departure < 1.

    ``P <- P h(E)`` with ``E = I - P G P`` and h the Taylor polynomial of ``(1 - e)^(-1/2)`` of
    degree 4 leaves ``1 - (1 - e) h(e)^2``, at most e^5/2 + e^6 of a norm e < 1, so the number of
    steps is known beforehand.
    """
    identity = _identity(gram.shape[-1])
    root = identity + _root_increment(excess)
    while True:
        departure = departure**5 * (0.5 + departure)
        if departure < 1e-17:
            return root
        excess = identity - root @ gram @ root
        # Near the end the quadratic polynomial is as good: its remainder is 5 e^3/8 + ...
        small = departure < 2e-6
        step = 0.5 * excess + 0.375 * (excess @ excess) if small else _root_increment(excess)
        root = root + root @ step
        if small:
            return root


def _root_increment(excess: Array) -> Array:
    """``e/2 + 3e^2/8 + 5e^3/16 + 35e^4/128`` with two products."""
    square = excess @ excess
    result: Array = 0.5 * excess + 0.375 * square
    result += square @ (0.3125 * excess + 0.2734375 * square)
    return result


@cache
def _identity(size: int) -> Array:
    """A shared read-only identity matrix."""
    identity = np.eye(size)
    identity.flags.writeable = False
    return identity


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
    return np.asarray(np.linalg.svd(remove_span(target, frame), compute_uv=False), dtype=float)


def tangent(at: Array, matrices: Array) -> Array:
    """Projection of a matrix on the tangent space of the manifold, ``X - U sym(U^T X)``."""
    result: Array = matrices - at @ symmetric_part(transpose(at) @ matrices)
    return result


def polar_by_gram(frames: Array) -> Array:
    """Nearest orthonormal matrix ``F (F^T F)^{-1/2}``, computed from the small Gram matrix.

    The polar retraction of ``U + xi`` is this map of ``F = U + xi``. Unlike the textbook form
    ``(U + xi)(I + xi^T xi)^{-1/2}``, which is equal in exact arithmetic, it also removes whatever
    departure from orthonormality U has collected, so long runs stay on the manifold.

    Notes
    -----
    Near the identity the inverse root comes from Newton-Schulz iterations, which are batched
    products only and several times cheaper than eigendecompositions; further away from those.
    """
    gram = transpose(frames) @ frames
    identity = np.eye(gram.shape[-1])
    departure = float(np.abs(gram - identity).sum(axis=-1).max(initial=0.0))
    require(
        bool(np.isfinite(departure)),
        "A frame holds NaN or infinite entries, so the run has diverged; "
        "choose a smaller step or noise, or check the data for extreme values.",
    )
    if departure >= _NEWTON_SCHULZ_DEPARTURE:
        values, vectors = np.linalg.eigh(gram)
        require(
            bool((values > 0).all()),
            "A frame has lost a dimension, so it spans no subspace of the wanted size; "
            "choose a smaller step.",
        )
        root = (vectors / np.sqrt(values)[..., None, :]) @ transpose(vectors)
        return np.asarray(frames @ root, dtype=float)
    near = np.asarray(1.5 * identity - 0.5 * gram, dtype=float)
    for _ in range(8):
        error = near @ gram @ near - identity
        if float(np.abs(error).max(initial=0.0)) < 1e-16:
            break
        near = near - 0.5 * (near @ error)
        if float(np.abs(error).max(initial=0.0)) < 1e-9:  # the step just taken squares it
            break
    return np.asarray(frames @ near, dtype=float)
