"""Anomaly detection at the paper's size: learning, scoring, and the federated autoencoder.

Targets on two cores, data already loaded: 20 rounds of FedPG with 100 clients on 56,000 x 39
records in at most 1 s, and a million flows scored a second.
"""

from __future__ import annotations

import numpy as np

from bench.timing import measure, show
from fedpca_core.algorithms import FedPE, FedPG
from fedpca_core.anomaly import autoencoder
from fedpca_core.anomaly.scores import score
from fedpca_core.problems import from_blocks
from fedpca_core.protocol.simulate import simulate

CLIENTS, RECORDS, FEATURES, COMPONENTS, ROUNDS = 100, 56_000, 39, 10, 20


def main() -> None:
    """Print the timings."""
    generator = np.random.default_rng(0)
    mixing = generator.standard_normal((FEATURES, FEATURES)) * np.linspace(2, 0.2, FEATURES)
    records = generator.standard_normal((RECORDS, FEATURES)) @ mixing.T
    blocks = [part.T for part in np.split(records, CLIENTS)]
    problem = from_blocks(blocks, weights="equal")
    frame = problem.target(COMPONENTS)
    frames = np.repeat(frame[None], CLIENTS, axis=0)

    def learn(algorithm: FedPG | FedPE, participation: float) -> None:
        data = from_blocks(blocks, weights="equal")  # forming every S_i is part of the work
        simulate(data, algorithm, rounds=ROUNDS, participation=participation)

    def products() -> None:
        for _ in range(ROUNDS * 10):
            problem.client_data.apply(frames)

    show(
        f"{ROUNDS} rounds, {CLIENTS} clients, {RECORDS:,} x {FEATURES} records, k={COMPONENTS}",
        [
            ("FedPG, 10 % take part", measure(lambda: learn(FedPG(COMPONENTS), 0.1), repeat=5)),
            ("FedPG, all take part", measure(lambda: learn(FedPG(COMPONENTS), 1.0), repeat=5)),
            ("FedPE, 10 % take part", measure(lambda: learn(FedPE(COMPONENTS), 0.1), repeat=5)),
        ],
        reference=("200 products of all", measure(products, repeat=5)),
    )
    flows = np.tile(records, (18, 1))[:1_000_000]
    scoring = measure(lambda: score(flows, frame), repeat=5, warmup=1)
    show(
        "1,000,000 flows scored",
        [("distance to the subspace", scoring)],
        reference=("length alone", measure(lambda: score(flows, None), repeat=5, warmup=1)),
    )
    print(f"{len(flows) / scoring.median:,.0f} flows a second.\n")
    train = measure(lambda: list(autoencoder.training(problem, rounds=20)), repeat=3, warmup=1)
    show("20 rounds of the federated autoencoder, one epoch", [("FedAE", train)])


if __name__ == "__main__":
    main()
