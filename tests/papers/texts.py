"""Numbers and statements of the papers' texts without an entry: ``python -m tests.papers.texts``.

The texts are not shipped. They are looked for in the folder FEDPCA_PAPERS, or in shared/papers
beside the clone; a text is a paper's where its first line begins with the paper's title.

Every line of a text counts but those that `fedpca_core.papers` ignores with a reason. On each,
every number must be part of what an entry or a stated setting quotes from that line, and every
theorem, lemma or algorithm that begins there must have an entry of its own.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from fedpca_core.errors import require
from fedpca_core.papers.entries import PAPERS, Paper, paper

SHARED = Path(__file__).resolve().parents[3] / "shared" / "papers"

#: A number, with groups of three and a power of ten; the text may go on at once, as in "128d".
NUMBER = re.compile(r"(?<![\d.])\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]\d+)?")
#: Numbers in words, where they count something.
WORD = re.compile(
    r"\b(?:one-third|two[- ]thirds|quarter|sixth|tenth|half|halves|twice|double|third of|"
    r"(?:two|three|four|five|six|seven|eight|nine|ten|hundred) times|\w+-fold|per ?cent|"
    r"orders? of magnitudes?)\b"
)
#: Letters that web pages print for formulas, before the formula comes once more as LaTeX.
FORMULA = re.compile("[\U0001d400-\U0001d7ff][\\d.,+\U0001d400-\U0001d7ff]*")
#: The head of a statement, alone or with its first words.
STATEMENT = re.compile(
    r"^\W*((?:Theorem|Lemma|Proposition|Corollary|Remark|Definition|Ass+umption|Fact|Example|"
    r"Algorithm) [IV\d]+(?:\.\d+)?)(?=\.?$|[.:] | \(| [A-Z])"
)

#: The head of a section: "3.1 Subproblems", "V-B1 Efficiency", "IV. PROOF", "A. Useful relations".
HEAD = re.compile(r"^(?:(\d(?:\.\d+)*) |([IVX]+)(-[A-Z]\d*)?\.? |([A-Z])\. )[A-Z]")
#: Sections that an entry's place names: one, or the first and the last.
PLACED = re.compile(r"\bSections? ([\dIVX][\w.-]*)(?: (and|to) ([\w.-]+))?")


def folder() -> Path | None:
    """Where the texts are; None where nobody says and none are beside the clone.

    Raises InvalidInput: FEDPCA_PAPERS names something else.
    """
    named = os.environ.get("FEDPCA_PAPERS", "")
    require(
        not named or Path(named).is_dir(),
        f"FEDPCA_PAPERS={named} is not a folder; correct it or unset it.",
    )
    found = Path(named) if named else SHARED
    return found if found.is_dir() else None


def lines_of(one: Paper, texts: Path) -> Sequence[str]:
    """The lines of a paper's text, the first at index 0.

    Raises InvalidInput: no text begins with the title.
    """
    for file in sorted(texts.glob("*.txt")):
        text = file.read_text(encoding="utf-8").replace("\xa0", " ")
        if text.startswith(one.title):
            return text.split("\n")
    require(False, f"No text in {texts} begins with “{one.title}”; add it or correct the title.")
    return ()


def stands(printed: str, line: str) -> bool:
    """Whether a line has a value: a number as a whole, once or repeated by the extraction."""
    if not printed[0].isdigit():
        return printed in line
    end = r"(?!\d|\.\d|,\d{3}(?!\d))" if printed[-1].isdigit() else ""
    return re.search(rf"(?<![\d.])(?<!e[-+])(?:{re.escape(printed)}){{1,3}}{end}", line) is not None


def quoted(one: Paper) -> Iterator[tuple[int, str]]:
    """Line and value of everything that is quoted from a paper."""
    for entry in one.entries:
        yield entry.line, entry.printed
    for rows in one.stated.values():
        yield from ((row.line, row.printed) for row in rows)


def misplaced(one: Paper, lines: Sequence[str]) -> list[str]:
    """What is said to stand at a line and does not."""
    return [
        f"{one.key}, line {line}: “{printed}” is not there"
        for line, printed in quoted(one)
        if not (0 < line <= len(lines) and stands(printed, lines[line - 1]))
    ]


def unlisted(one: Paper, lines: Sequence[str]) -> list[str]:
    """Numbers and statements of a text that nothing quotes and nothing ignores."""
    passed = {
        line
        for each in one.ignored
        if each.lines
        for line in range(each.lines[0], each.lines[1] + 1)
    }
    known: dict[int, set[str]] = {}
    for line, printed in quoted(one):
        known.setdefault(line, set()).update({printed, *numbers(printed)})
    for each in one.ignored:
        known.setdefault(each.line, set()).update(each.printed)
    found = []
    for at, text in enumerate(lines, 1):
        listed = known.get(at, set())
        repeated = {value * times for value in listed for times in (1, 2, 3)}
        if at not in passed:
            found += [
                f"{one.key}, line {at}: {number}"
                for number in dict.fromkeys(numbers(text))
                if number not in repeated
            ]
        head = STATEMENT.match(text)
        if head and not any(head[1] in value for value in listed):
            found.append(f"{one.key}, line {at}: {head[1]}")
    return found


def numbers(text: str) -> list[str]:
    """The numbers of a line, in digits or in words, without formulas that come twice."""
    clean = FORMULA.sub("", text)
    return [*NUMBER.findall(clean), *WORD.findall(clean)]


def sections(lines: Sequence[str]) -> dict[str, range]:
    """Lines, from 1, of every section whose head the text has kept."""
    heads, part = [], ""
    for number, line in enumerate(lines, 1):
        if head := HEAD.match(line):
            digits, roman, more, letter = head.groups()
            part = roman or part
            name = digits or (f"{part}-{letter}" if letter and not roman else f"{part}{more or ''}")
            heads.append((name, number))
    end = len(lines) + 1
    ends = {
        name: next((n for other, n in heads if n > first and not _within(other, name)), end)
        for name, first in heads
    }
    return {name: range(first, ends[name]) for name, first in heads}


def _within(other: str, name: str) -> bool:
    """Whether a section is a part of another: 3.1 of 3, V-B1 of V-B and of V."""
    more = other.removeprefix(name)
    return more != other and (more[:1] in ".-" or (name[-1].isalpha() and more[0].isdigit()))


def elsewhere(one: Paper, lines: Sequence[str]) -> list[str]:
    """Entries whose line is not in the section that their place names."""
    known, found = sections(lines), []
    for entry in one.entries:
        named = PLACED.search(entry.place)
        first, joined, last = named.groups() if named else ("", None, None)
        if first in known and (last or first) in known:
            begins, ends = known[first], known[last or first]
            whole = range(begins.start, ends.stop) if joined == "to" else [*begins, *ends]
            if entry.line not in whole:
                found.append(f"{entry.id}: line {entry.line} is not in {entry.place}")
    return found


def main() -> int:
    """Print what is misplaced and what is missing; returns 1 where there is any."""
    texts = folder()
    if texts is None:
        print(f"There are no texts in {SHARED}; name their folder in FEDPCA_PAPERS.")
        return 0
    found = [
        line
        for one in map(paper, PAPERS)
        for check in (misplaced, unlisted)
        for line in check(one, lines_of(one, texts))
    ]
    print(*found, f"{len(found)} without a place or an entry", sep="\n")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
