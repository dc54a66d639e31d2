"""The papers as data: numbers, claims, stated settings and readings, from one TOML file a paper.

A file has the paper's own fields, then

``[stated]``
    Lists of settings that the paper states, by name: line, value as printed, meaning.
``[readings]``
    Lists of settings to try where it is silent, by name, the likeliest first. A group names one
    list, so that every method of a table is run with the same.
``[other_data]``
    How the data of an experiment, by its key, differ from the paper's.
``[as_run]``
    How a series, by its name, was run where that is not as stated: it joins what is ``open``.
``[[groups]]``
    Entries of one place. What a group says holds for its entries unless they say otherwise;
    ``{method}``, ``{row}`` and ``{column}`` in ``says`` stand for the entry's own.
``[[ignored]]``
    Lines, or numbers of a line, that need no entry, and why.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

from fedpca_core.errors import InvalidInput, require, require_known

#: Keys of the papers, in the order of the pages.
PAPERS = ("faps", "fedpower", "iot", "perpca", "dfl")
Kind = Literal["number", "claim", "statement", "step"]

#: What is quoted is a value or a name, not a sentence.
LONGEST = 40


@dataclass(frozen=True)
class Stated:
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
    #: Lines whose statements it sets aside; empty where the paper is silent.
    instead: tuple[int, ...] = ()
    #: The same by method, besides.
    aside: Mapping[str, Sequence[int]] = field(default_factory=dict)


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
    #: What the paper leaves open, or how ours was run, so that no run is the one that it states.
    open: str = ""
    #: How our data differ from the paper's: no run of ours is the one that it states, agree or not.
    other_data: str = ""
    #: {"", "true", "cases", "false"}: What the demonstration proves of it; "cases": it held in all
    #: that were tried. What is true of every case is an identity, or ``why`` begins with "Proof:".
    proves: str = ""
    #: What the proof takes where the paper is silent: the verdict's reading.
    under: str = ""
    #: What explains the verdict.
    why: str = ""

    @property
    def name(self) -> str:
        """Its name among all papers."""
        return f"{self.paper}/{self.id}"

    @property
    def value(self) -> float:
        """Raises InvalidInput: what is printed is no number."""
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
        body = ",\n".join(f"  {name} = {{{text}}}" for name, text in fields.items() if text)
        return f"@{self.kind}{{{self.key},\n{body}\n}}\n"


# ------------------------------------------------------------------ from files
#: Types of a file by the type of a field, and what they are called.
_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "a text"),
    "Kind": ((str,), "a text"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
    "bool": ((bool,), "true or false"),
    "tuple": ((list, tuple), "a list"),
    "Mapping": ((dict,), "a table"),
}

Made = TypeVar("Made")


def made(kind: type[Made], values: Mapping[str, Any], called: str) -> Made:
    """A record of ``kind`` from the values of a file; lists become tuples.

    Raises InvalidInput: an unknown field, one of another type, or one that is missing.
    """
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    for name, value in values.items():
        require(
            name in known,
            f"{called} has the unknown field “{name}”; choose among {', '.join(known)}.",
        )
        wanted = str(known[name].type).partition("[")[0]
        require(
            isinstance(value, _TYPES[wanted][0]) and isinstance(value, bool) == (wanted == "bool"),
            f"Field “{name}” of {called} is {value!r}; it must be {_TYPES[wanted][1]}.",
        )
    for name, one in known.items():
        optional = one.default is not MISSING or one.default_factory is not MISSING
        require(optional or name in values, f"{called} lacks the field “{name}”; add it.")
    given = {name: tuple(v) if isinstance(v, list) else v for name, v in values.items()}
    return kind(**given)


def read(text: str, called: str) -> Paper:
    """A paper from the text of its file.

    Raises InvalidInput: the file does not fit; names it and the place.
    """
    file = tomllib.loads(text)

    def lists(kind: type[Made], name: str, what: str) -> dict[str, tuple[Made, ...]]:
        return {
            key: tuple(made(kind, one, f"“{called}”, {what} “{key}”,") for one in rows)
            for key, rows in file.pop(name, {}).items()
        }

    stated, readings = lists(Stated, "stated", "stated"), lists(Reading, "readings", "reading")
    entries, other_data, as_run = [], file.pop("other_data", {}), file.pop("as_run", {})
    for group in file.pop("groups", []):
        for own in group.pop("entries", []):
            values = {"paper": file.get("key", ""), **group, **own}
            where = f"“{called}”, entry “{values.get('id', '')}”,"
            values["stated"] = [
                row for name in values.get("stated", []) for row in _listed(stated, name, where)
            ]
            values.setdefault("other_data", other_data.get(values.get("experiment"), ""))
            series = *values.get("each", ()), values.get("series", "")
            ran = (as_run.get(one, "") for one in series)
            values["open"] = " ".join(filter(None, (values.get("open", ""), *ran)))
            name = values.pop("readings", "")
            values["readings"] = list(_listed(readings, name, where)) if name else []
            entry = made(Entry, values, where)
            says = entry.says
            for other in ("row", "column", "method"):
                says = says.replace(f"{{{other}}}", getattr(entry, other))
            entries.append(replace(entry, says=says))
    ignored = [made(Ignored, one, f"“{called}”, ignored,") for one in file.pop("ignored", [])]
    known = [one.id for one in entries]
    _once(known, "entries", called)
    for name, rows in readings.items():
        _once([one.name for one in rows], f"readings “{name}”", called)
    for one in entries:
        for other in one.contradicts:
            require(
                other in known,
                f"“{called}”, entry “{one.id}”, contradicts “{other}”, which is no entry; "
                "name one of this paper.",
            )
    found = {"stated": stated, "readings": readings, "entries": entries, "ignored": ignored}
    return made(Paper, file | found, f"“{called}”")


@cache
def paper(key: str) -> Paper:
    """Raises InvalidInput: there is none with this key, or its file does not fit."""
    require_known("paper", key, PAPERS)
    file = Path(__file__).parent / f"{key}.toml"
    return read(file.read_text(encoding="utf-8"), file.name)


def _listed(lists: Mapping[str, tuple[Made, ...]], name: str, where: str) -> tuple[Made, ...]:
    require(name in lists, f"{where} names the list “{name}”; there are {', '.join(lists)}.")
    return lists[name]


def _once(names: Sequence[str], what: str, called: str) -> None:
    twice = next((name for at, name in enumerate(names) if name in names[:at]), "")
    require(not twice, f"“{called}” has two {what} called “{twice}”; rename one.")
