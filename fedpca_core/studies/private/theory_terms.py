"""The terms of FedPower's convergence theorems, and our sizing rule (simulation only)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.algorithm import Setting
from fedpca_core.studies.private.round_identity import eigengap


@dataclass(frozen=True)
class TheoryTerms:
    """The terms of FedPower, Theorems 7 and 9: orders of magnitude, not bounds.

    Theorem 7 is for everybody taking part, Theorem 9 for drawn clients.

    Attributes
    ----------
    eta, rho : float
        Heterogeneity and the measured drift of local frames.
    noise, drift, sampling : float or None
        I1, I2, I3; None where they do not apply (I3 with full participation) or are vacuous.
    vacuous : bool
        c rho >= 1: the statement says nothing.
    allowed : float
        The largest sum of terms for which the statement holds.
    floor : float
        Predicted tangent of the final angle in the noise-dominated regime (sizing rule, ours).
    """

    eta: float
    rho: float
    noise: float | None
    drift: float | None
    sampling: float | None
    vacuous: bool
    allowed: float
    floor: float

    @property
    def met(self) -> bool:
        """Whether the terms are small enough for the statement to hold."""
        total = sum(term or 0.0 for term in (self.noise, self.drift, self.sampling))
        return not self.vacuous and total <= self.allowed


def theory_terms(
    problem: Problem, algorithm: FedPower, setting: Setting, rho: float
) -> TheoryTerms:
    """I1 (noise), I2 (drift), I3 (sampling) from the spectrum, nu and the measured rho."""
    k, r = algorithm.components, algorithm.width
    drawn = algorithm.drawn(setting)
    values = problem.eigenvalues
    gap, top = eigengap(problem, k), float(values[0])
    spread = np.log(setting.features * algorithm.products)
    averaged = setting.clients if drawn is None else drawn
    share = 1.0 - 1.0 / setting.clients if drawn is None else 1.0
    room = 1.0 - share * rho
    vacuous = room <= 0
    eta = problem.heterogeneity

    def over(value: float) -> float | None:
        return None if vacuous else float(value / (gap * room))

    tail = spread / averaged
    return TheoryTerms(
        eta=eta,
        rho=rho,
        noise=over(algorithm.noise * max(np.sqrt(setting.features * tail), tail)),
        drift=over(2.0 * top * (eta + (2.0 + eta) * rho)),
        sampling=None if drawn is None else over(top * max(np.sqrt(tail), tail)),
        vacuous=vacuous,
        allowed=min(0.5, float((np.sqrt(r) - np.sqrt(k - 1)) / np.sqrt(setting.features))),
        floor=noise_floor(problem, algorithm, setting),
    )


def noise_floor(problem: Problem, algorithm: FedPower, setting: Setting) -> float:
    """Predicted tangent of the final angle when noise dominates (our sizing rule, about 10%).

    ``nu (sqrt(d-k) + sqrt(k)) / (sigma_k sqrt(m_eff) sqrt(1 - (sigma_{k+1}/sigma_k)^2))``; with K
    draws with replacement m_eff = Km/(m+K-1), because a machine drawn twice repeats its noise.
    """
    k, values = algorithm.components, problem.eigenvalues
    drawn, clients = algorithm.drawn(setting), setting.clients
    effective = clients if drawn is None else drawn * clients / (clients + drawn - 1)
    ratio = float(values[k] / values[k - 1])
    size = np.sqrt(problem.features - k) + np.sqrt(k)
    return float(
        algorithm.noise
        * size
        / (float(values[k - 1]) * np.sqrt(effective) * np.sqrt(1.0 - ratio**2))
    )
