"""The records of one client: received, held round by round, certified, by method under attack."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import AnyArray, Array, BoolArray, IntArray
from fedpca_core.attacks.records import Records
from fedpca_core.attacks.without_mean import Differences
from fedpca_core.errors import InvalidInput, check_client, require
from fedpca_core.problems import Problem
from fedpca_core.problems.images import FINE_RESOLUTION
from fedpca_core.studies import costs
from fedpca_core.studies.adversary import RUN, Onlooker, onlooker
from fedpca_core.studies.build import build_problem
from fedpca_core.studies.facts import Facts
from fedpca_core.studies.limits import Cost
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.pca_settings import IMAGES, AttackSettings
from fedpca_core.studies.records import pictures
from fedpca_core.studies.records.held import Held
from fedpca_core.studies.records.routes import Watched, problems, replays, watched
from fedpca_core.studies.records.taken_apart import TakenApart, exactly, take_apart
from fedpca_core.studies.study import Run, Step, Study, part, stacked

#: Records of every client where spectra, which lie on no grid, are replaced by digits.
FEW = 30.0


@dataclass(frozen=True, eq=False)
class MethodRecords:
    """What one method's messages gave away.

    Attributes
    ----------
    directions : (rounds + 1,) int
        How many the server held.
    attack : str
        Which one read the messages, as of `Held.attack`.
    certified : int or None
        Round after which the records are known and proved.
    note : str
        How it ended, in the attack's words.
    distance, log10_chance : float
        The certificate: largest distance to the grid in steps of it, and the decimal logarithm of
        the chance that a wrong rotation passes; NaN without one.
    unique : bool
        Whether no other records (or differences) on the grid explain the matrix.
    step : float or None
        The step of the grid where the server had to guess it.
    exact : int
        Recovered records that are the private ones, value for value (simulation only).
    differences : bool
        Whether only differences are known, because the mean is not: shown are the records above
        the smallest value of each feature.
    pending : bool
        Whether the matrix is still being taken apart.
    answer : float
        Sine of the largest angle that the method's own answer is off by (simulation only).
    columns : (rounds + 1,) int
        Of what came in a round; the first `pictures.SHOWN` of them are shown.
    received, held : (rounds + 1, tiles, rows, columns) float32 in [0, 1]
        What came, and what the server made of it; empty for tables.
    table : pandas.DataFrame or None
        Recovered rows of a table, in the order of the true ones.
    exact_cells : (rows, columns) bool
        Which of them are the private values (simulation only).
    """

    directions: IntArray
    attack: str
    certified: int | None
    note: str
    distance: float
    log10_chance: float
    unique: bool
    step: float | None
    exact: int
    differences: bool
    pending: bool
    answer: float
    columns: IntArray
    received: AnyArray
    held: AnyArray
    table: pd.DataFrame | None
    exact_cells: BoolArray


@dataclass(frozen=True, eq=False)
class Recovered:
    """The section's result.

    Attributes
    ----------
    facts : Facts
    by : Onlooker
    stands_in : bool
        Whether digits stand in for a synthetic spectrum.
    records : int
        How many there are to be found.
    truth : (shown, rows, columns) float32 in [0, 1]
        Private (simulation only).
    rows : pandas.DataFrame or None
        The private rows of a table (simulation only).
    found : mapping of method key to MethodRecords
    refusals : mapping of method key to the sentence why not
    """

    facts: Facts
    by: Onlooker
    stands_in: bool
    records: int
    truth: AnyArray
    rows: pd.DataFrame | None
    found: Mapping[str, MethodRecords]
    refusals: Mapping[str, str]


def stand_in(settings: AttackSettings) -> AttackSettings:
    """The same run on digits where the problem is a spectrum, whose records lie on no grid."""
    if not settings.problem.startswith("decay"):
        return settings
    few = FEW if math.isinf(settings.records_per_client) else settings.records_per_client
    return replace(settings, problem="digits", records_per_client=few, components=10)


class ClientRecords(Study[AttackSettings, Recovered]):
    """Every method under attack, from its messages to the attacked client's records."""

    key: ClassVar[str] = "records"
    title: ClassVar[str] = "The records"
    settings: ClassVar[type[AttackSettings]] = AttackSettings
    reads: ClassVar[frozenset[str]] = (RUN - {"starts"}) | {
        "mean_known", "grid_known", "joined", "once", "fine", "unmask", "seeded", "budget",
    }  # fmt: skip
    seconds: ClassVar[float] = 600.0

    def cost(self, settings: AttackSettings, data: OwnData | None = None) -> Cost:
        chosen = stand_in(settings)
        if chosen.fine and chosen.problem in IMAGES:
            chosen = replace(chosen, resolution=FINE_RESOLUTION[chosen.problem])
        size = costs.Size.of(chosen, data)
        one = costs.run(size, chosen, recorded=True) + costs.linear(size, chosen)
        if settings.unmask and "faps" in settings.attacked:
            one += costs.replay(size, chosen)
        return costs.prepare(size) + one.times((1 + (settings.joined > 0)) * len(chosen.attacked))

    def run(self, settings: AttackSettings, data: OwnData | None = None) -> Run[Recovered]:
        require(len(settings.attacked) > 0, "No method is under attack; choose at least one.")
        yield Step(0.0, "Preparing the records")
        chosen = stand_in(settings)
        stands_in = chosen is not settings
        if chosen.fine and chosen.problem in IMAGES:
            chosen = replace(chosen, resolution=FINE_RESOLUTION[chosen.problem])
        honest = build_problem(replace(chosen, epsilon=math.inf), data)
        truth = honest.unperturbed
        client = chosen.client
        check_client(client, truth.clients, "an attacked client")
        if truth.blocks is None or truth.announced is None:
            raise InvalidInput(
                "The records of this problem are not kept; choose a smaller problem."
            )
        problem, earlier = problems(chosen, data)
        private = truth.blocks[client][:, -chosen.joined :]
        by = onlooker(chosen, truth.clients)
        found: dict[str, MethodRecords] = {}
        refusals: dict[str, str] = {}

        def result() -> Recovered:
            image = truth.image_shape is not None
            return Recovered(
                Facts.of(problem),
                by,
                stands_in,
                private.shape[1],
                _small(pictures.tiles(private[:, : pictures.SHOWN], truth)),
                None if image else _rows(private + pictures.subtracted(truth)[:, None], truth),
                dict(found),
                dict(refusals),
            )

        methods = (*chosen.attacked, *chosen.once)
        for position, method in enumerate(methods):
            begin, middle, end = (position + np.array([0.0, 0.6, 1.0])) / len(methods)
            read: Sequence[Held] = ()
            try:
                if earlier is None and replays(
                    method, chosen
                ):  # a while: the masked messages first
                    masked = watched(problem, method, replace(chosen, unmask=False), by, earlier)
                    seen = yield from part(masked, begin, begin)
                    found[method] = _described(seen, TakenApart(), truth, private, pending=True)
                    yield Step(float(begin), "Replaying", result())
                    read = seen.states
                seeing = watched(problem, method, chosen, by, earlier, read)
                seen = yield from part(seeing, begin, middle)
                found[method] = _described(seen, TakenApart(), truth, private, pending=True)
                yield Step(float(middle), METHODS[method].title, result())
                taken = yield from part(
                    take_apart(
                        seen.states,
                        truth.announced,
                        guarantee=problem.guarantee,
                        grid_known=chosen.grid_known,
                        mean_known=chosen.mean_known,
                    ),
                    middle,
                    end,
                )
                found[method] = _described(seen, taken, truth, private)
            except InvalidInput as refusal:
                refusals[method] = str(refusal)
            yield Step(float(end), METHODS[method].title, result())
        return result()

    def tables(self, result: Recovered, settings: AttackSettings) -> dict[str, pd.DataFrame]:
        found = result.found
        summary = pd.DataFrame(
            {
                "method": [METHODS[method].title for method in found],
                "attack": [one.attack for one in found.values()],
                "records": result.records,
                "certified_after_round": [
                    math.nan if one.certified is None else one.certified for one in found.values()
                ],
                "largest_distance": [one.distance for one in found.values()],
                "log10_chance": [one.log10_chance for one in found.values()],
                "unique": [one.unique for one in found.values()],
                "exact": [one.exact for one in found.values()],
                "differences_only": [one.differences for one in found.values()],
                "method_sine": [one.answer for one in found.values()],
            }
        )
        rounds = stacked(
            {
                "method": METHODS[method].title,
                "round": np.arange(len(one.directions)),
                "directions_held": one.directions,
            }
            for method, one in found.items()
        )
        rows = {
            f"rows_{method}": one.table for method, one in found.items() if one.table is not None
        }
        return {
            "summary": summary,
            "rounds": rounds,
            **rows,
        }


