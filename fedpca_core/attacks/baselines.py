"""Guesses that need no message at all: an attack that does not beat them has learned nothing."""

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import uniform_frame


def scaled_identity(features: int, trace: float) -> Array:
    """``c I`` with the stated trace: the most even guess and the default prior of the attacks."""
    require(
        bool(np.isfinite(trace)) and trace > 0,
        f"The stated trace must be a positive number, not {trace}.",
    )
    return np.eye(features) * (trace / features)


def random_subspace(
    features: int, components: int, trace: float, generator: np.random.Generator
) -> Array:
    """``c U U^T`` with the stated trace and U a uniformly random (features, components) frame."""
    require(
        1 <= components <= features,
        f"A random subspace of {components} components does not fit {features} features.",
    )
    frame = uniform_frame(generator, features, components)
    return (trace / components) * (frame @ frame.T)
