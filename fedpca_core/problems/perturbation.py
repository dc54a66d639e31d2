"""Noise at the source: ``M_i = S_i + E_i``, formed once by each client and used ever after.

All that any method here learns of a client's records is its second moment S_i. With E_i symmetric
Gaussian, variance nu^2 on the diagonal and nu^2/2 off it, M_i is one Gaussian release of S_i:
two neighbours are ``||S_i - S_i'||_F / nu`` apart (Dwork, Talwar, Thakurta and Zhang, "Analyze
Gauss", 2014, held at the client). Whatever is computed from the M_i is post-processing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import InvalidInput, require
from fedpca_core.gaussian_privacy import check_delta, check_epsilon, epsilon_of, mu_of
from fedpca_core.guarantee import (
    ANY_SAMPLING,
    ANYBODY,
    AT_THE_SOURCE,
    FULL,
    MEAN_AND_SOURCE,
    RECORD,
    Guarantee,
    PaidMean,
    Unit,
    guarantee,
)
from fedpca_core.problems.client_data import ClientData, second_moment
from fedpca_core.problems.records import (
    NORM_ROUNDING,
    check_clip_norm,
    clip,
    second_moment_sensitivity,
)
from fedpca_core.streams import Streams

#: Unit noise of a run is kept for the next one (another epsilon) below this many bytes.
_KEPT_BYTES = 64 * 1024 * 1024
#: All M_i side by side may not take more than this.
_LARGEST_BYTES = 2 * 1024**3


@dataclass(frozen=True)
class Trust:
    """How many clients may fail those who share their noise with them.

    Each client adds only a share of the noise; secure aggregation hides the single uploads and the
    shares add up. h clients are assumed honest *and* present, and their noise alone is enough.
    """

    #: Clients that tell the adversary their share of the noise. A client that is curious itself
    #: knows its own, so 1 is needed for a guarantee towards other clients.
    colluding: int = 1
    #: Clients that may be missing from the sums.
    dropouts: int = 0

    def __post_init__(self) -> None:
        require(
            self.colluding >= 0 and self.dropouts >= 0,
            f"Clients that collude or drop out are counted from 0, not {self.colluding} and "
            f"{self.dropouts}.",
        )

    def honest(self, clients: int) -> int:
        """h, clients assumed honest and present."""
        left = clients - self.colluding - self.dropouts
        require(
            left >= 1,
            f"With {self.colluding} colluding and {self.dropouts} dropped out of {clients} clients "
            "nobody is left to add noise; trust more clients, or let each add its noise in full.",
        )
        return left

    def sentence(self, clients: int) -> str:
        """Towards whom shared noise protects."""
        return (
            f"the server and other clients, if at least {self.honest(clients)} of {clients} "
            f"clients are honest and present ({self.colluding} may collude, {self.dropouts} may "
            "drop out) and secure aggregation shows sums only"
        )


def symmetric_noise(noise: Array, features: int, streams: Streams, release: int = 0) -> Array:
    """E_i = nu_i (G_i + G_i^T)/2 with G_i of independent N(0, 1) entries.

    ``noise``, (clients,) float64: nu_i, standard deviation on the diagonal.
    ``release``: Part of the stream "source noise"; a second release takes another one. In a
        deployment each client draws from secret entropy of its own, anew for every release.

    Returns (clients, features, features) float64.
    """
    small = 8 * len(noise) * features**2 <= _KEPT_BYTES
    draw = _remembered if small else _unit_noise
    result: Array = noise[:, None, None] * draw(len(noise), features, streams, release)
    return result


def _unit_noise(clients: int, features: int, streams: Streams, release: int) -> Array:
    made = np.empty((clients, features, features))
    for client in range(clients):
        generator = streams.generator("source noise", release, client)
        square = generator.standard_normal((features, features))
        made[client] = 0.5 * (square + square.T)
    made.flags.writeable = False
    return made


# An epsilon that is dragged scales the same draws.
_remembered = lru_cache(maxsize=2)(_unit_noise)


def perturbed(data: ClientData, noise: Array, streams: Streams, release: int = 0) -> ClientData:
    """The clients' data with M_i = S_i + E_i in the place of S_i.

    Raises InvalidInput: more memory than a computer has to spare: M_i has no thin factor.
    """
    size = 8 * data.clients * data.features**2
    require(
        size <= _LARGEST_BYTES,
        f"Noise at the source needs each client's whole matrix, {size / 1024**3:.1f} GB for "
        f"{data.clients} clients with {data.features} features; choose fewer of either, or noise "
        "on every product.",
    )
    noisy = data.dense() + symmetric_noise(noise, data.features, streams, release)
    made = ClientData.from_grams(noisy, data.samples, data.weights)
    return replace(made, indefinite=True)


def records_of(data: ClientData, blocks: Sequence[Array] | None) -> list[Array] | None:
    """The records themselves, (features, m_i) each, or None where only S_i is kept."""
    if blocks is not None:
        return list(blocks)
    if data.factors is None:
        return None
    return [factor * np.sqrt(factor.shape[1]) for factor in data.factors]


def clipped_data(
    data: ClientData, records: Sequence[Array] | None, bound: float | None, clip_norm: float
) -> ClientData:
    """The clients' data with every record clipped, or as they are where they are short enough.

    Raises InvalidInput: only second moments are kept and their records have no known bound, or a
    longer one.
    """
    if bound is not None and bound <= clip_norm * (1 + NORM_ROUNDING):
        return data
    if records is None:
        known = "has no known bound" if bound is None else f"is bounded by {bound:.4g} only"
        raise InvalidInput(
            f"This problem keeps second moments only, whose records' norm {known}, and a record "
            f"cannot be clipped at {clip_norm:g} any more; choose fewer samples (then records are "
            "kept), or clip them where the data are made."
        )
    return _moments([clip(block, clip_norm) for block in records], data.weights)


def _moments(records: Sequence[Array], weights: Array) -> ClientData:
    samples = np.array([block.shape[1] for block in records], dtype=np.int64)
    return ClientData.from_grams(
        np.stack([second_moment(one) for one in records]), samples, weights
    )


def noisy_mean(
    records: Sequence[Array], clip_norm: float, noise: Array, streams: Streams, release: int = 0
) -> Array:
    """Mean of all records from one noisy mean a client, (features,).

    ``records``, sequence of (features, m_i) float64: Clipped here.
    ``noise``, (clients,) float64: Standard deviation of every entry of a client's upload.
    """
    sizes = np.array([block.shape[1] for block in records], dtype=float)
    total = np.zeros(records[0].shape[0])
    for client, (block, spread) in enumerate(zip(records, noise, strict=True)):
        generator = streams.generator("mean noise", release, client)
        own = clip(block, clip_norm).mean(axis=1)
        total += sizes[client] * (own + spread * generator.standard_normal(len(total)))
    result: Array = total / sizes.sum()
    return result


@lru_cache(maxsize=1024)
@dataclass(frozen=True)
class Budget:
    """What a release at the source may cost, and how it is spent."""

    #: epsilon, delta: Totals.
    epsilon: float
    delta: float
    #: Norm C at which every record is clipped.
    clip: float
    unit: Unit = RECORD
    #: Who shares the noise; None: each client adds its noise in full.
    trust: Trust | None = None
    #: Share of the squared GDP budget that pays for a noisy mean to centre the records on; 0: the
    #: records are used as they are.
    mean_share: float = 0.0
    #: Norm at which records are clipped for that mean, before they are centred; None: ``clip``.
    #: Records far from the origin need more room there than around their mean, or it is biased.
    mean_clip: float | None = None

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_clip_norm(self.clip)
        check_clip_norm(self.first_clip)
        require(
            0 <= self.mean_share < 1,
            f"The share of the budget for a noisy mean lies in [0, 1), not {self.mean_share}; "
            "0.1 is plenty.",
        )

    @property
    def first_clip(self) -> float:
        """Norm of the records that enter the mean."""
        return self.clip if self.mean_clip is None else self.mean_clip

    @property
    def mu(self) -> float:
        """The largest GDP parameter within the budget."""
        return float(mu_of(self.epsilon, self.delta))

    @property
    def for_products(self) -> float:
        """Epsilon that is left, at the same delta, once the noisy mean is paid for."""
        if self.mean_share == 0:
            return self.epsilon
        return float(epsilon_of(np.sqrt(1.0 - self.mean_share) * self.mu, self.delta))

    def paid_mean(self, samples: IntArray) -> PaidMean | None:
        """What the noisy mean of clients of these sizes costs one record; None without one."""
        if self.mean_share == 0:
            return None
        mu = np.sqrt(self.mean_share) * self.mu / self.changed(samples).max()
        return PaidMean(float(mu), self.first_clip)

    def changed(self, samples: IntArray) -> IntArray:
        """Records of each client that the unit replaces, (clients,)."""
        return np.array([self.unit.changed(int(count)) for count in samples])

    def shared_by(self, clients: int) -> int:
        """h, how many clients' noise must be enough; 1 where each adds its own in full."""
        return 1 if self.trust is None else self.trust.honest(clients)


