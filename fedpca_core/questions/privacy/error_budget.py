"""Where FedPower's error comes from: effects one by one, one average taken apart, and theory.

Everything here needs raw data (eigenvalues, true angles, every machine's own frame) and is not
covered by any guarantee.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import cast

import numpy as np
import pandas as pd

from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.algorithms.local_products import local_path
from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import largest_sine, orthonormalise, procrustes
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.algorithm import Plan, Setting
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate
from fedpca_core.protocol.trace import Trace
from fedpca_core.questions import costs
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.build import communication_times, run_seeds, traced
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.steps import Run, Step, in_turn, part
from fedpca_core.streams import Streams
from fedpca_core.study import Cost, OwnData, Study


def one_round_identity(problem: Problem, trace: Trace) -> pd.DataFrame:
    """What the average of every communication is made of (FedPower, one-round identity).

    ``Ybar = S Zbar + E + H + N`` for a run over a float64 channel, by replaying its rounds; the
    last upload of one that does not end with a communication averages frames, not products, and is
    left out. Columns:

    - ``sampling heterogeneity noise``: Spectral norms over the eigengap of E, from averaging the
      drawn machines instead of all, of H, from their heterogeneous matrices, and of N.
    - ``rho``: Largest distance of a machine's aligned frame to the reference's before the average.
    - ``residual``: How far the two sides differ, and the replayed average from what the run
      broadcast: rounding only.
    """
    algorithm, setting = cast(FedPower, trace.algorithm), trace.setting
    met = problem.met
    dense, pooled = met.client_data.dense(), met.covariance
    gap = eigengap(met, algorithm.components)
    rows = []
    for index in range(min(len(algorithm.times), trace.rounds)):
        exchange = trace.transcript.exchanges[index]
        entered, products, noise = deque(_replayed(problem, trace, index), maxlen=1).pop()
        rotations = _rotations(algorithm, entered)
        aligned = np.broadcast_to(entered, products.shape) @ rotations
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
        drift = np.linalg.norm(aligned - aligned[algorithm.reference], ord=2, axis=(1, 2)).max()
        norms = [np.linalg.norm(part, ord=2) / gap for part in (sampling, uneven, added)]
        rows.append((index + 1, *norms, drift, wrong))
    columns = ["communication", "sampling", "heterogeneity", "noise", "rho", "residual"]
    return pd.DataFrame(rows, columns=columns)


def largest_drift(problem: Problem, trace: Trace) -> float:
    """rho: largest distance to the reference, after alignment, at any local product of a run."""
    algorithm = cast(FedPower, trace.algorithm)
    worst = 0.0
    for index in range(trace.rounds):
        for entered, _, _ in _replayed(problem, trace, index):
            if entered.ndim == 2:
                continue  # the broadcast itself: no drift
            rotated = entered @ _rotations(algorithm, entered)
            apart = np.linalg.norm(rotated - rotated[algorithm.reference], ord=2, axis=(1, 2))
            worst = max(worst, float(apart.max()))
    return worst


def _rotations(algorithm: FedPower, entered: Array) -> Array:
    """Of every machine's frame onto the reference's; none of the broadcast, or unaligned."""
    if entered.ndim == 2 or not algorithm.alignment:
        return np.eye(algorithm.width)
    return procrustes(entered, entered[algorithm.reference])


def _replayed(problem: Problem, trace: Trace, index: int) -> Iterator[tuple[Array, Array, Array]]:
    """All machines' local products before a communication, also of those that were not drawn."""
    algorithm, setting = cast(FedPower, trace.algorithm), trace.setting
    begin, end = communication_times(algorithm)[index : index + 2].tolist()
    everybody = np.arange(setting.clients)
    plan = Plan(index + 1, everybody, setting.weights, {}, local_steps=end - begin)
    spread = algorithm.noise_of(setting.samples)
    data, sent = problem.client_data.metered(), trace.estimates[index]
    return local_path(data, sent, begin, plan, spread, Streams(trace.seed))


def eigengap(problem: Problem, components: int) -> float:
    """sigma_k - sigma_{k+1} of the pooled matrix."""
    return float(problem.eigenvalues[components - 1] - problem.eigenvalues[components])


@dataclass(frozen=True)
class TheoryTerms:
    """The terms of FedPower, Theorems 7 and 9: orders of magnitude, not bounds.

    Theorem 7 is for everybody taking part, Theorem 9 for drawn clients.
    """

    #: eta, rho: Heterogeneity and the measured drift of local frames.
    eta: float
    rho: float
    #: noise, drift, sampling: I1, I2, I3; None where they do not apply (I3 with full participation)
    #: or are vacuous.
    noise: float | None
    drift: float | None
    sampling: float | None
    #: c rho >= 1: the statement says nothing.
    vacuous: bool
    #: The largest sum of terms for which the statement holds.
    allowed: float
    #: `predicted_sine` of the final angle.
    floor: float


