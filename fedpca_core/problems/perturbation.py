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
    SIZES,
    Guarantee,
    PaidMean,
    Unit,
)
from fedpca_core.problems.client_data import ClientData
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


@dataclass(frozen=True)
class Budget:
    """What a release at the source may cost in all, and how it is spent."""

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
        return self.clip if self.mean_clip is None else self.mean_clip

    @property
    def mu(self) -> float:
        """The largest GDP parameter within the budget."""
        return float(mu_of(self.epsilon, self.delta))

    @property
    def left(self) -> float:
        """The GDP parameter that is left once the noisy mean is paid for."""
        return float(np.sqrt(1.0 - self.mean_share) * self.mu)

    @property
    def for_products(self) -> float:
        """Epsilon that is left, at the same delta."""
        return self.epsilon if self.mean_share == 0 else float(epsilon_of(self.left, self.delta))

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
class SourceRelease:
    """What the clients released once, and what it guarantees."""

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
) -> tuple[ClientData, Array | None]:
    """Clip the records, centred first on a noisy mean where the budget pays for one.

    ``records``, sequence of (features, m_i) float64, or None where only S_i is kept; ``known``
    bounds their norms; another ``release`` draws other noise. Returns the data that hold S_i of
    these records, and the mean, (features,), to which each client has sent its noisy one.
    """
    paid = budget.paid_mean(data.samples)
    if paid is None and known is not None and known <= budget.clip * (1 + NORM_ROUNDING):
        return data, None
    if records is None and paid is not None:
        raise InvalidInput(
            "A noisy mean needs the records, and this problem keeps second moments only; "
            "choose fewer samples, or leave the records where they are (a mean share of 0)."
        )
    if records is None:
        norm = "has no known bound" if known is None else f"is bounded by {known:.4g} only"
        raise InvalidInput(
            f"This problem keeps second moments only, whose records' norm {norm}, and a record "
            f"cannot be clipped at {budget.clip:g} any more; choose fewer samples (then records "
            "are kept), or clip them where the data are made."
        )
    mean = None
    if paid is not None:
        # The mean of records of norm C changes by at most 2 C/m_i a record.
        spreads = 2.0 * paid.clip_norm / data.samples
        spreads = spreads / (paid.mu * np.sqrt(budget.shared_by(data.clients)))
        mean = np.zeros(data.features)
        for client, (block, spread) in enumerate(zip(records, spreads, strict=True)):
            generator = streams.generator("mean noise", release, client)
            own = clip(block, paid.clip_norm).mean(axis=1)
            mean += block.shape[1] * (own + spread * generator.standard_normal(data.features))
        mean /= data.samples.sum()
        records = [block - mean[:, None] for block in records]
    clipped = [clip(block, budget.clip) for block in records]
    return ClientData.from_blocks(clipped, data.weights, keep="grams"), mean


def perturbed(data: ClientData, noise: Array, streams: Streams, release: int = 0) -> ClientData:
    """The clients' data with M_i = S_i + E_i in the place of S_i; as `symmetric_noise`.

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
    return replace(ClientData.from_grams(noisy, data.samples, data.weights), indefinite=True)


def symmetric_noise(noise: Array, features: int, streams: Streams, release: int = 0) -> Array:
    """E_i = nu_i (G_i + G_i^T)/2, (clients, features, features); G_i of independent N(0, 1) draws.

    ``noise``, (clients,) float64: nu_i, standard deviation on the diagonal.
    ``release``: Part of the stream "source noise"; a second release takes another one. In a
        deployment each client draws from secret entropy of its own, anew for every release.
    """
    draw = _remembered if 8 * len(noise) * features**2 <= _KEPT_BYTES else _unit_noise
    return np.asarray(noise[:, None, None] * draw(len(noise), features, streams, release))


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


def source_guarantee(
    samples: IntArray, weights: Array, budget: Budget, public: Sequence[str] = ()
) -> tuple[Array, Guarantee]:
    """Noise of each client, (clients,) float64, and what it guarantees; from public facts alone."""
    clients, trust = len(samples), budget.trust
    step = second_moment_sensitivity(samples, budget.clip, budget.changed(samples))
    if trust is None:
        noise, largest = step / budget.left, float(step[0])
    else:
        # Only the sum of w_i M_i is seen; its noise is that of h clients.
        largest = float((weights * step).max())
        noise = largest / (budget.left * weights * np.sqrt(budget.shared_by(clients)))
    mean = budget.paid_mean(samples)
    return noise, Guarantee(
        budget.delta,
        1 if mean is None else 2,
        largest,
        largest / budget.left,
        budget.clip,
        composition=1.0 / (1.0 - budget.mean_share),
        unit=str(budget.unit),
        sampling=ANY_SAMPLING if trust is None else FULL,
        released=AT_THE_SOURCE
        if mean is None
        else MEAN_AND_SOURCE.format(clip=f"{mean.clip_norm:g}"),
        towards=ANYBODY if trust is None else trust.sentence(clients),
        public=(SIZES, *public),
    )
