"""One verdict for every number and claim of a paper, by one rule, from what is stored.

1. What lies outside what can be run is *out of scope*, with the reason.
2. Where a paper excludes itself, or two lines of Python refute a statement, that is the verdict.
3. Else our figure under what the paper states decides: it *reproduces* the printed one or not.
4. If not, every reading of the entry's list is looked at, the same list for all methods of a table.
5. Of a statement for every case that held in all that were tried, their number is said: no proof.
6. *Differs* is said only where the paper leaves nothing open, every reading was run at the paper's
   size from at least three seeds, and none agrees. Everything else is *undetermined*.
"""

import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.papers.entries import Entry, Reading
from fedpca_core.papers.measured import Cells, interval, measured

Word = Literal[
    "reproduced",
    "reproduced under a reading",
    "differs",
    "undetermined",
    "contradicts itself",
    "proved false",
    "out of scope",
]
#: The verdicts, in the order of the page.
WORDS: tuple[Word, ...] = get_args(Word)
STATED = "as stated"
#: Seeds without which nothing is said to differ.
SEEDS = 3
#: Beyond so many times its middle, or further than its tolerance in units, an interval says nothing
#: of a printed number.
WIDEST = 2.0
#: The sides of an inequality whose ratio stays below this were never near each other: such a run
#: could not have contradicted the statement, so that it agrees says nothing.
FAR = 0.01
#: A limit below this is that of two sides which are equal to rounding.
IDENTITY = 1e-4
#: Share of the seeds in which a claim of what is usual must hold, besides their median.
MOST = 0.75
#: How a demonstration says that all of its cases held.
CASES = re.compile(r"\b(\d[\d,]*) of \1 cases")
#: Stored cells of an experiment by size.
Results = Callable[[str], Mapping[str, Cells]]

#: What shares cannot exceed, by the first word of their unit.
_MOST = {"%": 100.0, "share": 1.0}
_LIMITS: Mapping[str, Callable[[float, float], bool]] = {
    "at_least": operator.ge,
    "at_most": operator.le,
    "above": operator.gt,
    "below": operator.lt,
}


@dataclass(frozen=True)
class Tried:
    """Our figure in one reading."""

    reading: str
    #: middle, low, high: Median, and where one more run is to be expected.
    middle: float
    low: float
    high: float
    seeds: int
    #: {"paper", "live"}.
    size: str
    agrees: bool
    #: Whether it would agree, but its interval is too wide or its seeds are too few.
    wide: bool = False
    #: Whether nothing is drawn in it.
    exact: bool = False
    #: Whether it takes numbers of its row from the paper, so that the others follow from one.
    follows: bool = False
    #: What it does, and what of the paper lets it; how many lines of the text it sets aside.
    under: str = ""
    aside: int = 0


@dataclass(frozen=True)
class Verdict:
    #: One of `WORDS`.
    word: Word
    #: Why, but for the reading that decides.
    reason: str
    #: Readings with a result: that which decides, then the stated one.
    tried: tuple[Tried, ...] = ()
    #: Readings without one, and those whose runs did not get to what is measured.
    untried: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()

    @property
    def shown(self) -> Tried | None:
        """The figure that decides: one that agrees where the verdict says so, else the first."""
        agreeing = (one for one in self.tried if one.agrees and self.word != "undetermined")
        return next(agreeing, next(iter(self.tried), None))

    @property
    def why(self) -> str:
        """The reading that decides, where one does, and why."""
        found = self.shown
        deciding = found is not None and found.agrees and self.word == "reproduced under a reading"
        return f"{found.under if found and deciding else ''} {self.reason}".strip()


