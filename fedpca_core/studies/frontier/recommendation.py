"""Which method to use: every candidate run as it would be deployed, judged by explicit rules."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.guarantee import in_words
from fedpca_core.settings import short
from fedpca_core.studies.frontier.frontier import Front, Frontier
from fedpca_core.studies.frontier.rules import ALIKE, RULES, judged, rounds, size
from fedpca_core.studies.frontier.settings import FrontierSettings
from fedpca_core.studies.limits import Cost
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.scene.words import angle
from fedpca_core.studies.study import Run, Study, part

#: What the clients' noise and the server's view are called together.
WAYS: Mapping[tuple[bool, bool], str] = {
    (False, False): "without noise",
    (True, False): "without noise, under secure sums",
    (False, True): "on a private source",
    (True, True): "with shared noise under secure sums",
}


@dataclass(frozen=True, eq=False)
class Advice:
    """Every candidate in every way of running it, judged.

    Attributes
    ----------
    table : pandas.DataFrame
        Columns of the frontier, with ``sums``, ``noise``, ``way``, ``excluded``, ``reason`` and
        ``rank``; the recommended one first.
    refusals : mapping of candidate to the sentence why it could not run
    """

    table: pd.DataFrame
    refusals: Mapping[str, str]

    def place(self, rank: int) -> pd.Series | None:
        """The configuration of this rank, if there is one."""
        found = self.table[self.table["rank"] == rank]
        return None if found.empty else found.iloc[0]

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
    reads: ClassVar[frozenset[str]] = frozenset(
        name for name, p in FrontierSettings.parameters().items() if not p.view
    ) - {"vary", "seeds", "epsilon", "secure_aggregation", "shared_noise"} | {
        "budget_bytes", "budget_rounds", "server", "needed_epsilon"
    }  # fmt: skip

    def ways(self, settings: FrontierSettings) -> list[FrontierSettings]:
        """The settings of every way of running all candidates."""
        base = replace(
            settings, vary="none", seeds=1, epsilon=settings.needed_epsilon, shared_noise=False,
            secure_aggregation=False,
        )  # fmt: skip
        if settings.server != "sums":
            return [base]
        noisy = not math.isinf(settings.needed_epsilon)
        return [base, replace(base, secure_aggregation=True, shared_noise=noisy)]

    def cost(self, settings: FrontierSettings, data: OwnData | None = None) -> Cost:
        ways = self.ways(settings)
        return Frontier().cost(ways[0], data).times(len(ways))

    def run(self, settings: FrontierSettings, data: OwnData | None = None) -> Run[Advice]:
        tables: list[pd.DataFrame] = []
        refusals: dict[str, str] = {}
        ways = self.ways(settings)
        for number, way in enumerate(ways):
            ends = number / len(ways), (number + 1) / len(ways)
            front: Front = yield from part(Frontier().run(way, data), *ends)
            noise = not math.isinf(way.epsilon)
            title = WAYS[way.secure_aggregation, noise]
            tables.append(front.table.assign(sums=way.secure_aggregation, noise=noise, way=title))
            refusals |= {f"{name} {title}": why for name, why in front.refusals.items()}
        table = pd.concat([one for one in tables if len(one)] or tables[:1], ignore_index=True)
        return Advice(judged(table, settings), refusals)

    def tables(self, result: Advice, settings: FrontierSettings) -> dict[str, pd.DataFrame]:
        shown = ["rank", "method", "way", "sin_theta", "rounds", "bytes_client", "epsilon", "leak"]
        return {
            "advice": pd.DataFrame({"advice": sentences(result, settings)}),
            "judged": result.table[[*shown, "excluded", "reason"]],
            "rules": pd.DataFrame(
                [(rule.title, rule.demand(settings)) for rule in RULES], columns=["rule", "demand"]
            ),
        }


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
        in_words(settings.delta, f"norm {short(settings.clip_norm)}")
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


def _why(advice: Advice, best: pd.Series, settings: FrontierSettings) -> str:
    """Why it is the first: what the rules left, and what decided among that."""
    table = advice.table
    left = table[table["rank"].notna()]
    alike = left[left["sin_theta"] <= max(ALIKE * left["sin_theta"].min(), settings.accuracy)]
    if len(alike) == 1:
        decided = "it is the most accurate by more than 10%"
    elif (alike["rounds"] > best["rounds"]).sum() == len(alike) - 1:
        decided = f"of the {len(alike)} that are alike in accuracy it takes the fewest rounds"
    else:
        decided = (
            f"of the {len(alike)} that are alike in accuracy none takes fewer rounds, nor fewer "
            "bytes in as many"
        )
    return f"Why: the rules leave {len(left)} of {len(table)} configurations; {decided}."


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
    budget = f", ε = {short(round(best['epsilon'], 3))}" if best["noise"] else ""
    said = [
        f"{_asked(settings)}: **{named(best)}**, off by {angle(best['sin_theta'])}, "
        f"{size(best['bytes_client'])} a client{budget}."
    ]
    said.append(_why(advice, best, settings))
    if best["sums"] and not best["noise"]:
        said.append(
            "Two such runs still give away a record that joined between them: run once, or ask for "
            "an ε."
        )
    if open_ is not None:
        said.append(f"Without secure sums: {named(open_)} (off by {angle(open_['sin_theta'])}).")
    if second is not None and (open_ is None or open_["rank"] > 2):
        said.append(f"Next best: {named(second)} (off by {angle(second['sin_theta'])}).")
    return said
