"""All methods on one problem, as points and as paths over a parameter, in one tidy table."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import nan
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.attacks.attack import Effort
from fedpca_core.attacks.registry import searching
from fedpca_core.errors import InvalidInput, require
from fedpca_core.findings import Target
from fedpca_core.problems import Problem
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.questions import costs
from fedpca_core.questions.which import runs
from fedpca_core.questions.which.settings import VALUES, FrontierSettings
from fedpca_core.settings import Value
from fedpca_core.steps import Run, Step
from fedpca_core.study import Cost, InPieces, OwnData
from fedpca_core.study.deployed import public_deployment
from fedpca_core.study.facts import Facts

#: Entries of all clients' matrices beyond which the picture is of one seed.
MANY = 1_000_000
#: A share of the whole variance that nobody misses.
NOTHING = 0.001
#: A run that never comes below the accuracy is over once it is this close to where it ends, and
#: explains all but `NOTHING` of what it explains there.
SETTLED = 1.05
#: What the table says of a run, as long as nothing is known of it.
UNKNOWN: Mapping[str, Any] = {
    "method": "", "parameter": "none", "value": nan, "seed": 0, "rounds": nan, "reached": False,
    "bytes_up": nan, "bytes_client": nan, "local_products": nan, "seconds": nan,
    "sin_theta": nan, "relative_error": nan, "unexplained": nan, "worst_client": nan,
    "leak": nan, "attack": "", "records": nan, "epsilon": nan, "protection": "none",
    "searched": False, "note": "", "finding": "", "in_sums": "", "joins_sums": "",
}  # fmt: skip
#: What the row that searched says of its configuration: findings of the covariance from what is
#: sent here and from sums alone, and of a record that joins between two runs of sums.
_FIRST = ("attack", "protection", "searched", "note", "finding", "in_sums", "joins_sums")
#: What is known after every round, up to the end of a run.
PATH = ("method", "seed", "round", "bytes_client", "sin_theta", "unexplained", "worst_client")
#: What identifies a point.
POINT = ["method", "parameter", "value", "seed"]
#: What makes a difference to every method.
OF_ALL = ("epsilon", "participation", "heterogeneity", "clients")


@dataclass(frozen=True, eq=False)
class Front:
    #: Columns of `UNKNOWN`, one run a row; ``protection`` is "none", "masked" or "formal".
    table: pd.DataFrame
    refusals: Mapping[str, str]
    #: Of the problem at the size that was run.
    facts: Facts
    #: Columns `PATH`, one round of a run a row; of a single configuration only.
    paths: pd.DataFrame

    def points(self) -> pd.DataFrame:
        """One row a configuration: medians over its seeds, with ``_low`` and ``_high`` for every
        number. What only the run that searched knows stands for all of them."""
        names, table = POINT[:-1], self.table
        numbers = table.select_dtypes(float).columns.difference(POINT, sort=False)
        ordered = table.sort_values("searched", ascending=False, kind="stable")
        groups = ordered.groupby(names, sort=False, dropna=False)
        values = groups[list(numbers)]
        spans = [
            values.median(),
            values.min().add_suffix("_low"),
            values.max().add_suffix("_high"),
            groups["reached"].mean(),
            groups.size().rename("seeds"),
            groups[list(_FIRST)].first(),
        ]
        found = pd.concat(spans, axis=1).reset_index()
        return table.drop_duplicates(names)[names].merge(found, on=names, how="left")


def pareto(points: pd.DataFrame, across: str, upward: str) -> list[int]:
    """Rows that no other beats on both axes, the best across first.

    Rows without a number on either axis are left out.
    """
    # An attack that errs more leaks less; everywhere else less is better.
    signs = [-1 if axis == "leak" else 1 for axis in (across, upward)]
    signed = (points[[across, upward]] * signs).set_axis(["across", "upward"], axis=1)
    known = signed[signed.apply(np.isfinite).all(axis=1)]
    chosen = known.sort_values(["across", "upward"], kind="stable")["upward"]
    front: list[int] = chosen.index[chosen < chosen.cummin().shift(fill_value=math.inf)].tolist()
    return front


def shown(points: pd.DataFrame, across: str, upward: str) -> pd.DataFrame:
    """The points that belong on these axes: formal and heuristic protection share none.

    Where a run states an ε, how close an attack comes is no measure of what is protected; where it
    states none it has no place on an axis of ε.
    """
    formal = points["protection"] == "formal"
    if "epsilon" in (across, upward):
        points = points[formal]
    elif "leak" in (across, upward):
        points = points[~formal]
    return points[points[[across, upward]].apply(np.isfinite).all(axis=1)]


class Frontier(InPieces[FrontierSettings, Front]):
    """Every candidate at every value from every seed."""

    key = "frontier"
    title = "All methods on one problem"
    seconds = 300.0

    def cost(self, settings: FrontierSettings, data: OwnData | None = None) -> Cost:
        every = [_cost(piece, data) for piece in (self.pieces(settings) or [settings])]
        return Cost(max(one.megabytes for one in every), sum(one.seconds for one in every))

    #: Whether attacks read what is sent.
    attacked = True

    def pieces(self, settings: FrontierSettings) -> Sequence[FrontierSettings]:
        return _pieces(settings)

    def piece(self, settings: FrontierSettings, data: OwnData | None) -> Run[Front]:
        require(
            len(settings.candidates) > 0,
            "No candidate is chosen, so there is nothing to compare; choose at least one.",
        )
        yield Step(0.0, "Preparing the problem")
        problem = runs.problem_of(settings, data)
        rows: list[dict[str, Any]] = []
        paths: list[pd.DataFrame] = []
        refusals: dict[str, str] = {}
        facts = Facts.of(problem)
        for count, method in enumerate(settings.candidates, 1):
            try:
                one, path = row(method, settings, problem, self.attacked)
            except InvalidInput as refusal:
                refusals[METHODS[method].title] = str(refusal)
            else:
                rows.append(one)
                paths.append(path)
            run = pd.concat(paths) if paths else pd.DataFrame(columns=list(PATH))
            # Numbers are numbers also where every candidate was refused.
            table = pd.DataFrame([UNKNOWN, *rows])[1:].reset_index(drop=True)
            found = Front(table, {**refusals}, facts, run)
            yield Step(count / len(settings.candidates), METHODS[method].title, found)
        return found

    def gathered(self, settings: FrontierSettings, found: Sequence[Front]) -> Front:
        name = settings.vary
        tables = [
            front.table.assign(parameter=name, value=float(getattr(piece, name, nan)))
            for piece, front in zip(self.pieces(settings), found, strict=False)
        ]
        table = pd.concat([t for t in tables if len(t)] or tables[:1], ignore_index=True)
        table = told_once(table, POINT)
        ran = {METHODS[key].title for key in table["method"]}  # perhaps at other values
        every = (item for front in found for item in front.refusals.items() if item[0] not in ran)
        return Front(table.reset_index(drop=True), dict(every), found[0].facts, found[0].paths[:0])

    def tables(self, result: Front, settings: FrontierSettings) -> dict[str, pd.DataFrame]:
        refused = pd.DataFrame(result.refusals.items(), columns=["method", "refusal"])
        tables = {"runs": result.table, "points": result.points()}
        return tables | ({"refused": refused} if len(refused) else {})


def told_once(table: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """A row a run: what a search found replaces the row that waited for it."""
    ordered = table.sort_values("searched", ascending=False, kind="stable")
    return ordered.drop_duplicates(by).sort_index()


def _cost(piece: FrontierSettings, data: OwnData | None) -> Cost:
    """What all candidates take on one problem, of as many clients as are run."""
    size = costs.ProblemSize.of(piece, data)
    part = min(1.0, runs.most_clients(size.features) / size.clients)
    size = replace(size, clients=math.ceil(size.clients * part), records=size.records * part)
    # All messages are read once, at the end.
    once = costs.linear(size, piece)
    read = Cost(once.megabytes / piece.rounds, once.seconds / piece.rounds)
    one = costs.run(size, piece, recorded=True) + read
    whole = costs.prepare(size) + one.times(len(piece.candidates))
    # What searches for longer is not tried. A run is read until it is over, about half of it.
    tried = [_searching(key, piece, size) for key in piece.candidates if piece.searches]
    kept = costs.replay(size, piece).megabytes / 2 if any("replay" in one for one in tried) else 0.0
    return whole + Cost(kept, runs.SEARCH * piece.searches)


class Unattacked(Frontier):
    """The same without a word about what leaks."""

    key = "frontier_unattacked"
    attacked = False


def seeds_of(settings: FrontierSettings) -> list[int]:
    """The seeds of the picture; where every run is long, the first."""
    if settings.features**2 * settings.clients > MANY:
        return [settings.seed]
    return [(settings.seed + k) % 100_000 for k in range(settings.seeds)]


@lru_cache(maxsize=32)
def _pieces(settings: FrontierSettings) -> list[FrontierSettings]:
    """First the paths from one seed, then from the others, then what attacks must search for.

    All values of one seed follow each other: they are of the same records, drawn once. Nobody
    changes the list.
    """
    if settings.vary == "none" and settings.seeds == 1:
        return []
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
    pieces = [
        replace(here, candidates=some, seed=seed, searches=False)
        for seed in seeds_of(settings)
        for here, some in along
        if some
    ]
    for here in places if settings.searches else ():
        for method in settings.candidates if math.isinf(here.epsilon) else ():
            if here is base or (varies(method, base, here) and searched(method, here)):
                pieces.append(replace(here, candidates=(method,), searches=True))
    return pieces


def searched(method: str, here: FrontierSettings) -> bool:
    """Whether an attack on what a method sends has to search, and takes no longer than is tried.

    Where the records may lie on a grid, which only the data say, that is left to the run.
    """
    if not here.problem.startswith("decay"):
        return not here.secure_aggregation
    return bool(_searching(method, here, costs.ProblemSize.of(here)))


def _searching(method: str, here: FrontierSettings, size: costs.ProblemSize) -> list[str]:
    """The attacks on what a method sends that search, and take no longer than is tried."""
    samples = np.full(size.clients, int(size.records / size.clients))
    made = METHODS[method].make(here)
    public = public_deployment(here, made, size.features, samples, rounds=here.rounds)
    return searching(public, here.client, runs.SEARCH)


def varies(method: str, base: FrontierSettings, here: FrontierSettings) -> bool:
    """Whether the settings that differ make a difference to a method."""
    if any(getattr(base, name) != getattr(here, name) for name in OF_ALL):
        return True
    if base.rounds != here.rounds:
        return not METHODS[method].over_at_once(here.participation, here.absent)
    make = METHODS[method].make
    return bool(make(base).effective() != make(here).effective())


def row(
    method: str, settings: FrontierSettings, problem: Problem, attacked: bool = True
) -> tuple[dict[str, Any], pd.DataFrame]:
    """One point: run, cost, accuracy, leak; and the way there, round by round."""
    run, values = runs.made(method, settings, problem), problem.eigenvalues
    best = float(values[: settings.components].sum() / values.sum())
    stop, reached = ending(run.table, settings)
    path = pd.DataFrame(
        {
            "method": method,
            "seed": settings.seed,
            "round": run.table["round"].astype(float),
            "bytes_client": (run.table["bytes_up"] + run.table["bytes_down"]) / problem.clients,
            "sin_theta": run.table["sin_theta"],
            "unexplained": (1.0 - run.table["objective"] / best).clip(lower=0.0),
        }
    ).iloc[: stop + 1]
    path["worst_client"] = runs.losses(run, stop)
    last = run.table.iloc[stop]
    search = settings.searches and run.guarantee is None
    masked = run.algorithm.uploads is Uploads.UPDATE or settings.upload_noise > 0
    leaks = _leaks(method, run, settings, stop, search) if attacked else {}
    return {
        **UNKNOWN,
        "rounds": float(stop),
        "reached": reached,
        "bytes_up": float(last["bytes_up"]),
        "local_products": float(last["local_products"]),
        "seconds": float(last["seconds"]),
        "relative_error": float(last["relative_error"]),
        **{name: path[name].iloc[-1] for name in PATH if name != "round"},
        "epsilon": nan if run.guarantee is None else float(run.guarantee.epsilon),
        "protection": "formal" if run.guarantee is not None else "masked" if masked else "none",
        "searched": search,
        "note": run.note,
        **leaks,
    }, path


def _leaks(
    method: str, run: runs.Made, settings: FrontierSettings, rounds: int, search: bool
) -> dict[str, Any]:
    """What attacks get from the first rounds of a run, and from sums."""
    effort = Effort(settings.budget, longest=runs.SEARCH if search else 0.0)
    tried = runs.attempt(run, settings, rounds, effort)
    got = tried.got[Target.COVARIANCE]
    records = tried.got.get(Target.RECORDS)
    sums = runs.in_sums(method, settings, run.problem) if search else None
    said = {one.target: one.words for one in sums.findings} if sums else {}
    return {
        "leak": nan if tried.waits(Target.COVARIANCE) else got.figure,
        "attack": got.attack,
        "records": records.figure if records is not None and search else nan,
        "finding": tried.findings[0].words,
        "in_sums": said.get(Target.COVARIANCE, ""),
        "joins_sums": said.get(Target.NEWCOMER, ""),
    }


def ending(table: pd.DataFrame, settings: FrontierSettings) -> tuple[int, bool]:
    """The round in which a run is over, and whether it came below the accuracy."""
    values = table[settings.measure].to_numpy(dtype=float)[1:]
    explained = table["objective"].to_numpy(dtype=float)[1:]
    # Among many directions the largest angle is near 90° from the first round to the last.
    settled = (values <= SETTLED * values[-1]) & (explained >= (1 - NOTHING) * explained[-1])
    stop = int(np.flatnonzero((values <= settings.accuracy) | settled)[0]) + 1
    return stop, bool(values[stop - 1] <= settings.accuracy)
