"""Problems of consensus optimisation, and random ones with wanted constants.

Client i owns a smooth strongly convex f_i. Client arrays have the client axis first.
``strong_convexity`` and ``smoothness`` are those of the worst client (the smallest and the largest
over clients), not of the average: the sum is block separable over clients' copies, and that is what
local work feels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require, require_at_least
from fedpca_core.streams import Streams

_NEWTON_STEPS = 60
_NEWTON_ACCURACY = 1e-13
#: Records of each client of a regression.
SAMPLES = 30


class ConsensusProblem(ABC):
    """Clients' functions behind gradients and local solves."""

    name: str
    #: strong_convexity, smoothness: lambda = min_i lambda_i and L = max_i L_i.
    strong_convexity: float
    smoothness: float

    @property
    @abstractmethod
    def clients(self) -> int:
        """Number of clients N."""

    @property
    @abstractmethod
    def features(self) -> int:
        """Dimension d of the shared variable."""

    @abstractmethod
    def gradient(self, points: Array) -> Array:
        """Every client's gradient at its own point, (clients, features)."""

    @abstractmethod
    def hessian(self, points: Array) -> Array:
        """Hessians at every client's own point, (clients, features, features)."""

    def solve(self, penalty: float, right: Array, near: Array) -> Array:
        """Points with ``grad f_i(x) + penalty x = right_i``; ``near`` is a start."""
        identity = penalty * np.eye(self.features)
        return _newton(
            lambda points: self.gradient(points) + penalty * points - right,
            lambda points: self.hessian(points) + identity,
            near,
            self.smoothness,
        )

    @cached_property
    def solution(self) -> Array:
        """x* minimising the sum, (features,)."""
        return _newton(
            lambda point: self.gradient(point.repeat(self.clients, 0)).mean(0, keepdims=True),
            lambda point: self.hessian(point.repeat(self.clients, 0)).mean(0, keepdims=True),
            np.zeros((1, self.features)),
            self.smoothness,
        )[0]

    def descend(
        self, points: Array, right: Array, penalty: float, step: float, steps: int
    ) -> Array:
        """So many gradient steps ``x <- x - step (grad f_i(x) + penalty x - right_i)``."""
        for _ in range(steps):
            points = points - step * (self.gradient(points) + penalty * points - right)
        return points

    @property
    def quadratic(self) -> Quadratic | None:
        """Itself where every f_i is a quadratic, whose worst cases are known exactly."""
        return None

    @cached_property
    def multipliers(self) -> Array:
        """H* = grad f_i(x*), centred so that it sums to zero exactly; (clients, features)."""
        at_solution = self.gradient(np.tile(self.solution, (self.clients, 1)))
        return at_solution - at_solution.mean(axis=0)


@dataclass(frozen=True, eq=False)
class Quadratic(ConsensusProblem):
    """``f_i(x) = x^T A_i x / 2 - b_i^T x``."""

    name: str
    #: (clients, features, features) float64, symmetric positive definite.
    hessians: Array
    #: (clients, features) float64.
    linear: Array

    def __post_init__(self) -> None:
        lowest = float(self.spectrum[0].min())
        require(
            lowest > 0,
            f"A client's quadratic has the eigenvalue {lowest:.3g}, so it is not strongly convex "
            "and nothing is proved about it; add a multiple of the identity (ridge).",
        )

    @property
    def clients(self) -> int:
        return len(self.hessians)

    @property
    def features(self) -> int:
        return self.hessians.shape[-1]

    @property
    def quadratic(self) -> Quadratic:
        return self

    @cached_property
    def spectrum(self) -> tuple[Array, Array]:
        """Eigenvalues (clients, features) and eigenvectors of every Hessian."""
        values, vectors = np.linalg.eigh(self.hessians)
        return values, vectors

    @cached_property
    def strong_convexity(self) -> float:  # type: ignore[override]
        return float(self.spectrum[0].min())

    @cached_property
    def smoothness(self) -> float:  # type: ignore[override]
        return float(self.spectrum[0].max())

    def gradient(self, points: Array) -> Array:
        return (self.hessians @ points[..., None])[..., 0] - self.linear

    def hessian(self, points: Array) -> Array:
        return self.hessians

    def solve(self, penalty: float, right: Array, near: Array) -> Array:
        values, vectors = self.spectrum
        inner = (vectors.swapaxes(-1, -2) @ (right + self.linear)[..., None])[..., 0]
        return (vectors @ (inner / (values + penalty))[..., None])[..., 0]

    def descend(
        self, points: Array, right: Array, penalty: float, step: float, steps: int
    ) -> Array:
        # In the eigenbasis n steps are one power, so a thousand local steps cost as much as one.
        values, vectors = self.spectrum
        target = self.solve(penalty, right, points)
        inner = (vectors.swapaxes(-1, -2) @ (points - target)[..., None])[..., 0]
        kept = (1.0 - step * (values + penalty)) ** steps
        return target + (vectors @ (kept * inner)[..., None])[..., 0]

    @cached_property
    def solution(self) -> Array:
        return np.linalg.solve(self.hessians.sum(axis=0), self.linear.sum(axis=0))


