"""Add finished cells to a result that comes with the program.

python -m scripts.stored KEY FOLDER ...   folders that ``reproduce KEY --paper-size --out`` filled

Rows that are stored stay as they are, and the new ones follow; the JSON file beside them counts
commits, memory and seconds of both.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from fedpca_core.errors import require
from fedpca_core.papers import results
from fedpca_core.papers.experiment import Experiment, tidy
from fedpca_core.papers.registry import experiment
from fedpca_core.papers.results import kept
from fedpca_core.study.files import write_whole

#: Cells are looked for from so many seeds.
SEEDS = 50


def add(chosen: Experiment, folders: Sequence[Path], stored: Path) -> int:
    """Add the cells of the folders to ``stored``; how many there were.

    Raises InvalidInput: none, or one that is stored.
    """
    name = f"{chosen.key}-paper"
    table, about = stored / f"{name}.csv", stored / f"{name}.json"
    before = pd.read_csv(table, dtype=str, keep_default_na=False)
    there = set(zip(before["part"], before["series"], before["seed"], strict=True))
    rows, made = [], []
    for cell in chosen.cells("paper", SEEDS):
        for file in (folder / "cells" / name / f"{cell.name}.json" for folder in folders):
            numbers = kept(file, cell)
            if numbers is None:
                continue
            found = tidy(chosen, "paper", cell, numbers)
            new = set(zip(found["part"], found["series"], found["seed"].astype(str), strict=True))
            require(not new & there, f"{file} is stored already; leave it out.")
            there |= new
            rows.append(found)
            made.append(json.loads(file.read_text(encoding="utf-8")))
    places = ", ".join(map(str, folders))
    require(bool(rows), f"No finished cell of “{chosen.key}” is in {places}; run it with --out.")
    text = pd.concat(rows, ignore_index=True)
    added = text.to_csv(index=False, header=False, float_format="%.6g")
    write_whole(table, table.read_text(encoding="utf-8") + added)
    said = json.loads(about.read_text(encoding="utf-8"))
    commits = {one["commit"] for one in made} | set(said["commit"].split(", "))
    said |= {
        "seeds": sorted({one["seed"] for one in made} | set(said["seeds"])),
        "finished": max(one["finished"] for one in made),
        "commit": ", ".join(sorted(commits)),
        "peak_memory_mb": max(filter(None, (one["peak_memory_mb"] for one in (said, *made)))),
    }
    if said.get("seconds") is not None:
        said["seconds"] += round(sum(one["seconds"] for one in made))
    write_whole(about, json.dumps(said, indent=2) + "\n")
    return len(made)


if __name__ == "__main__":
    key, *places = sys.argv[1:]
    print(add(experiment(key), [Path(place) for place in places], results.SHIPPED), "cells added")
