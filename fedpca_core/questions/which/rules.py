"""The rules by which a method is recommended: data, so that a page can show all of them."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from fedpca_core.arrays import Array
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import plural, short
from fedpca_core.study.parts import names

#: A run, or a configuration: its numbers by name.
Row = Mapping[str, Any]
#: Who loses least leaves room up to what may be lost; who stays within this share of it is as good,
#: or within `NOTHING` of the whole variance. Without a limit, the same share of the loss itself.
ALIKE, NOTHING = 0.5, 0.001
#: Share of the seeds in which a configuration passes, at least, to be advised; in which it is as
#: good, more than which puts it into the first group.
SURE, HALF = 0.7, 0.5
#: Columns with such shares.
SHARES = ("alike", "passes")
#: Chance that a share is decided wrongly, over all times that seeds are asked.
WRONG = 0.05
#: What is decided of a configuration: that it passes and is as good, or not even that by the seeds.
GOOD, EDGE = "as good", "on the edge"
#: What a run has lost, and costs, in the round in which it ends.
_AT_END = ("round", "bytes_client", "sin_theta", "unexplained", "worst_client")
_TITLES, _DEMANDS = names("which-rule-titles"), names("which-rule-demands")
_REASONS = names("which-rule-fails")


@dataclass(frozen=True)
class Rule:
    """One reason to leave a configuration out; its sentences stand in `words.toml`."""

    key: str
    #: What is asked for with these settings, in words; empty: nothing.
    asks: Callable[[FrontierSettings], str]
    #: Whether a row of the table passes.
    keeps: Callable[[Row, FrontierSettings], bool]
    #: What a row has instead, in words.
    has: Callable[[Row], str]

    @property
    def title(self) -> str:
        return _TITLES[self.key]

    def demand(self, settings: FrontierSettings) -> str:
        """The rule in words, for these settings; empty where it asks for nothing."""
        asked = self.asks(settings)
        return _DEMANDS[self.key].format(asked) if asked else ""

    def reason(self, row: Row) -> str:
        """Why a row that does not pass is left out."""
        return _REASONS[self.key].format(self.has(row))


def size(count: float) -> str:
    """Bytes in words."""
    for unit, large in (("MB", 1e6), ("kB", 1e3)):
        if count >= large:
            return f"{count / large:.3g} {unit}"
    return f"{count:.0f} bytes"


def rounds(count: float) -> str:
    return plural(np.round(count), "round")


def share(part: float) -> str:
    """A share in words: two digits of a per cent."""
    return f"{float(f'{100 * part:.2g}'):g}%" if part >= 1e-5 else "below 0.001%"


def _at_most(key: str, limit: str, column: str, said: Callable[[float], str]) -> Rule:
    """That a number of a row is no more than the settings have."""

    def asks(c: FrontierSettings) -> str:
        return "" if math.isinf(most := getattr(c, limit)) else said(most)

    def keeps(row: Row, c: FrontierSettings) -> bool:
        return bool(row[column] <= getattr(c, limit))

    return Rule(key, asks, keeps, lambda row: said(row[column]))


RULES: tuple[Rule, ...] = (
    Rule(
        "epsilon",
        lambda c: "" if math.isinf(c.needed_epsilon) else short(c.needed_epsilon),
        lambda row, c: (
            math.isinf(c.needed_epsilon) or bool(row["epsilon"] <= c.needed_epsilon * (1 + 1e-9))
        ),
        lambda row: "no ε" if math.isnan(row["epsilon"]) else f"ε = {row['epsilon']:.3g}",
    ),
    Rule(
        "server",
        lambda c: "" if c.server == "trusted" else c.server,
        lambda row, c: c.server == "trusted" or bool(row["sums"] or row["noise"]),
        lambda row: str(row["finding"]),
    ),
    _at_most("bytes", "budget_bytes", "bytes_client", size),
    _at_most("rounds", "budget_rounds", "rounds", rounds),
    _at_most("lost", "most_lost", "unexplained", share),
    Rule(
        "sure",
        lambda c: share(SURE),
        lambda row, c: row.get("passes", 1.0) >= SURE,  # a run by itself has no share
        lambda row: share(row["passes"]),
    ),
)
#: Rules that hang on what is lost: who fails them in a seed may be as good as the first in it.
BY_LOSS = ("", "lost", "sure")


def slack(least: pd.Series, most: float) -> pd.Series:
    """How much more than the least loss is as good, where ``most`` may be lost."""
    room = least if math.isinf(most) else most - least
    return (ALIKE * room).clip(lower=NOTHING)


def ended(table: pd.DataFrame, paths: pd.DataFrame, settings: FrontierSettings) -> pd.DataFrame:
    """Runs of one seed as they are where the budgets end them.

    ``table``: One run a row, with a column ``run``.
    ``paths``: Their rounds, with the same column; see `frontier.PATH`.
    """
    rounds = paths[paths["round"] > 0]
    paid = rounds["round"] <= settings.budget_rounds
    paid &= rounds["bytes_client"] <= settings.budget_bytes
    # Where not even one round can be paid, its price is what is told.
    paid |= rounds["round"] == 1
    last = rounds[paid].groupby("run", sort=False).tail(1).set_index("run")
    known = last.loc[table["run"], list(_AT_END)].rename(columns={"round": "rounds"})
    return table.assign(**{str(name): known[name].to_numpy(dtype=float) for name in known})


def left_out(table: pd.DataFrame, settings: FrontierSettings) -> pd.DataFrame:
    """The table with ``excluded`` (key of the first rule that fails, or empty), ``reason``."""
    excluded, reasons = [], []
    rows: list[Any] = table.to_dict("records")
    for row in rows:
        failed = next((rule for rule in RULES if not rule.keeps(row, settings)), None)
        excluded.append("" if failed is None else failed.key)
        reasons.append("" if failed is None else failed.reason(row))
    return table.assign(excluded=excluded, reason=reasons)


def share_interval(share: Array, count: Array, looks: int) -> tuple[Array, Array]:
    """Wilson's intervals for shares of ``count`` draws each, which hold over all ``looks``."""
    square = norm.isf(WRONG / 2 / looks) ** 2 / count
    middle = (share + square / 2) / (1 + square)
    half = np.sqrt(square * (share * (1 - share) + square / 4)) / (1 + square)
    return middle - half, middle + half


