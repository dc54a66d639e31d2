"""Every number and claim of the papers, every experiment behind them, and the verdicts.

How to add one
--------------
1. *The number.* An entry of its paper's file (``faps.toml``, ...): place, line of the text, value
   as printed, what it says. Pages quote it with ``quote("faps/table-1/ssi/rounds")``, and nowhere
   does a page write the digits itself (a house rule reads the sources).
2. *Ours.* The key of an experiment, series and measure; a tolerance (``within``, ``points``) for a
   number, or what a claim ``holds``. Readings say in ``reads`` which stored result is theirs.
3. *The experiment*, where there is none yet. Subclass `Experiment`: ``pieces(size)`` lists what is
   run from every seed (one value, one method; the configuration holds all that its numbers depend
   on), ``run(cell, size)`` returns `Number`s. Add an instance to `EXPERIMENTS`.
4. *The results.* ``python -m fedpca_core reproduce KEY --seeds 5 --out DIR`` (``--paper-size``),
   then copy ``KEY-live.csv`` and ``.json`` (``KEY-paper.*``) into ``papers/data``, or add cells to
   those that are there: ``python -m scripts.stored KEY DIR``. Nothing there is edited by hand, and
   no verdict is written: `fedpca_core.papers.judge` works it out.
5. *The list.* An item of docs/coverage.toml; the test of docs/coverage.md makes the page anew.
"""

from collections.abc import Collection, Mapping
from functools import cache

import pandas as pd

from fedpca_core.errors import require, require_known
from fedpca_core.papers import dfl_runs, fedpower_runs
from fedpca_core.papers.entries import PAPERS, Entry, paper
from fedpca_core.papers.experiment import Experiment
from fedpca_core.papers.faps_runs import STOPPED, VARIANTS, FapsConvergence, Recovered, Stopped
from fedpca_core.papers.fedpower import CLIENTS, COIN, FIGURES, MODEL_II, RAW, figure, panels
from fedpca_core.papers.iot_runs import DATA, RUNS, Bytes, TableReadings
from fedpca_core.papers.judge import Verdict, judge, read_as, together
from fedpca_core.papers.measured import Cells
from fedpca_core.papers.personal_runs import Collaborating
from fedpca_core.papers.presets import FIGURES as PRINTED
from fedpca_core.papers.presets import OTHERWISE
from fedpca_core.papers.results import shipped

_VARIED = ("vary-features", "vary-samples", "vary-components", "vary-decay")
_RAW_TOO = (
    *panels("raw drawn", "4a", model=RAW, draws=CLIENTS),
    *panels("raw unaligned", "4a", model=RAW, alignment=False),
)
_PREPARED = ("not-centred", "standardised", "in-order")
_FEDPOWER = {
    "3": ("Figure 3: Model I", [one for one in FIGURES if one.key[0] == "3"]),
    "4": ("Figure 4: Model II", [figure(one) for one in MODEL_II]),
    "4-many": ("Figure 4(b): many networks, exact noise (ours)", [figure("4e")]),
    "4-raw": ("Figure 4: rows not normalised", [*panels("raw", *MODEL_II, model=RAW), *_RAW_TOO]),
    "4-coin": ("Figure 4: communities by coin", panels("coin", *MODEL_II, model=COIN)),
    "3-drawn": ("Figure 3(a): K = m drawn", panels("drawn", "3a", draws=CLIENTS)),
    "4-drawn": ("Figure 4: K = m drawn", panels("drawn", "4a", "4b", draws=CLIENTS)),
    "3-unaligned": ("Figure 3(a): unaligned", panels("unaligned", "3a", alignment=False)),
    "4-unaligned": ("Figure 4: unaligned", panels("unaligned", *MODEL_II, alignment=False)),
}
#: Every experiment, by key.
EXPERIMENTS: Mapping[str, Experiment] = {
    one.key: one
    for one in (
        *(FapsConvergence(name) for name in ("table-1", "uneven", *_VARIED, "rates", "images")),
        *(FapsConvergence("images", how, STOPPED[:3]) for how in _PREPARED),
        FapsConvergence("rates", "variants", tuple(dict.fromkeys((*STOPPED, *VARIANTS)))),
        *(Stopped(name) for name in ("table-1", "uneven", *_VARIED)),
        Recovered("figure-1a", "Figure 1(a): recovered before converged"),
        Recovered("figure-1b", "Figure 1(b): recovery against convergence"),
        *(fedpower_runs.Panels(f"fedpower-figure-{key}", *of) for key, of in _FEDPOWER.items()),
        fedpower_runs.FixedGaps(),
        fedpower_runs.Noise(),
        *(TableReadings(data) for data in DATA),
        Bytes(),
        *RUNS,
        *map(Collaborating, PRINTED),
        *(Collaborating(f"perpca-{name}", "literal") for name in ("1a", "1c", "1d", "2a", "2b")),
        *(Collaborating(*of) for one in OTHERWISE.values() for of in one["of"]),
        dfl_runs.StatementsAgainstCases(),
        dfl_runs.FigureOne(),
    )
}

