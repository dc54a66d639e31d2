"""Ways to spend one epsilon, side by side: what each leaves of the components, and at which price.

Noise on every product as published, calibrated exactly, with orthogonal probes; noise once at the
source, for any method; and both shared by the clients under secure aggregation. Every way states
the same (epsilon, delta) for one record, by `privacy.account` or by the source's own guarantee.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.algorithms.block_krylov import BlockKrylov
from fedpca_core.algorithms.centralized import Centralized
from fedpca_core.algorithms.distributed_power import DistributedPower
from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.algorithms.fedpe import FedPE
from fedpca_core.algorithms.fedpg import FedPG
from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.algorithms.local_power import LocalPower
from fedpca_core.algorithms.one_shot import OneShot
from fedpca_core.algorithms.ssi import SSI
from fedpca_core.algorithms.variable_splitting import VariableSplitting
from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.privacy.accounting import noisy, unbounded, within
from fedpca_core.privacy.calibration import Calibration
from fedpca_core.problems.perturbation import Trust
from fedpca_core.problems.problem import Problem
from fedpca_core.problems.spiked import spiked_covariance
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate
from fedpca_core.streams import Streams

#: Products of a run with noise on each, and the numbers tried where the best is asked for.
PRODUCTS, SHORTER = 10, (4, 5, 6)
#: Rounds of an iterative method on data with noise at the source: they cost no privacy.
ROUNDS = 40


@dataclass(frozen=True)
class Spending:
    """One budget and what it is spent on.

    Attributes
    ----------
    epsilon, delta, clip : float
    components : int
        k, columns sought.
    surplus : int
        Further columns of FedPower's iterate.
    mean_share : float
        Share of the squared budget for a noisy mean, at the source, where records are centred.
    mean_clip : float or None
        Norm of records before they are centred; None: ``clip``.
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    clip: float = 1.0
    components: int = 4
    surplus: int = 1
    mean_share: float = 0.1
    mean_clip: float | None = None


@dataclass(frozen=True)
class Trial:
    """One run to make: data as the method sees them, the method, its rounds and its channel."""

    problem: Problem
    algorithm: Algorithm
    rounds: int
    channel: Channel = field(default_factory=lambda: Channel(record="estimates"))


@dataclass(frozen=True)
class Way:
    """One way to spend a budget.

    Attributes
    ----------
    title : str
    trials : callable
        From problem, spending and seed to the runs; where there are several, the best counts.
    """

    title: str
    trials: Callable[[Problem, Spending, int], tuple[Trial, ...]]


def _public(problem: Problem) -> Setting:
    data = problem.client_data
    return Setting(
        problem.features,
        problem.clients,
        data.samples,
        data.weights,
        record_norm=problem.record_norm,
        own_moments=problem.own_moments,
    )


def _summed(trust: Trust | None) -> Channel:
    return Channel(record="estimates", secure_aggregation=trust is not None)


def _published(problem: Problem, s: Spending, seed: int) -> tuple[Trial, ...]:
    width = s.components + s.surplus
    if (reason := unbounded(_public(problem), s.clip)) is not None:
        raise InvalidInput(reason)
    samples = float(problem.client_data.samples.mean())
    calibration = Calibration("published", s.epsilon, s.delta, PRODUCTS, width, s.clip)
    run = FedPower(s.components, width, PRODUCTS, noise=float(calibration.noise(samples)))
    return (Trial(problem, run, run.rounds),)


def _fedpower(period: int, products: tuple[int, ...]) -> Callable[..., tuple[Trial, ...]]:
    def trials(problem: Problem, s: Spending, seed: int) -> tuple[Trial, ...]:
        width = s.components + s.surplus
        runs = [
            within(
                FedPower(s.components, width, count, period),
                _public(problem),
                s.epsilon,
                s.delta,
                clip_norm=s.clip,
            )
            for count in products
        ]
        return tuple(Trial(problem, run, run.rounds) for run in runs if isinstance(run, FedPower))

    return trials


def _per_product(
    method: Callable[[Spending], Algorithm], trust: Callable[[Problem], Trust] | None = None
) -> Callable[..., tuple[Trial, ...]]:
    def trials(problem: Problem, s: Spending, seed: int) -> tuple[Trial, ...]:
        trusted = None if trust is None else trust(problem)
        run = within(
            noisy(method(s), 1.0, PRODUCTS, summed=trusted is not None),
            _public(problem),
            s.epsilon,
            s.delta,
            clip_norm=s.clip,
            trust=trusted,
        )
        return (Trial(problem, run, PRODUCTS, _summed(trusted)),)

    return trials


