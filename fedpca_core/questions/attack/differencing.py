"""One record joins, and two runs are subtracted: what secure aggregation does not hide."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from fedpca_core import attacks
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.guarantee import Guarantee, together
from fedpca_core.problems import Problem
from fedpca_core.questions import costs
from fedpca_core.questions.attack.client_trial import ADVERSARIES, RUN, adversary, read_by, two_runs
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.study import Cost, OwnData, Study, pictures, stacked
from fedpca_core.study.build import before_noise
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.pictures import Pictures

#: A difference this nearly of rank one is one record, as far as the server can tell.
PURE = 0.99
#: Shares of an eigenvalue that differ by less are the same.
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class NewcomerRead:
    """What the server reads off two runs of one method, after each round."""

    #: (rounds + 1, features) float64: Signed as the truth is, which two runs leave open.
    records: Array
    #: (rounds + 1,) float64: Share of the leading eigenvalue in the difference; the server can
    #: compute it.
    purity: Array
    #: (rounds + 1,) float64: Sine of the angle to the record (simulation only); 1 where nothing has
    #: been read yet.
    sines: Array
    #: Records behind the reconstruction of the later run.
    count: int

    @property
    def best(self) -> int:
        """The round that the server trusts: the first of the purest difference, up to rounding."""
        return int(np.argmax(self.purity >= self.purity.max() - ROUNDING))

    @property
    def sure(self) -> bool:
        """Whether the server can know that it has the record."""
        return bool(self.purity[self.best] >= PURE)

    @property
    def cosine(self) -> float:
        """To the truth, in the round that the server trusts (simulation only)."""
        return float(np.sqrt(max(1.0 - self.sines[self.best] ** 2, 0.0)))


@dataclass(frozen=True, eq=False)
class NewcomersRead:
    """The record that joined, and what is read of it."""

    #: (features,) float64: Simulation only.
    record: Array
    found: Mapping[str, NewcomerRead]
    refusals: Mapping[str, str]
    #: Names of the features; empty where they have none.
    features: tuple[str, ...]
    #: For image data.
    pictures: Pictures | None
    #: Whether the matrix stands for the records of all clients together.
    from_sums: bool
    #: What the two runs guarantee together, where there is noise at the source.
    guarantee: Guarantee | None


class OneMoreRecord(Study[AttackSettings, NewcomersRead]):
    """Every method under attack twice, with and without one record, and the difference."""

    key = "differencing"
    title = "One more record"
    opened_by = ("differencing", True)
    reads = (RUN - {"starts"}) | {"record"}

    def cost(self, settings: AttackSettings, data: OwnData | None = None) -> Cost:
        size = costs.ProblemSize.of(settings, data)
        one = costs.run(size, settings, recorded=True) + costs.linear(size, settings)
        return costs.prepare(size).kept(2) + one.kept(2).times(len(settings.attacked))

    def run(self, settings: AttackSettings, data: OwnData | None = None) -> Run[NewcomersRead]:
        require(len(settings.attacked) > 0, "No method is under attack; choose at least one.")
        yield Step(0.0, "Preparing the problem")
        problem = before_noise(settings, data)
        later, earlier = two_runs(problem, settings, [settings.record])
        assert problem.blocks is not None  # it has been refused otherwise
        record = problem.blocks[settings.client][:, settings.record]
        stated = [run.guarantee for run in (earlier, later) if run.guarantee is not None]
        require(
            bool(record.any()),
            f"Record {settings.record} is zero throughout and leaves no trace in a covariance; "
            "choose another record.",
        )
        attack = ADVERSARIES[best_adversary(settings, problem.clients)]
        found: dict[str, NewcomerRead] = {}
        refusals: dict[str, str] = {}
        for method, ends in in_turn(settings.attacked):
            try:
                reading = _read(earlier, later, method, settings, attack, record)
                found[method] = yield from part(reading, *ends)
            except InvalidInput as refusal:
                refusals[method] = str(refusal)
        shape, drawn = problem.image_shape, {method: read.records for method, read in found.items()}
        return NewcomersRead(
            record,
            found,
            refusals,
            problem.feature_names,
            None if shape is None else pictures.record(record, drawn, shape, settings.record),
            any(read.count == problem.client_data.samples.sum() for read in found.values()),
            together(stated) if stated else None,
        )

    def tables(self, result: NewcomersRead, settings: AttackSettings) -> dict[str, pd.DataFrame]:
        ends = [
            (METHODS[method].title, read.best, read.purity[read.best], read.cosine, read.count)
            for method, read in result.found.items()
        ]
        columns = ["method", "round", "purity", "cosine", "records_behind"]
        rounds = stacked(
            {
                "method": METHODS[method].title,
                "round": np.arange(len(read.purity)),
                "purity": read.purity,
                "sine": read.sines,
            }
            for method, read in result.found.items()
        )
        return {"summary": pd.DataFrame(ends, columns=columns), "rounds": rounds}


def best_adversary(settings: AttackSettings, clients: int) -> str:
    """The chosen adversary, or where subtracting needs more the best one that only looks on."""
    chosen, _ = adversary(settings, clients)
    return "symmetric" if chosen == "linear" else chosen


def _read(
    earlier: Problem,
    later: Problem,
    method: str,
    settings: AttackSettings,
    attack: str,
    record: Array,
) -> Part[NewcomerRead]:
    first = yield from part(read_by(attack, earlier, method, settings), 0.0, 0.5)
    second = yield from part(read_by(attack, later, method, settings), 0.5, 1.0)
    counts = [attacks.records_behind(run.view, settings.client) for run in (first, second)]
    before, after = first.estimates, second.estimates
    rounds = min(len(before), len(after))  # a method may stop earlier in one of them
    difference = attacks.differencing(before[:rounds], after[:rounds], *counts)
    records, unit = difference.records, record / np.linalg.norm(record)
    sizes = np.linalg.norm(records, axis=-1)
    across = np.linalg.norm(records - (records @ unit)[:, None] * unit, axis=-1)
    sines = np.divide(across, sizes, out=np.ones_like(sizes), where=sizes > 0)
    signs = np.where(records @ record < 0, -1.0, 1.0)[:, None]
    return NewcomerRead(records * signs, difference.purity, sines, counts[1])
