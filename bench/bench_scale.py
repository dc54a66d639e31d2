"""Cost of a round against clients, features and records, and the law that fits it.

Processor seconds, which other work on the machine does not inflate. The law is
``seconds = c + clients (a + b work)`` with ``work`` = floating-point operations of a product,
``2 features columns min(features, 2 records)`` a client. ``--long`` adds the largest sizes.
"""

import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import nnls

import fedpca_core as fp
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.problem import Problem
from fedpca_flower.own_records import read_moments

COLUMNS, ROUNDS = 5, 4
#: Clients, features and records of each.
SIZES = [(10, 50, 200), (100, 50, 200), (1000, 50, 200), (100, 200, 800), (4, 1000, 300)]
LONG = [(10_000, 50, 200), (10_000, 200, 40), (2, 5000, 500), (2, 5000, 20_000)]


def problem(clients: int, features: int, records: int, folder: Path) -> tuple[Problem, float]:
    """Clients whose records lie in mapped files; the seconds to read and reduce them all."""
    generator = np.random.default_rng(0)
    base = np.lib.format.open_memmap(
        folder / "records.npy", mode="w+", dtype=np.float64, shape=(records, features)
    )
    step = max(1, 10**7 // features)
    for begin in range(0, records, step):
        part = base[begin : begin + step]
        part[:] = generator.standard_normal(part.shape) * 0.99 ** np.arange(features)
    base.flush()
    began = time.process_time()
    one = read_moments(folder / "records.npy")
    reading = time.process_time() - began
    # Every client has the same records, but matrices of its own: memory is part of the cost.
    if one.grams is not None:
        samples = np.full(clients, records, dtype=np.int64)
        data = ClientData.from_grams(np.repeat(one.grams, clients, axis=0), samples)
    else:
        data = ClientData.from_factors([one.factors[0].copy() for _ in range(clients)])
    return Problem("scale", data), reading


def measured(sizes: list[tuple[int, int, int]]) -> pd.DataFrame:
    """Sizes, seconds to read one client and seconds of a round of SSI."""
    rows = []
    for clients, features, records in sizes:
        with tempfile.TemporaryDirectory() as folder:
            made, reading = problem(clients, features, records, Path(folder))
            wire = fp.Channel(record="estimates")
            run = iter(fp.stream(made, fp.SSI(COLUMNS), rounds=ROUNDS, channel=wire))
            next(run)
            next(run)  # the first round fetches memory
            began = time.process_time()
            for _ in run:
                pass
            seconds = (time.process_time() - began) / (ROUNDS - 1)
        rows.append((clients, features, records, reading, seconds))
    return pd.DataFrame(rows, columns=["clients", "features", "records", "reading", "seconds"])


def fitted(rows: pd.DataFrame) -> tuple[list[float], float]:
    """c, a, b of the law by relative least squares, and the largest ratio of measured to fitted."""
    clients, features, records, _, seconds = rows.to_numpy(dtype=float).T
    work = 2 * features * COLUMNS * np.minimum(features, 2 * records)
    terms = np.stack([np.ones(len(rows)), clients, clients * work], axis=1)
    found = nnls(terms / seconds[:, None], np.ones(len(rows)))[0]
    ratios = seconds / (terms @ found)
    return found.tolist(), float(np.maximum(ratios, 1 / ratios).max())


def main(long: bool = False) -> None:
    """Print the sizes, what they took, and the law."""
    rows = measured(SIZES + (LONG if long else []))
    print("clients features records  read one (s)  round (s)")
    for clients, features, records, reading, seconds in rows.itertuples(index=False):
        print(f"{clients:7d} {features:8d} {records:7d} {reading:13.4f} {seconds:10.5f}")
    (constant, each, slope), worst = fitted(rows)
    print(
        f"a round = {constant:.2g} s + clients × ({each:.2g} s + {slope:.2g} s × operations); "
        f"worst factor off: {worst:.1f}"
    )
