"""Results of experiments as files: written by the command, shipped with the program, read here."""

import json
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any

import pandas as pd

from fedpca_core.papers.experiment import Experiment, Size
from fedpca_core.study.files import write_whole

#: Results that come with the program: made by ``python -m fedpca_core reproduce``, never by hand.
SHIPPED = Path(__file__).parent / "data"
_PACKAGES = ("numpy", "scipy", "pandas", "scikit-learn")


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
    here = Path(__file__).parent
    try:
        said = [
            subprocess.run(
                ["git", *words], cwd=here, capture_output=True, text=True, check=True
            ).stdout.strip()
            for words in (
                ["rev-parse", "--short=10", "HEAD"],
                ["status", "--porcelain", "--untracked-files=no"],
            )
        ]
    except (OSError, subprocess.CalledProcessError):
        return ""
    return said[0] + ("+" if said[1] else "")


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

    Cells kept from earlier runs count: their commits, and the largest memory of all.

    Returns tuple of str: Names of the files.
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
    return {
        size: pd.read_csv(file, dtype={"part": str, "series": str}, keep_default_na=False,
                          na_values={"x": [""], "result": [""]})
        for size in ("paper", "live")
        if (file := SHIPPED / f"{experiment}-{size}.csv").exists()
    }  # fmt: skip


@cache
def origin(experiment: str, size: str) -> Mapping[str, Any]:
    """Where a shipped result comes from: date, commit, versions, machine; empty for none."""
    file = SHIPPED / f"{experiment}-{size}.json"
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    return found
