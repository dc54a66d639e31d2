"""What people would pick instead: error and seconds at equal epsilon on the same clipped data.

``make peers`` builds an environment for them and runs ``python -m bench peers --python
.venv-peers/bin/python``. Peers run one after the other, each in a process of its own; of one
that is not installed, or does not end in time, a line says so.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fedpca_core as fp
from bench.peers import PEERS

#: Records, features, components, sites of the federation, seeds.
RECORDS, FEATURES, COMPONENTS, SITES, SEEDS = 10_000, 30, 5, 10, 3
EPSILONS, DELTA, NORM = (1.0, 10.0), 1e-6, 1.0
#: Peers that add no noise.
PLAIN = ("scikit-learn", "scikit-learn, incremental")


def records(seed: int) -> np.ndarray:
    """Five strong directions among thirty, (records, features), no record longer than `NORM`."""
    draw = np.random.default_rng(seed)
    basis = np.linalg.qr(draw.standard_normal((FEATURES, COMPONENTS)))[0]
    rows = draw.standard_normal((RECORDS, COMPONENTS)) @ (np.array([5, 4, 3.5, 3, 2.5]) * basis).T
    rows += 0.5 * draw.standard_normal((RECORDS, FEATURES))
    return np.asarray(rows * (NORM / np.linalg.norm(rows, axis=1).max()))


def sine(found: np.ndarray, rows: np.ndarray) -> float:
    """Of the largest angle to the leading eigenvectors of the centred records."""
    centred = rows - rows.mean(axis=0)
    truth = np.linalg.eigh(centred.T @ centred)[1][:, -COMPONENTS:].T
    basis = np.linalg.qr(found.T)[0].T
    return float(np.linalg.norm(truth - truth @ basis.T @ basis, 2))


def ours(rows: np.ndarray, epsilon: float, seed: int) -> Iterator[tuple[str, np.ndarray, float]]:
    """The federation of ten sites, each with its noise in full, and with noise that is shared."""
    site = np.arange(len(rows)) % SITES
    for name, shared in (("ours, every site its own noise", False), ("ours, secure sums", True)):
        began = time.perf_counter()
        model = fp.FederatedPCA(
            COMPONENTS,
            rounds=20,
            epsilon=epsilon,
            delta=DELTA,
            clip=NORM,
            secure_aggregation=shared,
            random_state=seed,
        ).fit(rows, groups=site)
        yield name, model.components_, time.perf_counter() - began


def peer(python: str, name: str, rows: np.ndarray, epsilon: float, seed: int, limit: float) -> Any:
    """Components and seconds of a peer, or a sentence why there are none."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "data.npz"
        np.savez(file, rows=rows, norm=NORM, epsilon=epsilon, components=COMPONENTS, seed=seed)
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
    """One row for each method, epsilon and seed."""
    gave_up: set[str] = set()
    for seed in range(SEEDS):
        rows = records(seed)
        for epsilon in EPSILONS:
            for name, found, seconds in ours(rows, epsilon, seed):
                row = {"method": name, "epsilon": epsilon, "seed": seed}
                yield {**row, "sine": sine(found, rows), "seconds": seconds, "said": ""}
        for name in PEERS:
            for epsilon in (float("inf"),) if name in PLAIN else EPSILONS:
                row = {"method": name, "epsilon": epsilon, "seed": seed}
                nothing = {"sine": np.nan, "seconds": np.nan}
                if name in gave_up:
                    continue
                got = peer(python, name, rows, epsilon, seed, limit)
                if isinstance(got, str):
                    gave_up.add(name)
                    yield {**row, **nothing, "said": got}
                    continue
                found = np.array(got["components"])
                title = f"{name} {got['version']}"
                yield {
                    **row,
                    "method": title,
                    "sine": sine(found, rows),
                    "seconds": got["seconds"],
                    "said": "",
                }


def main(arguments: Sequence[str] = ()) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench peers")
    parser.add_argument("--python", default=sys.executable, help="of an environment with the peers")
    parser.add_argument("--seconds", type=float, default=300.0, help="after which a peer is ended")
    chosen = parser.parse_args(list(arguments))
    table = pd.DataFrame(rows_of(chosen.python, chosen.seconds))
    numbers = table[table["said"] == ""].groupby(["epsilon", "method"], sort=False)
    print(numbers[["sine", "seconds"]].agg(["min", "median", "max"]).round(4).to_string())
    for row in table[table["said"] != ""].to_dict("records"):
        print(f"{row['method']}, epsilon {row['epsilon']:g}: {row['said']}")
