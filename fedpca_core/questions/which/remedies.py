"""If nothing does all that is asked: what would, and how little of it.

One demand is relaxed at a time. Other budgets of rounds, bytes and variance are judged from the
runs that are there; an ε, records and longer runs are searched for by halving the values that a
control takes, from the seeds of the advice. What is found was run: who asks for it gets it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.questions.which.frontier import Front, Frontier
from fedpca_core.questions.which.recommendation import (
    SEEDS,
    Advice,
    Recommendation,
    advised,
    lost,
    named,
)
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Run, Step
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pieces import InPieces

#: Demands that the runs at hand are judged by, and what must be run anew.
JUDGED = ("most_lost", "budget_rounds", "budget_bytes")
RUN = ("needed_epsilon", "samples", "rounds")
#: Share of the seeds in which a remedy does it, at least.
SURE = 0.8
#: Candidates that a search goes on with: those that lose least where it begins.
FINALISTS = 3


@dataclass(frozen=True, eq=False)
class Remedy:
    """What relaxing one demand comes to.

    Attributes
    ----------
    name : str
        The field of the settings.
    value : int, float or None
        The smallest that does it, of those that the control takes; None where none does.
    best : pandas.Series or None
        The configuration that then comes first, a row of `Advice.table`.
    tried : pandas.DataFrame
        A row a value that was judged: ``value``, the least variance that a candidate of the
        allowed ones loses there (``lost``, with ``low`` and ``high`` over the seeds), ``method``.
    """

    name: str
    value: Value | None
    best: pd.Series | None
    tried: pd.DataFrame


@dataclass(frozen=True, eq=False)
class Found:
    """All remedies so far, by the field that is relaxed."""

    remedies: Mapping[str, Remedy] = field(default_factory=dict)


def open_values(settings: FrontierSettings, name: str) -> tuple[Value, ...]:
    """The values of a control that ask for less than the settings do, from the hardest on."""
    c = settings
    if name in c.idle() and name != "rounds":
        return ()
    grid, value = c.parameters()[name].grid, getattr(c, name)
    if name == "rounds" and not math.isinf(c.budget_rounds):
        grid = tuple(one for one in grid if one <= c.budget_rounds)
    if name == "needed_epsilon":
        if not math.isinf(value):
            # A curious server may read single uploads only where an ε covers them.
            return tuple(e for e in grid if e > value and (e < math.inf or c.server != "curious"))
        return tuple(e for e in grid if e < math.inf) if c.server == "curious" else ()
    if name == "most_lost":
        grid = grid[:-1]  # without a limit anything is an answer
    return tuple(one for one in grid if one > value)


def sure(advice: Advice) -> pd.Series | None:
    """The first of the configurations that pass in nearly all seeds, if any does."""
    passing = advice.table[advice.table["rank"].notna() & (advice.table["passes"] >= SURE)]
    return None if passing.empty else passing.iloc[0]


def at_hand(advice: Advice, settings: FrontierSettings) -> dict[str, Remedy]:
    """Remedies that the runs of an advice tell of."""
    found = {}
    for name in JUDGED:
        rows = []
        for value in open_values(settings, name):
            there = replace(settings, **{name: value})  # type: ignore[arg-type]
            judged = advised(advice.runs, advice.paths, there, advice.refusals, advice.clients)
            rows.append(_told(judged, value))
            best = sure(judged)
            if best is not None:
                found[name] = Remedy(name, value, best, pd.DataFrame(rows))
                break
    return found


class Remedies(InPieces[FrontierSettings, Found]):
    """Search for the smallest ε, records of a client and rounds at which a candidate passes."""

    key: ClassVar[str] = "remedies"
    title: ClassVar[str] = "What would do it"
    settings: ClassVar[type[FrontierSettings]] = FrontierSettings
    seconds: ClassVar[float] = 300.0
    reads: ClassVar[frozenset[str]] = Recommendation.reads | {"relax"}

    def pieces(self, settings: FrontierSettings) -> list[FrontierSettings]:
        if settings.relax != "all":
            return []
        return [replace(settings, relax=name) for name in RUN if open_values(settings, name)]

    def cost(self, settings: FrontierSettings, data: OwnData | None = None) -> Cost:
        one = Recommendation().cost(replace(settings, searches=False), data)
        return one.times(len(self.pieces(settings)) or 1)

    def gathered(self, settings: FrontierSettings, found: Sequence[Found]) -> Found:
        return Found({name: one for part in found for name, one in part.remedies.items()})

    def run(self, settings: FrontierSettings, data: OwnData | None = None) -> Run[Found]:
        if settings.relax == "all":
            return (yield from super().run(settings, data))
        name = settings.relax
        remedy = yield from self._searched(settings, name, data)
        return Found({name: remedy})

    def _searched(
        self, settings: FrontierSettings, name: str, data: OwnData | None
    ) -> Part[Remedy]:
        base = replace(settings, searches=False, seeds=SEEDS, relax="all")
        values = open_values(settings, name)
        rows: list[dict[str, object]] = []
        good: dict[int, pd.Series] = {}

        def judged(number: int, some: tuple[str, ...], seeds: int) -> Part[Advice]:
            there = replace(base, **{name: values[number]}, candidates=some)  # type: ignore[arg-type]
            advice = yield from advice_of(there, seeds, data)
            return advice

        # At the weakest demand all candidates run once; the best of them go on.
        last = len(values) - 1
        if not values:
            return Remedy(name, None, None, pd.DataFrame())
        weakest = yield from judged(last, settings.candidates, 1)
        order = weakest.table.sort_values(["rank", "unexplained"], na_position="last")
        some = tuple(dict.fromkeys(order["method"]))[:FINALISTS]
        low, high = -1, last
        if not some:
            return Remedy(name, None, None, pd.DataFrame())
        number = last
        while True:
            advice = yield from judged(number, some, SEEDS)
            rows.append(_told(advice, values[number]))
            best = sure(advice)
            if best is not None:
                good[number] = best
                high = number
            else:
                low = number
            if not good or high - low <= 1:
                break
            number = (low + high) // 2
        tried = pd.DataFrame(rows).sort_values("value", ignore_index=True)
        if not good:
            return Remedy(name, None, None, tried)
        least = min(good)
        return Remedy(name, values[least], good[least], tried)

    def tables(self, result: Found, settings: FrontierSettings) -> dict[str, pd.DataFrame]:
        tried = [one.tried.assign(relaxed=name) for name, one in result.remedies.items()]
        return {
            "remedies": pd.DataFrame({"remedy": sentences(result.remedies, settings)}),
            "tried": pd.concat(tried, ignore_index=True) if tried else pd.DataFrame(),
        }


def advice_of(settings: FrontierSettings, seeds: int, data: OwnData | None) -> Part[Advice]:
    """The advice from some seeds, one piece after the other."""
    study = Recommendation()
    pieces = study.pieces(settings)[: seeds * len(study.ways(settings))]
    fronts: list[Front] = []
    for count, piece in enumerate(pieces):
        run = Frontier().run(piece, data)
        while True:
            try:
                step = next(run)
            except StopIteration as end:
                fronts.append(end.value)
                break
            yield Step((count + step.fraction) / len(pieces), step.text)
    return study.gathered(settings, fronts)


def _told(advice: Advice, value: Value) -> dict[str, object]:
    """What the best of the candidates loses that fail nothing else than the loss, if any do."""
    table = advice.table
    left = table[table["excluded"].isin(["", "lost"])]
    if left.empty:
        return {"value": value, "lost": np.nan, "low": np.nan, "high": np.nan, "method": ""}
    best = left.iloc[int(left["unexplained"].argmin())]
    return {
        "value": value,
        "lost": best["unexplained"],
        "low": best["unexplained_low"],
        "high": best["unexplained_high"],
        "method": best["method"],
    }


def sentences(remedies: Mapping[str, Remedy], settings: FrontierSettings) -> list[str]:
    """A sentence for every demand that was relaxed."""
    said, described = [], settings.parameters()
    for name, one in remedies.items():
        parameter = described[name]
        asked = parameter.text(getattr(settings, name))
        if one.value is None or one.best is None:
            said.append(f"**{parameter.label}**: no value up to {_largest(settings, name)} does.")
            continue
        said.append(
            f"**{parameter.label} {parameter.text(one.value)}** in place of {asked}: "
            f"{named(one.best)}, {lost(one.best)}, passes in "
            f"{round(one.best['passes'] * SEEDS)} of {SEEDS} seeds."
        )
    return said


def _largest(settings: FrontierSettings, name: str) -> str:
    values = open_values(settings, name)
    return settings.parameters()[name].text(values[-1])