@dataclass(frozen=True, eq=False)
class Bounded:
    """Clients' data with every record clipped, and centred where a noisy mean was paid for."""

    #: Holds S_i of these records.
    data: ClientData
    #: (features,) float64 or None: The noisy mean.
    mean: Array | None = None
    #: What it cost.
    paid: PaidMean | None = None


@dataclass(frozen=True, eq=False)
class SourceRelease:
    """What the clients released once, and what it guarantees."""

    #: Holds the M_i; all that a method sees.
    data: ClientData
    #: Holds the S_i without noise, of clipped (and re-centred) records (simulation only).
    clipped: ClientData
    #: (clients,) float64: nu_i, standard deviation on the diagonal of E_i.
    noise: Array
    guarantee: Guarantee
    trust: Trust | None
    #: (features,) float64 or None: The noisy mean, where one was paid for.
    mean: Array | None


def bound(
    data: ClientData,
    records: Sequence[Array] | None,
    known: float | None,
    budget: Budget,
    streams: Streams,
    release: int = 0,
) -> Bounded:
    """Clip the records, centred first on a noisy mean where the budget pays for one.

    ``records``, sequence of (features, m_i) float64, or None: None where only S_i is kept.
    ``known``: A bound on the records' norms that is known already.
    ``release``: Number of this release; another one draws other noise.

    Raises InvalidInput: second moments whose records cannot be clipped or centred any more.
    """
    if budget.mean_share == 0:
        return Bounded(clipped_data(data, records, known, budget.clip))
    if records is None:
        raise InvalidInput(
            "A noisy mean needs the records, and this problem keeps second moments only; "
            "choose fewer samples, or leave the records where they are (a mean share of 0)."
        )
    paid = budget.paid_mean(data.samples)
    assert paid is not None
    # The mean of records of norm C changes by at most 2 C/m_i a record.
    step = 2.0 * paid.clip_norm / data.samples
    spread = step / (paid.mu * np.sqrt(budget.shared_by(data.clients)))
    mean = noisy_mean(records, paid.clip_norm, spread, streams, release)
    moved = _moments([clip(one - mean[:, None], budget.clip) for one in records], data.weights)
    return Bounded(moved, mean, paid)


