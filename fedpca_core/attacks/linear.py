"""Attacks that take every answer for a product with S_i, and solve for it.

The server stacks its broadcasts ``Z = [Z_1 .. Z_k]`` and the client's answers ``Y``. The *linear*
attack takes the matrix of least Frobenius norm with ``Phi Z = Y`` (FAPS, section on privacy).
Against SSI it is exact as soon as the broadcasts span the feature space; against FAPS, whose
uploads are not products with S_i, it ends worse than guessing zero on most runs and rounds.

*Symmetric completion* takes the smallest symmetric matrix (FedPower, reconstruction from uploads):
every probed direction also reveals what the unprobed ones say about it, and only the block of
unprobed against unprobed directions stays unknown. A known trace fills that block with its most
even content. (`ridge` is the third of them, for noisy answers.)
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.linear_system import (
    Decomposition,
    LinearSystem,
    growing,
    read,
)
from fedpca_core.protocol.transcript import Transcript

#: What the server believes after a round, and the directions of the feature space probed so far.
Estimate = tuple[Array, int]


@dataclass(frozen=True)
class LinearReading:
    """What an attack makes of equations: a guess, and a matrix from what they say beyond it."""

    #: (features, features) float64 or None: Zero where there is none.
    prior: Array | None
    solve: Callable[[Decomposition], Array]

    def of(self, system: LinearSystem) -> Estimate:
        """The matrix, and the directions that the equations span."""
        found = system.decompose(self.prior)
        return self.solve(found), found.rank

    def after_each(self, transcript: Transcript, client: int) -> Iterator[Estimate]:
        """After round 0 (no message yet), 1, 2, ...; a round without news repeats the last."""
        last: LinearSystem | None = None
        for stage in growing(transcript, client):
            if stage is not last:
                found = self.of(stage)
            last = stage
            yield found


def linear(transcript: Transcript, client: int = 0) -> Array:
    """Minimum-norm reconstruction of one client's S_i, (features, features), seldom symmetric.

    ``transcript``: What the server saw, or part of it (`Transcript.until`).

    Raises InvalidInput: unknown client, or the messages it needs are missing (secure aggregation,
    not recorded, uploads that are not answers to a frame).
    """
    return smallest().of(read(transcript, client))[0]


def smallest() -> LinearReading:
    """How `linear` reads."""

    def solve(found: Decomposition) -> Array:
        kept = found.sigma > found.cutoff
        scaled = np.zeros_like(found.sigma)
        scaled[kept] = 1.0 / found.sigma[kept]
        return ((found.left @ found.inner + found.outer) * scaled) @ found.left.T

    return LinearReading(None, solve)


def symmetric(transcript: Transcript, client: int = 0, *, trace: float | None = None) -> Array:
    """Symmetric minimum-norm reconstruction of one client's S_i, (features, features).

    ``transcript``, ``client``: As in `linear`.
    ``trace``: tr S_i where it is public (for example 1 when every record is scaled to norm 1). What
        the estimate lacks of it is spread evenly over the unprobed directions.
    """
    return completion(trace).of(read(transcript, client))[0]


def completion(trace: float | None = None) -> LinearReading:
    """How `symmetric` reads.

    In the basis of the stacked broadcasts' singular vectors the entry (a, b) is seen twice, with
    strengths sigma_a and sigma_b; the least-squares combination of both is
    ``(E_ab sigma_b + E_ba sigma_a) / (sigma_a^2 + sigma_b^2)``. On exact messages this equals the
    closed form ``C Q^T + Q C^T - Q Q^T C Q^T``; with rounding it is far better, because a weakly
    probed direction is still seen well from every strongly probed one.
    """

    def solve(found: Decomposition) -> Array:
        sigma, cutoff = found.sigma, found.cutoff
        seen_twice = found.inner * sigma
        strength = sigma[:, None] ** 2 + sigma**2
        inner = np.where(strength > cutoff**2, (seen_twice + seen_twice.T) / strength, 0.0)
        outer = np.where(sigma > cutoff, found.outer / sigma, 0.0)
        estimate = filtered(found, inner, outer)
        missing = len(estimate) - found.rank
        if trace is None or missing == 0:
            return estimate
        probed = found.left[:, sigma > cutoff]
        unprobed = np.eye(len(estimate)) - probed @ probed.T
        return estimate + (trace - np.trace(estimate)) / missing * unprobed

    return LinearReading(None, solve)


def filtered(found: Decomposition, inner: Array, outer: Array) -> Array:
    """Symmetric matrix with given content inside the probed space and towards the rest."""
    half = found.left @ inner * 0.5 + outer
    return half @ found.left.T + found.left @ half.T
