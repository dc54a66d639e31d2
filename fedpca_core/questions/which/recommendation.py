"""Which method to use: every candidate run as it would be deployed, judged by explicit rules.

Data, starts and noise are drawn from several seeds; the rules judge medians, and every seed by
itself says how often a configuration comes first and how often it is as good as the first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.guarantee import in_words
from fedpca_core.questions.home.words import angle
from fedpca_core.questions.which.frontier import Front, Frontier
from fedpca_core.questions.which.rules import ALIKE, RULES, judged, rounds, size
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import short
from fedpca_core.steps import Run, Step, part
from fedpca_core.study.build import public_of
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study

#: What the clients' noise and the server's view are called together.
WAYS: Mapping[tuple[bool, bool], str] = {
    (False, False): "without noise",
    (True, False): "without noise, under secure sums",
    (False, True): "on a private source",
    (True, True): "with shared noise under secure sums",
}


#: Seeds over which an advice is given, at least.
SEEDS = 6
#: Columns that count seeds.
SHARES = ("first", "alike", "passes")
#: What identifies a configuration.
CONFIGURATION = ["method", "way", "sums", "noise"]


@dataclass(frozen=True, eq=False)
class Advice:
    """Every candidate in every way of running it, judged.

    Attributes
    ----------
    table : pandas.DataFrame
        A row a configuration: medians over the seeds of the frontier's columns, with ``sums``,
        ``noise``, ``way``, ``excluded``, ``reason`` and ``rank`` by the rules, and the shares of
        the seeds in which it comes ``first``, is ``alike`` the first, and ``passes``; the
        recommended one first.
    seeds : int
        Seeds so far.
    refusals : mapping of candidate to the sentence why it could not run
    """

    table: pd.DataFrame
    seeds: int
    refusals: Mapping[str, str]

    def place(self, rank: int) -> pd.Series | None:
        """The configuration of this rank, if there is one."""
        found = self.table[self.table["rank"] == rank]
        return None if found.empty else found.iloc[0]

    @property
    def group(self) -> pd.DataFrame:
        """The configurations that are alike the first in at least half of the seeds, by rank."""
        left = self.table[self.table["rank"].notna()]
        return left[(left["alike"] >= 0.5) | (left["rank"] == 1)]

    @property
    def other_server(self) -> pd.Series | None:
        """The best configuration that does without secure sums, where the best needs them."""
        best = self.place(1)
        left = self.table[self.table["rank"].notna() & ~self.table["sums"]]
        return None if best is None or not best["sums"] or left.empty else left.iloc[0]


class Recommendation(Study[FrontierSettings, Advice]):
    """Run what the visitor could deploy, and choose by the rules."""

    key: ClassVar[str] = "recommendation"
    title: ClassVar[str] = "What to use"
    settings: ClassVar[type[FrontierSettings]] = FrontierSettings
    seconds: ClassVar[float] = 300.0
    reads: ClassVar[frozenset[str]] = frozenset(
        name for name, p in FrontierSettings.parameters().items() if not p.view
    ) - {"vary", "epsilon", "secure_aggregation", "shared_noise"} | {
        "budget_bytes", "budget_rounds", "server", "needed_epsilon"
    }  # fmt: skip

    def ways(self, settings: FrontierSettings) -> list[FrontierSettings]:
        """The settings of every way of running all candidates, from the first seed."""
        base = replace(
            settings, vary="none", seeds=1, epsilon=settings.needed_epsilon, shared_noise=False,
            secure_aggregation=False,
        )  # fmt: skip
        if settings.server != "sums":
            return [base]
        noisy = not math.isinf(settings.needed_epsilon)
        return [base, replace(base, secure_aggregation=True, shared_noise=noisy)]

    def seeds(self, settings: FrontierSettings) -> list[int]:
        """The seeds over which the advice is given."""
        return [(settings.seed + k) % 100_000 for k in range(max(SEEDS, settings.seeds))]

    def cost(self, settings: FrontierSettings, data: OwnData | None = None) -> Cost:
        ways, others = self.ways(settings), len(self.seeds(settings)) - 1
        plain = replace(ways[0], searches=False)
        further = Frontier().cost(plain, data).times(len(ways) * others)
        return Frontier().cost(ways[0], data).times(len(ways)) + further

    def run(self, settings: FrontierSettings, data: OwnData | None = None) -> Run[Advice]:
        tables: list[pd.DataFrame] = []
        refusals: dict[str, str] = {}
        seeds, ways = self.seeds(settings), self.ways(settings)
        advice = Advice(pd.DataFrame(), 0, {})
        for count, seed in enumerate(seeds):
            rows: list[pd.DataFrame] = []
            for number, way in enumerate(ways):
                begin = (count + number / len(ways)) / len(seeds)
                # What attacks must search for is told by the first seed.
                here = replace(way, seed=seed, searches=way.searches and not count)
                running = part(
                    Frontier().run(here, data), begin, begin + 1 / len(seeds) / len(ways)
                )
                front: Front = yield from running
                noise = not math.isinf(way.epsilon)
                title = WAYS[way.secure_aggregation, noise]
                rows.append(front.table.assign(sums=way.secure_aggregation, noise=noise, way=title))
                refusals |= {f"{name} {title}": why for name, why in front.refusals.items()}
            kept = [one for one in rows if len(one)] or rows[:1]
            tables.append(judged(pd.concat(kept, ignore_index=True), settings))
            advice = Advice(_over_seeds(tables, settings), count + 1, dict(refusals))
            share = (count + 1) / len(seeds)
            yield Step(share, f"{count + 1} of {len(seeds)} seeds", advice)
        return advice

    def tables(self, result: Advice, settings: FrontierSettings) -> dict[str, pd.DataFrame]:
        shown = [
            "rank",
            "method",
            "way",
            "sin_theta",
            "rounds",
            "bytes_client",
            "epsilon",
            "leak",
            "first",
            "alike",
            "passes",
        ]
        return {
            "advice": pd.DataFrame({"advice": sentences(result, settings)}),
            "judged": result.table[[*shown, "excluded", "reason"]],
            "rules": pd.DataFrame(
                [(rule.title, rule.demand(settings)) for rule in RULES], columns=["rule", "demand"]
            ),
        }


def _over_seeds(tables: Sequence[pd.DataFrame], settings: FrontierSettings) -> pd.DataFrame:
    """One row a configuration: medians, judged by the rules, and how it did seed by seed."""
    every = pd.concat(tables, ignore_index=True)
    if every.empty:
        return every.assign(first=[], alike=[], passes=[])
    first = [_alike(table, settings) for table in tables]
    every["first"] = (every["rank"] == 1).astype(float)
    every["alike"] = pd.concat(first, ignore_index=True).astype(float)
    every["passes"] = every["rank"].notna().astype(float)
    groups = every.groupby(CONFIGURATION, sort=False)
    numbers = [name for name in every if pd.api.types.is_float_dtype(every[name])]
    middle = groups[[one for one in numbers if one not in SHARES and one != "rank"]].median()
    shares = groups[list(SHARES)].sum() / len(tables)
    texts = groups[[n for n in every if n not in [*numbers, *CONFIGURATION]]].first()
    table = pd.concat([middle, shares, texts], axis=1).reset_index()
    table["rounds"] = np.ceil(table["rounds"])
    return judged(table.drop(columns=["excluded", "reason"]), settings)


def _alike(table: pd.DataFrame, settings: FrontierSettings) -> pd.Series:
    """Which rows of one seed are as accurate as the first, within the factor of the rules."""
    best = table.loc[table["rank"].notna(), "sin_theta"].min()
    return table["rank"].notna() & (table["sin_theta"] <= max(ALIKE * best, settings.accuracy))


def named(row: pd.Series) -> str:
    """A configuration in words: method, way, rounds."""
    title = METHODS[row["method"]].title
    if row["method"] == "centralized":
        title = "Noisy covariance" if row["noise"] else "The covariances themselves"
    rounds = "one round" if row["rounds"] == 1 else f"{row['rounds']:.0f} rounds"
    return f"{title} {row['way']}, {rounds}"


def meant(settings: FrontierSettings) -> str:
    """What every ε of these runs means: it never stands alone."""
    return (
        in_words(settings.delta, f"norm {short(settings.clip_norm)}", public_of(settings))
        + " It holds towards the server and everybody else; shared noise needs all clients to be "
        "honest and present, and a server that sees sums only."
    )


def _asked(settings: FrontierSettings) -> str:
    """What was asked for, in a line."""
    c = settings
    finite = {
        f"≤ {size(c.budget_bytes)} a client": c.budget_bytes,
        f"≤ {rounds(c.budget_rounds)}": c.budget_rounds,
        f"ε ≤ {short(c.needed_epsilon)}": c.needed_epsilon,
    }
    server = c.parameters()["server"].choices[c.server].lower()
    return ", ".join(
        [f"Server {server}", *(text for text, most in finite.items() if most < math.inf)]
    )


def _often(share: float, seeds: int) -> str:
    """A share of the seeds in words."""
    return f"{round(share * seeds)} of {seeds}"


def _why(advice: Advice, best: pd.Series) -> str:
    """How sure the choice is: how often it is first, and what is as good."""
    left, group, seeds = advice.table["rank"].notna().sum(), advice.group, advice.seeds
    said = (
        f"The rules leave {left} of {len(advice.table)} configurations. It is first in "
        f"{_often(best['first'], seeds)} seeds"
    )
    others = group[group["rank"] > 1]
    if others.empty:
        return f"{said}; no other is within 10% of the best in half of them."
    names = "; ".join(
        f"{named(row)} (first in {_often(row['first'], seeds)})" for _, row in others.iterrows()
    )
    return (
        f"{said}; {'this is' if len(others) == 1 else f'these {len(others)} are'} as accurate, "
        f"within 10%, in half of them or more, and rounds, then bytes, decide: {names}."
    )


def sentences(advice: Advice, settings: FrontierSettings) -> list[str]:
    """What was asked and what does it, why, what would do without secure sums, the next best."""
    best, second, open_ = advice.place(1), advice.place(2), advice.other_server
    if advice.table.empty:
        whys = " ".join(f"{name}: {why}" for name, why in advice.refusals.items())
        return [f"{_asked(settings)}: no candidate could be run. {whys}"]
    if best is None:
        worst = advice.table["excluded"].mode()
        rule = next(one for one in RULES if one.key == worst[0])
        why = f" Most fail at “{rule.title}”; relax that first."
        return [f"{_asked(settings)}: nothing that was run here does all of it.{why}"]
    sure = "" if advice.seeds >= SEEDS else f" (so far, from {advice.seeds} of the seeds)"
    budget = f", ε = {short(round(best['epsilon'], 3))}" if best["noise"] else ""
    said = [
        f"{_asked(settings)}: **{named(best)}**, off by {angle(best['sin_theta'])}, "
        f"{size(best['bytes_client'])} a client{budget}{sure}."
    ]
    said.append(_why(advice, best))
    if best["sums"] and not best["noise"]:
        said.append(
            "Two such runs still give away a record that joined between them: run once, or ask for "
            "an ε."
        )
    if open_ is not None:
        said.append(f"Without secure sums: {named(open_)} (off by {angle(open_['sin_theta'])}).")
    if second is not None and len(advice.group) == 1 and (open_ is None or open_["rank"] > 2):
        said.append(f"Next best: {named(second)} (off by {angle(second['sin_theta'])}).")
    return said