@dataclass(frozen=True, eq=False)
class Logistic(ConsensusProblem):
    """Logistic regression with ridge: ``scale (mean log(1 + exp(-y B x)) + ridge |x|^2 / 2)``."""

    name: str
    #: (clients, samples, features) float64.
    records: Array
    #: (clients, samples) float64, -1 or 1.
    labels: Array
    ridge: float
    #: Multiplies every f_i; it sets lambda = scale * ridge.
    scale: float = 1.0

    @property
    def clients(self) -> int:
        return len(self.records)

    @property
    def features(self) -> int:
        return self.records.shape[-1]

    @property
    def strong_convexity(self) -> float:  # type: ignore[override]
        return self.scale * self.ridge

    @cached_property
    def smoothness(self) -> float:  # type: ignore[override]
        return self.scale * (self.ridge + 0.25 * largest_gram(self.records))

    def gradient(self, points: Array) -> Array:
        margins = self.labels * (self.records @ points[..., None])[..., 0]
        pulls = -self.labels / (1.0 + np.exp(np.clip(margins, -700, 700)))
        data = (self.records.swapaxes(-1, -2) @ pulls[..., None])[..., 0] / self.labels.shape[1]
        return self.scale * (data + self.ridge * points)

    def hessian(self, points: Array) -> Array:
        margins = np.clip((self.records @ points[..., None])[..., 0], -700, 700)
        share = 1.0 / (1.0 + np.exp(-margins))
        weighted = self.records * (share * (1.0 - share))[..., None] / self.labels.shape[1]
        return self.scale * (
            self.records.swapaxes(-1, -2) @ weighted + self.ridge * np.eye(self.features)
        )


def _newton(
    rest: Callable[[Array], Array], slope: Callable[[Array], Array], points: Array, size: float
) -> Array:
    """Where equations are met, a row each, by Newton's method: a step is halved until less is left.

    What is left is compared with the ``size`` of what stands in the equations.
    """
    residual = rest(points)
    for _ in range(_NEWTON_STEPS):
        before = np.linalg.norm(residual, axis=1, keepdims=True)
        if before.max() <= _NEWTON_ACCURACY * size:
            return points
        move = np.linalg.solve(slope(points), residual[..., None])[..., 0]
        share = np.ones_like(before)
        for _ in range(30):
            trial = points - share * move
            residual = rest(trial)
            worse = np.linalg.norm(residual, axis=1, keepdims=True) > before
            if not worse.any():
                break
            share = np.where(worse, share / 2, share)
        points = trial
    if before.max() <= 1e-9 * size:
        return points  # round-off: the residual no longer halves
    raise InvalidInput(
        f"A client's local solve stopped at a residual of {before.max():.1e}; "
        "use fewer extreme features or a larger ridge."
    )


def largest_gram(records: Array) -> float:
    """Largest eigenvalue of any client's second-moment matrix of (clients, samples, features)."""
    return float(np.linalg.eigvalsh(records.swapaxes(-1, -2) @ records / records.shape[1]).max())


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
        generator = Streams(self.seed).generator("data")
        low, high = self.strong_convexity, self.smoothness
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
        """Ridge regression; clients differ in the scales of their features and in their weights."""
        records, weights, generator = self._regression()
        answers = (records @ weights[..., None])[..., 0]
        answers += 0.1 * generator.standard_normal(answers.shape)
        hessians = records.swapaxes(-1, -2) @ records / SAMPLES
        linear = (records.swapaxes(-1, -2) @ answers[..., None])[..., 0] / SAMPLES
        low, high = self.strong_convexity, self.smoothness
        return _ridged("Ridge regression", hessians, linear, low, high)

    def logistic(self) -> Logistic:
        """Logistic regression; clients differ as in `ridge`."""
        records, weights, generator = self._regression()
        chances = 1.0 / (1.0 + np.exp(-np.clip((records @ weights[..., None])[..., 0], -700, 700)))
        labels = np.where(generator.uniform(size=chances.shape) < chances, 1.0, -1.0)
        added = 0.25 * largest_gram(records) / (self.smoothness / self.strong_convexity - 1)
        factor = self.strong_convexity / added
        return Logistic("Logistic regression", records, labels, added, factor)

    def _mixed(self, own: Array) -> Array:
        """What each client has of its own, mixed with what the first has."""
        return (1 - self.heterogeneity) * own[:1] + self.heterogeneity * own

    def _regression(self) -> tuple[Array, Array, np.random.Generator]:
        generator = Streams(self.seed).generator("data")
        clients, features = self.clients, self.features
        shared = generator.standard_normal(features)
        logs = 0.5 * self.heterogeneity * generator.standard_normal((clients, 1, features))
        scales = np.exp(logs)
        weights = shared + self.heterogeneity * generator.standard_normal((clients, features))
        # Clients that are all alike hold the same records, so that nothing tells them apart.
        records = scales * self._mixed(generator.standard_normal((clients, SAMPLES, features)))
        return records, weights, generator


def own_ridge(
    blocks: Sequence[Array], answer: int, *, strong_convexity: float, smoothness: float, name: str
) -> Quadratic:
    """Ridge regression on records of one's own, as conditioned as `RandomProblem.ridge`.

    ``blocks``, (features + 1, samples_i), hold every client's records as columns; the row
    ``answer`` is predicted by the others.
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
