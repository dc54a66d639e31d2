"""What ε costs: the run as it is set, the price of budget and length, ways to spend, figures."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, ClassVar, cast

import numpy as np
import pandas as pd

from fedpca_core.algorithms import SSI, FedPower
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.papers.fedpower import MODELS, algorithm, figure
from fedpca_core.privacy import Guarantee, noisy, releases_made, spent
from fedpca_core.problems import Problem
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.channel import Channel
from fedpca_core.questions import costs
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.error_budget import predicted_sine
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.study import Cost, Measured, OwnData, Point, Study, Sweep, Swept, stacked
from fedpca_core.study.parts import names


# ---------------------------------------------------------------------- repeated runs, and ways
@dataclass(frozen=True, eq=False)
class Repeated:
    """Angles of repeated runs."""

    #: (communications + 1,) int64: Local products finished at each communication, where the method
    #: counts them; else the communications.
    times: IntArray
    #: (repetitions, communications + 1) float64: Of the largest angle to the leading space of the
    #: pooled sample (simulation only).
    sines: Array
    #: (communications + 1,) float64: Mean over the repetitions, cumulative over clients.
    bytes_up: Array
    #: Of noise at the source, or what a way to spend a budget states.
    guarantee: Guarantee | None = None

    @property
    def middle(self) -> Array:
        """Median over the repetitions."""
        return np.asarray(np.median(self.sines, axis=0), dtype=float)

    @property
    def quartiles(self) -> tuple[Array, Array]:
        low, high = np.quantile(self.sines, [0.25, 0.75], axis=0)
        return low, high

    @property
    def final(self) -> float:
        """Median of the final angle's sine."""
        return float(self.middle[-1])


@dataclass(frozen=True)
class WayRun:
    """One run to make: data as the method sees them, the method, its rounds and its channel."""

    problem: Problem
    algorithm: Algorithm
    rounds: int
    channel: Channel
    guarantee: Guarantee | None = None


def repeated(
    runs: Iterable[WayRun], seeds: Sequence[int], target: Array, text: str
) -> Part[Repeated]:
    """Runs of one method, one from each seed.

    A method may end early (block Krylov, no direction left); it then keeps its estimate.
    """
    traces = []
    for one, (seed, share) in zip(runs, in_turn(seeds), strict=False):
        steps = build.traced(one.problem, one.algorithm, one.rounds, seed, one.channel, text)
        traces.append((yield from part(steps, *share)))
    sines = [largest_sine(trace.estimates, target) for trace in traces]
    times = np.arange(max(map(len, sines)))

    def even(found: Sequence[Array | IntArray]) -> Array:
        """Curves below each other, each kept at its last value."""
        padded = [np.pad(curve, (0, len(times) - len(curve)), mode="edge") for curve in found]
        return np.stack(padded).astype(np.float64)

    sent = even([trace.bytes_up for trace in traces]).mean(axis=0)
    if one.algorithm.plans_products:
        times = build.communication_times(cast(FedPower, one.algorithm))
    return Repeated(times, even(sines), sent, one.guarantee)


def tabled(runs: Mapping[str, Repeated], name: str, ends: str) -> dict[str, pd.DataFrame]:
    """Curves of runs by label, and under the name of ``ends`` where each comes to."""
    tables = []
    for label, run in runs.items():
        low, high = run.quartiles
        columns = {
            name: label,
            "communication": np.arange(len(run.times)),
            "products": run.times,
            "median": run.middle,
            "lower_quartile": low,
            "upper_quartile": high,
            "bytes_up": run.bytes_up,
        }
        tables.append(pd.DataFrame(columns))
    return {ends: stacked(table.iloc[[-1]] for table in tables), "curves": stacked(tables)}


#: Rounds of an iterative method on data with noise at the source: they cost no privacy.
ROUNDS = 40


