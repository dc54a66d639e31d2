"""All methods on one problem, as points and as paths over a parameter, in one tidy table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems import Problem
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.questions import costs
from fedpca_core.questions.which.leakage import Summed, leak, summed
from fedpca_core.questions.which.runs import Made, made, problem_of
from fedpca_core.questions.which.settings import VALUES, FrontierSettings
from fedpca_core.remembered import Remembered
from fedpca_core.settings import Value
from fedpca_core.steps import Run, Step
from fedpca_core.study.build import build_algorithm
from fedpca_core.study.divided import Divided
from fedpca_core.study.facts import Facts
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData

#: A run that never comes below the accuracy is over once it is this close to where it ends.
SETTLED = 1.05
#: What the table says of a run.
COLUMNS = (
    "method", "parameter", "value", "seed", "rounds", "reached", "bytes_up", "bytes_client",
    "local_products", "seconds", "sin_theta", "relative_error", "unexplained", "worst_client",
    "leak", "attack", "leak_linear", "leak_sine", "guess", "leak_sums", "pooled", "newcomer",
    "records", "epsilon",
    "protection", "searched", "note", "finding",
)  # fmt: skip
#: Those of them that are no numbers.
_TEXTS = ("method", "parameter", "attack", "protection", "note", "finding")
_FLAGS = ("reached", "searched")
#: What the row that searched says of its configuration.
_FIRST = ("attack", "protection", "searched", "note", "finding")
#: What identifies a point.
POINT = ["method", "parameter", "value", "seed"]
#: What the small multiples vary, and over how many seeds.
STRIPS: Mapping[str, tuple[float | int, ...]] = {
    "heterogeneity": (0.0, 0.3, 0.6, 1.0),
    "clients": (4, 8, 16, 32),
}
STRIP_SEEDS = 3
#: The parameter that varies, its value, and the settings of the piece.
Placed = tuple[str, float, FrontierSettings]
#: Traces of the leading spaces of the clients' matrices, by problem.
_BEST: Remembered[Array] = Remembered(8)


@dataclass(frozen=True, eq=False)
class Front:
    """The table, and what stands around it.

    Attributes
    ----------
    table : pandas.DataFrame
        Columns `COLUMNS`, one run a row; ``protection`` is "none", "masked" or "formal".
    refusals : mapping of method title to the sentence why it could not run
    facts : Facts
    """

    table: pd.DataFrame
    refusals: Mapping[str, str]
    facts: Facts

    def points(self) -> pd.DataFrame:
        """Medians over the seeds, with ``_low`` and ``_high`` for every number.

        A number that only the first seed has (attacks that search) stands for all.
        """
        return summarised(self.table)


def summarised(table: pd.DataFrame) -> pd.DataFrame:
    """One row for each configuration: medians over its seeds and their span."""
    names = POINT[:-1]
    numbers = [
        name
        for name in table.columns
        if name not in (*names, "seed") and pd.api.types.is_float_dtype(table[name])
    ]
    # A run whose attacks searched speaks for its configuration.
    ordered = table.sort_values("searched", ascending=False, kind="stable")
    groups = ordered.groupby(names, sort=False, dropna=False)
    values = groups[numbers]
    texts = groups[list(_FIRST)].head(1).index
    spans = [values.median(), values.min().add_suffix("_low"), values.max().add_suffix("_high")]
    found = pd.concat(spans, axis=1)
    found["reached"], found["seeds"] = groups["reached"].mean(), groups.size()
    for name in _FIRST:
        found[name] = ordered.loc[texts, name].to_numpy()
    order = table.drop_duplicates(names)[names]
    return order.merge(found.reset_index(), on=names, how="left")


#: Where more is better: an attack that errs more leaks less. Everywhere else less is.
MORE_IS_BETTER = ("leak",)


def pareto(points: pd.DataFrame, across: str, upward: str) -> list[int]:
    """Rows that no other beats on both axes, the best across first.

    Rows without a number on either axis are left out.
    """
    known = points[[across, upward]].apply(np.isfinite).all(axis=1)
    signed = [-points[a] if a in MORE_IS_BETTER else points[a] for a in (across, upward)]
    values = pd.DataFrame({"across": signed[0], "upward": signed[1]})
    chosen = values[known].sort_values(["across", "upward"], kind="stable")
    front: list[int] = []
    lowest = math.inf
    for label, height in zip(chosen.index, chosen["upward"], strict=True):
        if height < lowest:
            front.append(int(label))
            lowest = float(height)
    return front


def shown(points: pd.DataFrame, across: str, upward: str) -> pd.DataFrame:
    """The points that belong on these axes.

    Formal and heuristic protection share no axis: where a run states an ε, how close an attack
    comes is no measure of what is protected, and where it states none it has no place on an axis
    of ε.
    """
    formal = points["protection"] == "formal"
    if "epsilon" in (across, upward):
        points = points[formal]
    elif "leak" in (across, upward):
        points = points[~formal]
    return points[points[[across, upward]].apply(np.isfinite).all(axis=1)]


class Frontier(Divided[FrontierSettings, Front]):
    """Every candidate at every value from every seed."""

    key: ClassVar[str] = "frontier"
    title: ClassVar[str] = "All methods on one problem"
    settings: ClassVar[type[FrontierSettings]] = FrontierSettings
    seconds: ClassVar[float] = 300.0

    def cost(self, settings: FrontierSettings, data: OwnData | None = None) -> Cost:
        pieces = self.pieces(settings) or [settings]
        every = [_cost(piece, data) for piece in pieces]
        return Cost(max(one.megabytes for one in every), sum(one.seconds for one in every))

    def pieces(self, settings: FrontierSettings) -> Sequence[FrontierSettings]:
        return [piece for *_, piece in self.placed(settings)]

    def placed(self, settings: FrontierSettings) -> list[Placed]:
        """The pieces, each with the parameter that varies and its value there."""
        return _placed(settings)

    def piece(self, settings: FrontierSettings, data: OwnData | None) -> Run[Front]:
        require(
            len(settings.candidates) > 0,
            "No candidate is chosen, so there is nothing to compare; choose at least one.",
        )
        yield Step(0.0, "Preparing the problem")
        problem = problem_of(settings, data)
        facts, rows, refusals = Facts.of(problem), [], {}
        for count, method in enumerate(settings.candidates, 1):
            try:
                rows.append(row(method, settings, problem))
            except InvalidInput as refusal:
                refusals[METHODS[method].title] = str(refusal)
            yield Step(count / len(settings.candidates), METHODS[method].title)
        return Front(_table(rows), refusals, facts)

    def gathered(self, settings: FrontierSettings, found: Sequence[Front]) -> Front:
        tables = [
            front.table.assign(parameter=parameter, value=value)
            for (parameter, value, _), front in zip(self.placed(settings), found, strict=False)
        ]
        table = pd.concat([t for t in tables if len(t)] or tables[:1], ignore_index=True)
        # What a search found replaces the row that waited for it.
        table = table.sort_values("searched", ascending=False, kind="stable")
        table = table.drop_duplicates(POINT).sort_index()
        refusals = {name: why for front in found for name, why in front.refusals.items()}
        for name in set(refusals) & {METHODS[key].title for key in table["method"]}:
            del refusals[name]  # it ran at other values
        return Front(table.reset_index(drop=True), refusals, found[0].facts)

    def tables(self, result: Front, settings: FrontierSettings) -> dict[str, pd.DataFrame]:
        tables = {"runs": result.table, "points": result.points()}
        if result.refusals:
            refused = pd.DataFrame(result.refusals.items(), columns=["method", "refusal"])
            tables["refused"] = refused
        return tables


def _table(rows: Sequence[Mapping[str, object]]) -> pd.DataFrame:
    """Numbers are numbers also where every candidate was refused."""
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    if len(table):
        return table
    kinds = dict.fromkeys(COLUMNS, float) | dict.fromkeys(_FLAGS, bool)
    return table.astype(kinds | dict.fromkeys(_TEXTS, object))


@lru_cache(maxsize=32)
def _placed(settings: FrontierSettings) -> list[Placed]:
    """Remembered, since every piece that is done asks for it; nobody changes the list."""
    if settings.vary == "none":
        alone = settings.seeds == 1
        return [] if alone else [("none", math.nan, one) for one in _pieces(settings)]
    name = settings.vary
    return [(name, float(getattr(one, name)), one) for one in _pieces(settings)]


def _cost(piece: FrontierSettings, data: OwnData | None) -> Cost:
    """What all candidates take on one problem."""
    size = costs.Size.of(piece, data)
    one = costs.run(size, piece, recorded=True) + costs.linear(size, piece)
    whole = costs.prepare(size) + one.times(len(piece.candidates))
    return whole + costs.replay(size, piece) if piece.searches else whole


class Strip(Frontier):
    """The same methods, nothing varied, over heterogeneity and over clients."""

    key: ClassVar[str] = "frontier_strip"
    title: ClassVar[str] = "All methods over heterogeneity and clients"

    @property
    def worker(self) -> Frontier:
        return Frontier()

    def piece(self, settings: FrontierSettings, data: OwnData | None) -> Run[Front]:
        return self.worker.run(settings, data)

    def wanted(self, settings: FrontierSettings) -> bool:
        return settings.strip and (settings.problem != "table" or not settings.client_column)

    def placed(self, settings: FrontierSettings) -> list[Placed]:
        base = replace(settings, vary="none", seeds=1, searches=False)
        return [
            (name, float(value), replace(base, **{name: value}, seed=seed))  # type: ignore[arg-type]
            for name, values in STRIPS.items()
            for value in values
            for seed in _seeds(settings)[:STRIP_SEEDS]
        ]


def _seeds(settings: FrontierSettings) -> list[int]:
    return [(settings.seed + k) % 100_000 for k in range(settings.seeds)]


def _pieces(settings: FrontierSettings) -> Iterator[FrontierSettings]:
    """First the paths from one seed, then from the others, then what attacks must search for.

    All values of one seed follow each other: they are of the same records, drawn once.
    """
    base = replace(settings, vary="none", seeds=1, starts=1)
    places = [base]
    if settings.vary != "none":
        usual: Value = getattr(settings, settings.vary)
        others = [value for value in VALUES[settings.vary] if value != usual][:5]
        places += [replace(base, **{settings.vary: value}) for value in others]  # type: ignore[arg-type]
    along = [
        (here, tuple(m for m in settings.candidates if here is base or varies(m, base, here)))
        for here in places
    ]
    for seed in _seeds(settings):
        for here, some in along:
            if some:
                yield replace(here, candidates=some, seed=seed, searches=False)
    if not settings.searches:
        return
    for number, here in enumerate(places):
        if math.isinf(here.epsilon):
            for method in settings.candidates:
                if not number or (varies(method, base, here) and _searched(method, here)):
                    yield replace(here, candidates=(method,), seed=settings.seed, searches=True)


def _searched(method: str, here: FrontierSettings) -> bool:
    """Whether some attack on the uploads of a method searches."""
    algorithm = build_algorithm(method, here)
    single = not here.secure_aggregation
    return single and (algorithm.replayable or algorithm.uploads is Uploads.FRAMES)


def varies(method: str, base: FrontierSettings, here: FrontierSettings) -> bool:
    """Whether the settings that differ make a difference to a method."""
    if (base.epsilon, base.participation) != (here.epsilon, here.participation):
        return True
    if base.rounds != here.rounds:
        return not METHODS[method].over_at_once(here.participation, here.absent)
    made, other = (build_algorithm(method, settings) for settings in (base, here))
    return bool(made.effective() != other.effective())


def row(method: str, settings: FrontierSettings, problem: Problem) -> dict[str, Any]:
    """One point: run, cost, accuracy, leak."""
    run = made(method, settings, problem)
    stop, reached = ending(run.table, settings)
    last = run.table.iloc[stop]
    search = settings.searches and run.guarantee is None
    found = leak(run, settings, stop, search=search)
    sums = summed(method, settings, problem) if search else Summed()
    down = float(last["bytes_down"])
    masked = run.algorithm.uploads is Uploads.UPDATE or settings.upload_noise > 0
    return {
        "method": method,
        "parameter": "none",
        "value": math.nan,
        "seed": settings.seed,
        "rounds": float(stop),
        "reached": reached,
        "bytes_up": float(last["bytes_up"]),
        "bytes_client": (float(last["bytes_up"]) + down) / problem.clients,
        "local_products": float(last["local_products"]),
        "seconds": float(last["seconds"]),
        "sin_theta": float(last["sin_theta"]),
        "relative_error": float(last["relative_error"]),
        "unexplained": _lost(float(last["objective"]), problem, settings.components),
        "worst_client": worst_client(run, stop),
        "leak": found.error,
        "attack": found.attack,
        "leak_linear": found.linear,
        "leak_sine": found.sine,
        "guess": found.guess,
        "leak_sums": sums.error,
        "pooled": sums.pooled,
        "newcomer": sums.newcomer,
        "records": found.records,
        "epsilon": math.nan if run.guarantee is None else float(run.guarantee.epsilon),
        "protection": "formal" if run.guarantee is not None else "masked" if masked else "none",
        "searched": search,
        "note": run.note,
        "finding": found.findings[0].words,
    }


def ending(table: pd.DataFrame, settings: FrontierSettings) -> tuple[int, bool]:
    """The round in which a run is over, and whether it came below the accuracy."""
    values = table[settings.measure].to_numpy(dtype=float)[1:]
    aim = max(settings.accuracy, SETTLED * float(values[-1]))
    stop = int(np.flatnonzero(values <= aim)[0]) + 1
    return stop, bool(values[stop - 1] <= settings.accuracy)


def _lost(explained: float, problem: Problem, components: int) -> float:
    """Share of the best possible explained variance that the answer misses."""
    best = float(problem.eigenvalues[:components].sum() / problem.eigenvalues.sum())
    return max(1.0 - explained / best, 0.0)


def worst_client(run: Made, stop: int) -> float:
    """Largest share, over the clients, of what their own best space explains that is lost."""
    truth = run.problem.unperturbed
    frame = run.trace.estimates[stop]
    frame = np.linalg.qr(frame)[0]
    components = run.algorithm.components
    data = truth.client_data

    def tops() -> Array:
        values = np.linalg.eigvalsh(data.dense())
        return np.asarray(values[:, -components:].sum(axis=1))

    best = _BEST.get((truth.digest, components), tops)
    explained = np.einsum("fp,cfg,gp->c", frame, data.dense(), frame, optimize=True)
    return float(np.max(1.0 - explained / best))
