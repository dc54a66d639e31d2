"""Where FAPS's tables may have stopped: every method of a table, read at every stopping rule.

The text states rule (27) with a tolerance that does not give its printed errors, and says nothing
else. One run is read at each rule, so that all methods of a table have the same ones.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from fedpca_core import metrics
from fedpca_core.papers.experiment import Cell, Number, Size
from fedpca_core.papers.faps_runs import CHANGE, COMPARED, LONGEST, FapsConvergence
from fedpca_core.papers.leading import Leading
from fedpca_core.papers.pooled import Pooled
from fedpca_core.problems.spectrum import singular_values
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import stream
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Step

#: Methods of the tables, and the reading with five inner steps.
METHODS = ("SSI", "LocalPower", "FAPS, as printed", "FAPS, 5 inner steps")
#: Rules by name, and the level at which each stops. The violation that is not scaled and the
#: objective's own change are those of data whose largest singular value is 1, as the paper's are.
RULES: Mapping[str, float] = {
    "rule (27)": CHANGE,
    "rule (27) at 2e-9": 2e-9,
    "objective's change at most 3e-8": 3e-8,
    "scaled violation at most 2e-6": 2e-6,
    "violation at most 1e-4, not scaled": 1e-4,
}
#: Features with singular values below this share of the largest are left out: their products are
#: below 1e-10 of the largest, and errors are read down to 1e-7.
NEGLIGIBLE = 1e-5


class Stopped(FapsConvergence):
    """One of FAPS's tables, read at every rule of `RULES`."""

    measure = ""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.key, self.title, self.measure = f"{name}-stops", f"{self.title}: where runs stop", ""

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        return [
            Cell(
                self._part(value),
                series,
                seed,
                {**self._fields(size, value), "series": series, "rules": dict(RULES)},
            )
            for value in self._values(size)
            for series in METHODS
            for seed in range(seeds)
        ]

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: preparing the data")
        value = self._value(cell, size)
        problem = self._made(size, value)
        algorithm = COMPARED[cell.series](int(cell.configuration["components"]))
        if algorithm.near == "power":
            algorithm = Pooled(algorithm, problem.covariance)
        features = int(self._fields(size, value).get("features", problem.features))
        if problem.features < features:
            algorithm = Leading(algorithm, features)
        spectrum = np.linalg.eigvalsh(problem.covariance)
        trace, largest = float(spectrum.sum()), float(spectrum[-1])
        wire = Channel(record="estimates")
        stops: dict[str, tuple[float, float, float]] = {}
        before = float("nan")
        for entry in stream(problem, algorithm, rounds=LONGEST, seed=cell.seed, channel=wire):
            found = metrics.subspace_errors(entry.estimate[None], problem, algorithm.components)
            error, kkt, objective = (
                float(found[name][0]) for name in ("relative_error", "kkt", "objective")
            )
            change = abs(objective - before)
            levels = {
                "rule (27)": change / abs(objective),
                "rule (27) at 2e-9": change / abs(objective),
                "objective's change at most 3e-8": change * trace / largest,
                "scaled violation at most 2e-6": kkt,
                "violation at most 1e-4, not scaled": kkt * trace / largest,
            }
            before = objective
            for rule, level in levels.items():
                if entry.index and level <= RULES[rule]:
                    stops.setdefault(rule, (float(entry.index), kkt, error))
            if len(stops) == len(RULES):
                break
            if entry.index % 10 == 0:
                yield Step(0.5, f"{cell.name}: round {entry.index}, error {error:.1e}")
        return [
            Number(cell.series, f"{measure}, {rule}", value)
            for rule, values in stops.items()
            for measure, value in zip(("rounds", "kkt", "relative_error"), values, strict=True)
        ]

    def _leading(self, size: Size, value: Value | None) -> int | None:
        fields = self._fields(size, value)
        if size != "paper" or "decay" not in fields:
            return None
        roots = singular_values(fields["features"], fields["decay"], None)
        kept = int((roots > NEGLIGIBLE).sum()) + int(fields["components"])
        return kept if kept < len(roots) else None
