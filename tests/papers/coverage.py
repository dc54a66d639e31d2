"""What docs/coverage.md has to say: every item of the papers, and where it is shown.

``docs/coverage.toml`` lists the items; what each is, and why something is not there, comes from the
papers' entries where they say it.
"""

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.papers.entries import Entry
from fedpca_core.papers.registry import ENTRIES, EXPERIMENTS, verdicts
from fedpca_core.papers.sources import SOURCES
from fedpca_core.questions.catalogue import KINDS

DOCS = Path(__file__).resolve().parents[2] / "docs"
STATES = ("there", "partly", "out")
#: Verdicts of entries of which something was run, computed or counted.
DECIDED = {
    "reproduced", "reproduced under a reading", "differs", "contradicts itself", "proved false",
}  # fmt: skip


@dataclass(frozen=True)
class Item:
    """One item: where it stands, whether it is there, where it is shown, what is missing."""

    paper: str
    name: str
    line: int
    says: str
    state: str
    where: tuple[str, ...]
    reason: str


def listed() -> Mapping[str, Sequence[Mapping[str, object]]]:
    return tomllib.loads((DOCS / "coverage.toml").read_text(encoding="utf-8"))


def covered(paper: str, row: Mapping) -> list[Entry]:
    """The entries that a row stands for."""
    found = []
    for start in row.get("covers", ()):
        name = f"{paper}/{start}"
        some = [
            e for n, e in ENTRIES.items() if n == name or n.startswith((f"{name}/", f"{name}-"))
        ]
        if not some:
            raise InvalidInput(f"“{row['item']}” covers “{name}”, of which there is no entry.")
        found += [entry for entry in some if entry not in found]
    return found


def items() -> Iterator[Item]:
    for paper, rows in listed().items():
        for row in rows:
            yield read(paper, row)


def read(paper: str, row: Mapping) -> Item:
    """What is known of a row, from itself and from the entries that it covers."""
    entries, where = covered(paper, row), tuple(row.get("where", ()))
    words = {entry.id: verdicts()[entry.name].word for entry in entries}
    shown = [e for e in entries if words[e.id] in DECIDED or e.demonstration or e.experiment]
    untold = [e for e in entries if e not in shown and (e.out_of_scope or verdicts()[e.name].why)]
    state, reason = "there", ""
    for word in ("partly", "out"):
        if word in row:
            state, reason = word, row[word]
    if not reason and not where:
        state = "there" if not untold else "partly" if shown else "out"
        reason = " ".join(dict.fromkeys(e.out_of_scope or verdicts()[e.name].why for e in untold))
    if not where and shown:
        where = (f"/papers?row={shown[0].name}",)
    return Item(
        paper,
        str(row["item"]),
        int(row.get("line", entries[0].line if entries else 0)),
        str(row.get("says", entries[0].says if entries else "")),
        state,
        where,
        reason,
    )


def wrong(place: str) -> str:
    """What is wrong with a page's address, a command or a public name; empty for nothing."""
    if place.startswith("/"):
        page, _, query = place[1:].partition("?")
        kind = KINDS.get(page or "scene")
        if kind is None:
            return f"there is no page “{page}”"
        return "; ".join(kind.from_query(parse_qs(query, strict_parsing=bool(query))).faults)
    if place.startswith("reproduce "):
        key, _, series = place.removeprefix("reproduce ").partition(" --only ")
        if key not in EXPERIMENTS:
            return f"there is no experiment “{key}”"
        known = {cell.series for cell in EXPERIMENTS[key].cells("live", 1)} if series else {""}
        return "" if series in known else f"“{key}” has no series “{series}”"
    thing: object = fp
    for part in place.removeprefix("fp.").split("."):
        if not hasattr(thing, part):
            return f"there is no public name “{place}”"
        thing = getattr(thing, part)
    return ""


def page() -> str:
    """The page of the documentation."""
    every = list(items())
    counts = {key: Counter(one.state for one in every if one.paper == key) for key in SOURCES}
    total = Counter(one.state for one in every)
    lines = [
        "# What the papers have, and where it is here",
        "",
        "Every algorithm, statement, table, figure, setting and named competitor of the five",
        "papers: an address of the app, a command (`python -m fedpca_core` before it), a public",
        "name, or the reason why there is none. “There” says that it is shown, run or judged, not",
        "that it holds: whether it does is on the page “Do the papers hold?” (`/papers`). This",
        "page is what `coverage.toml` and the papers' entries say, which a test compares.",
        "",
        "How good the verdicts are is asked by draws: a seed draws 40, and each is derived anew",
        "from the text alone. Of the draws 730911, 174402, 517283, 902614, 386045, 1795656286,",
        "1795656490, 1795656715, 1795656988 and 1795657061 as many as 1, 1, 4, 1, 1, 2, 2, 2, 1",
        "and 0 fell, with their verdict or what it rests on (of the last five 1, 1, 0, 0 and 0",
        "verdicts); after each draw their kinds were mended in the whole list. Of the 20 of draw",
        "1795721133, four of each paper, 1 verdict fell, the reasons of 2 and how 4 were worded;",
        "of the 20 of draw 1795721739 no verdict, and how 2 were worded.",
        "",
        "The rows of this page were asked the same way: is the line right, does the place show the",
        "item, is the reason true? Of the 30 rows of draw 20261126, 11 fell; of the 15 of draw",
        "1795710606 none, after every line had been looked up and what was found wrong mended.",
        "",
        "| paper | there | partly | out | all |",
        "|---|---|---|---|---|",
        *(
            f"| {SOURCES[key].name} | {' | '.join(str(many[s]) for s in STATES)} | {many.total()} |"
            for key, many in counts.items()
        ),
        f"| all | {' | '.join(str(total[state]) for state in STATES)} | {total.total()} |",
    ]
    for key, source in SOURCES.items():
        lines += [
            "",
            f"## {source.name}",
            "",
            f"{source.title}. Lines are of its text.",
            "",
            "| item | line | what it is | | where, and what is missing |",
            "|---|---|---|---|---|",
        ]
        for one in every:
            if one.paper == key:
                places = ", ".join(f"`{place}`" for place in one.where)
                said = " ".join(filter(None, (places + "." * bool(places), one.reason)))
                lines.append(f"| {one.name} | {one.line} | {one.says} | {one.state} | {said} |")
    return "\n".join(lines) + "\n"
