"""Frames with orthonormal columns (the Stiefel manifold) and the subspaces they span.

All functions accept a batch: arrays of shape ``(..., features, components)``. Nothing here forms a
features-by-features projector; every quantity comes from tall or components-by-components products.
"""

from functools import cache, lru_cache

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from scipy.linalg import lapack

from fedpca_core.arrays import Array, read_only
from fedpca_core.errors import require

#: A first Cholesky pass whose result is further than this from orthonormal is not trusted.
_TRUSTED_DEPARTURE = 0.1
#: Below this departure the second pass is taken to first order (error: its square).
_FIRST_ORDER_DEPARTURE = 1e-8
#: A G further than this from a multiple of the identity (relative, spectral norm) is left to
#: eigenvectors: the polynomials converge slowly when an eigenvalue is near zero.
FURTHEST = 0.8
#: Norms of E that fall between two multiples of this share the coefficients of the larger one.
_CLASS = 0.05
#: What is left below this is rounding.
_ROUNDING = 1e-17
#: Below this norm a step of degree 2 is as good as one of degree 4: it leaves 5/8 of its cube.
_SMALL = 2e-6


def symmetric_part(matrices: Array) -> Array:
    return 0.5 * (matrices + matrices.mT)


def orthonormalise(frames: Array) -> Array:
    """Q factor of the thin QR decomposition with a positive diagonal of R.

    The positive diagonal makes the factor unique, so equal spans reached along different routes
    (and different machines) give equal frames and averages cannot cancel.

    A batch takes two Cholesky passes, which are as accurate up to a condition number of about 1e7;
    beyond that (or when a column vanishes) Householder QR, as a single frame does. Where the first
    pass leaves a departure E below 1e-8, the second takes its factor to first order in E.
    """
    if frames.ndim == 2:
        return householder(frames)
    unit = identity(frames.shape[-1])
    try:
        once = _cholesky_pass(frames, _gram(frames))
        excess = _gram(once) - unit
        departure = np.abs(excess).max(initial=0.0)
        if departure < _FIRST_ORDER_DEPARTURE:
            return once - once @ (_upper_half(frames.shape[-1]) * excess)
        if departure < _TRUSTED_DEPARTURE:
            return _cholesky_pass(once, excess + unit)
    except np.linalg.LinAlgError:
        pass  # not a failure: a (nearly) dependent column, which Householder QR handles
    return householder(frames)


def reconditioned(frames: Array) -> tuple[Array, float]:
    """`orthonormalise` up to rounding times the squared condition number: half the work.

    The second value is the largest ratio within the diagonals of R: it grows with the condition
    number, and is infinite where columns depend on each other.
    """
    try:
        lower = np.linalg.cholesky(_gram(frames))
    except np.linalg.LinAlgError:
        return householder(frames), np.inf
    lengths = np.diagonal(lower, axis1=-2, axis2=-1)
    apart = float(lengths.max() / lengths.min()) if lengths.size else 1.0
    return frames @ np.linalg.inv(lower).mT, apart


@lru_cache(maxsize=64)
def _upper_half(columns: int) -> Array:
    """Strict upper triangle of ones with halves on the diagonal: R - I of a Gram matrix I + E."""
    return read_only(np.triu(np.ones((columns, columns)), 1) + 0.5 * np.eye(columns))


def _gram(frames: Array) -> Array:
    """``F^T F``; a copy keeps numpy from its rank-k update, slow for a batch of small matrices."""
    return frames.mT @ (frames.copy() if frames.ndim > 2 else frames)


def _cholesky_pass(frames: Array, gram: Array) -> Array:
    return frames @ np.linalg.inv(np.linalg.cholesky(gram)).mT


def check_finite(frames: Array) -> None:
    """Refuse frames (or their Gram matrices) with NaN or infinite entries: the run has diverged."""
    require(
        bool(np.isfinite(frames).all()),
        "A basis holds NaN or infinite entries, so the run has diverged; "
        "choose a smaller step or noise, or check the data for extreme values.",
    )


def householder(frames: Array) -> Array:
    """Householder QR with the signs fixed so that the diagonal of R is not negative."""
    check_finite(frames)
    if frames.ndim == 2 and frames.shape[0] >= frames.shape[1] > 0:
        single, diagonal = tall_qr(frames)
        return single * np.where(diagonal < 0, -1.0, 1.0)
    q, r = np.linalg.qr(frames)
    return q * np.where(np.diagonal(r, axis1=-2, axis2=-1) < 0, -1.0, 1.0)[..., None, :]


def tall_qr(frame: Array) -> tuple[Array, Array]:
    """Q of a single tall frame, and the diagonal of R.

    LAPACK itself: numpy's checks around it cost several times a factorisation of this size.
    """
    packed, reflectors, _, _ = lapack.dgeqrf(frame)
    return np.ascontiguousarray(lapack.dorgqr(packed, reflectors)[0]), packed.diagonal()


def random_frame(generator: np.random.Generator, features: int, components: int) -> Array:
    """Frame of a uniform [-1, 1] matrix: the start used throughout FAPS."""
    return orthonormalise(generator.uniform(-1.0, 1.0, (features, components)))


def uniform_frame(generator: np.random.Generator, features: int, components: int) -> Array:
    """Frame drawn uniformly from the manifold (QR of a Gaussian matrix)."""
    return orthonormalise(generator.standard_normal((features, components)))