def _source(
    method: Callable[[Spending], Algorithm],
    rounds: int = ROUNDS,
    trust: Callable[[Problem], Trust] | None = None,
) -> Callable[..., tuple[Trial, ...]]:
    def trials(problem: Problem, s: Spending, seed: int) -> tuple[Trial, ...]:
        trusted = None if trust is None else trust(problem)
        private = problem.private(
            s.epsilon,
            s.delta,
            s.clip,
            Streams(seed),
            trust=trusted,
            mean_share=0.0 if problem.own_mean is None else s.mean_share,
            mean_clip=s.mean_clip,
        )
        return (Trial(private, method(s), rounds, _summed(trusted)),)

    return trials


def _everybody(problem: Problem) -> Trust:
    return Trust(0)


def _half(problem: Problem) -> Trust:
    return Trust(problem.clients // 2)


def _krylov(s: Spending) -> Algorithm:
    # A basis that never restarts keeps all probes orthogonal.
    return BlockKrylov(s.components, blocks=PRODUCTS)


#: Every way by its key; the order of the sheet.
WAYS: Mapping[str, Way] = {
    "published": Way("FedPower p = 2, published noise", _published),
    "fedpower": Way("FedPower p = 2, T = 10", _fedpower(2, (PRODUCTS,))),
    "fedpower_best": Way("FedPower p = 1, best T (4–6)", _fedpower(1, SHORTER)),
    "ssi": Way("SSI, T = 10", _per_product(lambda s: SSI(s.components))),
    "krylov": Way("block Krylov, T = 10", _per_product(_krylov)),
    "covariance": Way(
        "noisy covariance, one round", _source(lambda s: Centralized(s.components), 1)
    ),
    "source_ssi": Way("SSI, once at the source", _source(lambda s: SSI(s.components))),
    "source_krylov": Way(
        "block Krylov, once at the source", _source(lambda s: BlockKrylov(s.components))
    ),
    "source_local_power": Way(
        "LocalPower, once at the source", _source(lambda s: LocalPower(s.components))
    ),
    "source_faps": Way(
        "FAPS, J = 5, once at the source",
        _source(lambda s: FAPS(s.components, inner_rule="fixed", inner_steps=5)),
    ),
    "source_faps_stable": Way(
        "FAPS, largest stable J, once at the source", _source(lambda s: FAPS(s.components))
    ),
    "source_splitting": Way(
        "variable splitting, once at the source",
        _source(lambda s: VariableSplitting(s.components)),
    ),
    "source_one_shot": Way(
        "one-shot, once at the source", _source(lambda s: OneShot(s.components), 1)
    ),
    "source_fedpe": Way("FedPE, once at the source", _source(lambda s: FedPE(s.components), 100)),
    "source_fedpg": Way("FedPG, once at the source", _source(lambda s: FedPG(s.components), 100)),
    "shared_fedpower": Way(
        "FedPower p = 1, T = 10, noise shared by secure sums",
        _per_product(
            lambda s: DistributedPower(s.components + s.surplus, products=PRODUCTS), _everybody
        ),
    ),
    "shared_krylov": Way("block Krylov, noise shared", _per_product(_krylov, _everybody)),
    "shared_covariance": Way(
        "noisy covariance, noise shared",
        _source(lambda s: Centralized(s.components), 1, _everybody),
    ),
    "colluding": Way(
        "the same, half of the clients collude",
        _source(lambda s: Centralized(s.components), 1, _half),
    ),
}


@dataclass(frozen=True)
class Measured:
    """Repeated runs of one way.

    Attributes
    ----------
    way : str
    sines : (runs, rounds + 1) float64
        Largest angle to the truth after every round; fresh start and noise in every run.
    bytes_up : (rounds + 1,) float64
        Cumulative over clients.
    algorithm : Algorithm
        Of the first run.
    refusal : str
        Why this way cannot be taken with these data; empty where it can.
    """

    way: str
    sines: Array
    bytes_up: Array
    algorithm: Algorithm | None
    refusal: str = ""

    @property
    def median(self) -> float:
        """Median angle at the end; NaN for a refusal."""
        return float(np.median(self.sines[:, -1])) if self.sines.size else float("nan")

    @property
    def quartiles(self) -> tuple[float, float]:
        """Lower and upper quartile at the end."""
        if not self.sines.size:
            return float("nan"), float("nan")
        low, high = np.quantile(self.sines[:, -1], (0.25, 0.75))
        return float(low), float(high)


def measure(problem: Problem, way: str, spending: Spending, seeds: Iterable[int]) -> Measured:
    """Run one way from several seeds; of several trials the one with the best median counts.

    Raises
    ------
    InvalidInput
        An unknown way.
    """
    require(way in WAYS, f"There is no way called {way!r}; choose one of {', '.join(WAYS)}.")
    target = problem.target(spending.components)
    sines: dict[int, list[Array]] = {}
    sent: dict[int, Array] = {}
    methods: dict[int, Algorithm] = {}
    try:
        for seed in seeds:
            for index, trial in enumerate(WAYS[way].trials(problem, spending, seed)):
                trace = simulate(
                    trial.problem,
                    trial.algorithm,
                    rounds=trial.rounds,
                    seed=seed,
                    channel=trial.channel,
                )
                sines.setdefault(index, []).append(largest_sine(trace.estimates, target))
                sent.setdefault(index, trace.bytes_up.astype(float))
                methods.setdefault(index, trial.algorithm)
    except InvalidInput as refusal:
        return Measured(way, np.zeros((0, 1)), np.zeros(1), None, str(refusal))
    require(len(sines) > 0, "A median needs at least one seed.")
    best = min(sines, key=lambda index: float(np.median([run[-1] for run in sines[index]])))
    # A method may end early (no direction left); it then keeps its estimate.
    longest = max(len(run) for run in sines[best])
    even = [np.pad(run, (0, longest - len(run)), mode="edge") for run in sines[best]]
    return Measured(way, np.stack(even), sent[best], methods[best])


@dataclass(frozen=True)
class Cell:
    """One entry of the table: a way, on Model I of some size."""

    way: str
    features: int
    records: int
    clients: int = 20


#: The columns of the table: records of each client, features.
COLUMNS = tuple((records, features) for records in (30_000, 2_000) for features in (40, 100, 200))


def cells(
    ways: Iterable[str] = WAYS, columns: Iterable[tuple[int, int]] = COLUMNS
) -> tuple[Cell, ...]:
    """Cells of the table, column by column, so that the data of a column are drawn once."""
    rows = tuple(ways)
    return tuple(Cell(way, features, records) for records, features in columns for way in rows)


def table(
    wanted: Iterable[Cell],
    spending: Spending = Spending(),
    *,
    runs: int = 10,
    known: pd.DataFrame | None = None,
) -> Iterator[pd.DataFrame]:
    """Measure cell after cell and yield the table so far; cells that are known are not repeated.

    Parameters
    ----------
    wanted : iterable of Cell
    runs : int
        Starts and noise draws for a median, on one data set each (its seed is the run's).
    known : DataFrame, optional
        An earlier table, to go on from.

    Yields
    ------
    DataFrame
        way, title, features, records, clients, epsilon, delta, components, runs, median, low,
        high, rounds, bytes_up (of one client), refusal.
    """
    rows: list[Any] = [] if known is None else known.to_dict("records")
    done = {(row["way"], row["features"], row["records"], row["runs"]) for row in rows}
    for cell in wanted:
        if (cell.way, cell.features, cell.records, runs) in done:
            continue
        problem = spiked_covariance(cell.features, cell.records, cell.clients, spending.components)
        found = measure(problem, cell.way, spending, range(runs))
        rows.append(described(found, problem, spending) | {"records": cell.records, "runs": runs})
        yield pd.DataFrame(rows)


def described(found: Measured, problem: Problem, spending: Spending) -> dict[str, object]:
    """One row of a table."""
    low, high = found.quartiles
    return {
        "way": found.way,
        "title": WAYS[found.way].title,
        "features": problem.features,
        "records": int(problem.client_data.samples.mean()),
        "clients": problem.clients,
        "epsilon": spending.epsilon,
        "delta": spending.delta,
        "components": spending.components,
        "runs": len(found.sines),
        "median": found.median,
        "low": low,
        "high": high,
        "rounds": found.sines.shape[1] - 1,
        "bytes_up": float(found.bytes_up[-1]) / problem.clients,
        "refusal": found.refusal,
    }
