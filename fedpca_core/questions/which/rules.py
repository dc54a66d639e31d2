"""The rules by which a method is recommended: data, so that a page can show all of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from fedpca_core.questions.home.words import angle
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import short

#: Angles within this factor are alike, and then fewer rounds win.
ALIKE = 1.1


@dataclass(frozen=True)
class Rule:
    """One reason to leave a configuration out.

    Attributes
    ----------
    key, title : str
    demand : callable
        The rule in words, for these settings; empty where it asks for nothing.
    keeps : callable
        Whether a row of the table passes.
    reason : callable
        Why a row that does not pass is left out.
    """

    key: str
    title: str
    demand: Callable[[FrontierSettings], str]
    keeps: Callable[[pd.Series, FrontierSettings], bool]
    reason: Callable[[pd.Series, FrontierSettings], str]


def size(count: float) -> str:
    """Bytes in words."""
    for unit, large in (("MB", 1e6), ("kB", 1e3)):
        if count >= large:
            return f"{count / large:.3g} {unit}"
    return f"{count:.0f} bytes"


def rounds(count: float) -> str:
    """Rounds in words."""
    return f"{count:.0f} round{'s' * (count != 1)}"


def _known(limit: float, sentence: str) -> str:
    return "" if math.isinf(limit) else sentence


def _seen(row: pd.Series) -> str:
    """What is known of single uploads without an ε."""
    return f"sends single uploads, of which a curious server {row['finding']}"


RULES: tuple[Rule, ...] = (
    Rule(
        "epsilon",
        "A stated ε",
        lambda c: _known(
            c.needed_epsilon,
            f"every record has an ε of at most {short(c.needed_epsilon)}",
        ),
        lambda row, c: (
            math.isinf(c.needed_epsilon) or bool(row["epsilon"] <= c.needed_epsilon * (1 + 1e-9))
        ),
        lambda row, c: (
            "states no ε" if math.isnan(row["epsilon"]) else f"states ε = {row['epsilon']:.3g}"
        ),
    ),
    Rule(
        "server",
        "What the server may see",
        lambda c: (
            ""
            if c.server == "trusted"
            else "no single upload reaches the server, unless an ε covers it"
        ),
        lambda row, c: c.server == "trusted" or bool(row["sums"] or row["noise"]),
        lambda row, c: _seen(row),
    ),
    Rule(
        "bytes",
        "Bytes a client",
        lambda c: _known(
            c.budget_bytes, f"a client sends and receives at most {size(c.budget_bytes)}"
        ),
        lambda row, c: bool(row["bytes_client"] <= c.budget_bytes),
        lambda row, c: f"takes {size(row['bytes_client'])} a client",
    ),
    Rule(
        "rounds",
        "Rounds",
        lambda c: _known(c.budget_rounds, f"all is done in {rounds(c.budget_rounds)}"),
        lambda row, c: bool(row["rounds"] <= c.budget_rounds),
        lambda row, c: f"takes {rounds(row['rounds'])}",
    ),
    Rule(
        "direction",
        "An answer at all",
        lambda c: (
            "the answer is nearer to the truth than to the worst there is (an angle below 30°)"
        ),
        lambda row, c: bool(row["sin_theta"] < 0.5),
        lambda row, c: f"is off by {angle(row['sin_theta'])} in the end",
    ),
)
ORDER = (
    f"Of what is left, the smallest angle comes first; angles within a factor of {ALIKE:g} are "
    "alike, and then fewer rounds, then fewer bytes a client decide."
)


def judged(table: pd.DataFrame, settings: FrontierSettings) -> pd.DataFrame:
    """The table with ``excluded`` (key of the first rule that a row fails, or empty), ``reason``
    and ``rank`` (from 1; NaN where excluded), the recommended one first."""
    rows = []
    for _, row in table.iterrows():
        failed = next((rule for rule in RULES if not rule.keeps(row, settings)), None)
        rows.append(
            {
                "excluded": "" if failed is None else failed.key,
                "reason": "" if failed is None else failed.reason(row, settings),
            }
        )
    result = table.reset_index(drop=True).join(pd.DataFrame(rows, columns=["excluded", "reason"]))
    left = result[result["excluded"] == ""]
    order: list[int] = []
    while len(left):
        alike = left[left["sin_theta"] <= max(ALIKE * left["sin_theta"].min(), settings.accuracy)]
        alike = alike.sort_values(["rounds", "bytes_client"], kind="stable")
        order += [int(label) for label in alike.index]
        left = left.drop(alike.index)
    result["rank"] = pd.Series(
        {label: float(place) for place, label in enumerate(order, 1)}, dtype=float
    )
    return result.sort_values("rank", kind="stable", na_position="last").reset_index(drop=True)
