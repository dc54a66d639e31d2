"""Inverse square roots of many small positive definite matrices, by matrix products only.

An eigendecomposition of a 5 x 5 matrix costs as much as twenty products of such matrices. Where G
is near a multiple of the identity, polynomials of ``E = I - G`` are quicker: the first has degree 6
and Chebyshev coefficients for the measured norm of E; then ``P <- P (I + r(E))`` with
``E = I - P G P`` and r of degree 4 raises what is left to its fifth power. Every P is a polynomial
of G, so all factors commute and the limit is the symmetric root.
"""

from functools import cache

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

from fedpca_core.arrays import Array

#: A G further than this from a multiple of the identity (relative, spectral norm) is left to
#: eigenvectors: the polynomials converge slowly when an eigenvalue is near zero.
FURTHEST = 0.8
#: Norms of E that fall between two multiples of this share the coefficients of the larger one.
_CLASS = 0.05
#: What is left below this is rounding.
_ROUNDING = 1e-17
#: Below this norm a step of degree 2 is as good as one of degree 4: it leaves 5/8 of its cube.
_SMALL = 2e-6


def inverse_root(matrices: Array) -> Array | None:
    """``G^(-1/2)`` of each matrix of a batch, or None where one is too far from the identity.

    ``matrices``, (..., size, size) float64: Symmetric and positive definite; entries that are not
        finite (or a zero matrix) give None.

    Returns (..., size, size) float64, or None.
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
    coefficients, left = _first_polynomial(int(norm / _CLASS) + 1)
    root = _sextic(unit, excess, square, coefficients)
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


def _sextic(unit: Array, excess: Array, square: Array, coefficients: tuple[float, ...]) -> Array:
    """Polynomial of degree 6 of E, given E^2, with two more products."""
    c0, c1, c2, c3, c4, c5, c6 = coefficients
    cube = excess @ square
    upper = c4 * excess + c5 * square
    upper += c6 * cube
    result: Array = cube @ upper
    result += c3 * cube
    result += c2 * square
    result += c1 * excess
    result += c0 * unit
    return result


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
    unit = np.eye(size)
    unit.flags.writeable = False
    return unit
