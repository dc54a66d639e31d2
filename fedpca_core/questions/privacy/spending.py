"""The same epsilon spent in several ways: what each leaves of the answer, and what it sends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.privacy import Guarantee
from fedpca_core.questions import costs
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.price import BUDGETS, PrivateSweep
from fedpca_core.questions.privacy.repeated import Repeated, run_seeds
from fedpca_core.questions.privacy.runs import spend
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.privacy.ways import WAYS
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Run, Step, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study
from fedpca_core.study.sweep import Measured

#: Runs for each budget of the sweep.
RUNS = 3
#: Distances within this factor are alike.
ALIKE = 1.02


@dataclass(frozen=True, eq=False)
class Spent:
    """One way, from several starts and with fresh noise in each.

    Attributes
    ----------
    title : str
    trusting : bool
        Whether clients rely on each other, and on sums that hide single uploads.
    run : Repeated
    bytes_up : (communications + 1,) float64
        Of one client, cumulative.
    guarantee : Guarantee
    """

    title: str
    trusting: bool
    run: Repeated
    bytes_up: Array
    guarantee: Guarantee


@dataclass(frozen=True, eq=False)
class Ways:
    """Every way that could be taken, and the sentences of those that could not.

    Attributes
    ----------
    spent : mapping of key to Spent
    refusals : mapping of title to str
    """

    spent: Mapping[str, Spent]
    refusals: Mapping[str, str]

    def best(self, *, trusting: bool) -> Spent | None:
        """The way that ends closest, among those that trust or do not.

        Ways that end alike are told apart by what they send.
        """
        some = [one for one in self.spent.values() if one.trusting == trusting]
        closest = min((one.run.final for one in some), default=0.0)
        alike = [one for one in some if one.run.final <= ALIKE * closest]
        return min(alike, key=lambda one: one.bytes_up[-1], default=None)


def _require(settings: PrivacySettings) -> None:
    build.require_bound(settings)
    require(
        math.isfinite(settings.epsilon),
        "At ε = ∞ there is nothing to spend: all ways are runs without noise; choose a finite ε.",
    )


class WaysToSpend(Study[PrivacySettings, Ways]):
    """Every way at the budget that is set, over rounds and bytes."""

    key: ClassVar[str] = "ways_to_spend"
    title: ClassVar[str] = "Ways to spend ε"
    opened_by: ClassVar[tuple[str, Value] | None] = ("view", "ways")
    settings: ClassVar[type[PrivacySettings]] = PrivacySettings
    seconds: ClassVar[float] = 300.0

    def cost(self, settings: PrivacySettings, data: OwnData | None = None) -> Cost:
        return costs.private(settings, data, len(WAYS) * settings.repetitions)

    def run(self, settings: PrivacySettings, data: OwnData | None = None) -> Run[Ways]:
        _require(settings)
        yield Step(0.0, "Drawing the data")
        problem = build.records(settings, data)
        seeds = run_seeds(settings.seed, settings.repetitions)
        spent: dict[str, Spent] = {}
        refusals: dict[str, str] = {}
        for index, (key, way) in enumerate(WAYS.items()):
            title = way.title(settings)
            share = index / len(WAYS), (index + 1) / len(WAYS)
            try:
                run, stated = yield from part(spend(way, settings, problem, seeds, data), *share)
                sent = run.bytes_up / problem.clients
                spent[key] = Spent(title, way.trusting, run, sent, stated)
            except InvalidInput as refusal:
                refusals[title] = str(refusal)
            yield Step(share[1], title, Ways(dict(spent), dict(refusals)))
        return Ways(spent, refusals)

    def tables(self, result: Ways, settings: PrivacySettings) -> dict[str, pd.DataFrame]:
        rows = []
        for key, one in result.spent.items():
            low, high = one.run.quartiles
            rows.append(
                {
                    "way": key,
                    "title": one.title,
                    "median": one.run.final,
                    "lower_quartile": low[-1],
                    "upper_quartile": high[-1],
                    "communications": len(one.run.middle) - 1,
                    "bytes_up": one.bytes_up[-1],
                    "epsilon": one.guarantee.epsilon,
                    "noise": one.guarantee.noise,
                    "releases": one.guarantee.releases,
                    "counted": one.guarantee.composition,
                    **one.guarantee.terms(),
                }
            )
        curves = [one.run.table("way", key) for key, one in result.spent.items()]
        refused = pd.DataFrame(
            [{"way": title, "refusal": why} for title, why in result.refusals.items()]
        )
        tables = {"ways": pd.DataFrame(rows), "curves": pd.concat(curves, ignore_index=True)}
        return tables if refused.empty else {**tables, "refused": refused}


class WaysOverBudget(PrivateSweep):
    """Where every way ends, against the budget."""

    key: ClassVar[str] = "ways_over_budget"
    title: ClassVar[str] = "Ways to spend ε, against ε"
    along: ClassVar[tuple[str, Sequence[Value]]] = ("epsilon", BUDGETS)
    opened_by: ClassVar[tuple[str, Value] | None] = ("view", "ways")

    def seeds(self, settings: PrivacySettings) -> Sequence[int]:
        return run_seeds(settings.seed, min(RUNS, settings.repetitions))

    def once(self, settings: PrivacySettings, seed: int, data: OwnData | None) -> Part[Measured]:
        problem = build.records(settings, data)
        found: dict[str, dict[str, float]] = {}
        for index, (key, way) in enumerate(WAYS.items()):
            share = index / len(WAYS), (index + 1) / len(WAYS)
            try:
                run, _ = yield from part(spend(way, settings, problem, [seed], data), *share)
            except InvalidInput:
                continue  # said beside the runs at the budget that is set
            found[key] = {"sin_theta": run.final}
        return found
