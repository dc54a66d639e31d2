"""Clients that differ, for attacks: where guessing the average is not good enough."""

from __future__ import annotations

import numpy as np

from fedpca_core.linalg.stiefel import uniform_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.problem import Problem
from fedpca_core.problems.records import normalise
from fedpca_core.streams import Streams


def distinct_clients(
    features: int = 40, samples: int = 500, clients: int = 20, components: int = 4, seed: int = 0
) -> Problem:
    """Clients that differ: common strong directions and private ones, records of norm 1.

    In Model I every S_i is within a few per cent of S, so a small reconstruction error proves
    nothing; here the public guess S misses a client by about a half.
    """
    streams = Streams(seed)
    common = uniform_frame(streams.generator("data"), features, components)
    grams = np.zeros((clients, features, features))
    for client in range(clients):
        generator = streams.generator("data", client + 1)
        own = uniform_frame(generator, features, components)
        records = (
            common @ generator.standard_normal((components, samples))
            + own @ generator.standard_normal((components, samples))
            + 0.3 * generator.standard_normal((features, samples))
        )
        records = normalise(records)
        grams[client] = records @ records.T / samples
    return Problem(
        name="distinct clients",
        client_data=ClientData.from_grams(grams, np.full(clients, samples)),
        note=f"{components} common and {components} private directions a client; "
        "records normalised at norm 1.",
        record_norm=1.0,
    )
