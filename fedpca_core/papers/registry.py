"""Every number that the papers print, every claim that can be checked, and how ours is made.

How to add a row
----------------
1. *The number.* Append it to ``QUOTED`` of its paper's file (`faps`, `fedpower`, `iot`,
   `personal`, ...): ``Quoted("fedpower/figure-3b/eps-10/error", "Figure 3(b)", "ε = 10", "error",
   "0.01")``. Name: paper, place, row, measure; text: the digits as printed. A file of another
   paper joins by one line in `_PAPERS` below. Pages quote it with ``quote(name)``, and nowhere
   does a page write the digits itself (a house rule reads the sources).
2. *The experiment*, where ours needs one that is not there. Subclass `Experiment` in
   ``<paper>_runs.py``: ``cells(size, seeds)`` lists what is run (one value, one method, one seed;
   ``configuration`` holds all that its numbers depend on), ``run(cell, size)`` is a generator of
   `Step`s that returns `Number`s (series, measure, result, and x for a point of a curve). Work is
   done by the studies and algorithms that are there; a cell must fit in memory by itself. Add an
   instance to ``EXPERIMENTS`` of ``<paper>_rows.py``.
3. *The row.* Append a `Row` to ``ROWS`` of ``<paper>_rows.py``: the claim in a sentence of ours,
   ``quoted=quote...``, the experiment's key, ``ours=number(series, measure, part)`` (or `ratio`,
   `averaged`, or any function from the table of cells to one number a seed), and what counts as
   agreement (`within_factor`, `within`, `at_least`, `at_most`). The verdict follows from the
   numbers. ``correction`` says what we do differently for it to hold; ``why`` what explains it, and
   ``kind`` which of `KINDS` that is where it does not come out;
   ``unreadable`` or ``out_of_scope`` the reason, where there is nothing to compare with or to run.
   A claim that does not depend on the size is ``scale_free`` and may be judged at live size.
4. *The results.* ``python -m fedpca_core reproduce KEY --seeds 5 --out DIR`` (``--paper-size``),
   then copy ``KEY-live.csv`` and ``.json`` (``KEY-paper.*``) into ``papers/data``. Nothing there is
   edited by hand.
5. `tests/papers/test_registry.py` checks names, places, and that every row reads a number
   that its experiment gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

from fedpca_core.errors import require
from fedpca_core.papers import (
    dfl_rows,
    faps,
    faps_rows,
    fedpower_rows,
    iot,
    iot_rows,
    personal_rows,
)
from fedpca_core.papers.experiment import Experiment
from fedpca_core.papers.quoted import Quoted, by_name
from fedpca_core.papers.row import Row

#: Modules with ``QUOTED``, and modules with ``ROWS`` and ``EXPERIMENTS``.
_PAPERS: tuple[ModuleType, ...] = (faps, iot, personal_rows, dfl_rows)
_TABLES: tuple[ModuleType, ...] = (faps_rows, fedpower_rows, iot_rows, personal_rows, dfl_rows)

#: Every printed number, by name.
QUOTED: Mapping[str, Quoted] = by_name(number for paper in _PAPERS for number in paper.QUOTED)

#: Every experiment, by key, and every row, in the order in which the page lists them.
EXPERIMENTS: Mapping[str, Experiment] = {
    one.key: one for table in _TABLES for one in table.EXPERIMENTS
}
ROWS: tuple[Row, ...] = tuple(row for table in _TABLES for row in table.ROWS)


def quote(name: str) -> Quoted:
    """The printed number with this name: the only way for a page to show one.

    Raises
    ------
    InvalidInput
        There is none.
    """
    require(name in QUOTED, f"No number called “{name}” is quoted; add it to its paper's QUOTED.")
    return QUOTED[name]


def experiment(key: str) -> Experiment:
    """The experiment with this key.

    Raises
    ------
    InvalidInput
        There is none.
    """
    known = ", ".join(EXPERIMENTS)
    require(key in EXPERIMENTS, f"There is no experiment “{key}”; choose one of {known}.")
    return EXPERIMENTS[key]


def rows_of(key: str) -> tuple[Row, ...]:
    """The rows whose numbers an experiment gives."""
    return tuple(row for row in ROWS if row.experiment == key)