def theory_terms(
    problem: Problem, algorithm: FedPower, setting: Setting, rho: float
) -> TheoryTerms:
    """I1 (noise), I2 (drift), I3 (sampling) from the spectrum that the run meets, nu and rho."""
    met = problem.met
    k, r = algorithm.components, algorithm.width
    drawn = algorithm.drawn(setting)
    gap, top = eigengap(met, k), float(met.eigenvalues[0])
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
    with replacement m_eff = Km/(m+K-1), because a machine drawn twice repeats its noise; more by
    m/(m-1) where the reference's records are public and its products carry none. What
    clipping moves out of the iterate is lost of the target, and what noise turns of the rest.
    """
    met, drawn, clients = problem.met, algorithm.drawn(setting), setting.clients
    width, values = algorithm.width, met.eigenvalues
    values = np.maximum(values, 1e-12 * values[0])  # those of clipped records may vanish
    effective = clients if drawn is None else drawn * clients / (clients + drawn - 1)
    effective *= clients / len(algorithm.protected(clients))
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


#: What each step of the ablation adds to the one before.
ABLATION = ("centralised power method", "local drift", "client sampling", "privacy noise")


def ablation(problem: Problem, algorithm: FedPower, seed: int = 0) -> Array:
    """Errors of four runs that share every random stream, each with one effect more.

    Returns ndarray: (4, communications + 1) float64, the largest angle of each run, in the order of
    `ABLATION`.
    """
    target = problem.target(algorithm.components)
    quiet = Channel(record="estimates")

    def sines(run: FedPower) -> Array:
        trace = simulate(problem, run, rounds=run.rounds, seed=seed, channel=quiet)
        return largest_sine(trace.estimates, target)

    central = sines(replace(algorithm, period=1, noise=0.0, draws=None))
    others = replace(algorithm, noise=0.0, draws=None), replace(algorithm, noise=0.0), algorithm
    return np.stack([central[communication_times(algorithm)], *map(sines, others)])


@dataclass(frozen=True, eq=False)
class ErrorParts:
    """Where the error of the run that is set comes from; means over the repetitions."""

    #: effect, communication, products (local ones finished), added_squared_sine (small ones may be
    #: negative), share (what an effect takes away counts as 0).
    ablation: pd.DataFrame
    #: (communications + 1,) float64: sin^2 with all effects.
    squared: Array
    #: Repetitions that are done.
    repetitions: int
    #: identity, terms: Of the first repetition; None until it has run.
    identity: pd.DataFrame | None = None
    terms: TheoryTerms | None = None


class ErrorBudget(Study[PrivacySettings, ErrorParts]):
    """Effects switched on one by one over all repetitions, and one run taken apart exactly."""

    key = "error_budget"
    title = "Where the error comes from"
    opened_by = ("view", "budget")
    seconds = 300.0

    def cost(self, settings: PrivacySettings, data: OwnData | None = None) -> Cost:
        return costs.private(settings, data, 4 * settings.repetitions)

    def run(self, settings: PrivacySettings, data: OwnData | None = None) -> Run[ErrorParts]:
        build.require_single_uploads(settings)
        made = build.method(settings, build.noise_for(settings, data=data))
        require(settings.calibration != "source", build.REFUSED["at the source"])
        require(made.plans_products, build.REFUSED["another method"])
        run = cast(FedPower, made)
        yield Step(0.0, "Drawing the data")
        problem = build.build_problem(settings, data)
        seeds = run_seeds(settings.seed, settings.repetitions)
        found: list[Array] = []

        def mean() -> ErrorParts:
            squares = np.mean(np.square(found), axis=0)
            added = np.diff(squares, axis=0, prepend=0.0)
            risen = np.maximum(added, 0.0)
            times = communication_times(run)
            columns = {
                "effect": np.repeat(ABLATION, len(times)),
                "communication": np.tile(np.arange(len(times)), len(ABLATION)),
                "products": np.tile(times, len(ABLATION)),
                "added_squared_sine": added.ravel(),
                "share": (risen / risen.sum(axis=0)).ravel(),
            }
            return ErrorParts(pd.DataFrame(columns), squares[-1], len(found))

        for seed, (begin, _) in in_turn(seeds, end=0.8):
            yield Step(begin, "Switching effects on one by one", mean() if found else None)
            found.append(ablation(problem, run, seed))
        text = "Taking one run apart"
        steps = traced(problem, run, run.rounds, settings.seed, Channel(), text)
        trace = yield from part(steps, 0.8, 0.9)
        yield Step(0.9, text, mean())
        return replace(
            mean(),
            identity=one_round_identity(problem, trace),
            terms=theory_terms(problem, run, trace.setting, largest_drift(problem, trace)),
        )

    def tables(self, result: ErrorParts, settings: PrivacySettings) -> dict[str, pd.DataFrame]:
        terms = {} if result.terms is None else {"theory": pd.DataFrame([asdict(result.terms)])}
        return super().tables(result, settings) | terms