@dataclass(frozen=True)
class Way:
    """One way to spend a budget."""

    key: str
    #: Settings that make it, besides exact noise of clients who trust nobody.
    changes: dict[str, Any]

    @property
    def trusting(self) -> bool:
        """Whether clients rely on each other, and on sums that hide single uploads."""
        return self.changes.get("trusted") == "clients"

    def title(self, settings: PrivacySettings) -> str:
        return names("way-names")[self.key].format(method=METHODS[settings.method].title)

    def trial(
        self, settings: PrivacySettings, problem: Problem, seed: int, data: OwnData | None
    ) -> WayRun:
        """Its run on the records of a problem; ``data`` are the visitor's own file."""
        usual: dict[str, Any] = {"calibration": "exact", "trusted": "nobody", "draws": 0}
        c = replace(settings, **usual | self.changes)
        if self.key == "colluding":
            c = replace(c, colluding=problem.clients // 2)
        if c.calibration == "source":
            private, run = build.private(c, problem, seed), build.plain(c)
            wire = replace(build.channel(c), upload_noise=0.0)
            return WayRun(private, run, run.rounds or ROUNDS, wire, private.guarantee)
        noise = build.noise_for(c, data=data)
        if self.key == "remembered":  # SSI whose clients answer from memory
            run = noisy(SSI(c.components), noise, ROUNDS, remembers=True)
            stated = build.accounted(c, run, build.public_setting(c, data)).stated()
        else:
            run, stated = build.method(c, noise), build.stated(c, data).stated()
        met = build.bounded(c, problem, seed)
        return WayRun(met, run, run.rounds or ROUNDS, build.channel(c), stated)

    def runs(
        self, settings: PrivacySettings, seeds: Sequence[int], data: OwnData | None
    ) -> Part[Repeated]:
        """Its runs from several seeds, each with noise of its own."""
        problem = build.records(settings, data)
        trials = (self.trial(settings, problem, seed, data) for seed in seeds)
        return repeated(trials, seeds, problem.target(settings.components), self.title(settings))


_SHARED = {"trusted": "clients"}
#: Every way by its key, those that trust nobody first.
WAYS: Mapping[str, Way] = {
    way.key: way
    for way in (
        Way("published", {"method": "fedpower", "calibration": "published"}),
        Way("exact", {"method": "fedpower"}),
        Way("single", {"method": "fedpower", "local_steps": 1, "products": 6}),
        Way("orthogonal", {"method": "block_krylov"}),
        Way("remembered", {"method": "block_krylov"}),
        Way("source", {"calibration": "source"}),
        Way("covariance", {"method": "centralized", "calibration": "source"}),
        Way("shared_products", {"method": "fedpower", **_SHARED, "local_steps": 1}),
        Way("shared_orthogonal", {"method": "block_krylov", **_SHARED, "local_steps": 1}),
        Way("shared_covariance", {"method": "centralized", **_SHARED, "calibration": "source"}),
        Way("shared_source", {"method": "block_krylov", **_SHARED, "calibration": "source"}),
        Way("colluding", {"method": "centralized", **_SHARED, "calibration": "source"}),
    )
}
#: Kinds of runs without an ε.
QUIET, MASKED = "none", "masked"


def noisy_runs(
    settings: PrivacySettings, kind: str, seeds: Sequence[int], data: OwnData | None
) -> Part[Repeated]:
    """The run that is set with noise of a kind (`build.kinds`), masked, or without any.

    Without noise the records are neither clipped nor centred on a noisy mean.
    """
    c = settings
    if kind == "source":
        return Way(kind, {"calibration": kind, "trusted": c.trusted}).runs(c, seeds, data)
    if kind in (QUIET, MASKED):
        problem, run = build.records(c, data), build.method(c, 0.0)
        c = replace(c, trusted="nobody", upload_noise=c.upload_noise * (kind == MASKED))
    else:
        problem = build.build_problem(c, data)
        run = build.method(c, build.noise_for(c, kind, data=data))
    at_source = c.calibration == "source" and math.isfinite(c.epsilon)
    # As the run at the source that it is compared with.
    rounds = ROUNDS if at_source and not run.plans_products else build.rounds(c)
    text = {QUIET: "Without noise", MASKED: "Masked"}.get(kind, f"With {kind} noise")
    same = repeat(WayRun(problem, run, rounds, build.channel(c)))
    # A stand-in for FedPower has its surplus columns as components.
    return repeated(same, seeds, problem.target(c.components), text)


# ---------------------------------------------------------------------- the run as it is set
@dataclass(frozen=True, eq=False)
class PrivateRuns:
    #: By noise: "exact", "published", "source", "masked" or "none"; as it is set comes first.
    runs: Mapping[str, Repeated]
    #: Predicted sine of the final angle, where noise on FedPower's products is taken apart
    #: (simulation only).
    floor: float | None = None
    #: What each client whose records are not public has released and spent in the first
    #: repetition, where clients are drawn: client (its name, or its number), releases, epsilon.
    spending: pd.DataFrame | None = None


class PrivateRun(Study[PrivacySettings, PrivateRuns]):
    """The run as it is set, the same with other kinds of noise, and without noise."""

    key = "private_run"
    title = "Convergence under a budget"
    opened_by = ("view", "run")
    seconds = 300.0
    look: ClassVar[Mapping[str, Any]] = {"repetitions": 1}

    def cost(self, settings: PrivacySettings, data: OwnData | None = None) -> Cost:
        return costs.private(settings, data, 2 * settings.repetitions)

    def run(self, settings: PrivacySettings, data: OwnData | None = None) -> Run[PrivateRuns]:
        c = settings
        yield Step(0.0, "Drawing the data")
        problem = build.build_problem(c, data)
        seeds = build.run_seeds(c.seed, c.repetitions)
        masked = not build.accountable(c) and c.upload_noise and c.calibration != "source"
        kinds = [*([MASKED] if masked else []), *build.kinds(c), QUIET]
        found: dict[str, Repeated] = {}
        for kind, share in in_turn(kinds):  # the run as it is set first
            try:
                found[kind] = yield from part(noisy_runs(c, kind, seeds, data), *share)
            except InvalidInput:
                if not found:  # the run that is set, not one it is compared with
                    raise
                continue
            yield Step(share[1], "Running the next", PrivateRuns(dict(found)))
        made = build.method(c, build.noise_for(c, data=data))
        if not (made.plans_products and made.noise > 0):
            return PrivateRuns(found)
        run = cast(FedPower, made)
        floor = predicted_sine(problem, run, build.public_setting(c, data))
        if not c.draws:
            return PrivateRuns(found, floor)
        quiet = Channel(record="estimates")
        steps = build.traced(problem, run, run.rounds, c.seed, quiet, "Adding up what was spent")
        trace = yield from part(steps, 0.99, 1.0)
        spending = pd.DataFrame(
            {
                "client": problem.client_names or [str(one) for one in range(problem.clients)],
                "releases": releases_made(trace),
                "epsilon": spent(trace, run, delta=c.delta, clip_norm=build.treatment(c)[1]),
            }
        )
        kept = spending.iloc[run.protected(problem.clients)].reset_index(drop=True)
        return PrivateRuns(found, floor, kept)

    def tables(self, result: PrivateRuns, settings: PrivacySettings) -> dict[str, pd.DataFrame]:
        return tabled(result.runs, "noise", "summary") | super().tables(result, settings)


#: Finite budgets of every sweep over ε.
BUDGETS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
#: All of them, the run without noise first: everything else is compared with it.
WITH_INFINITE = (math.inf, *BUDGETS)
#: Local products T, each with the whole budget spread over it.
LENGTHS = (2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40)


class PrivateSweep(Sweep[PrivacySettings]):
    """A sweep whose seeds are of starts and noise; the data keep the settings' own seed."""

    seconds = 300.0

    def seeds(self, settings: PrivacySettings) -> Sequence[int]:
        return build.run_seeds(settings.seed, settings.repetitions)

    def at(self, settings: PrivacySettings, value: Value, seed: int) -> PrivacySettings:
        return super().at(settings, value, settings.seed)

    def pieces(self, settings: PrivacySettings) -> Sequence[Point]:
        build.require_bound(settings)  # else there is no budget to sweep
        return super().pieces(settings)

    def cost(self, settings: PrivacySettings, data: OwnData | None = None) -> Cost:
        points = len(self.values(settings)) * len(self.seeds(settings))
        return costs.private(settings, data, costs.CALIBRATED * points, self.reading(settings))

    def reading(self, settings: PrivacySettings) -> float:
        """Seconds that are spent on one run after it has ended."""
        return 0.0

    def measure(self, settings: PrivacySettings, seed: int, data: OwnData | None) -> Part[Measured]:
        """The final distance by kind of noise, of the run from ``seed``."""
        found: dict[str, dict[str, float]] = {}
        chosen = build.kinds(settings) or (QUIET,)
        for kind, share in in_turn(chosen):
            run = yield from part(noisy_runs(settings, kind, [seed], data), *share)
            found[kind] = {"sin_theta": run.final}
        return found


class PriceOfBudget(PrivateSweep):
    """The final distance against the budget."""

    key = "price_of_epsilon"
    title = "Price of ε"
    along = ("epsilon", WITH_INFINITE)
    opened_by = ("view", "utility")


class PriceOfProducts(PrivateSweep):
    """The final distance of runs of different lengths that spend the same budget."""

    key = "price_of_products"
    title = "One budget over more and more products"
    along = ("products", LENGTHS)
    opened_by = ("view", "utility")

    def at(self, settings: PrivacySettings, value: Value, seed: int) -> PrivacySettings:
        length = int(value)  # type: ignore[arg-type]
        steps = min(settings.local_steps, length)
        return replace(settings, products=length, local_steps=steps, seed=seed)


def best_length(swept: Swept, calibration: str) -> tuple[int, bool] | None:
    """The number of products with the smallest median distance, if any is measured.

    The second says whether it is the first or the last of those tried, so that the best may lie
    outside.
    """
    found = swept.band(calibration, "sin_theta")
    if not len(found.x):
        return None
    index = int(np.argmin(found.middle))
    return int(found.x[index]), index in (0, len(found.x) - 1)


def last_value(swept: Swept, series: str) -> float | None:
    """Median of a series where it was measured last: of one that does not vary, its value."""
    measures = swept.table.loc[swept.table["series"] == series, "measure"]
    if measures.empty:
        return None
    return float(swept.band(series, measures.iloc[0]).middle[-1])


#: Runs for each budget of the sweep.
RUNS = 3
#: Distances within this factor are alike.
ALIKE = 1.02


@dataclass(frozen=True, eq=False)
class Ways:
    """Every way that could be taken, and the sentences of those that could not."""

    #: By key of `WAYS`, each with what it guarantees.
    spent: Mapping[str, Repeated]
    #: By title.
    refusals: Mapping[str, str]
    clients: int

    def best(self, *, trusting: bool) -> str | None:
        """Key of the way that ends closest, among those that trust or do not.

        Ways that end alike are told apart by what they send.
        """
        some = {key: one for key, one in self.spent.items() if WAYS[key].trusting == trusting}
        closest = min((one.final for one in some.values()), default=0.0)
        alike = [key for key, one in some.items() if one.final <= ALIKE * closest]
        return min(alike, key=lambda key: some[key].bytes_up[-1], default=None)


class WaysToSpend(Study[PrivacySettings, Ways]):
    """Every way at the budget that is set, over rounds and bytes."""

    key = "ways_to_spend"
    title = "Ways to spend ε"
    opened_by = ("view", "ways")
    seconds = 300.0

    def cost(self, settings: PrivacySettings, data: OwnData | None = None) -> Cost:
        return costs.private(settings, data, len(WAYS) * settings.repetitions)

    def run(self, settings: PrivacySettings, data: OwnData | None = None) -> Run[Ways]:
        build.require_bound(settings)
        require(math.isfinite(settings.epsilon), build.REFUSED["nothing to spend"])
        settings = replace(settings, public_reference=False)
        yield Step(0.0, "Drawing the data")
        clients = build.records(settings, data).clients
        seeds = build.run_seeds(settings.seed, settings.repetitions)
        spent: dict[str, Repeated] = {}
        refusals: dict[str, str] = {}
        for (key, way), share in in_turn(WAYS.items()):
            title = way.title(settings)
            try:
                spent[key] = yield from part(way.runs(settings, seeds, data), *share)
            except InvalidInput as refusal:
                refusals[title] = str(refusal)
            yield Step(share[1], title, Ways(dict(spent), dict(refusals), clients))
        return Ways(spent, refusals, clients)

    def tables(self, result: Ways, settings: PrivacySettings) -> dict[str, pd.DataFrame]:
        tables = tabled(result.spent, "way", "ways")
        if result.spent:
            ends = tables["ways"].rename(columns={"communication": "communications"})
            ends["title"] = [WAYS[key].title(settings) for key in result.spent]
            ends["bytes_up"] /= result.clients
            medians = "median", "lower_quartile", "upper_quartile"
            ends = ends[["way", "title", *medians, "communications", "bytes_up"]]
            stated = [one.guarantee.row() for one in result.spent.values() if one.guarantee]
            tables["ways"] = ends.join(pd.DataFrame(stated))
        if result.refusals:
            tables["refused"] = pd.DataFrame(result.refusals.items(), columns=["way", "refusal"])
        return tables


class WaysOverBudget(PrivateSweep):
    """Where every way ends, against the budget."""

    key = "ways_over_budget"
    title = "Ways to spend ε, against ε"
    along = ("epsilon", BUDGETS)
    opened_by = ("view", "ways")

    def seeds(self, settings: PrivacySettings) -> Sequence[int]:
        return build.run_seeds(settings.seed, min(RUNS, settings.repetitions))

    def measure(self, settings: PrivacySettings, seed: int, data: OwnData | None) -> Part[Measured]:
        settings = replace(settings, public_reference=False)
        found: dict[str, dict[str, float]] = {}
        for (key, way), share in in_turn(WAYS.items()):
            try:
                run = yield from part(way.runs(settings, [seed], data), *share)
            except InvalidInput:
                continue  # said beside the runs at the budget that is set
            found[key] = {"sin_theta": run.final}
        return found


#: Curves by label.
Curves = Mapping[str, Repeated]


class PaperFigure(Study[PrivacySettings, Curves]):
    """The curves of a panel: starts and noise draws on one data set.

    The paper does not say how many data sets it used.
    """

    key = "fedpower_figure"
    title = "The paper's figures"
    opened_by = ("view", "figures")
    most = Cost(megabytes=100, seconds=120)
    reads = frozenset({"figure", "paper_size", "repetitions", "seed"})
    seconds = 300.0

    def run(self, settings: PrivacySettings, data: OwnData | None = None) -> Run[Curves]:
        entry = figure(settings.figure)
        model = MODELS[entry.model]
        size = model.sizes["paper" if settings.paper_size else "live"]
        yield Step(0.0, "Drawing the data")
        problem = model.draw(size, settings.seed)
        seeds = build.run_seeds(settings.seed, settings.repetitions)
        wire = Channel(record="estimates")
        curves: dict[str, Repeated] = {}
        for variant, share in in_turn(entry.variants, 1 / (1 + len(entry.variants))):
            run = algorithm(entry, variant, size.samples)
            same = repeat(WayRun(problem, run, run.rounds, wire))
            steps = repeated(same, seeds, problem.target(run.components), variant.label)
            curves[variant.label] = yield from part(steps, *share)
            yield Step(share[1], variant.label, dict(curves))
        return curves

    def tables(self, result: Curves, settings: PrivacySettings) -> dict[str, pd.DataFrame]:
        return tabled(result, "curve", "plateaus")
