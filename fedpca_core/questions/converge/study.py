"""How fast each method converges and what it costs, and ε × heterogeneity over methods."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedpca_core import metrics
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.stiefel import projector_distance
from fedpca_core.metrics.faps_theorem import BesideTheorem, beside_theorem
from fedpca_core.metrics.linearised import predicted
from fedpca_core.protocol.simulate import Simulation
from fedpca_core.protocol.trace import Round
from fedpca_core.questions import costs
from fedpca_core.remembered import once
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Run, Step
from fedpca_core.study import Cost, InPieces, Measured, OwnData, Sweep, stacked
from fedpca_core.study.build import build_problem, simulation
from fedpca_core.study.facts import Facts
from fedpca_core.study.parts import words
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_core.study.sweep import Band

#: Seconds of computing between two partial results of a comparison. Not those of the clock: where
#: many wait, a quick run would show pictures halfway that keep others waiting longer.
PARTIAL_SECONDS = 1.0

#: The columns of a metrics frame by name.
Columns = Mapping[str, Array]
#: What progress can be charged for.
COSTS: Mapping[str, Callable[[Columns], Array]] = {
    "round": lambda found: found["round"],
    "bytes": lambda found: found["bytes_up"] + found["bytes_down"],
    "local_products": lambda found: found["local_products"],
    "seconds": lambda found: found["seconds"],
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """Metrics of every method and start."""

    tables: Mapping[str, tuple[pd.DataFrame, ...]]
    refusals: Mapping[str, str]
    #: mapping of method key to what a visitor should know of its run (`Algorithm.notes`).
    notes: Mapping[str, tuple[str, ...]]
    facts: Facts
    #: What first-order theory says of each finished run, where it says so
    #: (`fedpca_core.metrics.linearised`; simulation only).
    predictions: Mapping[str, tuple[pd.DataFrame, ...]]
    unpredicted: Mapping[str, str]
    #: False when the comparison was stopped early.
    complete: bool
    #: The method whose last table ends in the middle of a run.
    unfinished: str | None = None
    #: What FAPS's convergence theorem says of its run from the first start (simulation only).
    theorem: BesideTheorem | None = None

    def plus(self, method: str, **found: Any) -> Comparison:
        """With what was found of a method: its tables, its notes, why it was refused."""
        more: dict[str, Any] = {
            name: {**getattr(self, name), method: one} for name, one in found.items()
        }
        return replace(self, **more)

    @property
    def rounds(self) -> int:
        """Rounds of the longest run."""
        return max((len(t) - 1 for tables in self.tables.values() for t in tables), default=0)

    @once  # pandas takes milliseconds to give the columns of a picture
    def columns(self, method: str) -> Sequence[Columns]:
        """The metrics frame of each start as arrays."""
        return [{str(name): one.to_numpy() for name, one in t.items()} for t in self.tables[method]]

    @once  # a page asks in every run, and for every visitor
    def line(self, method: str, measure: str, axis: str) -> Band | None:
        """What to draw of one method, its starts in a band; None where it lacks the measure.

        Along the rounds one that is done before the others keeps its estimate.
        """
        found = self.columns(method)
        shortest = min(len(one[measure]) for one in found)
        values = np.stack([one[measure][:shortest] for one in found])
        if not np.isfinite(values).any():
            return None
        x = np.median([COSTS[axis](one)[:shortest] for one in found], axis=0)
        if axis == "round" and method != self.unfinished:
            values = np.pad(values, ((0, 0), (0, self.rounds + 1 - shortest)), mode="edge")
            x = np.arange(self.rounds + 1.0)
        return Band(x, np.median(values, axis=0), values.min(axis=0), values.max(axis=0))

    def floor(self, method: str, measure: str) -> float | None:
        """Where a run ends that never rests: the median of its last fifth."""
        tables = self.tables[method]
        if len(tables[0]) <= 2:
            return None
        tails = [table[measure].iloc[-max(2, len(table) // 5) :] for table in tables]
        found = float(np.median(np.concatenate(tails)))
        return found if np.isfinite(found) else None

    @once
    def guide(self, method: str, measure: str) -> tuple[Array, Array] | None:
        """Rounds and values of the predicted run: the median over the starts, as of the curve."""
        found = self.predictions.get(method, ())
        if not found or len(found) < len(self.tables[method]):
            return None
        courses = [(t["round"].to_numpy(), t[measure].to_numpy()) for t in found]
        begin, end = max(at[0] for at, _ in courses), min(at[-1] for at, _ in courses)
        rounds = np.arange(begin, end + 1)
        values = np.median([of[(at >= begin) & (at <= end)] for at, of in courses], axis=0)
        above = int((np.minimum.accumulate(values) > ABOVE_ROUNDING).sum())
        if above < SHORTEST_GUIDE:
            return None
        return rounds[:above].astype(float), values[:above]

    def curves(self) -> pd.DataFrame:
        """All metrics frames below each other, with columns method and start in front."""
        return stacked(
            {"method": METHODS[method].title, "start": start, **table}
            for method, tables in self.tables.items()
            for start, table in enumerate(tables)
        )

    @once
    def summary(self, measure: str, accuracy: float) -> pd.DataFrame:
        """What each method needs to bring ``measure`` below ``accuracy``: medians over starts.

        Methods that lack the measure (no frames at clients, no consensus gap) have no row.
        Columns: method, reached (starts that got there), starts, round, bytes, local_products,
        seconds (medians over the starts that got there; NaN if none), final (median last value).
        """
        rows = []
        for method in self.tables:
            starts = self.columns(method)
            if np.isnan(starts[0][measure]).all():
                continue
            hits = [metrics.row_reached(one["round"], one[measure], accuracy) for one in starts]
            found = [(one, row) for one, row in zip(starts, hits, strict=True) if row is not None]
            spent = {
                name: float(np.median([cost(one)[row] for one, row in found])) if found else np.nan
                for name, cost in COSTS.items()
            }
            final = float(np.median([one[measure][-1] for one in starts]))
            title, reached = METHODS[method].title, {"reached": len(found), "starts": len(starts)}
            rows.append({"method": title, **reached, **spent, "final": final})
        return pd.DataFrame(rows)


#: Guides end where they come this low: below, rounding plays a part.
ABOVE_ROUNDING = 1e-11
#: Fewer rounds than this make no guide.
SHORTEST_GUIDE = 6

#: A run is at rest after so many rounds without motion, in which every client took part so often.
PATIENCE, TURNS = 12, 2
#: Largest distance between two estimates that is rounding; half a squared one that is none.
MOTION, PLAIN = 1e-13, 1e-10


def until_rest(run: Simulation) -> Iterator[Round]:
    """The rounds of a run before it comes to rest: its estimate no longer moves beyond rounding.

    The remaining rounds would repeat the last point of every curve. The patience spans two checks
    of FAPS's penalty rule, which may set a resting run in motion again. A server that waits for
    absent clients stands still too (block Krylov until everybody has answered a test matrix), so
    every client must have taken part twice in the meantime.
    """
    last: Array | None = None
    still, turns = 0, np.zeros(run.setting.clients, dtype=np.int64)
    for entry in run:
        if last is not None:
            if _moved(last, entry.estimate):
                still = 0
                turns[:] = 0
            else:
                still += 1
                turns[run.participants] += 1
        last = entry.estimate
        if still >= PATIENCE and (turns >= TURNS).all():
            return
        yield entry


def _moved(last: Array, now: Array) -> bool:
    if last.ndim == 2 and last.shape == now.shape:
        # p - ||X^T Z||_F^2 is half the squared distance up to rounding, and costs little.
        along = last.T @ now
        if now.shape[1] - float(np.vdot(along, along)) > PLAIN:
            return True
    return float(np.max(projector_distance(last, now))) >= MOTION


NO_METHOD = "No method is chosen, so there is nothing to compare; choose at least one."


class Convergence(InPieces[ConvergeSettings, Comparison]):
    """Every chosen method from every start, each until it rests; a start is a piece."""

    key = "convergence"
    title = "Convergence and costs"
    seconds = 180.0
    unit = "starts"
    look: ClassVar[Mapping[str, Any]] = {"rounds": 20, "starts": 1}

    def cost(self, settings: ConvergeSettings, data: OwnData | None = None) -> Cost:
        size = costs.ProblemSize.of(settings, data)
        runs = settings.starts * len(settings.methods)
        return costs.prepare(size) + costs.run(size, settings).times(runs)

    def pieces(self, settings: ConvergeSettings) -> Sequence[int]:
        require(len(settings.methods) > 0, NO_METHOD)
        return range(settings.starts)

    def piece_identity(
        self, settings: ConvergeSettings, which: int, data: OwnData | None
    ) -> Hashable:
        """A start is the same however many others there are, in whatever order of the methods."""
        return self.identity(replace(settings.run_key(), starts=1), data), which

    def run_piece(
        self, settings: ConvergeSettings, which: int, data: OwnData | None
    ) -> Run[Comparison]:
        """Every chosen method from one start, each until it rests."""
        settings = settings.run_key()
        yield Step(0.0, "Preparing the problem")
        problem = build_problem(settings, data)
        found = Comparison({}, {}, {}, Facts.of(problem), {}, {}, complete=True)

        def so_far(run: Simulation, method: str) -> Comparison:
            table = metrics.frame(run.trace(), problem)
            return replace(found.plus(method, tables=(table,)), complete=False, unfinished=method)

        shown = time.process_time()
        for position, method in enumerate(settings.methods):
            title = METHODS[method].title
            try:
                run = simulation(problem, method, settings, start=which, record="estimates")
                found = found.plus(method, notes=run.algorithm.notes(run.setting))
                for entry in until_rest(run):
                    if entry.index % 10 == 0:
                        share = (position + entry.index / settings.rounds) / len(settings.methods)
                        late = time.process_time() - shown > PARTIAL_SECONDS
                        yield Step(share, title, so_far(run, method) if late else None)
                        shown = time.process_time() if late else shown
                trace = run.trace()
                found = found.plus(method, tables=(metrics.frame(trace, problem),))
                if which == 0 and found.theorem is None:
                    found = replace(found, theorem=beside_theorem(trace, problem))
            except InvalidInput as refusal:
                found = found.plus(method, refusals=str(refusal))
                continue
            try:
                require(settings.upload_noise == 0, words("converge-noisy-uploads"))
                found = found.plus(method, predictions=(predicted(trace, problem),))
            except InvalidInput as refusal:
                found = found.plus(method, unpredicted=str(refusal))
        return found

    def outlined(self, outlines: Comparison) -> Comparison:
        return replace(outlines, complete=False)

    def gathered(self, settings: ConvergeSettings, found: Sequence[Comparison]) -> Comparison:
        tables: dict[str, tuple[pd.DataFrame, ...]] = {}
        predictions: dict[str, tuple[pd.DataFrame, ...]] = {}
        for one in found:
            for method, own in one.tables.items():
                if method != one.unfinished or method not in tables:  # half a run beside whole ones
                    tables[method] = (*tables.get(method, ()), *own)
            for method, own in one.predictions.items():
                predictions[method] = (*predictions.get(method, ()), *own)
        said: dict[str, Any] = {
            name: dict(chain.from_iterable(getattr(one, name).items() for one in found))
            for name in ("refusals", "notes", "unpredicted")
        }
        complete = len(found) == settings.starts and all(one.complete for one in found)
        now: dict[str, Any] = {"complete": complete, "unfinished": found[-1].unfinished}
        return replace(found[0], tables=tables, predictions=predictions, **said, **now)

    def tables(self, result: Comparison, settings: ConvergeSettings) -> dict[str, pd.DataFrame]:
        return {
            "summary": result.summary(settings.measure, settings.accuracy),
            "curves": result.curves(),
        }


BUDGETS = (0.1, 0.5, 2.0, 10.0, 50.0, math.inf)
HETEROGENEITIES = (0.0, 0.25, 0.5, 1.0)


def measure_at(heterogeneity: float) -> str:
    """The name of what is measured at one heterogeneity."""
    return f"sin_theta at heterogeneity {heterogeneity:g}"


def levels(settings: ConvergeSettings) -> tuple[float, ...]:
    """Heterogeneities that are tried: clients of a column are as they are."""
    return (settings.heterogeneity,) if settings.client_column else HETEROGENEITIES


class BudgetsAndHeterogeneity(Sweep[ConvergeSettings]):
    """Sine of the largest angle after the last round, by method, budget and heterogeneity.

    The noise is laid on every client's matrix once, so all methods of one federation pay the same
    ε; they differ in what they make of the noisy matrices, and in whether they arrive in time.
    """

    key = "budgets"
    title = "ε against heterogeneity"
    along = ("epsilon", BUDGETS)
    opened_by = ("budgets", True)
    seconds = 300.0

    def cost(self, settings: ConvergeSettings, data: OwnData | None = None) -> Cost:
        size = costs.ProblemSize.of(settings, data)
        levels_ = costs.prepare(size).times(len(BUDGETS) * len(levels(settings)))
        runs = len(BUDGETS) * len(levels(settings)) * settings.starts * len(settings.methods)
        return levels_ + costs.run(size, settings).times(runs)

    def seeds(self, settings: ConvergeSettings) -> Sequence[int]:
        return range(settings.starts)

    def at(self, settings: ConvergeSettings, value: Value, seed: int) -> ConvergeSettings:
        """The seeds are of the starts; the data keep the settings' own, the noise is drawn anew."""
        return super().at(settings, value, settings.seed)

    def measure(
        self, settings: ConvergeSettings, seed: int, data: OwnData | None
    ) -> Part[Measured]:
        require(len(settings.methods) > 0, NO_METHOD)
        found: dict[str, dict[str, float]] = {METHODS[m].title: {} for m in settings.methods}
        refused = ""
        steps = [(eta, method) for eta in levels(settings) for method in settings.methods]
        for at, (eta, method) in enumerate(steps):
            yield Step(at / len(steps), METHODS[method].title)
            here, whose = replace(settings, heterogeneity=eta), ""
            try:
                problem = build_problem(here, data)  # which may refuse whatever the method
                whose = f"{METHODS[method].title}: "
                run = simulation(problem, method, here, start=seed, record="estimates")
                deque(until_rest(run), 0)
            except InvalidInput as refusal:
                refused = f"{whose}{refusal}"
                continue
            table = metrics.frame(run.trace(), problem)
            found[METHODS[method].title][measure_at(eta)] = float(table["sin_theta"].iloc[-1])
        if not any(found.values()):
            raise InvalidInput(refused)
        return found
