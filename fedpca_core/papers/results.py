"""Results of experiments: run cell by cell, kept as files, shipped with the program.

Each finished cell is one file, written under another name and renamed; a run that is killed leaves
whole cells only, and the next run takes them as they are.
"""

import json
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from fedpca_core.errors import require
from fedpca_core.papers.experiment import Cell, Experiment, Number, Size, tidy
from fedpca_core.problems.data_sets import require_here
from fedpca_core.steps import Run, Step, in_turn, part
from fedpca_core.study.files import write_whole

#: Results that come with the program: made by ``python -m fedpca_core reproduce``, never by hand.
SHIPPED = Path(__file__).parent / "data"
_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn")


def reproduce(
    experiment: Experiment,
    size: Size,
    seeds: int,
    out: Path | None = None,
    only: Sequence[str] = (),
) -> Run[pd.DataFrame]:
    """Run the cells that are not there yet; the tidy table of all that are.

    Cells are run from seeds 0 to ``seeds - 1``, and of the series ``only`` where any are named.
    ``out`` is the folder of the cells; without one nothing is kept.

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
        place = f"cells/{experiment.key}-{size}/{cell.name}.json"
        file = None if out is None else out / place
        numbers = None if file is None else kept(file, cell)
        if numbers is None:
            began = time.perf_counter()
            numbers = yield from part(experiment.run(cell, size), *share)
            if file is not None:
                keep(file, cell, numbers, time.perf_counter() - began)
        tables.append(tidy(experiment, size, cell, numbers))
        yield Step(share[1], f"{cell.name}: done", pd.concat(tables, ignore_index=True))
    return pd.concat(tables, ignore_index=True)


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


def provenance() -> dict[str, Any]:
    """When, with what and on what a result was made."""
    return {
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in (*_PACKAGES, *({"torch"} & sys.modules.keys()))},
        },
        "machine": f"{platform.system()} {platform.machine()}",
        "peak_memory_mb": peak_memory(),
    }


@cache
def commit() -> str:
    """The program's commit, with "+" where files differ from it; empty outside a clone.

    Asked for when a run starts: what is checked out meanwhile is not what runs.
    """

    def said(*words: str) -> str:
        git = subprocess.run(
            ["git", *words], cwd=SHIPPED, capture_output=True, text=True, check=True
        )
        return git.stdout.strip()

    try:
        changed = said("status", "--porcelain", "--untracked-files=no")
        return said("rev-parse", "--short=10", "HEAD") + "+" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return ""


def peak_memory() -> float | None:
    """Largest memory of this process so far, MB; None where the system does not say."""
    if sys.platform == "win32":
        return None
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(largest / (1e6 if sys.platform == "darwin" else 1e3), 1)


def write_results(
    table: pd.DataFrame, experiment: Experiment, size: Size, out: Path
) -> tuple[str, ...]:
    """Write the tidy table as CSV and Parquet, and a JSON file that says where it comes from.

    Cells kept from earlier runs count: their commits, and the largest memory of all. Returns the
    names of the files.
    """
    name = f"{experiment.key}-{size}"
    packed = BytesIO()
    table.to_parquet(packed, index=False)
    seeds = sorted({int(seed) for seed in table["seed"]})
    content = {
        "experiment": experiment.key,
        "size": size,
        "described": experiment.described(size),
        "seeds": seeds,
        **provenance(),
        **_made(out / "cells" / name, seeds),
    }
    files: Mapping[str, str | bytes] = {
        f"{name}.csv": table.to_csv(index=False, float_format="%.6g"),
        f"{name}.parquet": packed.getvalue(),
        f"{name}.json": json.dumps(content, indent=2) + "\n",
    }
    for file, written in files.items():
        write_whole(out / file, written)
    return tuple(files)


def _made(folder: Path, seeds: Sequence[int]) -> dict[str, Any]:
    """Commits, largest memory, seconds of the cells in a folder; None for what some do not say."""
    files = sorted(folder.glob("*.json"))
    cells = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    made = [one for one in cells if one["seed"] in seeds]
    if not made:
        return {}
    commits = sorted({one.get("commit", "unknown") for one in made} - {""})
    memory, seconds = ([one.get(name) for one in made] for name in ("peak_memory_mb", "seconds"))
    return {
        "commit": ", ".join(commits),
        "peak_memory_mb": None if None in memory else max(memory),
        "seconds": None if None in seconds else round(sum(seconds)),
    }


def summary(cells: pd.DataFrame) -> pd.DataFrame:
    """Medians over the seeds: part, series, then a column for each measure, and seeds."""
    numbers = cells[cells["x"].isna()]
    table = numbers.pivot_table(
        index=["part", "series"], columns="measure", values="result", aggfunc="median", sort=False
    )
    seeds = numbers.groupby(["part", "series"], sort=False)["seed"].nunique()
    return table.assign(seeds=seeds).reset_index().rename_axis(columns=None)


@cache
def shipped(experiment: str) -> Mapping[str, pd.DataFrame]:
    """The results that come with the program for an experiment, by size; do not change them."""
    how: dict[str, Any] = {"dtype": {"part": str, "series": str}, "keep_default_na": False}
    how["na_values"] = {"x": [""], "result": [""]}
    files = {size: SHIPPED / f"{experiment}-{size}.csv" for size in ("paper", "live")}
    return {size: pd.read_csv(file, **how) for size, file in files.items() if file.exists()}


@cache
def origin(experiment: str, size: str) -> Mapping[str, Any]:
    """Where a shipped result comes from: date, commit, versions, machine; empty for none."""
    file = SHIPPED / f"{experiment}-{size}.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found
