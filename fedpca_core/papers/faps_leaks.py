"""FAPS's Figure 1 as cells: when the server holds a client's covariance, and when PCA converges.

The paper names features, records and components, not the data or the clients: entries are drawn
independently here, for five clients. At live size the problem is the Attack page's.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil
from typing import Any

import numpy as np

from fedpca_core import attacks, metrics
from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.algorithms.ssi import SSI
from fedpca_core.attacks import scores
from fedpca_core.papers.experiment import Cell, Experiment, Number, Size
from fedpca_core.papers.faps import preset
from fedpca_core.problems import Problem
from fedpca_core.problems.problem import from_blocks
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import simulate, stream
from fedpca_core.steps import Part, Step
from fedpca_core.streams import Streams
from fedpca_core.study.build import build_problem
from fedpca_core.study.deployed import private_matrix
from fedpca_core.study.pca_settings import ConvergeSettings

#: Both the reconstruction and the KKT violation count as done below this (the paper).
DONE = 1e-5
#: Rounds after which a run that has not converged is given up.
LONGEST = 3000
#: Rounds beyond those that the equations need, in which the attack is tried.
SPARE = 6
#: The paper's sizes; five clients are ours.
PAPER = {"features": 1000, "records": 10_000, "components": 100, "clients": 5}
GROWING: dict[Size, tuple[int, ...]] = {
    "paper": (1000, 2000, 3000, 4000, 5000),
    "live": (20, 30, 40, 50, 60),
}


class Recovered(Experiment):
    """The linear attack round by round, beside the run's own convergence."""

    source = "faps"
    x_title, y_title = "communication round", "error, KKT violation"

    def __init__(self, key: str, title: str, growing: bool) -> None:
        self.key, self.title, self.growing = key, title, growing
        self.measure = "recovered" if growing else ""
        self.varied = "features" if growing else ""

    def cells(self, size: Size, seeds: int) -> Sequence[Cell]:
        methods = ("SSI",) if self.growing else ("SSI", "FAPS")
        return [
            Cell(str(features) if self.growing else "", method, seed,
                 {**self._fields(size, features), "method": method})
            for features in self._features(size)
            for method in methods
            for seed in range(seeds)
        ]  # fmt: skip

    def described(self, size: Size) -> str:
        words = ", ".join(
            f"{name} {value}" for name, value in self._fields(size, 0).items() if value
        )
        many = self._features(size)
        return f"{words}, features {', '.join(map(str, many))}"

    def live(self) -> ConvergeSettings:
        return preset(self.key).configuration()

    def run(self, cell: Cell, size: Size) -> Part[Sequence[Number]]:
        yield Step(0.0, f"{cell.name}: preparing the data")
        fields = cell.configuration
        problem = self._problem(cell, size)
        components, features = int(fields["components"]), int(fields["features"])
        method: Algorithm = (
            SSI(components)
            if cell.series == "SSI"
            else FAPS(components, inner_rule="fixed", inner_steps=5)
        )
        enough = ceil(features / components)
        rounds = enough + SPARE
        transcript = simulate(problem, method, rounds=rounds, seed=cell.seed).transcript
        truth = private_matrix(problem, 0)
        # Before the broadcasts can span the features there is nothing to find; a large problem is
        # not solved again and again to see that.
        tried = range(enough - 1 if self.growing else 0, rounds + 1)
        errors: dict[int, float] = {}
        for index in tried:
            yield Step(0.5 * index / rounds, f"{cell.name}: attack after round {index}")
            guess = attacks.linear(transcript.until(index)) if index else np.zeros_like(truth)
            errors[index] = scores.relative_error(guess, truth)
            if self.growing and errors[index] <= DONE:
                break
        kkt = yield from _violations(problem, method, cell)
        reached = [index for index, error in errors.items() if error <= DONE]
        settled = [index for index, value in enumerate(kkt) if index and value <= DONE]
        measures = {
            "recovered": reached[0] if reached else float("nan"),
            "converged": settled[0] if settled else float("nan"),
            "least_error": min(list(errors.values())[-SPARE:]),
        }
        numbers = [Number(cell.series, name, float(value)) for name, value in measures.items()]
        if not self.growing and cell.seed == 0:
            shown = f"{cell.series}, the server's error", f"{cell.series}, KKT violation"
            numbers += [Number(shown[0], "error", e, float(i)) for i, e in errors.items()]
            numbers += [Number(shown[1], "error", e, float(i)) for i, e in enumerate(kkt)][
                :: max(1, len(kkt) // 60)
            ]
        return numbers

    def _features(self, size: Size) -> tuple[int, ...]:
        if self.growing:
            return GROWING[size]
        return (PAPER["features"],) if size == "paper" else (self.live().features,)

    def _fields(self, size: Size, features: int) -> dict[str, Any]:
        if size == "paper":
            return {**PAPER, "features": features, "data": "independent entries"}
        settings = self.live()
        return {
            "features": features,
            "records": settings.samples * settings.clients,
            "components": settings.components,
            "clients": settings.clients,
            "data": settings.problem,
        }

    def _problem(self, cell: Cell, size: Size) -> Problem:
        fields = cell.configuration
        if size == "live":
            changes: dict[str, Any] = {"features": fields["features"], "seed": cell.seed}
            return build_problem(replace(self.live(), **changes))
        generator = Streams(cell.seed).generator("data")
        clients = int(fields["clients"])
        shape = int(fields["features"]), int(fields["records"]) // clients
        return from_blocks([generator.standard_normal(shape) for _ in range(clients)])


def _violations(problem: Problem, method: Algorithm, cell: Cell) -> Part[list[float]]:
    """KKT violations of a run round by round until it has converged."""
    channel = Channel(record="estimates")
    found: list[float] = []
    for entry in stream(problem, method, rounds=LONGEST, seed=cell.seed, channel=channel):
        found.append(float(metrics.subspace_errors(entry.estimate[None], problem)["kkt"][0]))
        if entry.index and found[-1] <= DONE:
            break
        if entry.index % 20 == 0:
            yield Step(0.75, f"{cell.name}: round {entry.index}, KKT violation {found[-1]:.1e}")
    return found
