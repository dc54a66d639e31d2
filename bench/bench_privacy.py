"""How fast the privacy read-outs are: epsilon from nu, nu from epsilon, each client's true cost.

Run with ``python -m bench privacy``; the target is 1 ms a read-out.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import fedpca_core as fp
from fedpca_core.privacy import Calibration, Guarantee, account, spent


def milliseconds(work: Callable[[], object], repetitions: int = 200) -> float:
    """Median time of one call."""
    times = []
    for _ in range(repetitions):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1e3 * sorted(times)[repetitions // 2]


def main() -> None:
    """Print one line for each read-out."""
    problem = fp.problems.spiked_covariance(features=20, samples=2000, clients=20)
    noise = float(Calibration("exact", 1.0, 1e-5, 10, 5).noise(2000))
    run = fp.FedPower(4, 5, noise=noise, draws=8)
    trace = fp.simulate(problem, run, rounds=run.rounds)
    guarantee = account(run, trace.setting, delta=1e-5)
    assert isinstance(guarantee, Guarantee)
    lines = {
        "noise from a budget": lambda: Calibration("exact", 1.0, 1e-5, 10, 5).noise(2000),
        "epsilon before the run, with its words": lambda: account(run, trace.setting, delta=1e-5),
        "epsilon of each of 20 clients after it": lambda: spent(trace, run, delta=1e-5),
    }
    for name, work in lines.items():
        print(f"{name:42s} {milliseconds(work):6.3f} ms")


if __name__ == "__main__":
    main()
