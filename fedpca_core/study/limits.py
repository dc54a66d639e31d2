"""What a run may take: estimated from its settings before it starts, and refused in a sentence.

A study says what it will cost (`Study.cost`); whoever runs it for others compares that with what
one run may have. A command line of one's own has no limits.
"""

from __future__ import annotations

from dataclasses import dataclass

from fedpca_core.errors import require
from fedpca_core.settings import Settings


@dataclass(frozen=True)
class Cost:
    """What a run will take, within a factor of about three."""

    #: At its largest, beyond what the process has before.
    megabytes: float = 0.0
    #: On one core of a plain machine.
    seconds: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        """One after the other, the first still in memory."""
        return Cost(self.megabytes + other.megabytes, self.seconds + other.seconds)

    def times(self, often: float) -> Cost:
        """The same again and again, each forgotten before the next."""
        return Cost(self.megabytes, often * self.seconds)

    def kept(self, often: float) -> Cost:
        """The same again and again, all of them kept."""
        return Cost(often * self.megabytes, often * self.seconds)


@dataclass(frozen=True)
class Limits:
    """What one run may have, whatever a link, a file or an upload asks for."""

    #: features, clients, rounds: Largest problem and longest run.
    features: int = 1000
    clients: int = 1000
    rounds: int = 3000
    #: Of estimated work; a run is ended when it has taken so long.
    seconds: int = 600
    #: Of memory.
    megabytes: int = 1600
    #: columns, cells: Of a file of one's own, as its header and line ends promise them.
    columns: int = 5000
    cells: int = 25_000_000

    def check_file(self, name: str, rows: int, columns: int, remedy: str) -> None:
        """Refuse a file that is too large to be parsed.

        Raises InvalidInput: names the limit, what was found, and the remedy.
        """
        require(
            columns <= self.columns,
            f"{name} has about {columns:,} columns, more than the {self.columns:,} that this "
            f"server reads; choose fewer, or {remedy}.",
        )
        require(
            rows * columns <= self.cells,
            f"{name} has about {rows:,} rows of {columns:,} columns, more than the "
            f"{self.cells:,} cells that this server reads; choose fewer, or {remedy}.",
        )

    def check(self, title: str, cost: Cost, settings: Settings | None, remedy: str) -> None:
        """Refuse a run that is too large.

        ``settings``: None where its sizes make no difference to the run.
        ``remedy``: How to run it elsewhere; ends the sentence.

        Raises InvalidInput: names the limit, what was asked for, and the remedy.
        """
        for name in ("features", "clients", "rounds"):
            asked, limit = getattr(settings, name, 0), getattr(self, name)
            require(
                asked <= limit,
                f"{asked:,} {name} are more than the {limit:,} that this server takes; choose "
                f"fewer, or {remedy}.",
            )
        memory, minutes = amount(cost.megabytes), amount(cost.seconds / 60)
        for fits, asked_for, given in (
            (cost.megabytes <= self.megabytes, f"{memory} MB of memory", f"{self.megabytes:,} MB"),
            (cost.seconds <= self.seconds, f"{minutes} minutes", amount(self.seconds / 60)),
        ):
            require(
                fits,
                f"“{title}” would take about {asked_for} with these settings, and this server "
                f"gives one computation {given}; choose {_fewer(settings)}, or {remedy}.",
            )


#: What makes a run large.
_SIZES = ("features", "clients", "rounds", "repetitions", "datasets")
#: Problems that bring their features.
_MEASURED = ("digits", "mnist", "fashion_mnist", "cifar10", "olivetti", "auto", "table")


def _fewer(settings: Settings | None) -> str:
    """What to choose less of: "fewer clients or rounds"."""
    described = {} if settings is None else settings.parameters()
    brought = {"features"} if getattr(settings, "problem", "") in _MEASURED else set()
    named = [described[name].label.lower() for name in _SIZES if name in described.keys() - brought]
    if not named:
        return "a smaller problem"
    *some, last = named
    return f"fewer {', '.join(some)} or {last}" if some else f"fewer {last}"


def amount(number: float) -> str:
    """A rough number in two digits: 14,000."""
    digits = f"{number:.2g}"
    return digits if number < 10 else f"{float(digits):,.0f}"
