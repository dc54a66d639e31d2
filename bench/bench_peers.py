"""What people would pick instead: error and seconds at equal epsilon on the same clipped data.

``make peers`` builds an environment for them and runs ``python -m bench peers --python
.venv-peers/bin/python``. Peers run one after the other, each in a process of its own; of one
that is not installed, or does not end in time, a line says so.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fedpca_core as fp
from bench.peers import PEERS

#: Records, sites of the federation, seeds; features and components.
RECORDS, SITES, SEEDS = 10_000, 10, 3
SIZES = ((8, 2), (30, 5))
#: Deviations along the leading directions; 0.5 along all.
STRONG = (5.0, 4.0, 3.5, 3.0, 2.5)
EPSILONS, DELTA, NORM = (1.0, 10.0), 1e-6, 1.0
#: Peers that add no noise.
PLAIN = ("scikit-learn", "scikit-learn, incremental")


def records(features: int, components: int, seed: int) -> np.ndarray:
    """Few strong directions among many, (records, features), no record longer than `NORM`."""
    draw = np.random.default_rng(seed)
    basis = np.linalg.qr(draw.standard_normal((features, components)))[0]
    rows = draw.standard_normal((RECORDS, components)) @ (np.array(STRONG[:components]) * basis).T
    rows += 0.5 * draw.standard_normal((RECORDS, features))
    return np.asarray(rows * (NORM / np.linalg.norm(rows, axis=1).max()))


def sine(found: np.ndarray, rows: np.ndarray) -> float:
    """Of the largest angle to the leading eigenvectors of the centred records."""
    centred = rows - rows.mean(axis=0)
    truth = np.linalg.eigh(centred.T @ centred)[1][:, -len(found) :].T
    basis = np.linalg.qr(found.T)[0].T
    return float(np.linalg.norm(truth - truth @ basis.T @ basis, 2))


def ours(
    rows: np.ndarray, components: int, epsilon: float, seed: int
) -> Iterator[tuple[str, np.ndarray, float]]:
    """The federation of ten sites, each with its noise in full, and with noise that is shared."""
    site = np.arange(len(rows)) % SITES
    for name, shared in (("ours, every site its own noise", False), ("ours, secure sums", True)):
        began = time.perf_counter()
        model = fp.FederatedPCA(
            components,
            rounds=20,
            epsilon=epsilon,
            delta=DELTA,
            clip=NORM,
            secure_aggregation=shared,
            random_state=seed,
        ).fit(rows, groups=site)
        yield name, model.components_, time.perf_counter() - began


def peer(python: str, name: str, limit: float, **given: Any) -> Any:
    """Components and seconds of a peer, or a sentence why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, norm=NORM, **given)
        script = str(Path(__file__).with_name("peers.py"))
        try:
            done = subprocess.run(
                [python, script, name, str(file)],
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not ended after {limit:g} s"
    if done.returncode:
        return (done.stderr.strip().splitlines() or ["no answer"])[-1][:160]
    return json.loads(done.stdout.splitlines()[-1])


def rows_of(python: str, limit: float) -> Iterator[dict[str, Any]]:
    """One row for each size, method, epsilon and seed."""
    gave_up: set[tuple[Any, ...]] = set()
    for (features, components), seed in product(SIZES, range(SEEDS)):
        rows = records(features, components, seed)
        for epsilon in EPSILONS:
            row = {"features": features, "components": components, "epsilon": epsilon}
            for name, found, seconds in ours(rows, components, epsilon, seed):
                yield {**row, "method": name, "sine": sine(found, rows), "seconds": seconds}
            for name in PEERS:
                if (features, epsilon, name) in gave_up:
                    continue
                given = {"rows": rows, "epsilon": epsilon, "components": components, "seed": seed}
                got = peer(python, name, limit, **given)
                if isinstance(got, str):
                    gave_up.add((features, epsilon, name))
                    yield {**row, "method": name, "said": got}
                    continue
                title = f"{name} {got['version']}" + (", no ε" if name in PLAIN else "")
                error = sine(np.array(got["components"]), rows)
                yield {**row, "method": title, "sine": error, "seconds": got["seconds"]}


def main(python: str = sys.executable, seconds: float = 120.0) -> None:
    """Print the table; ``python`` is that of the peers, each of which may take ``seconds``."""
    table = pd.DataFrame(rows_of(python, seconds))
    table["said"] = table["said"].fillna("") if "said" in table else ""
    by = ["features", "components", "epsilon", "method"]
    numbers = table[table["said"] == ""].groupby(by, sort=False)
    print(numbers[["sine", "seconds"]].agg(["min", "median", "max"]).round(4).to_string())
    for row in table[table["said"] != ""].to_dict("records"):
        where = f"{row['features']} features, ε = {row['epsilon']:g}"
        print(f"{row['method']}, {where}: {row['said']}")
