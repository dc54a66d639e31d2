"""What a page says of a result, as plain values in the order in which they are read.

A question's ``figures.py`` yields these parts, which know of no screen: the dashboard lays them out
(`dashboard.shell.parts`), and a test reads them. A plain text is a paragraph of Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import pandas as pd

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.settings import Settings, said_in
from fedpca_core.study.panels import Heat, Images, Panel

Protection = Literal["none", "heuristic", "formal"]


@dataclass(frozen=True)
class Caption:
    """A remark in small letters."""

    text: str


@dataclass(frozen=True)
class Note:
    """A sentence in a box of its own: something to know, or what a visitor can change."""

    text: str
    kind: Literal["note", "remedy", "good"] = "note"


@dataclass(frozen=True)
class Badge:
    """A verdict of a few words."""

    text: str
    colour: str


@dataclass(frozen=True)
class Section:
    """Begins a section of the page."""

    title: str
    lead: str = ""


@dataclass(frozen=True, eq=False)
class Chart:
    """Panels and pictures beside each other; with ``rounds`` a run that can be played."""

    #: Unique on the page; keeps a reader's zoom when the data change.
    key: str
    panels: Sequence[Panel | Heat] = ()
    images: Sequence[Sequence[Images]] = ()
    #: Of the run: curves and frames have one entry more.
    rounds: int | None = None
    #: What one of them is called.
    round_label: str = "round"
    #: Whether it plays by itself.
    autoplay: bool = False


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of finished texts."""

    rows: pd.DataFrame
    #: What the table holds, for screen readers.
    label: str
    #: Columns to align to the right; by default all but the first.
    numbers: Sequence[str] | None = None
    #: Columns that break into lines.
    wrapped: Sequence[str] = ()


@dataclass(frozen=True, eq=False)
class Rows:
    """A table of any size, which scrolls; of numbers, six digits are shown."""

    rows: pd.DataFrame
    #: (rows, columns) bool, optional: Cells that are drawn in green.
    marked: Any = None


@dataclass(frozen=True)
class Card:
    """One number worth a card: a label, the value as text, and a small line below it."""

    label: str
    value: str
    note: str = ""
    help: str | None = None


@dataclass(frozen=True)
class Cards:
    cards: Sequence[Card]

    @classmethod
    def of(cls, name: str, **filled: Any) -> Cards:
        """The cards that `words.toml` has under a name, with these values in its gaps."""
        texts = said_in("words")[name]["cards"]
        return cls([Card(**{key: _filled(one[key], filled) for key in one}) for one in texts])


@dataclass(frozen=True, eq=False)
class FactsCard:
    """Short facts by name under a title and the protection that they speak of.

    Of an attacker: what it sees, knows, does and gets. "formal" is a guarantee of differential
    privacy with its unit, δ and accountant; "heuristic" masking whose strength is observed only.
    """

    title: str
    facts: Mapping[str, str]
    protection: Protection = "none"

    @classmethod
    def of(cls, name: str, protection: Protection = "none", **filled: Any) -> FactsCard:
        """The facts that `words.toml` has under a name, with these values in its gaps."""
        said = said_in("words")[name]
        facts = {key: _filled(text, filled) for key, text in said["facts"].items()}
        return cls(_filled(said["title"], filled), facts, protection)


@dataclass(frozen=True, eq=False)
class GuaranteeOf:
    """The guarantee of what has ``facts`` with one; nothing where there is none."""

    facts: Any


@dataclass(frozen=True)
class Link:
    settings: Settings
    label: str


def _filled(text: str, filled: Mapping[str, Any]) -> str:
    """Lines of a file are no lines of the text, but for those of a list; then the gaps."""
    text = re.sub(r"(?<!\n)\n(?!\n|- )", " ", text)
    return text.format(**filled) if filled else text


def words(name: str, /, **filled: Any) -> str:
    """The sentences that `words.toml` has under a name, with these values in its gaps."""
    return _filled(said_in("words")[name]["text"], filled)


def names(name: str) -> Mapping[str, str]:
    """What `words.toml` calls things on a page, or how it colours them, by their keys."""
    said = said_in("words")[name].items()
    return {key: _filled(text, {}) for key, text in said if isinstance(text, str)}


@dataclass(frozen=True)
class About:
    """Folded away: how to read a curve, its formula in LaTeX, and where it comes from."""

    title: str
    text: str
    formula: str | None = None
    source: str | None = None
    papers: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, **filled: str) -> About:
        """What `about.toml` says under a name, with these texts in its gaps."""
        said = said_in("about")[name]
        text = _filled(said["text"], filled)
        return cls(**said | {"text": text, "papers": tuple(said.get("papers", ()))})


@dataclass(frozen=True, eq=False)
class Fold:
    """Parts that are folded away under a title, unless it is ``open``.

    ``late`` ones travel when somebody opens it: a turned dial would send their charts each time.
    """

    title: str
    parts: Sequence[Part]
    open: bool = False
    late: bool = False


@dataclass(frozen=True, eq=False)
class Framed:
    """Parts in a frame, under a title and the protection that they speak of."""

    title: str
    protection: Protection
    parts: Sequence[Part]


@dataclass(frozen=True, eq=False)
class Beside:
    columns: Sequence[Sequence[Part]]


@dataclass(frozen=True, eq=False)
class Space:
    """Points in three coordinates, by the name of their group."""

    key: str
    #: mapping of str to (points, 3) array.
    points: Mapping[str, Any]
    #: What each point is.
    labels: Mapping[str, Sequence[str]]
    axes: tuple[str, str, str]
    #: Where the third axis ends.
    highest: float
    description: str


Part: TypeAlias = (
    "str | Caption | Note | Badge | Section | Chart | Table | Rows | Cards | FactsCard"
    " | GuaranteeOf | Link | About | Fold | Framed | Beside | Space"
)
#: What a question's figures yield.
Parts: TypeAlias = Iterator[Part]


def written(table: pd.DataFrame, digits: Mapping[str, int], others: int = 2) -> pd.DataFrame:
    """Numbers of a table as texts, with as many decimals as a column asks for; "–" for none."""
    texts = table.copy()
    for name in table.select_dtypes("number").columns:
        decimals = digits.get(name, others)
        texts[name] = ["–" if pd.isna(value) else f"{value:,.{decimals}f}" for value in table[name]]
    return texts


def reasons(given: Mapping[Any, str]) -> Iterator[Note]:
    """Each reason for what is missing, once."""
    yield from map(Note, dict.fromkeys(given.values()))


def refusals(given: Mapping[str, str]) -> list[str]:
    """Sentences that say which method they are about."""
    return named_once({METHODS[method].title: text for method, text in given.items()})


def named_once(given: Mapping[str, str]) -> list[str]:
    """Sentences by the titles they are about, each with its title at the beginning once."""
    return [text if text.startswith(title) else f"{title}: {text}" for title, text in given.items()]
