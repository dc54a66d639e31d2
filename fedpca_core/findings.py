"""What is said about leakage, as a value: a finding, with what it stands on.

Pages, reports and the command line print findings and nothing else about what a server can make of
messages. Five statuses are all there are; each may be given on one kind of basis only:

- *proved closed*: a theorem whose hypotheses were checked for these very messages;
- *open*: a certificate that needs no truth, or a comparison with the truth in the simulation;
- *partly*: the same, with the share that was got;
- *not opened*: every attack that fits the messages was run to its end, and none got it;
- *not tried*: anything else. What it would cost to try stands beside it.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

import pandas as pd

from fedpca_core.errors import require
from fedpca_core.settings import rough
from fedpca_core.shares import Share

#: Errors below this are rounding, and which rounding is of no interest.
ROUNDING = 1e-6


class Target(StrEnum):
    COVARIANCE = "covariance"
    LEADING = "leading space"
    RECORDS = "records"
    MEMBERSHIP = "membership"
    NEWCOMER = "newcomer"
    SUM = "the sum"


#: Targets in words, for tables and headings.
TARGETS: Mapping[Target, str] = {
    Target.COVARIANCE: "The client's covariance",
    Target.LEADING: "Its leading space",
    Target.RECORDS: "Its records, to the last digit",
    Target.MEMBERSHIP: "Whether a record is in it",
    Target.NEWCOMER: "The record that joins between two runs",
    Target.SUM: "The sum over the clients",
}


class Status(StrEnum):
    PROVED_CLOSED = "proved closed"
    OPEN = "open"
    PARTLY = "partly"
    NOT_OPENED = "not opened"
    NOT_TRIED = "not tried"


@dataclass(frozen=True)
class Figure:
    """A number that an attack reached."""

    #: Median over the draws.
    value: float
    #: What it counts, in words that can follow the number: "records", "of pairs ranked right".
    unit: str
    #: What there was to get; None where the number is no count.
    of: float | None = None
    #: low, high: Least and largest over the draws.
    low: float | None = None
    high: float | None = None
    draws: int = 1

    def __str__(self) -> str:
        if math.isnan(self.value):
            return f"no {self.unit}"
        shown = _short(self.value) if self.of is None else f"{self.value:,.10g} of {self.of:,.10g}"
        spread = None not in (self.low, self.high) and _short(self.low) != _short(self.high)
        span = f" ({_short(self.low)}–{_short(self.high)})" if spread else ""
        unit = re.sub(r"^(\w+)s\b", r"\1", self.unit) if self.of == 1 else self.unit
        return f"{unit} {shown}{span}" if self.of is None else f"{shown} {unit}{span}"


def lasting(seconds: float) -> str:
    """How long something takes, to two digits, in a unit that a reader has a feeling for."""
    units = ("s", 1.0, 100.0), ("minutes", 60.0, 6000.0), ("hours", 3600.0, 172800.0)
    unit, long, _ = next((one for one in units if seconds < one[2]), ("days", 86400.0, math.inf))
    return f"{float(f'{seconds / long:.2g}'):,g} {unit}"


def priced(seconds: float) -> str:
    """What an attack costs, counted from its work: a machine that does other things takes more."""
    return f"about {lasting(seconds)} on a free core"


def _short(number: float | None) -> str:
    """Three digits; what is below rounding is named as such."""
    assert number is not None
    return "below 1e-6" if abs(number) < ROUNDING else rough(number)


@dataclass(frozen=True)
class Finding:
    """What is known of one target, and how.

    Attributes:
        attack: Key of the attack in the registry (`fedpca_core.attacks.registry`); empty for a
            theorem, and where several were run and none opened it.
        basis: A sentence without its full stop: the theorem with its hypotheses as they are here,
            the certificate, the comparison, or why nothing was tried.
        share: Over several draws: in how many of them, and where that of as many others would lie.
        tried: Attacks that were run to their end.
        seconds: What trying costs, about, where nothing was tried; 0 where nothing fits the
            messages.

    Raises:
        InvalidInput: A status without the basis that it needs.
    """

    target: Target
    status: Status
    attack: str = ""
    figure: Figure | None = None
    basis: str = ""
    share: Share | None = None
    tried: int = 0
    seconds: float = 0.0

    def __post_init__(self) -> None:
        got = self.status in (Status.OPEN, Status.PARTLY)
        require(
            self.basis != "",
            f"A finding of {self.target} needs what it stands on, and this one has no basis.",
        )
        require(
            not got or self.figure is not None,
            f"“{self.status}” of {self.target} needs the figure that the attack reached.",
        )
        require(
            self.status is not Status.NOT_OPENED or self.tried > 0,
            f"“{self.status}” of {self.target} needs attacks that were run; none was, so it is "
            f"“{Status.NOT_TRIED}”.",
        )

    @property
    def words(self) -> str:
        """What the server has of it, as a page prints it: without “the server” and a full stop."""
        if self.status is Status.PROVED_CLOSED:
            return f"cannot, because {self.basis}"
        pairs = self.share is not None and self.share.of == "pairs"
        got = "a member ranked above a stranger" if pairs else str(self.figure)
        often = "" if self.share is None else f", in {self.share}"
        if self.status is Status.OPEN:
            return f"has it: {got}{often}; {self.basis}"
        if self.status is Status.PARTLY:
            return f"has {got}{often}; {self.basis}"
        if self.status is Status.NOT_OPENED:
            draws = 1 if self.figure is None else self.figure.draws
            many = "our one attack" if self.tried == 1 else f"any of our {self.tried} attacks"
            how_often = "1 draw" if draws == 1 else f"{draws} draws"
            return f"has not opened it with {many}, in {how_often}; {self.basis}"
        price = f" ({priced(self.seconds)})" if self.seconds else ""
        return f"not tried{price}: {self.basis}"


def in_short(finding: Finding) -> str:
    """The status in a few words, for a caption: what was not tried names its price."""
    if finding.status is Status.NOT_TRIED:
        price = f", {priced(finding.seconds)}" if finding.seconds else ""
        return f"not tried: {finding.basis}{price}"
    if finding.status is Status.NOT_OPENED:
        return "not opened by our attacks"
    return f"{finding.status}"


def frame(findings: Iterable[Finding]) -> pd.DataFrame:
    nan = math.nan
    rows = []
    for one in findings:
        figure = one.figure or Figure(nan, "")
        share = one.share or Share("", nan, nan, nan)
        rows.append(
            {
                "target": str(one.target),
                "status": str(one.status),
                "attack": one.attack,
                "figure": figure.value,
                "unit": figure.unit,
                "of": nan if figure.of is None else figure.of,
                "least": nan if figure.low is None else figure.low,
                "most": nan if figure.high is None else figure.high,
                "draws": figure.draws,
                "share": share.seen,
                "share_low": share.low,
                "share_high": share.high,
                "attacks_tried": one.tried,
                "seconds_to_try": one.seconds,
                "basis": one.basis,
                "words": one.words,
            }
        )
    return pd.DataFrame(rows)
