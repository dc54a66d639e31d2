"""The records of one client: received, held round by round, certified, by method under attack."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS, replayable
from fedpca_core.arrays import AnyArray, Array, BoolArray, IntArray
from fedpca_core.attacks.attack import arrived, unpacked
from fedpca_core.attacks.lattice.records import Records
from fedpca_core.errors import InvalidInput, check_client, require
from fedpca_core.findings import Finding
from fedpca_core.problems import Problem
from fedpca_core.problems.images import FINE_RESOLUTION
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.questions import costs
from fedpca_core.questions.attack.client_trial import RUN, ClientTrial, client_trial, problems, said
from fedpca_core.questions.attack.records import pictures
from fedpca_core.steps import Run, Step, changed, in_turn
from fedpca_core.study import Cost, OwnData, Study, stacked
from fedpca_core.study.build import before_noise
from fedpca_core.study.deployed import subtracted
from fedpca_core.study.facts import Facts
from fedpca_core.study.pca_settings import IMAGES, AttackSettings

#: Records of every client where spectra, which lie on no grid, are replaced by digits.
FEW = 30.0


@dataclass(frozen=True, eq=False)
class MethodRecords:
    #: (rounds + 1,) int: How many the server held.
    directions: IntArray
    #: Key of the one that read the messages.
    attack: str
    #: After every round: of the client's matrix (or the sum), and of its records.
    findings: tuple[tuple[Finding, Finding], ...]
    #: The records, or how the attack on them ended. Where only their differences are known, those
    #: above the smallest value of each feature are shown.
    taken: Records
    #: Recovered records that are the private ones, value for value (simulation only).
    exact: int
    #: Sine of the largest angle that the method's own answer is off by (simulation only).
    answer: float
    #: (rounds + 1,) int: Of what came in a round; the first `pictures.SHOWN` of them are shown.
    columns: IntArray
    #: received, held: (rounds + 1, tiles, rows, columns) float32 in [0, 1]: What came, and what the
    #: server made of it; empty for tables.
    received: AnyArray
    held: AnyArray
    #: Recovered rows of a table, in the order of the true ones.
    table: pd.DataFrame | None
    #: (rows, columns) bool: Which of them are the private values (simulation only).
    exact_cells: BoolArray


@dataclass(frozen=True, eq=False)
class RecordsTaken:
    facts: Facts
    #: Whether digits stand in for a synthetic spectrum.
    stands_in: bool
    #: How many there are to be found.
    records: int
    #: (shown, rows, columns) float32 in [0, 1]: Private (simulation only).
    truth: AnyArray
    #: The private rows of a table (simulation only).
    rows: pd.DataFrame | None
    found: Mapping[str, MethodRecords]
    refusals: Mapping[str, str]


def stand_in(settings: AttackSettings) -> AttackSettings:
    """The same run on digits where the problem is a spectrum, whose records lie on no grid."""
    if not settings.problem.startswith("decay"):
        return settings
    few = FEW if math.isinf(settings.records_per_client) else settings.records_per_client
    return replace(settings, problem="digits", records_per_client=few, components=10)


def _finer(settings: AttackSettings) -> AttackSettings:
    fine = settings.fine and settings.problem in IMAGES
    return replace(settings, resolution=FINE_RESOLUTION[settings.problem]) if fine else settings


class ClientRecords(Study[AttackSettings, RecordsTaken]):
    """Every method under attack, from its messages to the attacked client's records."""

    key = "records"
    title = "The records"
    reads = (RUN - {"starts"}) | {
        "mean_known", "grid_known", "joined", "once", "fine", "unmask", "seeded", "budget",
    }  # fmt: skip
    seconds = 600.0

    def cost(self, settings: AttackSettings, data: OwnData | None = None) -> Cost:
        chosen = _finer(stand_in(settings))
        size = costs.ProblemSize.of(chosen, data)
        one = costs.run(size, chosen, recorded=True) + costs.linear(size, chosen)
        if settings.unmask and any(map(replayable, settings.attacked)):
            one += costs.replay(size, chosen)
        return costs.prepare(size) + one.times((1 + (settings.joined > 0)) * len(chosen.attacked))

    def run(self, settings: AttackSettings, data: OwnData | None = None) -> Run[RecordsTaken]:
        require(len(settings.attacked) > 0, "No method is under attack; choose at least one.")
        yield Step(0.0, "Preparing the records")
        stood_in = stand_in(settings)
        chosen = _finer(stood_in)
        truth = before_noise(chosen, data).unperturbed
        client = chosen.client
        check_client(client, truth.clients, "an attacked client")
        if truth.blocks is None or truth.announced is None:
            raise InvalidInput(
                "The records of this problem are not kept; choose a smaller problem."
            )
        problem, earlier = problems(chosen, data)
        private = truth.blocks[client][:, -chosen.joined :]
        found: dict[str, MethodRecords] = {}
        refusals: dict[str, str] = {}

        def result() -> RecordsTaken:
            image = truth.image_shape is not None
            return RecordsTaken(
                Facts.of(problem),
                stood_in is not settings,
                private.shape[1],
                pictures.tiles(private[:, : pictures.SHOWN], truth).astype(np.float32),
                None if image else _rows(private + subtracted(truth)[:, None], truth),
                dict(found),
                dict(refusals),
            )

        def news(
            method: str, begin: float, end: float, step: Step[ClientTrial]
        ) -> Step[RecordsTaken]:
            if step.result is not None:
                found[method] = _described(step.result, truth, private)
            share = begin + (end - begin) * step.fraction
            return Step(share, step.text, None if step.result is None else result())

        for method, share in in_turn((*chosen.attacked, *chosen.once)):
            try:
                tried = client_trial(problem, method, chosen, earlier)
                seen = yield from changed(tried, partial(news, method, *share))
                found[method] = _described(seen, truth, private)
            except InvalidInput as refusal:
                refusals[method] = str(refusal)
            yield Step(share[1], METHODS[method].title, result())
        return result()

    def tables(self, result: RecordsTaken, settings: AttackSettings) -> dict[str, pd.DataFrame]:
        found = result.found
        summary = pd.DataFrame(
            {
                "method": METHODS[method].title,
                "attack": one.attack,
                "records": result.records,
                "certified_after_round": math.nan if taken.round is None else taken.round,
                "largest_distance": getattr(taken.certificate, "largest_distance", math.nan),
                "log10_chance": getattr(taken.certificate, "log10_chance", math.nan),
                "unique": getattr(taken.certificate, "unique", False),
                "exact": one.exact,
                "differences_only": taken.differences and taken.certified,
                "method_sine": one.answer,
            }
            for method, one in found.items()
            for taken in [one.taken]
        )
        rounds = stacked(
            {
                "method": METHODS[method].title,
                "round": np.arange(len(one.directions)),
                "directions_held": one.directions,
            }
            for method, one in found.items()
        )
        rows = {f"rows_{m}": one.table for m, one in found.items() if one.table is not None}
        return {"summary": summary, "rounds": rounds, **rows}


