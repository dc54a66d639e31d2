"""Where FedPower's error comes from: exact identities and the theory's terms (simulation only).

Everything here needs raw data (eigenvalues, true angles, every machine's own frame) and is not
covered by any guarantee.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.algorithms.local_products import align, local_path
from fedpca_core.arrays import Array, IntArray
from fedpca_core.linalg.stiefel import largest_sine, orthonormalise
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.algorithm import Plan, Setting
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate
from fedpca_core.protocol.trace import Trace
from fedpca_core.streams import Streams


def communication_times(algorithm: FedPower) -> IntArray:
    """Local products finished at each communication, the start (0) first."""
    times = (0, *algorithm.times)
    return np.array(times if times[-1] == algorithm.products else (*times, algorithm.products))


# ---------------------------------------------------------------------- one round, exactly
@dataclass(frozen=True)
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
    streams, setting = Streams(trace.seed), trace.setting
    spread = algorithm.noise * setting.samples.mean() / setting.samples
    dense, pooled = problem.client_data.dense(), problem.covariance
    times = communication_times(algorithm)
    rows: list[tuple[float, ...]] = []
    for index in range(min(len(algorithm.times), trace.rounds)):
        exchange = trace.transcript.exchanges[index]
        steps = int(times[index + 1] - times[index])
        everyone = Plan(
            round=index + 1,
            participants=np.arange(setting.clients),
            weights=setting.weights,
            downlink={},
            local_steps=steps,
        )
        path = local_path(
            problem.client_data.metered(),
            trace.estimates[index],
            int(times[index]),
            everyone,
            spread,
            streams,
        )
        entered, products, noise = deque(path, maxlen=1).pop()
        frames = np.broadcast_to(entered, products.shape)
        rotations: Array = np.eye(algorithm.width)[None]
        if algorithm.alignment and steps > 1:
            rotations = align(frames, everyone.participants)
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
    gap = eigengap(problem, algorithm.components)
    return RoundIdentity(
        table[:, 0] / gap, table[:, 1] / gap, table[:, 2] / gap, table[:, 3], table[:, 4]
    )


def largest_drift(problem: Problem, trace: Trace) -> float:
    """rho: largest distance to the reference, after alignment, at any local product of a run."""
    algorithm = trace.algorithm
    assert isinstance(algorithm, FedPower)
    setting, streams = trace.setting, Streams(trace.seed)
    spread = algorithm.noise * setting.samples.mean() / setting.samples
    times = communication_times(algorithm)
    worst = 0.0
    for index in range(trace.rounds):
        plan = Plan(
            round=index + 1,
            participants=np.arange(setting.clients),
            weights=setting.weights,
            downlink={},
            local_steps=int(times[index + 1] - times[index]),
        )
        path = local_path(
            problem.client_data.metered(),
            trace.estimates[index],
            int(times[index]),
            plan,
            spread,
            streams,
        )
        for entered, _, _ in path:
            if entered.ndim == 2:
                continue  # the broadcast itself: no drift
            rotated = (
                entered @ align(entered, plan.participants) if algorithm.alignment else entered
            )
            apart = np.linalg.norm(rotated - rotated[0], ord=2, axis=(1, 2))
            worst = max(worst, float(apart.max()))
    return worst


# ---------------------------------------------------------------------- switching effects on
#: What each step of the ablation adds to the one before.
ABLATION = ("centralised power method", "local drift", "client sampling", "privacy noise")


@dataclass(frozen=True)
class Ablation:
    """Errors of four runs that share every random stream, each with one effect more.

    Attributes
    ----------
    times : (communications + 1,) int64
        Local products finished.
    sines : (4, communications + 1) float64
        Largest angle of each run, in the order of `LADDER`.
    """

    times: IntArray
    sines: Array

    @property
    def increments(self) -> Array:
        """Share of sin^2 that each effect adds, (4, communications + 1); small ones may be < 0."""
        squares = self.sines**2
        return np.diff(squares, axis=0, prepend=0.0)


def ablation(problem: Problem, algorithm: FedPower, seed: int = 0) -> Ablation:
    """Counterfactual ablation: centralised, + drift, + sampling, + noise."""
    times = communication_times(algorithm)
    target = problem.target(algorithm.components)
    quiet = Channel(record="estimates")

    def sines(run: FedPower) -> Array:
        trace = simulate(problem, run, rounds=run.rounds, seed=seed, channel=quiet)
        return largest_sine(trace.estimates, target)

    central = replace(algorithm, period=1, noise=0.0, draws=None)
    return Ablation(
        times,
        np.stack(
            [
                sines(central)[times],
                sines(replace(algorithm, noise=0.0, draws=None)),
                sines(replace(algorithm, noise=0.0)),
                sines(algorithm),
            ]
        ),
    )


# ---------------------------------------------------------------------- theory
@dataclass(frozen=True)
class TheoryTerms:
    """The terms of FedPower, Theorems 8 and 9: orders of magnitude, not bounds.

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


def eigengap(problem: Problem, components: int) -> float:
    """sigma_k - sigma_{k+1} of the pooled matrix."""
    return float(problem.eigenvalues[components - 1] - problem.eigenvalues[components])
