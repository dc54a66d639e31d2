"""What stands on a page, as plain data: sentences, tables, cards, findings, charts.

A question says what there is to see; the dashboard draws it, an archive prints it, a poster plays
it. Nothing here knows of a screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import pandas as pd

from fedpca_core.findings import Finding
from fedpca_core.guarantee import Guarantee
from fedpca_core.study.panels import Heat, Images, Panel


@dataclass(frozen=True)
class Say:
    """A sentence in Markdown.

    ``kind`` is "" for plain text, "small" for a caption, "note" for something to know, "remedy" for
    something to change, "good" for what worked.
    """

    text: str
    kind: Literal["", "small", "note", "remedy", "good"] = ""


@dataclass(frozen=True)
class Heading:
    """A heading within a section, with one sentence below it."""

    title: str
    lead: str = ""


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of finished texts; ``numbers`` are the columns to align to the right."""

    table: pd.DataFrame
    label: str
    numbers: Sequence[str] = ()
    tall: bool = False


@dataclass(frozen=True)
class Card:
    """One number: a label, the value as text, a small line below it, and what it means."""

    label: str
    value: str
    note: str = ""
    help: str | None = None


@dataclass(frozen=True)
class Cards:
    """Numbers side by side."""

    cards: Sequence[Card]


@dataclass(frozen=True)
class Found:
    """What is known of a leak, target by target."""

    findings: Sequence[Finding]
    label: str = "What is known of every target"


@dataclass(frozen=True)
class Promise:
    """A guarantee with all the words that give its ε a meaning."""

    guarantee: Guarantee
    most_samples: int


@dataclass(frozen=True, eq=False)
class View:
    """Charts, heat maps and pictures that one transport moves through the rounds.

    Attributes
    ----------
    key : str
        Unique on the page.
    panels : sequence of Panel or Heat
    images : sequence of rows of Images
    rounds : int
        Of the run; 0: nothing is played.
    autoplay : bool
    """

    key: str
    panels: Sequence[Panel | Heat] = ()
    images: Sequence[Sequence[Images]] = ()
    rounds: int = 0
    autoplay: bool = False


@dataclass(frozen=True, eq=False)
class Fold:
    """Blocks that are folded away."""

    title: str
    blocks: Sequence[Block] = field(default_factory=tuple)


Block = Say | Heading | Rows | Cards | Found | Promise | View | Fold