def source_guarantee(
    samples: IntArray, weights: Array, budget: Budget, public: Sequence[str] = ()
) -> tuple[Array, Guarantee]:
    """Noise of each client, (clients,) float64, and what it guarantees; from public facts alone."""
    clients, trust = len(samples), budget.trust
    step = second_moment_sensitivity(samples, budget.clip, budget.changed(samples))
    left = np.sqrt(1.0 - budget.mean_share) * budget.mu
    if trust is None:
        noise, worst = step / left, (float(step[0]), float(step[0] / left))
    else:
        # Only the sum of w_i M_i is seen; its noise is that of h clients.
        largest = float((weights * step).max())
        noise = largest / (left * weights * np.sqrt(budget.shared_by(clients)))
        worst = largest, largest / left
    mean = budget.paid_mean(samples)
    return noise, guarantee(
        worst[1],
        budget.delta,
        1 if mean is None else 2,
        worst[0],
        budget.clip,
        composition=1.0 / (1.0 - budget.mean_share),
        unit=budget.unit,
        sampling=ANY_SAMPLING if trust is None else FULL,
        released=AT_THE_SOURCE
        if mean is None
        else MEAN_AND_SOURCE.format(clip=f"{mean.clip_norm:g}"),
        towards=ANYBODY if trust is None else trust.sentence(clients),
        public=public,
    )
