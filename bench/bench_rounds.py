"""Six algorithms, 20 clients, 50 features, 5 components, 100 rounds with the transcript recorded.

The reference is the bare products S_i X_i that all of them ask for together, 20 at a time, and
nothing else: a time alone says little about another machine. Metrics are apart.
"""

import statistics
from collections.abc import Callable
from functools import partial
from timeit import repeat

import numpy as np

import fedpca_core as fp
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.trace import Trace

CLIENTS, FEATURES, COMPONENTS, ROUNDS, REPEAT = 20, 50, 5, 100, 9

#: The comparison of the Converge page, FAPS with five inner steps.
ALGORITHMS = (
    fp.SSI(COMPONENTS),
    fp.LocalPower(COMPONENTS),
    fp.LocalPower(COMPONENTS, schedule="decay"),
    fp.FAPS(COMPONENTS, inner_rule="fixed", inner_steps=5),
    fp.VariableSplitting(COMPONENTS, inner_steps=5),
    fp.BlockKrylov(COMPONENTS),
)


def main() -> None:
    """Print the timings."""
    problem = fp.problems.decay_spectrum(FEATURES, [1000] * CLIENTS, 1.05)
    grams = problem.client_data.dense()
    frames = np.random.default_rng(0).standard_normal((CLIENTS, FEATURES, COMPONENTS))

    def run(algorithm: Algorithm) -> Trace:
        return fp.simulate(problem, algorithm, rounds=ROUNDS)

    traces = [run(each) for each in ALGORITHMS]
    products = sum(int(trace.local_products[-1]) for trace in traces) // CLIENTS

    def bare() -> None:
        for _ in range(products):
            np.matmul(grams, frames)

    rows: dict[str, Callable[[], object]] = {
        f"{products} bare products": bare,
        **{each.title: partial(run, each) for each in ALGORITHMS},
        "all six": lambda: [run(each) for each in ALGORITHMS],
        "FAPS, auto rule (apart)": partial(run, fp.FAPS(COMPONENTS)),
        "metrics of all six (apart)": lambda: [fp.metrics.frame(one, problem) for one in traces],
    }
    reference = None
    print(f"{ROUNDS} rounds, median of {REPEAT}, and the ratio to the first")
    for name, work in rows.items():
        seconds = statistics.median(repeat(work, number=1, repeat=REPEAT))
        reference = reference or seconds
        print(f"  {name:<28}{1e3 * seconds:>9.2f} ms{seconds / reference:>8.1f}")
