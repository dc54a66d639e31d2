"""The picture of "Which one?" at live size: 8 methods x 6 values of ε x 5 seeds, on all workers.

What the page asks for as it opens, attacks that search aside and with them; the workers are warm,
as on a server. Seconds by the clock want a quiet machine; those of CPU do not.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace

from fedpca_core.questions.which.frontier import Frontier
from fedpca_core.questions.which.settings import FrontierSettings


def main() -> None:
    """Print seconds to the first points and to the whole, and what the workers took for it."""
    from dashboard.shell import limits, workers

    asked = FrontierSettings()
    for searches in (False, True):
        workers.pool.cache_clear()
        pool = workers.pool()
        if pool is None:
            print("FEDPCA_WORKERS=0: there are no workers to measure.")
            return
        for seed in (90_000, 90_001):  # other problems, one for each worker
            warm = replace(asked.alone("faps", seed), epsilon=1.0)
            for _ in workers.run(Frontier(), warm, None):
                pass
        before, began, first = _cpu(pool.processes()), time.perf_counter(), 0.0
        front = None
        for step in workers.run(Frontier(), replace(asked, searches=searches, seed=7), None):
            if step.result is not None:
                first, front = first or time.perf_counter() - began, step.result
        took, cpu = time.perf_counter() - began, _cpu(pool.processes()) - before
        pool.close()
        assert front is not None
        shape = " x ".join(str(front.table[name].nunique()) for name in ("method", "value", "seed"))
        print(
            f"{shape} = {len(front.table)} runs{', attacks that search too' * searches}: first "
            f"points {first:.2f} s, all {took:.1f} s on {limits.WORKERS} workers, {cpu:.1f} s of "
            "their CPU",
            flush=True,
        )


def _cpu(processes: list[int]) -> float:
    """Seconds of CPU that processes have taken."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0
    for pid in processes:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        total += int(fields[11]) + int(fields[12])
    return total / ticks
