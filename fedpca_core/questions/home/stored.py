"""What a replay found that takes longer than a picture may: shown at once, while it runs anew.

``python -m scripts.replayed`` runs it and writes the file; a test compares that with a fresh run.
"""

import json
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.findings import Figure, Finding, Status, Target

FILE = Path(__file__).with_name("replayed.json")


@dataclass(frozen=True, eq=False)
class Stored:
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

    def written(self) -> str:
        """As its file has it."""
        return json.dumps(asdict(self), ensure_ascii=False) + "\n"


@lru_cache(maxsize=1)
def _kept() -> Stored:
    held: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    matrix, records = (_finding(**one) for one in held.pop("findings"))
    return Stored(**held, findings=(matrix, records))


def _finding(target: str, status: str, figure: dict[str, Any] | None, **more: Any) -> Finding:
    got = None if figure is None else Figure(**figure)
    return Finding(Target(target), Status(status), figure=got, **more)


def stored(settings: str) -> Stored | None:
    """The outcome for a run, given as its link, if there is one."""
    return _kept() if _kept().settings == settings else None
