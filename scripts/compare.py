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
from pathlib import Path

import pandas as pd
from pandas.testing import assert_frame_equal

from fedpca_core.errors import InvalidInput, require
from fedpca_core.questions.catalogue import PRESETS

ROOT = Path(__file__).resolve().parent.parent
#: Rounding of another order of summation, kept small by what the methods forget.
ALIKE = 1e-9
TIMES = {"seconds", "took"}


def tables(tree: Path, preset: str, out: Path) -> dict[str, pd.DataFrame]:
    """All tables of a preset as the sources in ``tree`` make them.

    Raises InvalidInput: they make none.
    """
    file = out / "settings.json"
    program = [sys.executable, "-m", "fedpca_core"]
    for words in (["presets", preset], ["run", str(file), "--out", str(out)]):
        command = [*program, *words]
        done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
        require(done.returncode == 0, f"{tree} has no such result: {done.stderr.strip()}")
        if words[0] == "presets":
            file.write_text(done.stdout, encoding="utf-8")
    found = {one.relative_to(out).as_posix(): pd.read_csv(one) for one in out.rglob("*.csv")}
    return {
        name: table.drop(columns=[one for one in table if TIMES & set(str(one).lower().split("_"))])
        for name, table in found.items()
    }


def compared(there: Path, preset: str) -> str:
    """What differs in a preset; nothing where all is the same."""
    try:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            before, now = tables(there, preset, Path(one)), tables(ROOT, preset, Path(other))
    except InvalidInput as neither:
        return str(neither)
    if before.keys() != now.keys():
        return f"on one side only: {before.keys() ^ now.keys()}"
    try:
        for name, table in before.items():
            assert_frame_equal(table, now[name], check_dtype=False, rtol=ALIKE, atol=1e-14)
    except AssertionError as differs:
        return f"{name}: {differs}"
    return ""


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
                print(f"{preset}: {found or 'the same'}", flush=True)
        finally:
            subprocess.run([*git, "remove", "--force", str(there)], check=True)
    print(f"{differ} differ")
    return int(differ > 0)


if __name__ == "__main__":
    sys.exit(main())
