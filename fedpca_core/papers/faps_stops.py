"""Where FAPS's tables may have stopped: every method of a table, read at every stopping rule.

The text states rule (27) with a tolerance that does not give its printed errors, and says nothing
else. One run is read at each rule, so that all methods of a table have the same ones.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from fedpca_core import metrics
from fedpca_core.papers.experiment import Cell, Number, Size
from fedpca_core.papers.faps_runs import CHANGE, LONGEST, FapsConvergence
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import stream
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


class Stopped(FapsConvergence):
    """One of FAPS's tables, read at every rule of `RULES`."""

    #: Products of what is left out are below 1e-10 of the largest; errors are read down to 1e-7.
    negligible = 1e-5
    methods = METHODS
    read_at: ClassVar[Mapping[str, Any]] = {"rules": dict(RULES)}

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.key, self.title, self.measure = f"{name}-stops", f"{self.title}: where runs stop", ""

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: preparing the data")
        problem, algorithm, _ = self._prepared(cell, size)
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
        for rule in RULES:  # what no rule has ended ends with the most rounds, as the paper says
            stops.setdefault(rule, (float(entry.index), kkt, error))
        return [
            Number(cell.series, f"{measure}, {rule}", value)
            for rule, values in stops.items()
            for measure, value in zip(("rounds", "kkt", "relative_error"), values, strict=True)
        ]

    def _counted(self, size: Size) -> bool:
        return size == "paper"
