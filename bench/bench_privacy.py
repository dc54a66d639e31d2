"""How fast the privacy read-outs are: epsilon from nu, nu from epsilon, each client's true cost.

Run with ``python -m bench privacy``; the target is 1 ms a read-out.
"""

from __future__ import annotations

import fedpca_core as fp
from bench.timing import measure, show
from fedpca_core.privacy import Calibration, Guarantee, account, spent


def main() -> None:
    """Print the timings."""
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
    show("read-outs", [(name, measure(work, repeat=200)) for name, work in lines.items()])


if __name__ == "__main__":
    main()
