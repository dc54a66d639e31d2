"""The tables of presets, here and as another commit makes them.

python -m scripts.compare 1c2cf7d                 every preset
python -m scripts.compare v1.0 default story-1    these

Each side runs its own preset of that name through its own command line. A preset differs where a
table is there on one side only, or a column, or a number by more than rounding; what a run took in
seconds is nobody's result. Returns 1 where any differs.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from fedpca_core.questions.catalogue import PRESETS

ROOT = Path(__file__).resolve().parent.parent
#: Rounding of another order of summation, kept small by what the methods forget.
ALIKE = 1e-9
TIMES = ("seconds", "took")


def tables(tree: Path, preset: str, out: Path) -> dict[str, pd.DataFrame] | str:
    """All tables of a preset as the sources in ``tree`` make them, or why there are none."""
    file = out / "settings.json"
    for words in (["presets", preset], ["run", str(file), "--out", str(out)]):
        done = subprocess.run(
            [sys.executable, "-m", "fedpca_core", *words],
            cwd=tree, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            return (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        if words[0] == "presets":
            file.write_text(done.stdout, encoding="utf-8")
    return {one.relative_to(out).as_posix(): pd.read_csv(one) for one in out.rglob("*.csv")}


def apart(before: pd.DataFrame, now: pd.DataFrame) -> Iterator[str]:
    """What of a table is not as before."""
    if set(before.columns) != set(now.columns) or len(before) != len(now):
        yield f"{before.shape} became {now.shape}: {set(before.columns) ^ set(now.columns)}"
        return
    for name in before.columns:
        old, new = before[name], now[name]
        if any(word in name.lower() for word in TIMES):
            continue
        if pd.api.types.is_numeric_dtype(old) and pd.api.types.is_numeric_dtype(new):
            was, is_ = old.to_numpy(float), new.to_numpy(float)
            if not np.allclose(was, is_, rtol=ALIKE, atol=1e-14, equal_nan=True):
                gap = np.nanmax(np.abs(is_ - was) / np.maximum(np.abs(was), 1e-14))
                yield f"{name} differs by {gap:.1e} of itself"
        elif not old.fillna("").astype(str).equals(new.fillna("").astype(str)):
            yield f"{name} differs in {int((old.astype(str) != new.astype(str)).sum())} rows"


def compared(there: Path, preset: str) -> list[str]:
    """What differs in a preset; nothing where all is the same."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        before, now = tables(there, preset, Path(one)), tables(ROOT, preset, Path(other))
    if isinstance(before, str) or isinstance(now, str):
        return [] if before == now else [f"{one}" for one in (before, now) if isinstance(one, str)]
    only = [f"{name} is on one side only" for name in sorted(before.keys() ^ now.keys())]
    return only + [
        f"{name}: {what}"
        for name in sorted(before.keys() & now.keys())
        for what in apart(before[name], now[name])
    ]


def main() -> int:
    """Print one line for each preset, and what differs."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("commit")
    options.add_argument("presets", nargs="*", metavar="PRESET", help="all without")
    chosen = options.parse_args()
    differ = 0
    with tempfile.TemporaryDirectory() as folder:
        there = Path(folder) / "there"
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", str(there), chosen.commit], check=True)
        try:
            for preset in chosen.presets or PRESETS:
                found = compared(there, preset)
                differ += bool(found)
                print(
                    f"{preset}: {'the same' if not found else ''}", *found, sep="\n  ", flush=True
                )
        finally:
            subprocess.run([*git, "remove", "--force", str(there)], check=True)
    print(f"{differ} differ")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
