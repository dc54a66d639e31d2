"""Running an experiment cell by cell, so that nothing finished is ever lost or run twice.

Each finished cell is one file, written under another name and renamed; a run that is killed leaves
whole cells only, and the next run takes them as they are. Wherever the cells were run, the tables
are made of these files.
"""

import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from fedpca_core.errors import require
from fedpca_core.papers.experiment import Cell, Experiment, Number, Size, tidy
from fedpca_core.papers.results import commit, peak_memory
from fedpca_core.problems.data_sets import require_here
from fedpca_core.steps import Run, Step, in_turn, part
from fedpca_core.study.files import write_whole


def reproduce(
    experiment: Experiment,
    size: Size,
    seeds: int,
    out: Path | None = None,
    only: Sequence[str] = (),
) -> Run[pd.DataFrame]:
    """Run the cells that are not there yet; the tidy table of all that are.

    ``size``, {"paper", "live"}.
    ``seeds``: Cells are run from seeds 0 to ``seeds - 1``.
    ``out``: Folder of the cells; without one nothing is kept.
    ``only``: Run the cells of these series only, where any are named.

    Raises InvalidInput: no seed, a series that the experiment does not have, data that are not
    there, a folder that cannot be written.
    """
    require_here(experiment.needs(size), whole=True)
    require(seeds >= 1, f"An experiment runs from at least 1 seed, not {seeds}.")
    cells = list(experiment.cells(size, seeds))
    known = list(dict.fromkeys(cell.series for cell in cells))
    for name in only:
        require(
            name in known,
            f"“{experiment.key}” has no series “{name}”; choose among {', '.join(known)}.",
        )
    chosen = [cell for cell in cells if not only or cell.series in only]
    tables: list[pd.DataFrame] = []
    for cell, share in in_turn(chosen):
        file = None if out is None else _file(out, experiment, size, cell)
        numbers: Sequence[Number] | None = None if file is None else kept(file, cell)
        if numbers is None:
            began = time.perf_counter()
            numbers = yield from part(experiment.run(cell, size), *share)
            if file is not None:
                keep(file, cell, numbers, time.perf_counter() - began)
        tables.append(tidy(experiment, size, cell, numbers))
        yield Step(share[1], f"{cell.name}: done", pd.concat(tables, ignore_index=True))
    return pd.concat(tables, ignore_index=True)


def _file(out: Path, experiment: Experiment, size: Size, cell: Cell) -> Path:
    return out / "cells" / f"{experiment.key}-{size}" / f"{cell.name}.json"


def keep(file: Path, cell: Cell, numbers: Sequence[Number], seconds: float) -> None:
    """Write one finished cell, whole or not at all."""
    content: dict[str, Any] = {
        **cell.described,
        "seconds": seconds,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "peak_memory_mb": peak_memory(),
        "numbers": [[one.series, one.measure, one.x, one.result] for one in numbers],
    }
    write_whole(file, json.dumps(content))


def kept(file: Path, cell: Cell) -> Sequence[Number] | None:
    """The numbers of a cell that an earlier run finished; None where there are none for it."""
    if not file.exists():
        return None
    content = json.loads(file.read_text(encoding="utf-8"))
    if any(content.get(name) != value for name, value in cell.described.items()):
        return None
    return [Number(series, measure, result, x) for series, measure, x, result in content["numbers"]]
