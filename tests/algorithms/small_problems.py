"""Small problems and helpers that the tests of several algorithms share."""

from __future__ import annotations

import numpy as np

import fedpca_core as fp
from fedpca_core.arrays import Array
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Algorithm

FEATURES, COMPONENTS = 24, 3
SAMPLES = (400, 900, 600, 1500)


def mixed(seed: int = 0) -> fp.problems.Problem:
    """Four clients of different size and spectrum, pooled spectrum 1.15^(-2j)."""
    return fp.problems.decay_spectrum(FEATURES, SAMPLES, 1.15, seed=seed)


def identical(decay: float = 1.02, features: int = 40, clients: int = 3) -> fp.problems.Problem:
    """Clients that all hold the same diagonal matrix."""
    matrix = np.diag(decay ** (-2.0 * np.arange(features)))
    client_data = ClientData.from_grams(np.stack([matrix] * clients), np.full(clients, 100))
    return fp.problems.Problem(name="identical clients", client_data=client_data)


def reordered(problem: fp.problems.Problem, order: list[int]) -> fp.problems.Problem:
    """The same clients in another order."""
    client_data = problem.client_data
    return fp.problems.Problem(
        name="reordered",
        client_data=ClientData.from_grams(client_data.dense()[order], client_data.samples[order]),
    )


def rounds_to_angle(
    problem: fp.problems.Problem, algorithm: Algorithm, accuracy: float, limit: int, seed: int = 0
) -> int | None:
    """First round with sin theta <= accuracy; None if there is none up to the limit."""
    target = problem.target(algorithm.components)
    channel = fp.Channel(record="estimates")
    for round_ in fp.stream(problem, algorithm, rounds=limit, seed=seed, channel=channel):
        if float(largest_sine(round_.estimate, target)) <= accuracy:
            return round_.index
    return None


def client_spectra(client_data: ClientData, frame: Array) -> tuple[Array, Array]:
    """a_i and c_i: largest eigenvalue of each S_i outside a frame, smallest one inside."""
    dense = client_data.dense()
    projector = np.eye(len(frame)) - frame @ frame.T
    outside = np.linalg.eigvalsh(projector @ dense @ projector)[:, -1]
    return outside, np.linalg.eigvalsh(frame.T @ dense @ frame)[:, 0]


def stability_numbers(outside: Array, inside: Array, penalty: Array, steps: int) -> Array:
    """kappa_i = beta_i (1 + r_i + ... + r_i^(J-1)) / (c_i + beta_i), r_i = a_i / (c_i + beta_i)."""
    ratio = outside / (inside + penalty)
    return penalty / (inside + penalty) * sum(ratio**k for k in range(steps))