def judge(entry: Entry, results: Results, anywhere: bool = False) -> Verdict:
    """The verdict on an entry.

    ``results``: Stored cells by size, of an experiment's key; empty for none.
    ``anywhere``: Whether the experiment has no size of the paper's, so that every one counts.
    """
    if entry.out_of_scope:
        return Verdict("out of scope", entry.out_of_scope)
    found = _looked_at(entry, results)

    def said(word: Word, *reasons: str) -> Verdict:
        return replace(found, word=word, reason=" ".join(filter(None, reasons)))

    why = entry.why or entry.decides
    if entry.contradicts:
        return said("contradicts itself", why)
    if entry.proves == "false":
        return said("proved false", why)
    counted = [one for one in found.tried if one.size == "paper" or anywhere or entry.any_size]
    agreed = (one for one in counted if one.agrees)
    agreeing = min(agreed, key=lambda one: one.aside, default=None)
    limit = entry.holds.get("at_most", 0.0)
    if agreeing is not None and abs(limit - 1.0) < FAR and 0.0 < agreeing.high < FAR:
        times = f"The bound is {1 / agreeing.middle:,.0f} times what we saw in the middle seed"
        return said("undetermined", f"{times}: no run like ours could contradict it.", entry.why)
    if agreeing is not None and not (entry.other_data or entry.under):
        stands = agreeing.reading == STATED or entry.proves == "true"
        word: Word = "reproduced" if stands else "reproduced under a reading"
        tried = agreeing, *(one for one in found.tried if one != agreeing)
        return replace(said(word, _held(entry, agreeing), entry.why), tried=tried)
    if entry.proves in ("true", "cases"):
        word = "reproduced under a reading" if entry.under else "reproduced"
        return said(word, f"Under {entry.under}." * bool(entry.under), _held(entry), why)
    stated = [one for one in counted if one.reading == STATED]
    if entry.counterexample and stated and not stated[0].wide:
        return said("proved false", why)
    if reasons := _open(entry, counted, found):
        return said("undetermined", *reasons, entry.why)
    return said("differs", why)


def _held(entry: Entry, found: Tried | None = None) -> str:
    """In how many cases a statement held; empty of an identity, which one random case shows."""
    shown = CASES.search(entry.shows)
    if entry.proves == "cases" and shown:
        return f"It held in {shown[0]}, which is no proof."
    identity = 0.0 < entry.holds.get("at_most", 1.0) < IDENTITY or entry.why.startswith("Proof:")
    if found is None or entry.kind != "statement" or identity or entry.holds.get("usually"):
        return ""
    same = found.exact or found.low == found.high  # as where nothing is drawn
    cases = "every case that was run" if same else f"{found.seeds} of {found.seeds} seeds"
    return f"It held in {cases}, which is no proof."


def _aside(entry: Entry, reading: Reading) -> list[int]:
    """Lines whose statements a reading sets aside for the methods compared, or for all of them."""
    of = reading.aside.keys() & ({entry.method, *entry.against} if entry.method else reading.aside)
    return sorted({*reading.instead, *(line for one in of for line in reading.aside[one])})


def _under(entry: Entry, reading: Reading) -> str:
    """What a reading does, and what of the paper lets it."""
    lines = " and ".join(f"line {line}" for line in _aside(entry, reading))
    aside = f"It sets aside what is stated in {lines} of the text." if lines else ""
    return " ".join(filter(None, (reading.says, aside, entry.open)))


def _ran(entry: Entry, results: Results) -> bool:
    """Whether something of what the entry reads is stored."""
    wanted = (*entry.each, *entry.chain, entry.series)
    stored = results(entry.experiment).values() if entry.experiment else ()
    return any(
        name in wanted and np.isfinite(cells.take(name, measure, entry.part)).any()
        for cells in stored
        for name, measure in cells.numbers
    )


