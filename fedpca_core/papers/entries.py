"""What is taken from a paper: its numbers and claims, settings that it states, and readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from fedpca_core.errors import InvalidInput, require

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
    """A setting to try where the paper is silent or open."""

    #: Unique in its list; a verdict "reproduced under a reading" names it.
    name: str
    #: What is done.
    says: str
    #: Settings that differ from what the paper states, for whatever runs it.
    changes: Mapping[str, Any]
    #: What in the paper suggests it; empty where nothing does.
    hint: str = ""
    #: Where the hint stands; 0 without one.
    line: int = 0
    #: Fields of an entry that name the stored result of this reading: ``experiment``, ``series``,
    #: ``part``, ``measure``. Placeholders stand for the entry's own fields, ``{stem}`` for its
    #: measure up to a comma, ``{root}`` for its experiment without “-literal” and “-stops”. Empty
    #: where nothing is stored.
    reads: Mapping[str, str] = field(default_factory=dict)
    #: Methods to which it applies; empty for all.
    only: tuple[str, ...] = ()
    #: Measures, up to a comma, that it takes from the paper and that it therefore cannot judge.
    given: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A printed number or a checkable claim."""

    #: paper, id: Key of the paper; name that is unique in it.
    paper: str
    id: str
    #: place, row, column: Table, figure, theorem or section; of a table its row and column.
    place: str
    #: line, printed: Line of the text (from 1), and the value or the few words as they stand there.
    line: int
    printed: str
    #: {"number", "claim", "statement", "step"}: A statement is a theorem, lemma or the like; a step
    #: is one of an algorithm.
    kind: Kind
    #: What it says, in our words.
    says: str
    row: str = ""
    column: str = ""
    #: measure, method, series, experiment, part: What is measured, of which method; series, part
    #: and key of the experiment that give our figure, empty where there is none yet.
    measure: str = ""
    method: str = ""
    series: str = ""
    experiment: str = ""
    stated: tuple[Stated, ...] = ()
    readings: tuple[Reading, ...] = ()
    #: For what is no number: what would settle it, worded as strictly as the claim and no more.
    decides: str = ""
    #: The one cause on which several numbers hang.
    cause: str = ""
    #: Entries of the same paper that cannot hold beside it.
    contradicts: tuple[str, ...] = ()
    #: demonstration, shows: At most two lines of Python, and what they print.
    demonstration: str = ""
    shows: str = ""
    #: Why nothing is run.
    out_of_scope: str = ""
    part: str = ""
    #: against, against_measure, against_part: Ours is the ratio to the smallest of these series, or
    #: the difference from the largest where ``by`` is "difference"; measure and part are the
    #: entry's own unless they are given.
    against: tuple[str, ...] = ()
    against_measure: str = ""
    against_part: str = ""
    by: str = "ratio"
    #: Series in place of ``series``, of which the least favourable one counts.
    each: tuple[str, ...] = ()
    #: Series in place of ``series``; ours is the least ratio of one to the next.
    chain: tuple[str, ...] = ()
    #: How the values of all parts are taken together: one of `fedpca_core.papers.measured.OVER`.
    over: str = ""
    #: within, points: A printed number agrees where it lies in our interval widened by this share,
    #: or by so many units.
    within: float = 0.0
    points: float = 0.0
    #: A claim holds where every seed of ours is ``at_least``, ``at_most``, ``above`` or ``below`` a
    #: limit; with ``usually`` the median is, and most seeds.
    holds: Mapping[str, Any] = field(default_factory=dict)
    #: What ours is, in words.
    unit: str = ""
    #: Whether a claim does not depend on the size and may be judged at a smaller one.
    any_size: bool = False
    #: Whether one violation proves it false, as of a theorem.
    counterexample: bool = False
    #: What the paper leaves open, so that no run is the one that it states.
    open: str = ""
    #: {"", "true", "cases", "false"}: What the demonstration proves of it; "cases": it held in all
    #: that were tried. What is true of every case is an identity, or ``why`` begins with "Proof:".
    proves: str = ""
    #: What explains the verdict.
    why: str = ""

    @property
    def name(self) -> str:
        """Its name among all papers."""
        return f"{self.paper}/{self.id}"

    @property
    def value(self) -> float:
        """The printed number.

        Raises InvalidInput: what is printed is no number.
        """
        text = self.printed.removesuffix("%").replace(",", "")
        try:
            return float(text)
        except ValueError:
            raise InvalidInput(
                f"Entry “{self.name}” prints “{self.printed}”, which is no number; quote its words."
            ) from None

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
            not (self.within or self.points) or self.kind == "number",
            f"{called} is a {self.kind} with a tolerance; only a printed number has one.",
        )
        require(
            self.proves in ("", "true", "cases", "false")
            and (not self.proves or bool(self.demonstration)),
            f"{called} proves “{self.proves}”; write true, cases or false, beside a demonstration.",
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
class Paper:
    """A paper, how it is cited, and all that is taken from it."""

    #: key, name, title: ``name`` is its short name on the pages, ``title`` is as in the text.
    key: str
    name: str
    title: str
    year: int
    #: "Given names Family name" each; empty where the text names none.
    authors: tuple[str, ...] = ()
    #: venue, doi, arxiv: Empty where not verified.
    venue: str = ""
    doi: str = ""
    arxiv: str = ""
    #: kind, fields: Type of its BibTeX entry, and fields of that type besides these.
    kind: str = "misc"
    fields: Mapping[str, str] = field(default_factory=dict)
    #: What of this is not in the text, or could not be verified.
    note: str = ""
    stated: Mapping[str, tuple[Stated, ...]] = field(default_factory=dict)
    readings: Mapping[str, tuple[Reading, ...]] = field(default_factory=dict)
    entries: tuple[Entry, ...] = ()
    ignored: tuple[Ignored, ...] = ()

    @property
    def link(self) -> str:
        """Address of the paper, empty where no identifier is verified."""
        if self.doi:
            return f"https://doi.org/{self.doi}"
        return f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else ""

    @property
    def bibtex(self) -> str:
        """Its BibTeX entry."""
        fields = {
            "author": " and ".join(self.authors),
            "title": "{" + self.title + "}",
            "year": str(self.year),
            **self.fields,
            "doi": self.doi,
            "eprint": self.arxiv,
            "archiveprefix": "arXiv" if self.arxiv else "",
            "note": "" if self.link else self.note,
        }
        return bibtex_entry(self.kind, self.key, fields)


def bibtex_entry(kind: str, key: str, fields: Mapping[str, str]) -> str:
    """A BibTeX entry of the fields that are not empty."""
    body = ",\n".join(f"  {name} = {{{text}}}" for name, text in fields.items() if text)
    return f"@{kind}{{{key},\n{body}\n}}\n"
