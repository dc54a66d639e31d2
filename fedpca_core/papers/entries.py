"""What is taken from a paper: its numbers and claims, settings that it states, and readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from fedpca_core.errors import require

Kind = Literal["number", "claim", "statement", "step"]

#: What is quoted is a value or a name, not a sentence.
LONGEST = 40


@dataclass(frozen=True)
class Stated:
    """A setting that the paper states: where, as printed, and what it is."""

    line: int
    printed: str
    says: str


@dataclass(frozen=True)
class Reading:
    """A setting to try where the paper is silent or open.

    Attributes
    ----------
    name : str
        Unique in its list; a verdict "reproduced under a reading" names it.
    says : str
        What is done.
    changes : mapping
        Settings that differ from what the paper states, for whatever runs it.
    hint : str
        What in the paper suggests it; empty where nothing does.
    line : int
        Where the hint stands; 0 without one.
    """

    name: str
    says: str
    changes: Mapping[str, Any]
    hint: str = ""
    line: int = 0


@dataclass(frozen=True)
class Entry:
    """A printed number or a checkable claim.

    Attributes
    ----------
    paper, id : str
        Key of the paper; name that is unique in it.
    place, row, column : str
        Table, figure, theorem or section; of a table its row and column.
    line, printed : int, str
        Line of the text (from 1), and the value or the few words as they stand there.
    kind : {"number", "claim", "statement", "step"}
        A statement is a theorem, lemma or the like; a step is one of an algorithm.
    says : str
        What it says, in our words.
    measure, method, series, experiment : str
        What is measured, of which method; the series and the key of the experiment that give our
        figure, empty where there is none yet.
    stated : tuple of Stated
    readings : tuple of Reading
    decides : str
        For what is no number: what would settle it, worded as strictly as the claim and no more.
    cause : str
        The one cause on which several numbers hang.
    contradicts : tuple of str
        Entries of the same paper that cannot hold beside it.
    demonstration, shows : str
        At most two lines of Python, and what they print.
    out_of_scope : str
        Why nothing is run.
    old_rows : tuple of str
        Rows of the former table that it replaces.
    """

    paper: str
    id: str
    place: str
    line: int
    printed: str
    kind: Kind
    says: str
    row: str = ""
    column: str = ""
    measure: str = ""
    method: str = ""
    series: str = ""
    experiment: str = ""
    stated: tuple[Stated, ...] = ()
    readings: tuple[Reading, ...] = ()
    decides: str = ""
    cause: str = ""
    contradicts: tuple[str, ...] = ()
    demonstration: str = ""
    shows: str = ""
    out_of_scope: str = ""
    old_rows: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        called = f"Entry “{self.id}” of “{self.paper}”"
        require(
            self.kind in get_args(Kind),
            f"{called} is of no kind “{self.kind}”; choose one of {', '.join(get_args(Kind))}.",
        )
        require(
            0 < len(self.printed) <= LONGEST,
            f"{called} quotes {len(self.printed)} characters; quote a value or a few words, "
            f"1 to {LONGEST} characters.",
        )
        require(
            self.kind == "number" or bool(self.decides or self.out_of_scope),
            f"{called} does not say what decides it; fill “decides” or “out_of_scope”.",
        )
        require(
            self.demonstration.count("\n") < 2 and bool(self.demonstration) == bool(self.shows),
            f"{called} has a demonstration of more than two lines or without what it shows; "
            "give both, in two lines at most.",
        )


@dataclass(frozen=True)
class Ignored:
    """What needs no entry: all of the lines ``lines`` (first, last), or numbers of ``line``."""

    why: str
    lines: tuple[int, ...] = ()
    line: int = 0
    printed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Dropped:
    """Rows of the former table that the paper does not have."""

    rows: tuple[str, ...]
    why: str


@dataclass(frozen=True)
class Paper:
    """A paper, how it is cited, and all that is taken from it.

    ``title`` is as in the text; ``note`` says what of the rest is not in the text.
    """

    key: str
    name: str
    title: str
    year: int
    cite: str
    authors: tuple[str, ...] = ()
    venue: str = ""
    doi: str = ""
    arxiv: str = ""
    note: str = ""
    stated: Mapping[str, tuple[Stated, ...]] = field(default_factory=dict)
    readings: Mapping[str, tuple[Reading, ...]] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    ignored: tuple[Ignored, ...] = ()
    dropped: tuple[Dropped, ...] = ()
