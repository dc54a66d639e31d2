"""Random consensus problems with wanted constants: quadratics, ridge and logistic regression."""

from collections.abc import Sequence

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.consensus.problems import Logistic, Quadratic, largest_gram
from fedpca_core.errors import require
from fedpca_core.streams import Streams


def scalar_pair(strong_convexity: float = 0.5, smoothness: float = 5.0) -> Quadratic:
    """Two clients with one unknown, Hessians lambda and L: the adversarial case."""
    _check_constants(strong_convexity, smoothness)
    return Quadratic(
        "Two scalar clients",
        np.array([[[strong_convexity]], [[smoothness]]]),
        np.array([[1.0], [2.0]]),
    )


def quadratics(
    *,
    clients: int = 10,
    features: int = 10,
    strong_convexity: float = 0.5,
    smoothness: float = 5.0,
    heterogeneity: float = 1.0,
    seed: int = 0,
) -> Quadratic:
    """Random quadratics whose spectra lie in [lambda, L] and attain both ends.

    Parameters
    ----------
    heterogeneity : float
        From 0 (all clients alike) to 1 (independent rotations, spectra and linear terms).
    """
    _check_constants(strong_convexity, smoothness)
    _check_sizes(clients, features, heterogeneity)
    require(
        features >= 2,
        "Random quadratics need at least 2 features to attain both ends of the spectrum; "
        "use the two scalar clients instead.",
    )
    generator = Streams(seed).generator("data")
    exponents = generator.uniform(0, 1, (clients, features))
    exponents[:, 0], exponents[:, -1] = 0.0, 1.0
    values = strong_convexity * (smoothness / strong_convexity) ** exponents
    turns = np.linalg.qr(generator.standard_normal((clients, features, features)))[0]
    own = (turns * values[:, None, :]) @ turns.swapaxes(-1, -2)
    linear = generator.standard_normal((clients, features))
    hessians = (1 - heterogeneity) * own[:1] + heterogeneity * own
    # Mixing shrinks the range of the spectra; stretch it back to both ends.
    spectrum = np.linalg.eigvalsh(hessians)
    low, high = float(spectrum.min()), float(spectrum.max())
    stretch = (smoothness - strong_convexity) / (high - low)
    identity = np.eye(features)
    hessians = strong_convexity * identity + stretch * (hessians - low * identity)
    return Quadratic(
        "Quadratics",
        0.5 * (hessians + hessians.swapaxes(-1, -2)),
        (1 - heterogeneity) * linear[:1] + heterogeneity * linear,
    )


def ridge(
    *,
    clients: int = 10,
    features: int = 10,
    samples: int = 30,
    strong_convexity: float = 0.5,
    smoothness: float = 5.0,
    heterogeneity: float = 1.0,
    seed: int = 0,
) -> Quadratic:
    """Ridge regression; clients differ in the scales of their features and in their weights.

    The ridge parameter and a common factor are chosen so that the worst client has the wanted
    constants.
    """
    _check_constants(strong_convexity, smoothness)
    records, weights, generator = _regression(clients, features, samples, heterogeneity, seed)
    answers = (records @ weights[..., None])[..., 0]
    answers += 0.1 * generator.standard_normal(answers.shape)
    hessians = records.swapaxes(-1, -2) @ records / samples
    linear = (records.swapaxes(-1, -2) @ answers[..., None])[..., 0] / samples
    return _ridged("Ridge regression", hessians, linear, strong_convexity, smoothness)


def own_ridge(
    blocks: Sequence[Array], answer: int, *, strong_convexity: float, smoothness: float, name: str
) -> Quadratic:
    """Ridge regression on records of one's own, as conditioned as `ridge`.

    Parameters
    ----------
    blocks : sequence of (features + 1, samples_i)
        Records of every client as columns.
    answer : int
        The row that the others predict.
    """
    _check_constants(strong_convexity, smoothness)
    moments = np.stack([block @ block.T / block.shape[1] for block in blocks])
    hessians = np.delete(np.delete(moments, answer, axis=1), answer, axis=2)
    linear = np.delete(moments[:, answer], answer, axis=1)
    return _ridged(name, hessians, linear, strong_convexity, smoothness)


def _ridged(
    name: str, hessians: Array, linear: Array, strong_convexity: float, smoothness: float
) -> Quadratic:
    """Add a ridge and multiply by a factor such that the worst client has the constants."""
    spectrum = np.linalg.eigvalsh(hessians)
    low, high = float(spectrum.min()), float(spectrum.max())
    kappa = smoothness / strong_convexity
    added = (high - kappa * low) / (kappa - 1)
    require(
        low + added > 0,
        f"These records are conditioned too well for L/lambda = {kappa:g}; "
        "choose a smaller ratio or fewer samples.",
    )
    factor = strong_convexity / (low + added)
    identity = np.eye(hessians.shape[-1])
    return Quadratic(name, factor * (hessians + added * identity), factor * linear)


def logistic(
    *,
    clients: int = 10,
    features: int = 10,
    samples: int = 30,
    strong_convexity: float = 0.5,
    smoothness: float = 5.0,
    heterogeneity: float = 1.0,
    seed: int = 0,
) -> Logistic:
    """Logistic regression; clients differ as in `ridge`."""
    _check_constants(strong_convexity, smoothness)
    records, weights, generator = _regression(clients, features, samples, heterogeneity, seed)
    margins = (records @ weights[..., None])[..., 0]
    chances = 1.0 / (1.0 + np.exp(-np.clip(margins, -700, 700)))
    labels = np.where(generator.uniform(size=chances.shape) < chances, 1.0, -1.0)
    added = 0.25 * largest_gram(records) / (smoothness / strong_convexity - 1)
    return Logistic("Logistic regression", records, labels, added, strong_convexity / added)


def _regression(
    clients: int, features: int, samples: int, heterogeneity: float, seed: int
) -> tuple[Array, Array, np.random.Generator]:
    _check_sizes(clients, features, heterogeneity)
    require(samples >= 1, f"Every client needs at least 1 sample, not {samples}.")
    generator = Streams(seed).generator("data")
    shared = generator.standard_normal(features)
    scales = np.exp(0.5 * heterogeneity * generator.standard_normal((clients, 1, features)))
    weights = shared + heterogeneity * generator.standard_normal((clients, features))
    # Clients that are all alike hold the same records, so that nothing tells them apart.
    own = generator.standard_normal((clients, samples, features))
    records = scales * ((1 - heterogeneity) * own[:1] + heterogeneity * own)
    return records, weights, generator


def _check_constants(strong_convexity: float, smoothness: float) -> None:
    require(
        0 < strong_convexity < smoothness and np.isfinite(smoothness),
        f"The constants must satisfy 0 < lambda < L, not lambda = {strong_convexity:g} and "
        f"L = {smoothness:g}.",
    )


def _check_sizes(clients: int, features: int, heterogeneity: float) -> None:
    require(
        clients >= 1 and features >= 1,
        f"There must be at least 1 client and 1 feature, not {clients} and {features}.",
    )
    require(
        0 <= heterogeneity <= 1,
        f"Heterogeneity runs from 0 (clients alike) to 1, not {heterogeneity}.",
    )
