"""The model behind personalised PCA: one latent frame per client, scattered around a common one.

Client i sees ``y = U_i x + e`` with ``x ~ N(0, I)``, ``e ~ N(0, noise_variance I)``; it minimises

    f_i(V, U_i) = n_i/2 (log|W_i| + tr(W_i^{-1} S_i)) + ||P_V(U_i)||_F^2 / (2 prior_variance),

where ``W_i = U_i U_i^T + noise_variance I`` and ``P_V`` projects on the tangent space at the common
frame V (PerPCA, Ozkara, Huang and Diggavi). On orthonormal frames everything reduces to tall
products: no features-by-features matrix is formed or inverted here.

All functions accept a batch: ``frames`` is (..., features, components), ``products`` holds
``S_i U_i`` of the same shape, ``scale`` is `data_scale` with one value a client.
"""

from functools import lru_cache

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import require, require_choice, require_positive
from fedpca_core.linalg.stiefel import polar, symmetric_part, tangent, transpose
from fedpca_core.streams import Streams

PRIORS = ("std", "literal", "calibrated")
GRADIENTS = ("exact", "printed")


def data_scale(samples: IntArray, noise_variance: float, gradient: str = "exact") -> Array:
    """Weight c_i = n_i / (s (1 + s)) of a client's data, s the noise variance; (clients, 1, 1).

    ``gradient="printed"`` halves it: PerPCA prints n/2 in front of the data gradient. Corrected
    here to n (finite differences agree); the printed one acts like a prior twice as strong.
    """
    factor = 1.0 if gradient == "exact" else 0.5
    scale = factor * samples / (noise_variance * (1.0 + noise_variance))
    return np.asarray(scale, dtype=float)[:, None, None]


def prior_variance(spread: float, prior: str, features: int, components: int) -> float:
    """sigma_U^2 of the objective for a heterogeneity number as the paper quotes it.

    ``spread``: The quoted number, positive.
    ``prior``, {"std", "literal", "calibrated"}: "std" reads it as a standard deviation (spread^2),
        "literal" as a variance, "calibrated" takes the variance that frames drawn with this
        standard deviation really have.
    """
    if prior == "literal":
        return spread
    if prior == "calibrated":
        return effective_variance(features, components, spread)
    return spread**2


def scatter(generator: np.random.Generator, centre: Array, spread: float, clients: int) -> Array:
    """Clients' frames around ``centre``: retraction of tangent noise of entry deviation ``spread``.

    Returns (clients, features, components) float64.
    """
    noise = generator.standard_normal((clients, *centre.shape))
    return polar(centre + spread * tangent(centre, noise))


@lru_cache(maxsize=256)
def effective_variance(features: int, components: int, spread: float) -> float:
    """Variance per coordinate of the tangent part of frames drawn with ``spread`` (Monte Carlo).

    The prior speaks of a Gaussian on the tangent space, but the retraction shrinks it:
    ``E ||P_V(U)||_F^2 / (d r - r (r + 1) / 2)``. Data-free, with a fixed seed, so everybody can
    compute it.
    """
    centre = np.eye(features, components)
    draws = max(8, 600_000 // (features * components**2))
    frames = scatter(Streams(0).generator("calibration"), centre, spread, draws)
    free = features * components - components * (components + 1) / 2
    return float(distance(frames, centre).mean()) / free


def distance(frames: Array, centre: Array) -> Array:
    """Squared distance ``||P_V(U)||_F^2 = r - ||sym(V^T U)||_F^2``, in [0, r]; shape (...)."""
    aligned = symmetric_part(transpose(centre) @ frames)
    return frames.shape[-1] - (aligned**2).sum(axis=(-2, -1))


def data_gradient(frames: Array, products: Array, scale: Array) -> Array:
    """Riemannian gradient of the data term, ``-c (I - U U^T) S U``."""
    return -scale * (products - frames @ (transpose(frames) @ products))


def frame_gradient(
    frames: Array, products: Array, centre: Array, scale: Array, variance: float
) -> Array:
    """Riemannian gradient of f_i in the client's frame."""
    pull = tangent(frames, tangent(centre, frames)) / variance
    return data_gradient(frames, products, scale) + pull


def centre_gradient(frames: Array, centre: Array, variance: float) -> Array:
    """Riemannian gradient of f_i in the common frame, ``-P_V(U sym(V^T U)) / variance``."""
    aligned = symmetric_part(transpose(centre) @ frames)
    return -tangent(centre, frames @ aligned) / variance


def euclidean_data_gradient(
    frames: Array, products: Array, samples: IntArray, noise_variance: float
) -> Array:
    """Ambient gradient ``n (W^{-1} U - W^{-1} S W^{-1} U)`` at an orthonormal U."""
    s = noise_variance
    inner = products - frames @ (transpose(frames) @ products) / (1.0 + s)
    count = np.asarray(samples, dtype=float)[:, None, None]
    return count * (frames - inner / s) / (1.0 + s)


def check_model(noise_variance: float, spread: float, prior: str, gradient: str) -> None:
    """Refuse model parameters that mean nothing."""
    require_positive("The noise variance", noise_variance, 0.5)
    require(
        np.isfinite(spread) and spread > 0,
        f"The spread of the clients must be positive, not {spread}; "
        "use global averaging for clients that are all alike.",
    )
    require_choice("The prior", prior, PRIORS)
    require_choice("The gradient", gradient, GRADIENTS)