def _open(entry: Entry, counted: list[Tried], found: Verdict) -> list[str]:
    """What keeps a verdict from being said; empty where nothing does."""
    if not found.tried and entry.open:
        return [entry.open]
    if not found.tried:
        run = entry.experiment and (entry.holds or entry.within or entry.points)
        return ["Its run is not stored yet." if run else "No check of it is stored yet."]
    reasons = list(filter(None, (entry.open, entry.other_data)))
    if not counted:
        reasons.append("Not all of it was run at the paper's size; ours is smaller.")
    agreeing = [one.reading for one in counted if one.agrees]
    readings = f"{len(counted)} readings"
    readings += " at the paper's size" * (len(counted) < len(found.tried))
    if agreeing:
        some = f"{'; '.join(agreeing)} (of {readings})"
        reasons.append(f"On ours these agree, which does not decide: {some}.")
    wide = sum(one.wide and (one.exact or one.seeds >= SEEDS) for one in counted)
    if wide:
        where = f"In {wide} of {readings} " * (len(counted) > 1)
        spread = f"{where}what is printed lies within our range and tolerance, too wide to tell."
        usual = f"{where}most seeds bear it out, and fewer than three quarters of them."
        spread, usual = (one[0].upper() + one[1:] for one in (spread, usual))
        reasons.append(spread if entry.kind == "number" else usual)
    few = sum(one.seeds < SEEDS and not one.exact for one in counted)
    if few:
        where = f" in {few} of {readings}" * (len(counted) > 1)
        reasons.append(f"What is measured is there in fewer than {SEEDS} seeds{where}.")
    gone = (found.unreached, "whose runs did not get there"), (found.untried, "without a run")
    for names, what in gone:
        if names:
            some = "; ".join(names[:3]) + ("; ..." if len(names) > 3 else "")
            reasons.append(f"Readings {what}: {len(names)} ({some}).")
    return reasons


def _applies(entry: Entry, reading: Reading) -> bool:
    """Whether a reading is of the entry's method, and can judge what is measured."""
    given = entry.measure.partition(",")[0] in reading.given
    return not given and (not reading.only or entry.method in reading.only)


def _looked_at(entry: Entry, results: Results) -> Verdict:
    """Every reading that applies, with its result where there is one; nothing is said yet."""
    if not (entry.holds or entry.within or entry.points):
        names = tuple(one.name for one in entry.readings if _applies(entry, one))
        return Verdict("undetermined", "", untried=names)
    tried, untried, unreached = [], [], []
    if not entry.open:
        found = _tried(STATED, entry, results)
        tried += [found] if found else []
        untried += [] if found else [STATED]
    for reading in entry.readings:
        if not _applies(entry, reading):
            continue
        changed = read_as(entry, reading)
        if changed == entry and not entry.open:
            untried += [] if reading.reads else [reading.name]
            continue
        found = _tried(reading.name, changed, results) if reading.reads else None
        if found is not None:
            under, lines = _under(entry, reading), len(_aside(entry, reading))
            tried.append(replace(found, follows=bool(reading.given), under=under, aside=lines))
        elif reading.reads and _ran(changed, results):
            unreached.append(reading.name)
        else:
            untried.append(reading.name)
    return Verdict("undetermined", "", tuple(tried), tuple(untried), tuple(unreached))


def together(row: Mapping[str, Verdict], again: Collection[str] = ()) -> dict[str, Verdict]:
    """Verdicts on the numbers of one row of a table, which come from one run.

    One reading decides on the whole row: that which gives most of them; among equals the stated
    one, then that which excludes fewest, then that which sets fewest lines aside. What it does not
    give stays undetermined, whatever other readings give; and so do all where it gives no more than
    half: a number that it misses speaks against a reading as much as one that it gives speaks for
    it. Numbers that follow from one count as one; a smaller run counts where none is of full size.

    ``row``: Verdicts by the name of their entry.
    ``again``: Names of those that quote a number of the row once more, which count nothing.
    """
    once = {name: found for name, found in row.items() if name not in again}
    given, agreed, missed, aside = (Counter[str]() for _ in range(4))
    for found in once.values():
        at_papers = any(one.size == "paper" for one in found.tried)
        for one in (one for one in found.tried if one.size == "paper" or not at_papers):
            count = given[one.reading] + one.agrees
            given[one.reading] = min(count, 1) if one.follows else count
            agreed[one.reading] += one.agrees
            missed[one.reading] += not (one.agrees or one.wide)
            aside[one.reading] = one.aside
    if len(once) < 2 or not any(given.values()):
        return dict(row)
    best = max(given, key=lambda name: (given[name], name == STATED, -missed[name], -aside[name]))
    says = f"“{best}” gives {given[best]} of the {len(once)} numbers of the same runs"
    with_it = [one for found in once.values() for one in found.tried if one.reading == best]
    if any(one.follows for one in with_it):
        agree = sum(one.agrees for one in with_it)
        others = f"{agree} of the {len(with_it)} others, which follow from one"
        others = others if len(with_it) > 1 else "the other" if agree else "not the other"
        says = f"“{best}” takes {len(once) - len(with_it)} of the {len(once)} numbers of the same "
        says += f"runs as given and gives {others}"
    as_many = [name for name in given if (given[name], agreed[name]) == (given[best], agreed[best])]
    if equal := len(as_many) - 1:
        says += f" (as {'does one other' if equal == 1 else f'do {equal} others'})"
    decided = {}
    for name, found in row.items():
        tried = tuple(sorted(found.tried, key=lambda one: one.reading != best))
        found = replace(found, tried=tried)
        if found.word in ("reproduced", "reproduced under a reading"):
            agrees = tried[0].reading == best and tried[0].agrees and 2 * given[best] > len(once)
            word: Word = "reproduced under a reading" if agrees else "undetermined"
            if agrees and best == STATED:
                word = "reproduced"
            short = ", which is not enough to judge this one by"
            other = ", too wide to tell of this one" if tried[0].wide else ", and not this one"
            more = "" if agrees else short if tried[0].agrees else other
            under = "" if agrees or tried[0].reading != best else tried[0].under
            told = f"{says}{more}.", under, found.reason
            found = replace(found, word=word, reason=" ".join(filter(None, told)))
        decided[name] = found
    return decided


