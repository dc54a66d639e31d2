"""Random consensus problems with wanted constants: quadratics, ridge and logistic regression."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.consensus.problems import Logistic, Quadratic, largest_gram
from fedpca_core.errors import require, require_at_least
from fedpca_core.streams import Streams

#: Records of each client of a regression.
SAMPLES = 30


def scalar_pair(strong_convexity: float = 0.5, smoothness: float = 5.0) -> Quadratic:
    """Two clients with one unknown, Hessians lambda and L: the adversarial case."""
    _check_constants(strong_convexity, smoothness)
    return Quadratic(
        "Two scalar clients",
        np.array([[[strong_convexity]], [[smoothness]]]),
        np.array([[1.0], [2.0]]),
    )


@dataclass(frozen=True)
class RandomProblem:
    """What a random problem is to be like."""

    clients: int = 10
    features: int = 10
    #: strong_convexity, smoothness: Constants lambda and L of the worst client.
    strong_convexity: float = 0.5
    smoothness: float = 5.0
    #: From 0 (all clients alike) to 1 (independent rotations, spectra and linear terms; of a
    #: regression, scales of the features and weights of their own).
    heterogeneity: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        _check_constants(self.strong_convexity, self.smoothness)
        require_at_least("The number of clients", self.clients, 1)
        require_at_least("The number of features", self.features, 1)
        require(
            0 <= self.heterogeneity <= 1,
            f"Heterogeneity runs from 0 (clients alike) to 1, not {self.heterogeneity}.",
        )

    def quadratics(self) -> Quadratic:
        """Random quadratics whose spectra lie in [lambda, L] and attain both ends."""
        require(
            self.features >= 2,
            "Random quadratics need at least 2 features to attain both ends of the spectrum; "
            "use the two scalar clients instead.",
        )
        generator, low, high = self._generator(), self.strong_convexity, self.smoothness
        exponents = generator.uniform(0, 1, (self.clients, self.features))
        exponents[:, 0], exponents[:, -1] = 0.0, 1.0
        values = low * (high / low) ** exponents
        shape = self.clients, self.features, self.features
        turns = np.linalg.qr(generator.standard_normal(shape))[0]
        own = (turns * values[:, None, :]) @ turns.swapaxes(-1, -2)
        linear = generator.standard_normal((self.clients, self.features))
        hessians = self._mixed(own)
        # Mixing shrinks the range of the spectra; stretch it back to both ends.
        spectrum = np.linalg.eigvalsh(hessians)
        least, most = float(spectrum.min()), float(spectrum.max())
        stretch = (high - low) / (most - least)
        identity = np.eye(self.features)
        hessians = low * identity + stretch * (hessians - least * identity)
        hessians = 0.5 * (hessians + hessians.swapaxes(-1, -2))
        return Quadratic("Quadratics", hessians, self._mixed(linear))

    def ridge(self) -> Quadratic:
        """Ridge regression; clients differ in the scales of their features and in their weights.

        The ridge parameter and a common factor are chosen so that the worst client has the wanted
        constants.
        """
        records, weights, generator = self._regression()
        answers = (records @ weights[..., None])[..., 0]
        answers += 0.1 * generator.standard_normal(answers.shape)
        hessians = records.swapaxes(-1, -2) @ records / SAMPLES
        linear = (records.swapaxes(-1, -2) @ answers[..., None])[..., 0] / SAMPLES
        constants = self.strong_convexity, self.smoothness
        return _ridged("Ridge regression", hessians, linear, *constants)

    def logistic(self) -> Logistic:
        """Logistic regression; clients differ as in `ridge`."""
        records, weights, generator = self._regression()
        margins = (records @ weights[..., None])[..., 0]
        chances = 1.0 / (1.0 + np.exp(-np.clip(margins, -700, 700)))
        labels = np.where(generator.uniform(size=chances.shape) < chances, 1.0, -1.0)
        added = 0.25 * largest_gram(records) / (self.smoothness / self.strong_convexity - 1)
        factor = self.strong_convexity / added
        return Logistic("Logistic regression", records, labels, added, factor)

    def _generator(self) -> np.random.Generator:
        return Streams(self.seed).generator("data")

    def _mixed(self, own: Array) -> Array:
        """What each client has of its own, mixed with what the first has."""
        return (1 - self.heterogeneity) * own[:1] + self.heterogeneity * own

    def _regression(self) -> tuple[Array, Array, np.random.Generator]:
        """Records, weights, and what is left of the stream."""
        generator, clients, features = self._generator(), self.clients, self.features
        shared = generator.standard_normal(features)
        scales = np.exp(
            0.5 * self.heterogeneity * generator.standard_normal((clients, 1, features))
        )
        weights = shared + self.heterogeneity * generator.standard_normal((clients, features))
        # Clients that are all alike hold the same records, so that nothing tells them apart.
        records = scales * self._mixed(generator.standard_normal((clients, SAMPLES, features)))
        return records, weights, generator


def own_ridge(
    blocks: Sequence[Array], answer: int, *, strong_convexity: float, smoothness: float, name: str
) -> Quadratic:
    """Ridge regression on records of one's own, as conditioned as `RandomProblem.ridge`.

    ``blocks``, sequence of (features + 1, samples_i): Records of every client as columns.
    ``answer``: The row that the others predict.
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


def _check_constants(strong_convexity: float, smoothness: float) -> None:
    require(
        0 < strong_convexity < smoothness and np.isfinite(smoothness),
        f"The constants must satisfy 0 < lambda < L, not lambda = {strong_convexity:g} and "
        f"L = {smoothness:g}.",
    )
