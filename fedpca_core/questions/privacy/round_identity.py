"""One communication of FedPower taken apart by an exact identity (simulation only).

Needs raw data (every machine's own frame and matrix) and is covered by no guarantee.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.algorithms.local_products import align, local_path
from fedpca_core.arrays import Array, IntArray
from fedpca_core.linalg.stiefel import orthonormalise
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.algorithm import Plan
from fedpca_core.protocol.trace import Trace
from fedpca_core.streams import Streams


def communication_times(algorithm: FedPower) -> IntArray:
    """Local products finished at each communication, the start (0) first."""
    times = (0, *algorithm.times)
    return np.array(times if times[-1] == algorithm.products else (*times, algorithm.products))


@dataclass(frozen=True, eq=False)
class RoundIdentity:
    """Spectral norms of what a synchronised average is made of, over the eigengap.

    ``Ybar = S Zbar + E + H + N`` (FedPower, one-round identity): E from averaging the drawn
    machines instead of all, H from their heterogeneous matrices, N from privacy noise.

    Attributes
    ----------
    sampling, heterogeneity, noise : (communications,) float64
    rho : (communications,) float64
        Largest distance of a machine's aligned frame to the reference's before the average.
    residual : (communications,) float64
        How far the two sides differ, and the replayed average from what the run broadcast:
        rounding only.
    """

    sampling: Array
    heterogeneity: Array
    noise: Array
    rho: Array
    residual: Array


def one_round_identity(problem: Problem, trace: Trace) -> RoundIdentity:
    """Decompose every communication of a FedPower run (float64 channel), by replaying its rounds.

    The last upload of a run that does not end with a communication averages frames, not products,
    and is left out.
    """
    algorithm = trace.algorithm
    assert isinstance(algorithm, FedPower)
    setting = trace.setting
    everyone = np.arange(setting.clients)
    met = problem.met
    dense, pooled = met.client_data.dense(), met.covariance
    rows: list[tuple[float, ...]] = []
    for index in range(min(len(algorithm.times), trace.rounds)):
        exchange = trace.transcript.exchanges[index]
        entered, products, noise = deque(_replayed(problem, trace, index), maxlen=1).pop()
        frames = np.broadcast_to(entered, products.shape)
        rotations: Array = np.eye(algorithm.width)[None]
        if algorithm.alignment and exchange.local_steps > 1:
            rotations = align(frames, everyone)
        aligned = frames @ rotations
        weights = np.zeros(setting.clients)
        weights[exchange.participants] = exchange.weights
        average = np.tensordot(weights, products @ rotations, axes=1)
        middle = np.tensordot(setting.weights, aligned, axes=1)
        sampled = np.tensordot(weights, aligned, axes=1)
        sampling = pooled @ (sampled - middle)
        uneven = np.tensordot(weights, (dense - pooled) @ aligned, axes=1)
        added = np.tensordot(weights, noise @ rotations, axes=1)
        rest = average - (pooled @ middle + sampling + uneven + added)
        replayed = orthonormalise(average) - trace.estimates[index + 1]
        wrong = max(float(np.abs(rest).max()), float(np.abs(replayed).max()))
        drift = np.linalg.norm(aligned - aligned[0], ord=2, axis=(1, 2)).max()
        norms = [float(np.linalg.norm(part, ord=2)) for part in (sampling, uneven, added)]
        rows.append((*norms, float(drift), wrong))
    table = np.array(rows).reshape(-1, 5)
    gap = eigengap(met, algorithm.components)
    return RoundIdentity(
        table[:, 0] / gap, table[:, 1] / gap, table[:, 2] / gap, table[:, 3], table[:, 4]
    )


def largest_drift(problem: Problem, trace: Trace) -> float:
    """rho: largest distance to the reference, after alignment, at any local product of a run."""
    algorithm = trace.algorithm
    assert isinstance(algorithm, FedPower)
    everyone = np.arange(trace.setting.clients)
    worst = 0.0
    for index in range(trace.rounds):
        for entered, _, _ in _replayed(problem, trace, index):
            if entered.ndim == 2:
                continue  # the broadcast itself: no drift
            rotated = entered @ align(entered, everyone) if algorithm.alignment else entered
            apart = np.linalg.norm(rotated - rotated[0], ord=2, axis=(1, 2))
            worst = max(worst, float(apart.max()))
    return worst


def _replayed(problem: Problem, trace: Trace, index: int) -> Iterator[tuple[Array, Array, Array]]:
    """All machines' local products before a communication, also of those that were not drawn."""
    algorithm, setting = trace.algorithm, trace.setting
    assert isinstance(algorithm, FedPower)
    begin, end = communication_times(algorithm)[index : index + 2].tolist()
    everyone = Plan(
        round=index + 1,
        participants=np.arange(setting.clients),
        weights=setting.weights,
        downlink={},
        local_steps=end - begin,
    )
    spread = algorithm.noise * setting.samples.mean() / setting.samples
    data, sent = problem.client_data.metered(), trace.estimates[index]
    return local_path(data, sent, begin, everyone, spread, Streams(trace.seed))


def eigengap(problem: Problem, components: int) -> float:
    """sigma_k - sigma_{k+1} of the pooled matrix."""
    return float(problem.eigenvalues[components - 1] - problem.eigenvalues[components])
