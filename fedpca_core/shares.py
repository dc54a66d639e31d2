"""How often an attack succeeds: a share of the draws, and where that of as many others will lie."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, gammaln, stdtrit

#: Chance with which the interval holds what as many further draws give: several stand in an answer.
SURE = 0.995
#: As narrow an interval is worth no further draws.
NARROW = 0.42
#: What such a share of the draws did is said of the deployment.
NEARLY = 0.9
#: How often a guess ranks a pair right.
CHANCE = 0.5


@dataclass(frozen=True)
class Share:
    #: "draws" in which something happened, or "pairs" of a member and a stranger that are ranked
    #: right.
    of: str
    #: In the draws that were attacked.
    seen: float
    #: low, high: Where the same share of as many further draws is said to lie.
    low: float
    high: float

    @property
    def width(self) -> float:
        """Of the interval: near 1, nothing is stated."""
        return self.high - self.low

    def __str__(self) -> str:
        seen, low, high = (f"{100 * one:.0f}" for one in (self.seen, self.low, self.high))
        return f"{seen}% of {self.of} ({low}–{high}%)"

    def holds(self, share: float) -> bool:
        return self.low - 1e-9 <= share <= self.high + 1e-9


def counted(successes: Sequence[float]) -> Share:
    """Share of draws in which something happened, with an interval also where all draws agree.

    It is that of the beta-binomial distribution (Jeffreys' prior): four say little of the next.
    """
    draws, hits = len(successes), round(sum(successes))
    others = np.arange(draws + 1)
    first, second = hits + 0.5, draws - hits + 0.5
    ways = gammaln(draws + 1) - gammaln(others + 1) - gammaln(draws - others + 1)
    each = np.exp(ways + betaln(others + first, draws - others + second) - betaln(first, second))
    # Added up from both ends, so that success and failure are treated alike.
    tail = (1 - SURE) / 2
    low = int(np.searchsorted(np.cumsum(each), tail))
    high = draws - int(np.searchsorted(np.cumsum(each[::-1]), tail))
    return Share("draws", hits / draws, low / draws, high / draws)


def averaged(values: Sequence[float]) -> Share:
    """Average over two or more draws of how often a pair is ranked right.

    The interval is Student's for the average of as many further draws. To the spread of those seen
    comes one that was not: an attack that fails now and then ranks by chance there, and always
    right otherwise, and a few draws may all be of one kind.
    """
    draws, mean = len(values), float(np.mean(values))
    spread = float(np.std([*values, max(CHANCE, 1.0, key=lambda end: abs(end - mean))], ddof=1))
    reach = float(stdtrit(draws, (1 + SURE) / 2)) * spread * np.sqrt(2 / draws)
    return Share("pairs", mean, max(mean - reach, 0.0), min(mean + reach, 1.0))
