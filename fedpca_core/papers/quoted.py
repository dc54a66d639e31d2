"""A number printed in a paper, with its place: what pages quote, and nothing else.

The numbers themselves stand in `fedpca_core.papers.faps` and its neighbours, each in its
paper's list ``QUOTED``; `fedpca_core.papers.registry.quote` finds one by its name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fedpca_core.errors import require
from fedpca_core.papers.sources import source


@dataclass(frozen=True)
class Quoted:
    """A printed number.

    Attributes
    ----------
    name : str
        "paper/place/row/measure", unique among all papers.
    place : str
        Where it stands: table, figure, theorem or section.
    row : str
        Which of that place: a method, a setting.
    measure, unit : str
        What it measures; the unit is empty for a pure number.
    text : str
        As printed, digits included.
    """

    name: str
    place: str
    row: str
    measure: str
    text: str
    unit: str = ""

    def __post_init__(self) -> None:
        source(self.source)
        float(self.text)

    @property
    def source(self) -> str:
        """Key of the paper."""
        return self.name.split("/", 1)[0]

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text)

    def __str__(self) -> str:
        return f"{self.text}{self.unit}" if self.unit == "%" else f"{self.text} {self.unit}".strip()


def by_name(numbers: Iterable[Quoted]) -> Mapping[str, Quoted]:
    """Printed numbers by name.

    Raises
    ------
    InvalidInput
        Two of the same name.
    """
    found: dict[str, Quoted] = {}
    for number in numbers:
        require(number.name not in found, f"The number “{number.name}” is quoted twice.")
        found[number.name] = number
    return found
