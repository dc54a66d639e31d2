"""Measure a call: the median of repetitions after a warm-up, beside a reference.

A time alone says little about another machine, so a benchmark gives a reference (the bare matrix
products, say) and prints the ratio to it.
"""

import gc
import os
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

from threadpoolctl import threadpool_info


def measure(work: Callable[[], Any], *, repeat: int = 9, warmup: int = 2) -> list[float]:
    """Seconds of ``work()``, call by call; those of the ``warmup`` before are not timed."""
    for _ in range(warmup):
        work()
    gc.collect()  # not somebody else's garbage inside a repetition
    seconds = []
    for _ in range(repeat):
        begun = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - begun)
    return seconds


def threads() -> int:
    """Most threads a linear-algebra library may use in this process."""
    return max((pool["num_threads"] for pool in threadpool_info()), default=1)


def table(title: str, rows: Mapping[str, list[float]]) -> str:
    """Milliseconds, with the ratio of medians to the first row, which is the reference."""
    width = max(map(len, rows))
    reference = next(iter(rows.values()))
    text = [
        f"{title} ({threads()} of {os.cpu_count()} threads, median of {len(reference)})",
        f"  {'':<{width}}{'median ms':>12}{'min':>10}{'max':>10}{'ratio':>8}",
    ]
    for name, seconds in rows.items():
        median = statistics.median(seconds)
        low, high = 1e3 * min(seconds), 1e3 * max(seconds)
        share = median / statistics.median(reference)
        text.append(f"  {name:<{width}}{1e3 * median:>12.2f}{low:>10.2f}{high:>10.2f}{share:>8.1f}")
    return "\n".join(text)