def _described(
    seen: Watched, taken: TakenApart, truth: Problem, private: Array, *, pending: bool = False
) -> MethodRecords:
    """What came of one method, compared with the truth."""
    assert truth.announced is not None
    found, mean = taken.found, pictures.subtracted(truth)[:, None]
    differences = isinstance(found, Differences)
    compared, ordered = private + mean, None
    if taken.round is not None and isinstance(found, Differences) and found.whole is not None:
        step = truth.announced.grid if taken.step is None else taken.step
        compared = private - private.min(axis=1, keepdims=True)
        ordered = pictures.of_either_sign(found.whole * np.reshape(step, (-1, 1)), compared)
    elif taken.round is not None and isinstance(found, Records) and found.values is not None:
        ordered = pictures.in_order_of(found.values, compared)
    cells = np.zeros(private.shape, dtype=bool)
    if ordered is not None:
        cells = exactly(ordered, compared, truth.announced.grid)
    image = truth.image_shape is not None
    shape, shown = pictures.shape_of(truth), min(pictures.SHOWN, private.shape[1])
    held = [pictures.eigen_tiles(state.factor, shown, shape) for state in seen.states]
    if ordered is not None and taken.round is not None:
        last = pictures.tiles(ordered[:, :shown] - mean, truth)
        held[taken.round :] = [last] * (len(held) - taken.round)
    received = [one[:, : pictures.SHOWN] for one in seen.received]
    widest = max(1, *(one.shape[1] for one in received))
    came = [_padded(pictures.column_tiles(one, shape), widest) for one in received]
    certificate = found.certificate if isinstance(found, Records) else None
    judged = found if isinstance(found, Differences) else certificate
    return MethodRecords(
        directions=np.array([state.directions for state in seen.states]),
        attack=seen.states[-1].attack,
        certified=taken.round,
        note="" if found is None else found.note,
        distance=math.nan if judged is None else judged.largest_distance,
        log10_chance=math.nan if judged is None else judged.log10_chance,
        unique=judged is not None and judged.unique,
        step=taken.step,
        exact=int(cells.all(axis=0).sum()),
        differences=differences,
        pending=pending,
        answer=seen.answer,
        columns=np.array([one.shape[1] for one in seen.received]),
        received=_small(np.stack(came)) if image else np.zeros((0, 0, 0, 0), np.float32),
        held=_small(np.stack(held)) if image else np.zeros((0, 0, 0, 0), np.float32),
        table=None if image or ordered is None else _rows(ordered, truth),
        exact_cells=cells.T,
    )


def _rows(values: Array, problem: Problem) -> pd.DataFrame:
    """In the units of the file, to six decimals; no negative zeros."""
    divisor = None if problem.announced is None else problem.announced.divisor
    own = values if divisor is None else values * divisor[:, None]
    return pd.DataFrame(own.T.round(6) + 0.0, columns=list(problem.feature_names) or None)


def _padded(tiles: AnyArray, count: int) -> AnyArray:
    """Grey where a message had fewer columns."""
    grey = np.full((count - len(tiles), *tiles.shape[1:]), 0.5)
    return np.concatenate([tiles, grey])


def _small(tiles: AnyArray) -> AnyArray:
    """Half the memory; a screen shows 256 shades."""
    return tiles.astype(np.float32)