def _described(seen: ClientTrial, truth: Problem, private: Array) -> MethodRecords:
    trial, mean = seen.trial, subtracted(truth)[:, None]
    taken = trial.ended
    ordered, cells = pictures.beside(taken, private, truth)
    image, states = truth.image_shape is not None, trial.shown
    shape, shown = pictures.shape_of(truth), min(pictures.SHOWN, private.shape[1])
    held = [pictures.eigen_tiles(state.factor, shown, shape) for state in states]
    if ordered is not None and taken.round is not None:
        last = pictures.tiles(ordered[:, :shown] - mean, truth)
        held[taken.round :] = [last] * (len(held) - taken.round)
    arrived = [_received(seen.view, trial.client, k) for k in range(len(states))]
    widest = max(1, *(min(one.shape[1], pictures.SHOWN) for one in arrived))
    came = [
        pictures.padded(pictures.column_tiles(one[:, : pictures.SHOWN], shape), widest)
        for one in arrived
    ]
    # Half the memory of float64; a screen shows 256 shades.
    nothing = np.zeros((0, 0, 0, 0), np.float32)
    return MethodRecords(
        directions=np.array([state.read for state in states]),
        attack=trial.best[0],
        findings=tuple(said(trial, k) for k in range(len(states))),
        taken=replace(taken, attempts=()),
        exact=int(cells.all(axis=0).sum()),
        answer=float(seen.table["sin_theta"].iloc[-1]),
        columns=np.array([one.shape[1] for one in arrived]),
        received=np.stack(came, dtype=np.float32) if image else nothing,
        held=np.stack(held, dtype=np.float32) if image else nothing,
        table=None if image or ordered is None else _rows(ordered, truth),
        exact_cells=cells.T,
    )


def _received(view: Transcript, client: int, number: int) -> Array:
    """What a round brought of the client: its upload, or the sum that it is in."""
    for array in arrived(view.exchanges[number - 1], client).values() if number else ():
        if (matrix := unpacked(array, view.features)) is not None:
            return matrix
        if array.ndim == 2 and array.shape[0] == view.features:
            return array
    return np.zeros((view.features, 0))


def _rows(values: Array, problem: Problem) -> pd.DataFrame:
    """In the units of the file, to six decimals; no negative zeros."""
    divisor = None if problem.announced is None else problem.announced.divisor
    own = values if divisor is None else values * divisor[:, None]
    return pd.DataFrame(own.T.round(6) + 0.0, columns=list(problem.feature_names) or None)