def polar(frames: Array) -> Array:
    """Nearest orthonormal matrix with the same span, ``F (F^T F)^{-1/2}``.

    As the retraction of ``F = U + xi`` it equals the textbook form ``F (I + xi^T xi)^{-1/2}`` in
    exact arithmetic, and also removes whatever departure from orthonormality U has collected.

    The inverse root comes from `inverse_root` where singular values differ by less than about 2 to
    1, else from eigenvectors and one step that squares away their rounding; beyond a condition
    number of 1e4 a thin SVD takes its place.

    Raises InvalidInput: entries that are not finite or whose squares overflow.
    """
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        gram = _gram(frames)
        root = inverse_root(gram) if frames.ndim > 2 else None  # a single one is quicker below
    if root is not None:
        return frames @ root
    check_finite(gram)
    values, vectors = np.linalg.eigh(gram)
    if bool((values[..., 0] > 1e-8 * values[..., -1]).all()):
        near = frames @ ((vectors / np.sqrt(values)[..., None, :]) @ vectors.mT)
        return 1.5 * near - near @ (0.5 * _gram(near))
    left, _, right = np.linalg.svd(frames, full_matrices=False)
    return left @ right


def procrustes(frames: Array, reference: Array) -> Array:
    """Orthogonal D minimising ``||F D - reference||_F``, shape (..., components, components)."""
    left, _, right = np.linalg.svd(frames.mT @ reference)
    return left @ right


def remove_span(frames: Array, of: Array) -> Array:
    """Component of ``frames`` orthogonal to the orthonormal columns of ``of``."""
    return frames - of @ (of.mT @ frames)


def projector_distance(first: Array, second: Array) -> Array:
    """Projector distance ``||X X^T - Z Z^T||_F`` of two spans of equal dimension.

    Computed from the residual, ``sqrt(2) ||Z - X (X^T Z)||_F``: the textbook form
    ``sqrt(2 (p - ||X^T Z||_F^2))`` cannot fall below about 6e-8.
    """
    residual = remove_span(second, first)
    return np.asarray(np.sqrt(2.0) * np.linalg.norm(residual, axis=(-2, -1)), dtype=float)


def largest_sine(frame: Array, target: Array) -> Array:
    """Sine of the largest principal angle from ``target`` to ``frame``: ``||(I-ZZ^T) U||_2``.

    With more columns than the target's it is zero exactly when the frame's span contains that.
    """
    residual = remove_span(target, frame)
    # The Gram matrix has the largest singular value to full precision (only small ones lose it).
    squares = np.linalg.eigvalsh(residual.mT @ residual)[..., -1]
    return np.asarray(np.sqrt(np.maximum(squares, 0.0)), dtype=float)


def tangent(at: Array, matrices: Array) -> Array:
    """Projection of a matrix on the tangent space of the manifold, ``X - U sym(U^T X)``."""
    return matrices - at @ symmetric_part(at.mT @ matrices)


def inverse_root(matrices: Array) -> Array | None:
    """``G^(-1/2)`` of each of (..., size, size) positive definite matrices, by products only.

    An eigendecomposition of a 5 x 5 matrix costs as much as twenty products of such matrices. Where
    G is near a multiple of the identity, polynomials of ``E = I - G`` are quicker: the first has
    degree 6 and Chebyshev coefficients for the measured norm of E; then ``P <- P (I + r(E))`` with
    ``E = I - P G P`` and r of degree 4 raises what is left to its fifth power. Every P is a
    polynomial of G, so all factors commute and the limit is the symmetric root. None where a
    matrix is too far from the identity, zero or not finite.
    """
    unit = identity(matrices.shape[-1])
    scale = np.einsum("...ii->...", matrices)[..., None, None] / len(unit)
    scaled = matrices / scale
    excess = unit - scaled
    square = excess @ excess
    # ||E||_2^2 = ||E^2||_2 <= ||E^2||_F, a closer bound than ||E||_F.
    norm = float(np.einsum("...ij,...ij->...", square, square).max(initial=0.0)) ** 0.25
    if not norm < FURTHEST:  # NaN included
        return None
    (c0, c1, c2, c3, c4, c5, c6), left = _first_polynomial(int(norm / _CLASS) + 1)
    cube = excess @ square
    root = cube @ (c4 * excess + c5 * square + c6 * cube)
    root = root + c3 * cube + c2 * square + c1 * excess + c0 * unit
    while left > _ROUNDING:
        excess = unit - root @ scaled @ root
        square = excess @ excess
        step = 0.5 * excess + 0.375 * square
        if left > _SMALL:
            step += square @ (0.3125 * excess + 0.2734375 * square)
            left = left**5
        else:
            left = 0.0
        root = root + root @ step
    return root / np.sqrt(scale)


@cache
def _first_polynomial(norm_class: int) -> tuple[tuple[float, ...], float]:
    """Polynomial h of degree 6 near ``(1 - e)^(-1/2)`` on ``|e| <= d`` and what it leaves.

    The second value bounds ``|1 - (1 - e) h(e)^2|``, the norm of E after this step.
    """
    radius = norm_class * _CLASS
    fitted = Chebyshev.interpolate(lambda e: (1.0 - e) ** -0.5, 6, domain=[-radius, radius])
    coefficients = fitted.convert(kind=Polynomial).coef
    grid = np.linspace(-radius, radius, 2001)
    left = np.abs(1.0 - (1.0 - grid) * fitted(grid) ** 2).max()
    return tuple(float(each) for each in coefficients), 1.01 * float(left)


@cache
def identity(size: int) -> Array:
    """A shared read-only identity matrix."""
    return read_only(np.eye(size))
