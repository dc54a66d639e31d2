"""What the parts of a run cost, from which studies say what the whole of it does.

Memory is the arrays that are alive at once; seconds are operations at the rates that a plain core
reaches (measured: within a factor of about three).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from fedpca_core.problems.images import LIVE_RESOLUTION
from fedpca_core.protocol.channel import Channel
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.study import Cost, OwnData
from fedpca_core.study.pca_settings import ConvergeSettings

#: Seconds a floating-point operation takes in a large product, in small ones, and drawing a number.
_FAST, _SLOW, _DRAWN = 1 / 2e10, 1 / 8e9, 2e-8
#: Seconds that a round takes whatever its size, and a local step.
_ROUND, _STEP = 1e-3, 5e-5
#: Steps of a replay from all starts together, counted as whole ones.
_DESCENTS = 16
#: Ways in which a private run is noisy: two calibrations on products, one at the source.
CALIBRATED = 3
#: Records of the image sets (at most), and of traffic, with its features.
_IMAGES, _TRAFFIC, _TRAFFIC_FEATURES = 70_000, 100_000, 45


def _mb(numbers: float) -> float:
    """Megabytes of float64."""
    return numbers * 8 / 2**20


def _kept(numbers: float, recorded: float) -> float:
    """Megabytes of a run's estimates, and of the messages of so many clients in every round."""
    return _mb(numbers) + min(Channel().byte_limit / 2**20, 4 * _mb(numbers) * recorded)


@dataclass(frozen=True)
class ProblemSize:
    """How large a problem is: features, clients, records of all clients together."""

    features: int
    clients: int
    records: float

    @classmethod
    def of(cls, settings: Any, data: OwnData | None = None) -> ProblemSize:
        """The size that a page's settings and file promise; nothing is drawn or parsed."""
        c = settings
        if c.problem == "table" and data is not None:
            rows, columns = data.shape
            return cls(len(c.columns) or columns, c.clients, rows)
        if c.problem in LIVE_RESOLUTION:
            records = min(_IMAGES, c.clients * getattr(c, "records_per_client", math.inf))
            side = getattr(c, "resolution", 0) or LIVE_RESOLUTION[c.problem]
            return cls(side**2, c.clients, records)
        return cls(c.features, c.clients, c.clients * c.samples)


def prepare(size: ProblemSize) -> Cost:
    """Drawing or reading the records, every client's matrix, its eigenvalues."""
    n, k, m = size.features, size.clients, size.records
    return Cost(
        _mb(3 * k * n**2 + 3 * min(n * m, 2**26)),
        (2 * n**2 * m + 20 * k * n**3) * _FAST + n * m * _DRAWN,
    )


def run(size: ProblemSize, settings: ConvergeSettings, recorded: bool = False) -> Cost:
    """One method from one start, with its metrics and, ``recorded``, its transcript."""
    c, n = settings, size.features
    p, present = c.components, size.clients * c.participation
    steps = max(c.inner_steps, c.local_steps)
    round_ = steps * (present * (2 * n**2 * p + 4 * n * p**2) * _SLOW + _STEP) + _ROUND
    kept = _kept(c.rounds * n * p, present if recorded else 0)
    return Cost(kept + _mb(4 * size.clients * n * p), c.rounds * round_)


def solved(size: ProblemSize) -> float:
    """Seconds of one system of equations for a client's matrix."""
    return 40 * size.features**3 * _FAST + _ROUND


def linear(size: ProblemSize, settings: ConvergeSettings) -> Cost:
    """Reading one run by linear equations after every round, every belief kept and scored."""
    n, rounds = size.features, settings.rounds + 1
    return Cost(_mb(2 * rounds * n**2), rounds * solved(size))


def replay(size: ProblemSize, settings: ConvergeSettings) -> Cost:
    """Replaying one client: the derivatives of every answer for every entry of its matrix."""
    c, n, p = settings, size.features, settings.components
    read = p * math.ceil(size.records / size.clients / p)
    reach = read + size.records / size.clients
    plain = c.dtype == "float64" and not c.upload_noise and math.isinf(c.epsilon)
    if plain and c.seeded and not c.private_start and reach + p < n:
        # The messages tell where the matrix lives; other frames are only directions to answer.
        n = int(min(n, reach + p * (c.rounds - read / p)))
    else:
        reach = n
    if c.seeded and not c.private_start:
        # The first round leaks the block between its frame and the rest.
        unknown = ((reach - p) * (reach - p + 1) + p * (p + 1)) / 2
    else:
        unknown = reach * (reach + 1) / 2 + n * p * c.private_start
    answers = c.rounds * n * p
    step = 2 * answers * unknown**2 + 4 * unknown**3 + 20 * answers * c.inner_steps * n * unknown
    return Cost(
        _mb(3 * answers * unknown + 4 * unknown**2),
        _DESCENTS * step * _FAST * min(1, c.budget / 200),
    )


def private(
    settings: PrivacySettings, data: OwnData | None, runs: float, repetition: float = 0.0
) -> Cost:
    """Drawing the data, and so many runs; ``repetition`` adds seconds to each."""
    c = settings
    size = ProblemSize.of(c, data)
    n = size.features
    product = c.clients * 2 * n**2 * (c.components + c.surplus) * _SLOW + _ROUND
    # Every record is drawn or read, measured and clipped.
    drawing = prepare(size) + Cost(seconds=3e-7 * n * size.records)
    once = Cost(_mb(c.products * n * c.components), c.products * product + repetition)
    return drawing + once.times(runs)


def personal(settings: PersonaliseSettings, data: OwnData | None, runs: float = 1.0) -> Cost:
    """Drawing or reading the clients, and so many runs of personalised PCA with its measures."""
    c = settings
    size = ProblemSize.of(c, data)
    n = size.features
    round_ = c.clients * 6 * n**2 * c.components * _SLOW + _ROUND
    once = prepare(size) + Cost(_mb(8 * c.clients * n * c.components), c.rounds * round_)
    return once.times(runs)


def detection(
    settings: AnomalySettings, data: OwnData | None, runs: float = 1.0, recorded: bool = False
) -> Cost:
    """Reading the traffic, and so many runs of FedPE or FedPG with their detectors."""
    c = settings
    own = data is not None and c.problem == "own"
    rows, columns = data.shape if own and data else (_TRAFFIC, _TRAFFIC_FEATURES)
    n = len(c.columns) or columns
    present = math.ceil(c.clients * c.participation)
    step = present * (4 * n**2 * c.components) * _SLOW + _STEP
    kept = _kept(c.rounds * n * c.components, present if recorded else 0)
    once = Cost(kept, c.rounds * (c.local_steps * step + _ROUND))
    reading = Cost(_mb(6 * rows * n + 2 * c.clients * n**2), 5 + 4 * rows * n**2 * _FAST)
    return reading + once.times(runs)
