"""The terms of FedPower's convergence theorems, and our sizing rule (simulation only)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.algorithm import Setting
from fedpca_core.questions.privacy.round_identity import eigengap

#: Eigenvalues of clipped records may vanish.
_TINY = 1e-12


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
        `predicted_sine` of the final angle.
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
    """I1 (noise), I2 (drift), I3 (sampling) from the spectrum that the run meets, nu and rho."""
    met = problem.met
    k, r = algorithm.components, algorithm.width
    drawn = algorithm.drawn(setting)
    values = met.eigenvalues
    gap, top = eigengap(met, k), float(values[0])
    spread = np.log(setting.features * algorithm.products)
    averaged = setting.clients if drawn is None else drawn
    share = 1.0 - 1.0 / setting.clients if drawn is None else 1.0
    room = 1.0 - share * rho
    vacuous = room <= 0
    eta = met.heterogeneity

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
        floor=predicted_sine(problem, algorithm, setting),
    )


def predicted_sine(problem: Problem, algorithm: FedPower, setting: Setting) -> float:
    """Predicted sine of the final angle to the target (our sizing rule; simulation only).

    Of the matrix that the run multiplies, clipped records' where they are clipped, T products with
    noise ``nu/sqrt(m_eff)`` turn direction i of the iterate towards each direction j outside by
    ``nu^2/(m_eff sigma_i^2) sum_{t<T} (sigma_j/sigma_i)^(2t)``, in squared tangents; with K draws
    with replacement m_eff = Km/(m+K-1), because a machine drawn twice repeats its noise. What
    clipping moves out of the iterate is lost of the target, and what noise turns of the rest.
    """
    met, drawn, clients = problem.met, algorithm.drawn(setting), setting.clients
    width, values = algorithm.width, np.maximum(met.eigenvalues, _TINY * met.eigenvalues[0])
    effective = clients if drawn is None else drawn * clients / (clients + drawn - 1)
    ratios = values[None, width:] / values[:width, None]
    kept = (ratios[..., None] ** (2 * np.arange(algorithm.products))).sum(axis=-1)
    turned = algorithm.noise**2 / effective * kept / values[:width, None] ** 2
    # Squared tangents far from 0 become squared sines.
    turned /= 1.0 + turned.sum(axis=1, keepdims=True)
    target = problem.target(algorithm.components)
    inside = met.target(width).T @ target
    lost = target - met.target(width) @ inside
    noise = inside.T @ (turned.sum(axis=1)[:, None] * inside)
    largest = float(np.linalg.eigvalsh(noise)[-1])
    if largest > 0:
        # The norm of a random matrix exceeds that of its average column.
        row = float((turned * (inside**2).sum(axis=1)[:, None]).sum(axis=0).max())
        noise *= (1.0 + np.sqrt(row / largest)) ** 2
    return float(np.sqrt(min(np.linalg.eigvalsh(lost.T @ lost + noise)[-1], 1.0)))