def read_as(entry: Entry, reading: Reading) -> Entry:
    """The entry with the stored result of a reading in place of the stated one."""
    own = {
        name: getattr(entry, name) for name in ("experiment", "series", "part", "measure", "method")
    }
    own["stem"] = entry.measure.partition(",")[0]
    own["root"] = entry.experiment.replace("-stops", "").removesuffix("-literal")
    changed: dict[str, Any] = {name: text.format(**own) for name, text in reading.reads.items()}
    if "series" in reading.reads:  # of the method, where several are compared
        changed["each"] = [changed["series"] if one == entry.series else one for one in entry.each]
    return replace(entry, **changed)


def _tried(name: str, entry: Entry, results: Results) -> Tried | None:
    """Our figure in one reading, at the paper's size where it is there; None without one."""
    cells = results(entry.experiment) if entry.experiment else {}
    for size in ("paper", "live"):
        if size not in cells:
            continue
        ours: Array = np.array(list(measured(entry, cells[size]).values()))
        if len(ours):
            differs = entry.by == "difference"
            most = np.inf if differs else _MOST.get(entry.unit.partition(" ")[0], np.inf)
            low, high = interval(ours, not (differs or entry.points), most)
            agrees, wide = _agreement(entry, ours, low, high)
            if len(ours) < SEEDS and not cells[size].exact:
                agrees, wide = False, wide or agrees
            spread = float(np.median(ours)), low, high, len(ours)
            return Tried(name, *spread, size, agrees, wide, cells[size].exact)
    return None


def _agreement(entry: Entry, ours: Array, low: float, high: float) -> tuple[bool, bool]:
    """Whether ours agrees, and whether its interval is too wide to say so.

    Raises InvalidInput: a limit that there is not.
    """
    middle = float(np.median(ours))
    if entry.kind != "number":
        for name in entry.holds:
            require(
                name in (*_LIMITS, "usually"),
                f"Entry “{entry.id}” holds “{name}”; choose among {', '.join(_LIMITS)}, usually.",
            )
        limits = [(_LIMITS[name], of) for name, of in entry.holds.items() if name != "usually"]
        held = [all(within(value, of) for within, of in limits) for value in ours.tolist()]
        if not entry.holds.get("usually"):
            return all(held), False
        usual = all(within(middle, of) for within, of in limits)
        most = float(np.mean(held)) >= MOST
        return usual and most, usual and not most
    if entry.points:
        wide = max(high - middle, middle - low) > entry.points
        low, high = low - entry.points, high + entry.points
    else:
        wide = middle > 0 and max(high / middle, middle / low if low > 0 else np.inf) > WIDEST
        low, high = low / (1 + entry.within), high * (1 + entry.within)
    inside = low <= entry.value <= high
    return inside and not wide, inside and wide
