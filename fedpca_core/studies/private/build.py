"""From privacy settings to data, method, noise and guarantee."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedpca_core.algorithms import BlockKrylov, FedPower, Noisy
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import InvalidInput, require
from fedpca_core.privacy import Calibration, Guarantee, Refusal, account, noisy
from fedpca_core.problems import Problem, block_model, spiked_covariance
from fedpca_core.problems.remembered import Remembered
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_core.protocol.channel import Channel
from fedpca_core.studies.pca_settings import ConvergeSettings
from fedpca_core.studies.private.distinct import distinct_clients
from fedpca_core.studies.private.settings import PRIVATE, PrivacySettings

#: Numbers to draw for one data set; more would take longer than a visitor waits.
LARGEST_DATA = 250_000_000
#: Strong directions of the data, whatever number of components is sought.
DIRECTIONS = 4
#: Fields that the data depend on.
_PROBLEM_FIELDS = (
    "problem", "features", "clients", "samples", "networks", "treatment", "clip_norm", "seed",
)  # fmt: skip
_PROBLEMS: Remembered[Problem] = Remembered(4)


# ---------------------------------------------------------------------- data
def samples(settings: PrivacySettings) -> int:
    """Records of each client."""
    c = settings
    return c.features * c.networks if c.problem == "blocks" else c.samples


def treatment(settings: PrivacySettings) -> tuple[str, float]:
    """What is done to records, and at which norm; Model II and "distinct" are normalised."""
    c = settings
    return (c.treatment, c.clip_norm) if c.problem == "spiked" else ("normalised", 1.0)


def build_problem(settings: PrivacySettings) -> Problem:
    """The data of the settings; remembered, since several studies ask for them.

    Raises
    ------
    InvalidInput
        More numbers than a visitor waits for.
    """
    c = settings
    numbers = c.features * c.clients * samples(c)
    require(
        numbers <= LARGEST_DATA,
        f"{c.clients} clients with {samples(c):,} records of {c.features} features are "
        f"{numbers:,} numbers to draw; choose fewer clients, samples or features "
        f"(at most {LARGEST_DATA:,} numbers).",
    )
    key = tuple(getattr(c, name) for name in _PROBLEM_FIELDS)
    return _PROBLEMS.get(key, lambda: _drawn(c))


def _drawn(c: PrivacySettings) -> Problem:
    if c.problem == "blocks":
        return block_model(c.features, c.clients, c.networks, c.seed)
    if c.problem == "distinct":
        return distinct_clients(c.features, c.samples, c.clients, DIRECTIONS, c.seed)
    kind, norm = treatment(c)
    return spiked_covariance(
        c.features, c.samples, c.clients, DIRECTIONS, treatment=kind, clip_norm=norm, seed=c.seed
    )


def public_setting(settings: PrivacySettings) -> Setting:
    """What everybody knows about the run, without drawing any data."""
    c = settings
    kind, norm = treatment(c)
    return even_setting(c.features, c.clients, samples(c), None if kind == "raw" else norm)


def even_setting(features: int, clients: int, records: int, norm: float | None) -> Setting:
    """What everybody knows of clients of one size whose records are bounded by ``norm``."""
    sizes = np.full(clients, records, dtype=np.int64)
    weights = np.full(clients, 1.0 / clients)
    return Setting(features, clients, sizes, weights, record_norm=norm)


# ---------------------------------------------------------------------- method
def plain(settings: PrivacySettings) -> Algorithm:
    """The method that is set, without noise of its own."""
    c = settings
    if c.method == "fedpower":
        return FedPower(
            components=c.components,
            columns=c.components + c.surplus,
            products=c.products,
            period=c.local_steps,
            decay=c.decaying_gaps,
            alignment=c.alignment,
            literal=c.literal,
            draws=c.draws or None,
        )
    made = METHODS[c.method].make(c.carried(ConvergeSettings))
    if isinstance(made, BlockKrylov):
        # A basis that never restarts keeps all probes orthogonal: the run costs one product.
        return replace(made, blocks=max(made.blocks, c.products))
    return made


def method(settings: PrivacySettings, noise: float) -> Algorithm:
    """The method that is set, with noise nu on every product (0: none).

    Methods that cannot be accounted ignore nu; their noise is the channel's, see `channel`.
    """
    made = plain(settings)
    if isinstance(made, FedPower):
        return replace(made, noise=noise)
    return noisy(made, noise, settings.products) if accountable(settings) else made


def accountable(settings: PrivacySettings) -> bool:
    """Whether an epsilon can be stated for the method that is set."""
    return bool(METHODS[settings.method].accounts)


def rounds(settings: PrivacySettings) -> int:
    """Communications of the run that is set."""
    run = method(settings, 0.0)
    return run.rounds if isinstance(run, FedPower) else settings.products


def channel(settings: PrivacySettings) -> Channel:
    """The channel: masking noise for methods that cannot be accounted."""
    mask = 0.0 if accountable(settings) else settings.upload_noise
    return Channel(upload_noise=mask, record="estimates")


# ---------------------------------------------------------------------- noise and guarantee
def columns(settings: PrivacySettings) -> int:
    """r, columns of every frame that a client multiplies."""
    return settings.components + (settings.surplus if settings.method == "fedpower" else 0)


def counted(settings: PrivacySettings) -> int:
    """Products that count at full sensitivity: one where all probes are orthogonal, else T."""
    run = method(settings, 0.0)
    return 1 if isinstance(run, Noisy) and run.orthogonal else settings.products


def noise_for(
    settings: PrivacySettings, calibration: str | None = None, epsilon: float | None = None
) -> float:
    """nu that a budget and a calibration ask for, by default those that are set; 0 at ε = ∞."""
    c = settings
    kind = calibration or c.calibration
    budget = c.epsilon if epsilon is None else epsilon
    if not np.isfinite(budget):
        return 0.0
    count, width = c.products, columns(c)
    if kind == "exact" and counted(c) == 1:
        count, width = 1, 2
    chosen = Calibration(kind, budget, c.delta, count, width, treatment(c)[1])
    return float(chosen.noise(samples(c)))


def current_noise(settings: PrivacySettings) -> float:
    """nu of the run as it is set: 0 without a budget, or where masking is all there is."""
    return noise_for(settings) if accountable(settings) else 0.0


def refusal(settings: PrivacySettings) -> Refusal:
    """Why no epsilon can be stated for the method that is set."""
    entry = METHODS[settings.method]
    why = entry.refusal or "it does more with a client's data than products that carry noise"
    remedies = [METHODS[key].title for key in PRIVATE if METHODS[key].accounts]
    return Refusal(
        f"Noise on the uploads of {entry.title} gives no ε: {why.replace('S_i', 'Sᵢ')}. "
        f"Choose {', '.join(remedies[:-1])} or {remedies[-1]} to see budgets."
    )


def stated(settings: PrivacySettings) -> Guarantee | Refusal:
    """The guarantee of the run that is set, or why there is none; needs no data.

    Raises
    ------
    InvalidInput
        Raw records with noise on: their norm has no bound.
    """
    c, (kind, norm) = settings, treatment(settings)
    run = method(c, current_noise(c))
    run.check(public_setting(c))
    if not accountable(c):
        return refusal(c)
    if kind == "raw" and np.isfinite(c.epsilon):
        raise InvalidInput(
            "The records are left raw, so their norms have no bound and the stated noise protects "
            "nothing: no ε. Normalise or clip the records, or set ε to ∞."
        )
    return account(run, public_setting(c), delta=c.delta, clip_norm=norm)


def require_budget(settings: PrivacySettings) -> None:
    """Refuse to speak of budgets where no epsilon can be stated.

    Raises
    ------
    InvalidInput
        A method that cannot be accounted, or raw records.
    """
    if not accountable(settings):
        raise InvalidInput(refusal(settings).reason)
    require_bound(settings)


def require_bound(settings: PrivacySettings) -> None:
    """Refuse records whose norms have no bound.

    Raises
    ------
    InvalidInput
        Raw records.
    """
    if treatment(settings)[0] == "raw":
        raise InvalidInput(
            "Raw records have no bound on their norms, so no amount of noise has an ε; normalise "
            "or clip the records."
        )
