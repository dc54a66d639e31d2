"""Run the benchmarks: ``python -m bench`` all but the long ones, ``python -m bench rounds`` one.

Every module bench/bench_*.py with a ``main()`` is one, whose parameters are its options
(``python -m bench load --visitors 3 --seconds 20``). One BLAS thread is used unless
OPENBLAS_NUM_THREADS says otherwise, because that is how the dashboard runs.
"""

import argparse
import os
import secrets
import sys
from importlib import import_module
from inspect import signature
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported, below
# Servers that are started here tell their status.
os.environ.setdefault("FEDPCA_STATUS_TOKEN", secrets.token_hex())
# The Flower app is no installed package: Flower packs it up from its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "engines" / "flower"))

#: Only when it is named: takes minutes and the whole machine, needs Flower's own environment, or is
#: a part of another.
BY_NAME = ("load", "flower", "peers", "scene")


def names() -> list[str]:
    """The benchmarks in this folder, without their prefix."""
    files = Path(__file__).parent.glob("bench_*.py")
    return sorted(path.stem.removeprefix("bench_") for path in files)


def run(name: str, words: list[str]) -> None:
    """Run one benchmark with its options: a switch, a value, or several of them."""
    benchmark = import_module(f"bench.bench_{name}")
    parser = argparse.ArgumentParser(
        prog=f"python -m bench {name}",
        description=f"{benchmark.__doc__}\n{benchmark.main.__doc__}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for option, one in signature(benchmark.main).parameters.items():
        usual = one.default
        if usual is False:
            parser.add_argument(f"--{option}", action="store_true")
        elif isinstance(usual, tuple):
            parser.add_argument(f"--{option}", nargs="*", default=usual)
        else:
            parser.add_argument(f"--{option}", type=type(usual), default=usual)
    benchmark.main(**vars(parser.parse_args(words)))


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
        run(name, passed_on)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