#: Every number and claim by its name, "paper/id", in the order of the texts.
ENTRIES: Mapping[str, Entry] = {entry.name: entry for key in PAPERS for entry in paper(key).entries}


def quote(name: str) -> Entry:
    """The entry with this name: the only way for a page to show a printed number.

    Raises InvalidInput: there is none.
    """
    require(name in ENTRIES, f"No number called “{name}” is quoted; add it to its paper's file.")
    return ENTRIES[name]


def experiment(key: str) -> Experiment:
    """Raises InvalidInput: there is no experiment with this key."""
    require_known("experiment", key, EXPERIMENTS)
    return EXPERIMENTS[key]


def keys_of(entry: Entry) -> tuple[str, ...]:
    """The experiments whose cells an entry reads, in one reading or another."""
    read = [entry, *(read_as(entry, reading) for reading in entry.readings if reading.reads)]
    keys = [key for one in read for key in one.experiment.split(" + ")]
    return tuple(dict.fromkeys(key for key in keys if key in EXPERIMENTS))


def entries_of(key: str) -> tuple[Entry, ...]:
    """The entries that are judged by the cells of an experiment."""
    return tuple(
        entry
        for entry in ENTRIES.values()
        if (entry.holds or entry.within or entry.points) and key in keys_of(entry)
    )


Tables = Mapping[str, Mapping[str, pd.DataFrame]]


def results(key: str, tables: Tables | None = None) -> Mapping[str, Cells]:
    """Cells by size of an experiment, or of several ("a + b") at the sizes that all have.

    ``tables``: Cells by experiment and size in place of those that are shipped.
    """
    return _shipped(key) if tables is None else _cells(key, tables)


@cache
def _shipped(key: str) -> Mapping[str, Cells]:
    return _cells(key, {one: shipped(one) for one in key.split(" + ")})


def _cells(key: str, tables: Tables) -> Mapping[str, Cells]:
    found = {one: tables.get(one, {}) for one in key.split(" + ")}
    return {
        size: Cells.of(
            pd.concat(
                one[size].assign(part=f"{name} " * (len(found) > 1) + one[size]["part"])
                for name, one in found.items()
            ),
            all(EXPERIMENTS[name].exact for name in found),
        )
        for size in set.intersection(*(set(one) for one in found.values()))
    }


def verdicts_of(entries: Collection[Entry], tables: Tables | None = None) -> Mapping[str, Verdict]:
    """Verdicts by the name of their entry.

    Numbers of one row of a table are judged together, wherever the text quotes them again.
    """
    once = cache(lambda key: results(key, tables))
    found = {}
    rows: dict[tuple[object, ...], dict[str, Verdict]] = {}
    for entry in entries:
        known = [EXPERIMENTS[key] for key in keys_of(entry)]
        anywhere = bool(known) and all("paper" not in one.sizes for one in known)
        found[entry.name] = judge(entry, once, anywhere)
        if entry.kind == "number" and entry.readings and not entry.out_of_scope:
            readings = tuple(one.name for one in entry.readings)
            at = entry.paper, entry.experiment, entry.part, entry.method, readings
            rows.setdefault(at, {})[entry.name] = found[entry.name]
    for row in rows.values():
        first = {_told_by(ENTRIES[name]): name for name in reversed(row)}
        found |= together(row, row.keys() - set(first.values()))
    return found


def _told_by(entry: Entry) -> tuple[str, str]:
    """The number of a row that an entry says: a share missed is what a share found leaves over."""
    return entry.measure.replace("fnr", "recall"), entry.series


@cache
def verdicts() -> Mapping[str, Verdict]:
    """Every verdict, from what is shipped: it does not change."""
    return verdicts_of(ENTRIES.values())
