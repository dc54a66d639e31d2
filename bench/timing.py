"""Measure a call: the median of repetitions after a warm-up, beside a reference.

A time alone says little about another machine, so a benchmark gives a reference (the bare matrix
products, say) and prints the ratio to it.

    reference = measure(products)
    show("100 rounds", [("SSI", measure(run))], reference=("bare products", reference))
"""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from threadpoolctl import threadpool_info


@dataclass(frozen=True)
class Timing:
    """Seconds of one call."""

    median: float
    minimum: float
    maximum: float
    #: How many calls were timed.
    repeat: int
    #: Most threads a linear-algebra library could use.
    threads: int

    def ratio(self, reference: Timing) -> float:
        """How many times as long as the reference, medians compared."""
        return self.median / reference.median


def measure(work: Callable[[], Any], *, repeat: int = 9, warmup: int = 2) -> Timing:
    """Time ``work()``.

    Parameters
    ----------
    work : callable
        Called without arguments; what it returns is dropped.
    repeat : int
        Timed calls, at least one.
    warmup : int
        Calls before, not timed: caches fill, libraries load.
    """
    if repeat < 1:
        raise ValueError(f"{repeat} repetitions measure nothing; give at least 1.")
    for _ in range(warmup):
        work()
    gc.collect()  # not somebody else's garbage inside a repetition
    seconds = []
    for _ in range(repeat):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return Timing(statistics.median(seconds), min(seconds), max(seconds), repeat, threads())


def threads() -> int:
    """Most threads a linear-algebra library may use in this process."""
    return max((pool["num_threads"] for pool in threadpool_info()), default=1)


def table(
    title: str,
    rows: Sequence[tuple[str, Timing]],
    reference: tuple[str, Timing] | None = None,
) -> str:
    """The timings as text: milliseconds, and the ratio where a reference is given."""
    lines = [*rows] if reference is None else [reference, *rows]
    width = max(len(name) for name, _ in lines)
    ratio = "" if reference is None else f"{'ratio':>8}"
    used = max(timing.threads for _, timing in lines)
    text = [
        f"{title} ({used} of {os.cpu_count()} threads, median of {lines[0][1].repeat})",
        f"  {'':<{width}}{'median ms':>12}{'min':>10}{'max':>10}{ratio}",
    ]
    for name, timing in lines:
        median, low, high = 1e3 * timing.median, 1e3 * timing.minimum, 1e3 * timing.maximum
        share = "" if reference is None else f"{timing.ratio(reference[1]):>8.1f}"
        text.append(f"  {name:<{width}}{median:>12.2f}{low:>10.2f}{high:>10.2f}{share}")
    return "\n".join(text)


def show(
    title: str,
    rows: Sequence[tuple[str, Timing]],
    reference: tuple[str, Timing] | None = None,
) -> None:
    """Print `table`."""
    print(table(title, rows, reference), end="\n\n", flush=True)
