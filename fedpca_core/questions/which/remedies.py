"""If nothing does all that is asked: what would, and how little of it.

One demand is relaxed at a time. Other budgets of rounds, bytes and variance are judged from the
runs that are there; an ε, records and longer runs are searched for by halving the values that a
control takes, from the seeds of the advice. What is found was run: who asks for it gets it.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from fedpca_core.questions.which import recommendation
from fedpca_core.questions.which.frontier import Front
from fedpca_core.questions.which.recommendation import BY_LOSS, RULES, Advice, Recommendation
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.study import Cost, InPieces, OwnData, stacked

#: Demands that the runs at hand are judged by, and what must be run anew.
JUDGED = ("most_lost", "budget_rounds", "budget_bytes")
RUN = ("needed_epsilon", "samples", "rounds")
#: Candidates that a search goes on with: those that lose least where it begins.
FINALISTS = 3


@dataclass(frozen=True, eq=False)
class Remedy:
    """What relaxing one demand comes to.

    ``name``: The field of the settings.
    ``value``: The smallest that does it, of those that the control takes; None where none does.
    ``best``: The configuration that then comes first, or comes nearest where none does: a row of
        `Advice.table`.
    ``tried``: A row a value that was judged: ``value``, the least variance that a candidate of the
        allowed ones loses there (``lost``, with ``low`` and ``high`` over the seeds), ``method``.
    ``also``: What else had to be relaxed, since nothing does it without.
    ``done``: False while smaller values are tried.
    """

    name: str
    value: Value | None
    best: pd.Series | None
    tried: pd.DataFrame
    also: Mapping[str, Value] = field(default_factory=dict)
    done: bool = True

    def applied(self, settings: FrontierSettings) -> FrontierSettings:
        """The settings with everything relaxed that it says, where a value does it."""
        return replace(settings, **{self.name: self.value, **self.also})  # type: ignore[arg-type]


#: All remedies so far, by the field that is relaxed.
Found = Mapping[str, Remedy]


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
    """The first configuration that passes in every seed, and so in most others, if any does."""
    passing = advice.table[advice.table["rank"].notna() & (advice.table["passes"] == 1)]
    return None if passing.empty else passing.iloc[0]


def at_hand(advice: Advice, settings: FrontierSettings) -> dict[str, Remedy]:
    """Remedies that the runs of an advice tell of."""
    found = {}
    for name in JUDGED:
        rows = []
        for value in open_values(settings, name):
            judged = recommendation.rejudged(advice, replace(settings, **{name: value}))  # type: ignore[arg-type]
            rows.append(_told(judged, value))
            best = sure(judged)
            if best is not None:
                found[name] = Remedy(name, value, best, pd.DataFrame(rows))
                break
    return found


class Remedies(InPieces[FrontierSettings, Found]):
    """Search for the smallest ε, records of a client and rounds at which a candidate passes."""

    key = "remedies"
    title = "What would do it"
    seconds = 300.0
    reads = Recommendation.reads

    def pieces(self, settings: FrontierSettings) -> list[str]:
        return [name for name in RUN if open_values(settings, name)]

    def cost(self, settings: FrontierSettings, data: OwnData | None = None) -> Cost:
        one = Recommendation().cost(replace(settings, searches=False), data)
        return one.times(len(self.pieces(settings)) or 1)

    def gathered(self, settings: FrontierSettings, found: Sequence[Found]) -> Found:
        return {name: one for part in found for name, one in part.items()}

    def piece(self, settings: FrontierSettings, data: OwnData | None) -> Run[Found]:
        yield Step(0.0, "Every demand is as weak as it can be")
        return {}

    def run_piece(self, settings: FrontierSettings, which: str, data: OwnData | None) -> Run[Found]:
        """Narrow down by the first seed; then, by all, upward to what does it, or down from it."""
        base = replace(settings, searches=False)
        values, seeds = open_values(settings, which), recommendation.seed_counts(base)[0]
        last = len(values) - 1

        def at(number: int) -> FrontierSettings:
            return replace(base, **{which: values[number]})  # type: ignore[arg-type]

        weakest = yield from advice_of(at(last), 1, data, hopeless)
        also: Mapping[str, Value] = {}
        if weakest.place(1) is None:
            also = yield from _relaxed(weakest, base, at(last), data)
            base = replace(base, **also)  # type: ignore[arg-type]
            weakest = recommendation.rejudged(weakest, at(last)) if also else weakest
        best, order = nearest(weakest), weakest.table.sort_values(["rank", "unexplained"])
        base = replace(base, candidates=tuple(dict.fromkeys(order["method"]))[:FINALISTS])
        low, high = -1, last
        while high - low > 1 and weakest.place(1) is not None:
            middle = (low + high) // 2
            advice = yield from advice_of(at(middle), 1, data, hopeless)
            if advice.place(1) is None:
                low = middle
            else:
                high, weakest = middle, advice
        rows: list[dict[str, object]] = []
        remedy = Remedy(which, None, best, pd.DataFrame(), also)
        number = high
        while 0 <= number <= last:
            advice = yield from advice_of(at(number), seeds, data, hopeless)
            rows.append(_told(advice, values[number]))
            tried = pd.DataFrame(rows).sort_values("value", ignore_index=True)
            remedy, best = replace(remedy, tried=tried), sure(advice)
            if best is not None:
                remedy = replace(remedy, value=values[number], best=best)
            elif remedy.value is not None:
                break  # one less than what does it
            number += -1 if remedy.value is not None else 1
            yield Step(0.9, "Smaller ones", {which: replace(remedy, done=False)})
        return {which: remedy}

    def tables(self, result: Found, settings: FrontierSettings) -> dict[str, pd.DataFrame]:
        return {
            "remedies": pd.DataFrame({"remedy": sentences(result, settings)}),
            "tried": stacked(one.tried.assign(relaxed=name) for name, one in result.items()),
        }


def _relaxed(
    weakest: Advice, settings: FrontierSettings, there: FrontierSettings, data: OwnData | None
) -> Part[Mapping[str, Value]]:
    """What is too long, or too much for a line, stays so whatever the searched demand is: what of
    that to relax as well, unless it alone does it."""
    others = at_hand(weakest, there)
    if not others:
        return {}
    one = others[max(others, key=JUDGED.index)]
    assert one.value is not None
    alone = yield from advice_of(one.applied(settings), 1, data, hopeless)
    return {} if alone.place(1) is not None else {one.name: one.value}


def nearest(advice: Advice) -> pd.Series | None:
    """The first configuration; where none passes, the one that fails last and loses least."""
    keys = [rule.key for rule in RULES]
    failed = advice.table["excluded"].map(lambda key: keys.index(key) if key else len(keys))
    ordered = advice.table.assign(failed=failed).sort_values(
        ["failed", "rank", "unexplained"], ascending=[False, True, True]
    )
    return None if ordered.empty else ordered.iloc[0]


def hopeless(found: Advice) -> bool:
    return found.table.empty or bool(found.table["passes"].max() < 1)


def advice_of(
    settings: FrontierSettings,
    seeds: int,
    data: OwnData | None,
    enough: Callable[[Advice], bool] = lambda found: False,
) -> Part[Advice]:
    """The advice from some seeds, one after the other, or from those after which it is enough."""
    study = Recommendation()
    ways = len(study.ways(settings))
    fronts: list[Front] = []
    for piece, share in in_turn(study.pieces(settings)[: seeds * ways]):
        fronts.append((yield from part(study.run_piece(settings, piece, data), *share)))
        if len(fronts) % ways == 0 and enough(study.advice(settings, fronts)):
            break
    return study.advice(settings, fronts)


def _told(advice: Advice, value: Value) -> dict[str, object]:
    """What the best of the candidates loses that fail nothing else than the loss, if any do."""
    table = advice.table
    left = table[table["excluded"].isin(BY_LOSS)]
    if left.empty:
        return {"value": value, "lost": np.nan, "low": np.nan, "high": np.nan, "method": ""}
    best = left.iloc[int(left["unexplained"].argmin())]
    ends = {end: best[f"unexplained_{end}"] for end in ("low", "high")}
    return {"value": value, "lost": best["unexplained"], **ends, "method": best["method"]}


def sentences(remedies: Mapping[str, Remedy], settings: FrontierSettings) -> list[str]:
    """A sentence for every demand that was relaxed."""
    said, described = [], settings.parameters()

    def changed(name: str, value: Value) -> str:
        asked = described[name].text(getattr(settings, name))
        return f"**{described[name].label} {described[name].text(value)}** in place of {asked}"

    for name, one in remedies.items():
        best = "" if one.best is None else recommendation.named(one.best)
        if one.value is not None and one.best is not None:
            every = " and ".join(changed(*each) for each in ((name, one.value), *one.also.items()))
            rest = "." if one.done else "; less is being tried."
            said.append(f"{every}: {best}, {recommendation.lost(one.best)}, in every seed{rest}")
        elif one.done:
            largest = described[name].text(open_values(settings, name)[-1])
            why = "" if one.best is None else f": there {best} {one.best['reason']}"
            said.append(f"**{described[name].label}**: no value up to {largest} does it{why}.")
    return said
