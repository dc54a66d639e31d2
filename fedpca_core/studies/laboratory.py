"""From a configuration to problems, algorithms and results, for pages and the command line."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedpca_core import metrics
from fedpca_core.algorithms import (
    FAPS,
    SSI,
    BlockKrylov,
    Centralized,
    FedPE,
    FedPG,
    LocalPower,
    OneShot,
    VariableSplitting,
)
from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.stiefel import projector_distance
from fedpca_core.problems import Problem, decay_spectrum
from fedpca_core.problems.images import LIVE_RESOLUTION, images
from fedpca_core.problems.splits import samples_per_client
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import Simulation
from fedpca_core.protocol.trace import Trace
from fedpca_core.studies.pca import METHODS, Configuration

#: Told after every few rounds how far a comparison has come; answers whether to go on.
Progress = Callable[[float, str], bool]
#: Seconds between two partial results of a comparison.
PARTIAL_SECONDS = 1.0
IMAGES = ("digits", "mnist", "fashion_mnist", "cifar10", "olivetti")


def build_problem(configuration: Configuration, table: Problem | None = None) -> Problem:
    """The problem a configuration describes.

    Parameters
    ----------
    configuration : Configuration
    table : Problem, optional
        The visitor's own data, for the problem kind ``"table"``: a link cannot carry them.

    Raises
    ------
    InvalidInput
        Sizes that do not fit, data that are not there.
    """
    c = configuration
    if c.problem == "table":
        if table is None:
            raise InvalidInput(
                "This configuration uses a table of your own, which a link cannot carry; "
                "load the CSV file again under “Your own table” (or give --table)."
            )
        return table
    if c.problem in IMAGES:
        return images(
            c.problem,
            clients=c.clients,
            heterogeneity=c.heterogeneity,
            seed=c.seed,
            split=c.split,
            resolution=LIVE_RESOLUTION[c.problem],
            download=True,
        )
    sizes = samples_per_client(c.split, c.clients, c.clients * c.samples, seed=c.seed)
    geometric = c.problem == "decay_geometric"
    return decay_spectrum(
        features=c.features,
        samples=sizes,
        decay=c.decay if geometric else None,
        condition=None if geometric else c.condition,
        heterogeneity=c.heterogeneity,
        seed=c.seed,
    )


def build_algorithm(method: str, configuration: Configuration) -> Algorithm:
    """The algorithm a method key stands for, with the configuration's parameters."""
    c = configuration
    makers: Mapping[str, Callable[[], Algorithm]] = {
        "ssi": lambda: SSI(c.components),
        "local_power": lambda: LocalPower(c.components, c.local_steps, "halving"),
        "local_power_decay": lambda: LocalPower(c.components, c.local_steps, "decay"),
        "faps": lambda: FAPS(
            c.components,
            penalty_factor=c.penalty_factor,
            adaptive=c.adaptive,
            inner_rule=c.inner_rule,
            inner_steps=c.inner_steps,
            private_start=c.private_start,
            private_penalty=c.private_penalty,
            random_inner_steps=c.random_inner_steps,
        ),
        "variable_splitting": lambda: VariableSplitting(
            c.components, penalty_factor=c.penalty_factor, inner_steps=c.inner_steps
        ),
        "variable_splitting_free": lambda: VariableSplitting(
            c.components,
            penalty_factor=c.penalty_factor,
            inner_steps=c.inner_steps,
            constraint="free",
        ),
        "block_krylov": lambda: BlockKrylov(c.components),
        "one_shot": lambda: OneShot(c.components, "projectors"),
        "one_shot_stacked": lambda: OneShot(c.components, "stacked"),
        "centralized": lambda: Centralized(c.components),
        # Their penalty and steps follow the clients' curvature; the parameters are FAPS's and
        # LocalPower's.
        "fedpe": lambda: FedPE(c.components),
        "fedpg": lambda: FedPG(c.components),
    }
    return makers[method]()


def build_channel(configuration: Configuration, record: str = "full") -> Channel:
    """The channel a configuration describes."""
    return Channel(
        dtype=configuration.dtype,
        secure_aggregation=configuration.secure_aggregation,
        upload_noise=configuration.upload_noise,
        record=record,
    )


def simulation(
    problem: Problem,
    method: str,
    configuration: Configuration,
    *,
    start: int = 0,
    record: str = "full",
) -> Simulation:
    """A run of one method from the ``start``-th random start, ready to iterate."""
    return Simulation(
        problem,
        build_algorithm(method, configuration),
        rounds=configuration.rounds,
        seed=start_seed(configuration, start),
        participation=configuration.participation,
        absent=configuration.absent,
        channel=build_channel(configuration, record),
    )


def start_seed(configuration: Configuration, start: int) -> int:
    """Seed of the run from the ``start``-th random start; the data keep the configuration's."""
    return configuration.seed + 1_000_003 * start


