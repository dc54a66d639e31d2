"""Entries of the papers, read from one TOML file a paper.

A file has the paper's own fields, then

``[stated]``
    Lists of settings that the paper states, by name: line, value as printed, meaning.
``[readings]``
    Lists of settings to try where it is silent, by name, the likeliest first. A group names one
    list, so that every method of a table is run with the same.
``[[groups]]``
    Entries of one place. What a group says holds for its entries unless they say otherwise;
    ``{method}``, ``{row}`` and ``{column}`` in ``says`` stand for the entry's own.
``[[ignored]]``
    Lines, or numbers of a line, that need no entry, and why.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from fedpca_core.errors import require, require_known
from fedpca_core.papers.entries import Entry, Ignored, Paper, Reading, Stated

#: Keys of the papers, in the order of the pages.
PAPERS = ("faps", "fedpower", "iot", "perpca", "dfl")

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
    stated = {
        name: tuple(made(Stated, one, f"“{called}”, stated “{name}”,") for one in rows)
        for name, rows in file.pop("stated", {}).items()
    }
    readings = {
        name: tuple(made(Reading, one, f"“{called}”, reading “{name}”,") for one in rows)
        for name, rows in file.pop("readings", {}).items()
    }
    entries = []
    for group in file.pop("groups", []):
        for own in group.pop("entries", []):
            values = {"paper": file.get("key", ""), **group, **own}
            where = f"“{called}”, entry “{values.get('id', '')}”,"
            values["stated"] = [
                row for name in values.get("stated", []) for row in _listed(stated, name, where)
            ]
            name = values.pop("readings", "")
            values["readings"] = list(_listed(readings, name, where)) if name else []
            entry = made(Entry, values, where)
            says = entry.says
            for other in ("row", "column", "method"):
                says = says.replace(f"{{{other}}}", getattr(entry, other))
            entries.append(replace(entry, says=says))
    values = {
        **file,
        "stated": stated,
        "readings": readings,
        "entries": entries,
        "ignored": [made(Ignored, one, f"“{called}”, ignored,") for one in file.get("ignored", [])],
    }
    _once([one.id for one in entries], "entries", called)
    for one in entries:
        for other in one.contradicts:
            require(
                any(other == each.id for each in entries),
                f"“{called}”, entry “{one.id}”, contradicts “{other}”, which is no entry; "
                "name one of this paper.",
            )
    for name, rows in readings.items():
        _once([one.name for one in rows], f"readings “{name}”", called)
    return made(Paper, values, f"“{called}”")


@cache
def paper(key: str) -> Paper:
    """The paper with this key.

    Raises InvalidInput: there is none, or its file does not fit.
    """
    require_known("paper", key, PAPERS)
    file = Path(__file__).parent / f"{key}.toml"
    return read(file.read_text(encoding="utf-8"), file.name)


def _listed(lists: Mapping[str, tuple[Made, ...]], name: str, where: str) -> tuple[Made, ...]:
    require(name in lists, f"{where} names the list “{name}”; there are {', '.join(lists)}.")
    return lists[name]


def _once(names: Iterable[str], what: str, called: str) -> None:
    seen: set[str] = set()
    for name in names:
        require(name not in seen, f"“{called}” has two {what} called “{name}”; rename one.")
        seen.add(name)
