"""How often an attack succeeds: a share of the draws, and where that of as many others will lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammaln, stdtrit

#: Chance with which the interval holds what as many further draws give.
SURE = 0.99
#: What all draws did, this share of any others is said to do.
NEARLY = 0.9
#: Interval of an average below which no difference is stated.
FINEST = 0.01


@dataclass(frozen=True)
class Share:
    """A share, as stated.

    Attributes
    ----------
    of : str
        "draws" in which something happened; "way" from nothing to all that an attack comes, on
        average; or "pairs" of a member and a stranger that are ranked right.
    seen : float
        In the draws that were attacked.
    low, high : float
        Where the same share of as many further draws is said to lie.
    """

    of: str
    seen: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Of the interval: near 1, nothing is stated."""
        return self.high - self.low

    @property
    def settled(self) -> bool:
        """Whether nearly all draws do it, or nearly none."""
        return self.low >= NEARLY or self.high <= 1 - NEARLY

    def holds(self, share: float) -> bool:
        """Whether another share is as stated."""
        return self.low - 1e-9 <= share <= self.high + 1e-9


def counted(successes: Sequence[float]) -> Share:
    """Share of draws in which something happened.

    Where they differ, the interval is that of the beta-binomial distribution (Jeffreys' prior);
    where all agree it is bolder, and nearly all others are said to do the same.
    """
    draws, hits = len(successes), round(sum(successes))
    seen = hits / draws
    if hits in (0, draws):
        return Share("draws", seen, NEARLY * (hits > 0), 1 - NEARLY * (hits == 0))
    others = np.arange(draws + 1)
    first, second = hits + 0.5, draws - hits + 0.5
    ways = gammaln(draws + 1) - gammaln(others + 1) - gammaln(draws - others + 1)
    each = np.exp(ways + betaln(others + first, draws - others + second) - betaln(first, second))
    ends = np.searchsorted(np.cumsum(each), [(1 - SURE) / 2, (1 + SURE) / 2])
    return Share("draws", seen, float(ends[0]) / draws, float(min(ends[1], draws)) / draws)


def averaged(of: str, values: Sequence[float]) -> Share:
    """Average of shares, one from each draw; the interval is Student's, cut at 0 and 1."""
    draws = len(values)
    mean, spread = float(np.mean(values)), float(np.std(values, ddof=1))
    reach = float(stdtrit(draws - 1, (1 + SURE) / 2)) * spread * np.sqrt(2 / draws)
    reach = max(reach, FINEST)
    return Share(of, mean, max(mean - reach, 0.0), min(mean + reach, 1.0))
