"""ε × heterogeneity over methods: what noise at the source costs each method on each federation.

The noise is laid on every client's matrix once, so all methods of one federation pay the same ε;
they differ in what they make of the noisy matrices, and in whether they arrive within the rounds.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from fedpca_core import metrics
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import InvalidInput, require
from fedpca_core.questions import costs
from fedpca_core.questions.converge.study import NO_METHOD, Rest
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Step
from fedpca_core.study.build import build_problem, simulation
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_core.study.sweep import Measured, Sweep

BUDGETS = (0.1, 0.5, 2.0, 10.0, 50.0, math.inf)
HETEROGENEITIES = (0.0, 0.25, 0.5, 1.0)


def measure_at(heterogeneity: float) -> str:
    """The name of what is measured at one heterogeneity."""
    return f"sin_theta at heterogeneity {heterogeneity:g}"


def levels(settings: ConvergeSettings) -> tuple[float, ...]:
    """Heterogeneities that are tried: clients of a column are as they are."""
    return (settings.heterogeneity,) if settings.client_column else HETEROGENEITIES


class BudgetsAndHeterogeneity(Sweep[ConvergeSettings]):
    """Sine of the largest angle after the last round, by method, budget and heterogeneity."""

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
            here = replace(settings, heterogeneity=eta)
            try:
                problem = build_problem(here, data)
            except InvalidInput as refusal:
                refused = str(refusal)  # of the data, whatever the method
                continue
            try:
                run = simulation(problem, method, here, start=seed, record="estimates")
                rest = Rest(problem.clients)
                for entry in run:
                    if rest.reached(entry.estimate, run.participants):
                        break
            except InvalidInput as refusal:
                refused = f"{METHODS[method].title}: {refusal}"
                continue
            table = metrics.frame(run.trace(), problem)
            found[METHODS[method].title][measure_at(eta)] = float(table["sin_theta"].iloc[-1])
        if not any(found.values()):
            raise InvalidInput(refused)
        return found
