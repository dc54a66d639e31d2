"""Six algorithms, 20 clients, 50 features, 5 components, 100 rounds with the transcript recorded.

The target is 150 ms together on two cores. The reference is the bare products S_i X_i that all of
them ask for together, 20 at a time, and nothing else; metrics are apart.
"""

from functools import partial

import numpy as np

import fedpca_core as fp
from bench.timing import measure, table
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.trace import Trace

CLIENTS, FEATURES, COMPONENTS, ROUNDS = 20, 50, 5, 100


def algorithms() -> list[Algorithm]:
    """The comparison of the Converge page, FAPS with five inner steps."""
    return [
        fp.SSI(COMPONENTS),
        fp.LocalPower(COMPONENTS),
        fp.LocalPower(COMPONENTS, schedule="decay"),
        fp.FAPS(COMPONENTS, inner_rule="fixed", inner_steps=5),
        fp.VariableSplitting(COMPONENTS, inner_steps=5),
        fp.BlockKrylov(COMPONENTS),
    ]


def main() -> None:
    """Print the timings."""
    problem = fp.problems.decay_spectrum(FEATURES, [1000] * CLIENTS, 1.05)
    grams = problem.client_data.dense()
    frames = np.random.default_rng(0).standard_normal((CLIENTS, FEATURES, COMPONENTS))
    compared = algorithms()

    def run(algorithm: Algorithm) -> Trace:
        return fp.simulate(problem, algorithm, rounds=ROUNDS)

    products = sum(int(run(each).local_products[-1]) for each in compared) // CLIENTS

    def bare() -> None:
        for _ in range(products):
            np.matmul(grams, frames)

    def together() -> None:
        for each in compared:
            run(each)

    traces = [run(each) for each in compared]
    rows = {f"{products} bare products": measure(bare)}
    rows |= {each.title: measure(partial(run, each)) for each in compared}
    rows["all six"] = measure(together)
    rows["FAPS, auto rule (apart)"] = measure(partial(run, fp.FAPS(COMPONENTS)))
    rows["metrics of all six (apart)"] = measure(
        lambda: [fp.metrics.frame(trace, problem) for trace in traces]
    )
    print(table(f"{ROUNDS} rounds", rows))