def standing(table: pd.DataFrame, looks: int) -> Array:
    """`GOOD`, `EDGE`, or empty where it is decided that a configuration is neither, (rows,).

    A median of losses is within the margin where the share of the seeds that stay within it is
    above one half; its interval is that of a test of equivalence by signs.
    """
    seeds = table["seeds"].to_numpy(dtype=float)
    (low, high), (weak, strong) = (
        share_interval(table[name].to_numpy(dtype=float), seeds, looks) for name in SHARES
    )
    # Few seeds decide nothing about 70%; that none of them speaks against it is taken for a yes.
    passes = (table["excluded"] == "") & ((weak > SURE) | (table["passes"] == 1))
    may = table["excluded"].isin(BY_LOSS) & (high >= HALF) & (strong >= SURE)
    return np.where(passes & (low > HALF), GOOD, np.where(may, EDGE, ""))


def judged(table: pd.DataFrame, settings: FrontierSettings, looks: int = 1) -> pd.DataFrame:
    """The table with what is `left_out`, ``standing`` and ``rank``, the recommended row first.

    ``table``: One configuration a row, with the shares of its ``seeds`` in which it is ``alike``
        the one that loses least, and ``passes``.
    ``looks``: How often seeds are asked, at the most.
    """
    result = left_out(table, settings)
    result["standing"] = standing(result, looks)
    left, good, near = result["excluded"] == "", result["standing"] == GOOD, result["alike"] >= HALF
    far = result["unexplained"].where(~near, 0.0)
    result = result.assign(left=left, good=good, near=near, far=far).sort_values(
        ["left", "good", "near", "far", "rounds", "bytes_client", "unexplained"],
        ascending=[False, False, False, True, True, True, True],
        kind="stable",
        ignore_index=True,
    )
    result = result.drop(columns=["good", "near", "far"])
    places = np.arange(1.0, len(result) + 1)
    return result.assign(rank=np.where(result.pop("left"), places, np.nan))
