"""What a replay found that takes longer than a picture may: shown at once, while it runs anew.

``python -m scripts.replayed`` runs it and writes the file; a test compares that with a fresh run.
"""

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.findings import Figure, Finding, Status, Target

FILE = Path(__file__).with_name("replayed.json")


@dataclass(frozen=True, eq=False)
class Stored:
    """The outcome of one replay."""

    #: The run as its link: it is an answer to this one and to no other.
    settings: str
    #: After whose messages the records were found.
    round: int
    #: (records, features) int: Grey levels of the records, of ``white``, in the order in which the
    #: client holds them.
    levels: list[list[int]]
    white: int
    #: Of the matrix, and of the records.
    findings: tuple[Finding, Finding]

    @property
    def records(self) -> Array:
        """(features, records), white at 1."""
        return np.array(self.levels, dtype=float).T / self.white

    @classmethod
    def read(cls, text: str) -> Self:
        """From its file."""
        held: dict[str, Any] = json.loads(text)
        matrix, records = (_finding(one) for one in held.pop("findings"))
        return cls(**held, findings=(matrix, records))

    def written(self) -> str:
        """As its file has it."""
        return json.dumps(asdict(self), ensure_ascii=False) + "\n"


def _finding(held: dict[str, Any]) -> Finding:
    figure = held.pop("figure")
    target, status = Target(held.pop("target")), Status(held.pop("status"))
    return Finding(target, status, figure=figure and Figure(**figure), **held)


@lru_cache(maxsize=1)
def _kept() -> Stored:
    return Stored.read(FILE.read_text(encoding="utf-8"))


def stored(settings: str) -> Stored | None:
    """The outcome for a run, given as its link, if there is one."""
    return _kept() if _kept().settings == settings else None
