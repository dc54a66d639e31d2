"""The price of a budget: the final distance against epsilon, and against the number of products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from fedpca_core.questions import costs
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.repeated import run_seeds
from fedpca_core.questions.privacy.runs import QUIET, noisy_runs
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Run, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.sweep import Measured, Sweep, Swept

#: Finite budgets of every sweep over ε.
BUDGETS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
#: All of them, the run without noise first: everything else is compared with it.
WITH_INFINITE = (math.inf, *BUDGETS)
#: Local products T, each with the whole budget spread over it.
LENGTHS = (2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 40)


class PrivateSweep(Sweep[PrivacySettings]):
    """A sweep whose seeds are of starts and noise; the data keep the settings' own seed."""

    settings: ClassVar[type[PrivacySettings]] = PrivacySettings
    seconds: ClassVar[float] = 300.0

    def seeds(self, settings: PrivacySettings) -> Sequence[int]:
        return run_seeds(settings.seed, settings.repetitions)

    def check(self, settings: PrivacySettings) -> None:
        """Refuse settings that have no budget to sweep."""
        build.require_bound(settings)

    def cost(self, settings: PrivacySettings, data: OwnData | None = None) -> Cost:
        points = len(self.values(settings)) * len(self.seeds(settings))
        return costs.private(settings, data, costs.CALIBRATED * points, self.reading(settings))

    def reading(self, settings: PrivacySettings) -> float:
        """Seconds that are spent on one run after it has ended."""
        return 0.0

    def run(self, settings: PrivacySettings, data: OwnData | None = None) -> Run[Swept]:
        self.check(settings)
        return (yield from super().run(settings, data))

    def point(
        self, settings: PrivacySettings, value: Value, seed: int, data: OwnData | None
    ) -> Part[Measured]:
        return self.once(self.at(settings, value, settings.seed), seed, data)

    def measure(self, settings: PrivacySettings, data: OwnData | None) -> Part[Measured]:
        return self.once(settings, settings.seed, data)

    def once(self, settings: PrivacySettings, seed: int, data: OwnData | None) -> Part[Measured]:
        """The final distance by kind of noise, of the run from ``seed``."""
        found: dict[str, dict[str, float]] = {}
        chosen = build.kinds(settings) or (QUIET,)
        for index, kind in enumerate(chosen):
            steps = noisy_runs(settings, kind, [seed], data)
            run = yield from part(steps, index / len(chosen), (index + 1) / len(chosen))
            found[kind] = {"sin_theta": run.final}
        return found


class PriceOfBudget(PrivateSweep):
    """The final distance against the budget."""

    key: ClassVar[str] = "price_of_epsilon"
    title: ClassVar[str] = "Price of ε"
    along: ClassVar[tuple[str, Sequence[Value]]] = ("epsilon", WITH_INFINITE)
    opened_by: ClassVar[tuple[str, Value] | None] = ("view", "utility")


class PriceOfProducts(PrivateSweep):
    """The final distance of runs of different lengths that spend the same budget."""

    key: ClassVar[str] = "price_of_products"
    title: ClassVar[str] = "One budget over more and more products"
    along: ClassVar[tuple[str, Sequence[Value]]] = ("products", LENGTHS)
    opened_by: ClassVar[tuple[str, Value] | None] = ("view", "utility")

    def at(self, settings: PrivacySettings, value: Value, seed: int) -> PrivacySettings:
        length = int(value)  # type: ignore[arg-type]
        steps = min(settings.local_steps, length)
        return replace(settings, products=length, local_steps=steps, seed=seed)


def best_length(swept: Swept, calibration: str) -> tuple[int, bool] | None:
    """The number of products with the smallest median distance, if any is measured.

    The second says whether it is the first or the last of those tried, so that the best may lie
    outside.
    """
    found = swept.band(calibration, "sin_theta")
    if not len(found.x):
        return None
    index = int(np.argmin(found.middle))
    return int(found.x[index]), index in (0, len(found.x) - 1)


def last_value(swept: Swept, series: str) -> float | None:
    """Median of a series where it was measured last: of one that does not vary, its value."""
    measures = swept.table.loc[swept.table["series"] == series, "measure"]
    if measures.empty:
        return None
    return float(swept.band(series, measures.iloc[0]).middle[-1])
