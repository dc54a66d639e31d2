"""From a privacy configuration to data, method, noise and guarantee."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.algorithms import FAPS, SSI, BlockKrylov, FedPE, FedPG, FedPower, LocalPower, Noisy
from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import InvalidInput, require
from fedpca_core.guarantee import Guarantee, Refusal
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.privacy.accounting import (
    account,
    noisy,
    releases_made,
    spent,
)
from fedpca_core.privacy.calibration import Calibration
from fedpca_core.problems import Problem, block_model, spiked_covariance
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate
from fedpca_core.studies.papers.fedpower import Progress
from fedpca_core.studies.private.error_budget import communication_times
from fedpca_core.studies.private.record_attacks import distinct_clients
from fedpca_core.studies.private.settings import PrivacySettings

#: Numbers to draw for one data set; more would take longer than a visitor waits.
LARGEST_DATA = 250_000_000


def samples(configuration: PrivacySettings) -> int:
    """Records of each client."""
    c = configuration
    return c.features * c.networks if c.model == "blocks" else c.samples


def treatment(configuration: PrivacySettings) -> tuple[str, float]:
    """What is done to records, and at which norm; Models II and "distinct" are normalised."""
    c = configuration
    return (c.treatment, c.clip_norm) if c.model == "spiked" else ("normalised", 1.0)


def build_problem(configuration: PrivacySettings) -> Problem:
    """Draw the data of a configuration.

    Raises
    ------
    InvalidInput
        More numbers than a visitor waits for.
    """
    c = configuration
    numbers = c.features * c.clients * samples(c)
    require(
        numbers <= LARGEST_DATA,
        f"{c.clients} clients with {samples(c):,} records of {c.features} features are "
        f"{numbers:,} numbers to draw; choose fewer clients, samples or features "
        f"(at most {LARGEST_DATA:,} numbers).",
    )
    if c.model == "blocks":
        return block_model(c.features, c.clients, c.networks, c.seed)
    if c.model == "distinct":
        return distinct_clients(c.features, c.samples, c.clients, 4, c.seed)
    kind, norm = treatment(c)
    return spiked_covariance(
        c.features, c.samples, c.clients, 4, treatment=kind, clip_norm=norm, seed=c.seed
    )


def public_setting(configuration: PrivacySettings) -> Setting:
    """What everybody knows about the run, without drawing any data."""
    c = configuration
    sizes = np.full(c.clients, samples(c), dtype=np.int64)
    kind, norm = treatment(c)
    return Setting(
        c.features,
        c.clients,
        sizes,
        np.full(c.clients, 1.0 / c.clients),
        record_norm=None if kind == "raw" else norm,
    )


def method(configuration: PrivacySettings, noise: float) -> Algorithm:
    """The configured method with noise nu on every product (0: none).

    Methods that cannot be accounted ignore nu; their noise is the channel's, see `channel`.
    """
    c = configuration
    if c.method == "fedpower":
        return FedPower(
            components=c.components,
            columns=c.components + c.surplus,
            products=c.products,
            period=c.period,
            decay=c.decay,
            alignment=c.alignment,
            literal=c.literal,
            noise=noise,
            draws=c.draws or None,
        )
    if c.method == "ssi":
        return noisy(SSI(c.components), noise, c.products)
    if c.method == "block_krylov":
        # A basis that never restarts keeps all probes orthogonal: the run costs one product.
        return noisy(BlockKrylov(c.components, blocks=max(3, c.products)), noise, c.products)
    unaccounted: dict[str, Algorithm] = {
        "faps": FAPS(c.components),
        "local_power": LocalPower(c.components),
        "fedpe": FedPE(c.components),
        "fedpg": FedPG(c.components),
    }
    return unaccounted[c.method]


def accountable(configuration: PrivacySettings) -> bool:
    """Whether an epsilon can be stated for the configured method."""
    return isinstance(method(configuration, 0.0), FedPower | Noisy)


def channel(configuration: PrivacySettings) -> Channel:
    """The channel: masking noise for methods that cannot be accounted."""
    mask = 0.0 if accountable(configuration) else configuration.mask
    return Channel(upload_noise=mask, record="estimates")


def noise_for(
    configuration: PrivacySettings,
    calibration: str | None = None,
    epsilon: float | None = None,
) -> float:
    """nu that the configured (or another) budget and calibration ask for."""
    c = configuration
    run = method(c, 0.0)
    columns = run.width if isinstance(run, FedPower) else c.components
    chosen = Calibration(
        calibration or c.calibration,
        c.epsilon if epsilon is None else epsilon,
        c.delta,
        c.products,
        columns,
        treatment(c)[1],
    )
    if chosen.kind == "exact" and isinstance(run, Noisy) and run.orthogonal:
        return float(replace(chosen, releases=1, columns=2).noise(samples(c)))
    return float(chosen.noise(samples(c)))


def composed(configuration: PrivacySettings) -> int:
    """Products that count in full: all of them, or one where all probes are orthogonal."""
    run = method(configuration, 0.0)
    return 1 if isinstance(run, Noisy) and run.orthogonal else configuration.products


def current_noise(configuration: PrivacySettings) -> float:
    """nu of the run as it is set: 0 when the noise is off, or masking is all there is."""
    off = not configuration.noise or not accountable(configuration)
    return 0.0 if off else noise_for(configuration)


def stated(configuration: PrivacySettings) -> Guarantee | Refusal:
    """The guarantee of the configured run, or why there is none; needs no data.

    Raises
    ------
    InvalidInput
        Raw records with noise on: their norm has no bound.
    """
    kind, norm = treatment(configuration)
    run = method(configuration, current_noise(configuration))
    run.check(public_setting(configuration))
    if kind == "raw" and configuration.noise and accountable(configuration):
        raise InvalidInput(
            "The records are left raw, so their norms have no bound and the stated noise protects "
            "nothing: no ε. Normalise or clip the records, or switch the noise off."
        )
    return account(run, public_setting(configuration), delta=configuration.delta, clip_norm=norm)


def require_budget(configuration: PrivacySettings) -> None:
    """Refuse to speak of budgets where no epsilon can be stated.

    Raises
    ------
    InvalidInput
        A method that cannot be accounted, or raw records.
    """
    found = account(method(configuration, 0.0), public_setting(configuration), delta=0.5)
    if isinstance(found, Refusal):
        raise InvalidInput(f"{found.reason} Choose FedPower, SSI or block Krylov to see budgets.")
    if treatment(configuration)[0] == "raw":
        raise InvalidInput(
            "Raw records have no bound on their norms, so no amount of noise has an ε; normalise "
            "or clip the records."
        )


@dataclass(frozen=True)
class Repeated:
    """Repeated runs of one method.

    Attributes
    ----------
    times : (communications + 1,) int64
        Products finished at each communication, where the method counts them; else the rounds.
    sines : (repetitions, communications + 1) float64
    bytes_up : (communications + 1,) float64
        Mean over the repetitions, cumulative over clients.
    """

    times: IntArray
    sines: Array
    bytes_up: Array


def repeat(
    problem: Problem,
    run: Algorithm,
    rounds: int,
    wire: Channel,
    seeds: Sequence[int],
    progress: Progress = lambda fraction, text: True,
    label: str = "",
) -> Repeated:
    """Run a method from several seeds; stopped early, it keeps the repetitions that are done."""
    target = problem.target(run.components)
    sines, sent = [], []
    for index, seed in enumerate(seeds):
        if index and not progress(index / len(seeds), label):
            break
        trace = simulate(problem, run, rounds=rounds, seed=seed, channel=wire)
        sines.append(largest_sine(trace.estimates, target))
        sent.append(trace.bytes_up)
    # A method may end early (block Krylov, no direction left); it then keeps its estimate.
    longest = max(len(values) for values in sines)
    even = [np.pad(values, (0, longest - len(values)), mode="edge") for values in sines]
    traffic = [np.pad(values, (0, longest - len(values)), mode="edge") for values in sent]
    times = communication_times(run) if isinstance(run, FedPower) else np.arange(longest)
    return Repeated(times, np.stack(even), np.mean(traffic, axis=0))


def rounds_of(configuration: PrivacySettings) -> int:
    """Communications of the configured run."""
    run = method(configuration, 0.0)
    return run.rounds if isinstance(run, FedPower) else configuration.products


@dataclass(frozen=True)
class Spending:
    """What each client has released and spent in one run.

    Attributes
    ----------
    releases : (clients,) int64
    epsilon : (clients,) float64
    """

    releases: IntArray
    epsilon: Array


def spending(problem: Problem, configuration: PrivacySettings) -> Spending:
    """True participation cost of every client in the configured run's first repetition."""
    run = method(configuration, current_noise(configuration))
    assert isinstance(run, FedPower)
    trace = simulate(
        problem,
        run,
        rounds=run.rounds,
        seed=configuration.seed,
        channel=Channel(record="estimates"),
    )
    norm = treatment(configuration)[1]
    return Spending(
        releases_made(trace), spent(trace, run, delta=configuration.delta, clip_norm=norm)
    )
