"""Run the benchmarks: ``python -m bench`` all but the long ones, ``python -m bench rounds`` one.

Every module bench/bench_*.py with a ``main()`` is one; options are passed on to a single one
(``python -m bench load --visitors 3 --seconds 20``). One BLAS thread is used unless
OPENBLAS_NUM_THREADS says otherwise, because that is how the dashboard runs.
"""

import os
import secrets
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported, below
# Servers that are started here tell their status.
os.environ.setdefault("FEDPCA_STATUS_TOKEN", secrets.token_hex())

#: Only when it is named: takes minutes and the whole machine, or needs Flower's own environment.
BY_NAME = ("load", "flower", "peers")


def names() -> list[str]:
    """The benchmarks in this folder, without their prefix."""
    files = Path(__file__).parent.glob("bench_*.py")
    return sorted(path.stem.removeprefix("bench_") for path in files)


def main(wanted: list[str]) -> int:
    """Run the wanted benchmarks, all without a name; returns the exit status."""
    options = next((at for at, word in enumerate(wanted) if word.startswith("-")), len(wanted))
    wanted, passed_on = wanted[:options], wanted[options:]
    known = names()
    if passed_on and len(wanted) != 1:
        print("Options belong to a single benchmark; name one.")
        return 2
    unknown = [name for name in wanted if name not in known]
    if unknown:
        print(f"There is no benchmark {', '.join(unknown)}; there are: {', '.join(known)}.")
        return 2
    for name in wanted or [name for name in known if name not in BY_NAME]:
        benchmark = import_module(f"bench.bench_{name}")
        if passed_on and not signature(benchmark.main).parameters:
            print(f"The benchmark {name} has no options; {passed_on[0]} is none of them.")
            return 2
        benchmark.main(passed_on) if passed_on else benchmark.main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
