"""The largest eigenvalue of a symmetric matrix that is known by its products alone."""

from collections.abc import Callable

import numpy as np

from fedpca_core.arrays import Array


def fixed_vector(size: int) -> Array:
    """Where iterations start, so that results are repeatable."""
    return np.cos(np.arange(size) * 1.7)


def largest_eigenvalue(
    product: Callable[[Array], Array], size: int, accuracy: float = float(np.finfo(float).eps)
) -> float:
    """Lanczos iteration with full orthogonalisation, from a fixed start: results are repeatable.

    ``product``: The matrix times a vector of unit length, (size,) to (size,).
    ``accuracy``: Relative accuracy. The error of the eigenvalue is of the order of the squared
        residual of its vector, so products end where the residual falls below the root of this.
    """
    basis, images = np.empty((0, size)), np.empty((0, size))
    vector = fixed_vector(size)
    while True:
        vector = vector / np.linalg.norm(vector)
        basis, images = np.vstack([basis, vector]), np.vstack([images, product(vector)])
        projected = basis @ images.T
        values, turned = np.linalg.eigh(0.5 * (projected + projected.T))
        residual = turned[:, -1] @ images - values[-1] * (turned[:, -1] @ basis)
        size_of_it = float(np.abs(values).max())
        if len(basis) == size or np.linalg.norm(residual) <= np.sqrt(accuracy) * size_of_it:
            return float(values[-1])
        vector = images[-1]
        for _ in range(2):  # rounding leaves too much of the basis in it after one pass
            vector = vector - (vector @ basis.T) @ basis