@dataclass(frozen=True)
class Comparison:
    """Metrics of every method and start.

    Attributes
    ----------
    tables : mapping of method key to a tuple of metrics frames, one for each start
    refusals : mapping of method key to the sentence why it could not run
    name : str
        Of the problem.
    eigenvalues : (features,) float64
        Of its S, largest first.
    clients : int
    complete : bool
        False when the comparison was stopped early.
    unfinished : str or None
        The method whose last table ends in the middle of a run.
    """

    tables: Mapping[str, tuple[pd.DataFrame, ...]]
    refusals: Mapping[str, str]
    name: str
    eigenvalues: Array
    clients: int
    complete: bool
    unfinished: str | None = None

    @property
    def rounds(self) -> int:
        """Rounds of the longest run."""
        return max((len(t) - 1 for tables in self.tables.values() for t in tables), default=0)

    def curves(self) -> pd.DataFrame:
        """All metrics frames below each other, with columns method and start in front."""
        parts = [
            table.assign(method=METHODS[method], start=start)
            for method, tables in self.tables.items()
            for start, table in enumerate(tables)
        ]
        merged = pd.concat(parts, ignore_index=True)
        return merged[["method", "start", *metrics.COLUMNS]]

    def summary(self, measure: str, accuracy: float) -> pd.DataFrame:
        """What each method needs to bring ``measure`` below ``accuracy``: medians over starts.

        Columns: method, reached (starts that got there), starts, round, bytes, local_products,
        seconds (medians over the starts that got there; NaN if none), final (median last value).
        """
        rows = []
        for method, tables in self.tables.items():
            hits = [metrics.first_reached(table, measure, accuracy) for table in tables]
            found = [hit for hit in hits if hit is not None]
            rows.append(
                {
                    "method": METHODS[method],
                    "reached": len(found),
                    "starts": len(tables),
                    **{
                        name: float(np.median([value(hit) for hit in found])) if found else np.nan
                        for name, value in COSTS.items()
                    },
                    "final": float(np.median([table[measure].iloc[-1] for table in tables])),
                }
            )
        return pd.DataFrame(rows)


#: What progress can be charged for, read off a row of a metrics frame.
COSTS: Mapping[str, Callable[[pd.Series], float]] = {
    "round": lambda row: float(row["round"]),
    "bytes": lambda row: float(row["bytes_up"] + row["bytes_down"]),
    "local_products": lambda row: float(row["local_products"]),
    "seconds": lambda row: float(row["seconds"]),
}


class Rest:
    """Notices that a run has come to rest: its estimate no longer moves beyond rounding.

    The remaining rounds would repeat the last point of every curve. The patience spans two checks
    of FAPS's penalty rule, which may set a resting run in motion again.
    """

    PATIENCE = 12
    MOTION = 1e-13

    def __init__(self) -> None:
        self._last: Array | None = None
        self._still = 0

    def reached(self, estimate: Array) -> bool:
        """Whether this estimate and those before it say that the run is over."""
        if self._last is not None:
            moved = float(np.max(projector_distance(self._last, estimate)))
            self._still = self._still + 1 if moved < self.MOTION else 0
        self._last = estimate
        return self._still >= self.PATIENCE


def compare(
    configuration: Configuration,
    problem: Problem,
    progress: Progress = lambda fraction, text: True,
    partial: Callable[[Comparison], None] = lambda comparison: None,
) -> Comparison:
    """Run every method of a configuration from every start, each until it rests.

    Parameters
    ----------
    progress : callable
        Gets the fraction done and a text; answers False to stop.
    partial : callable
        Gets the comparison so far, now and then.
    """
    require(
        len(configuration.methods) > 0,
        "No method is chosen, so there is nothing to compare; choose at least one.",
    )
    runs = [(m, s) for s in range(configuration.starts) for m in configuration.methods]
    tables: dict[str, list[pd.DataFrame]] = {method: [] for method in configuration.methods}
    refusals: dict[str, str] = {}

    def result(complete: bool, current: Simulation | None = None, of: str = "") -> Comparison:
        kept = {method: tuple(found) for method, found in tables.items() if found}
        if current is not None and of not in kept:
            kept[of] = (metrics.frame(current.trace(), problem),)
        facts = problem.name, problem.eigenvalues, problem.clients
        return Comparison(kept, dict(refusals), *facts, complete, of or None)

    shown = time.monotonic()

    for position, (method, start) in enumerate(runs):
        if method in refusals:
            continue
        try:
            run = simulation(problem, method, configuration, start=start, record="estimates")
            wanted, rest = True, Rest()
            for entry in run:
                if rest.reached(entry.estimate):
                    break
                if time.monotonic() - shown > PARTIAL_SECONDS:
                    partial(result(False, run, method))
                    shown = time.monotonic()
                if entry.index % 20 == 0:
                    share = (position + entry.index / configuration.rounds) / len(runs)
                    text = f"{METHODS[method]}, start {start + 1} of {configuration.starts}"
                    wanted = progress(share, text)
                    if not wanted:
                        break
            tables[method].append(metrics.frame(run.trace(), problem))
        except InvalidInput as refusal:
            refusals[method] = str(refusal)
            continue
        if not wanted:
            return result(False, of=method)
    return result(True)


def attacked_run(
    problem: Problem, method: str, configuration: Configuration, start: int = 0
) -> tuple[Trace, pd.DataFrame]:
    """A run of one method with everything the server saw, and its metrics."""
    run = simulation(problem, method, configuration, start=start)
    for _ in run:
        pass
    trace = run.trace()
    return trace, metrics.frame(trace, problem)
