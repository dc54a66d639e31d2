"""Stochastic block model: FedPower's Model II, as stated and with several networks a machine.

Every machine holds undirected networks over the same nodes in two communities; a record is one row
of an adjacency matrix, normalised. An edge sits in two rows (and changes two norms), so privacy for
records is neither privacy for edges nor for nodes.
"""

from functools import lru_cache

import numpy as np

from fedpca_core.arrays import AnyArray, Array
from fedpca_core.errors import require
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.problem import Problem
from fedpca_core.streams import Streams

#: Chance of an edge within and between communities, before the machine's own factor.
WITHIN, BETWEEN = 0.25, 0.1
#: The first half of the machines and the second hold networks of different density.
DENSITY = (0.8, 0.6)


def block_model(
    nodes: int = 1000,
    clients: int = 20,
    networks: int = 1,
    seed: int = 0,
    *,
    normalised: bool = True,
) -> Problem:
    """FedPower's Model II; the defaults are the paper's.

    ``nodes``: d: features, and records of one network. The communities are the two halves (their
        sizes are not stated in the paper).
    ``clients``: m.
    ``networks``: Networks of each machine. The paper has 1; at 1 the noise that its theorem asks
        for drowns the communities, at 64 (of 1000 nodes) the published picture returns.
    ``normalised``: Whether rows get norm 1. Left as they are, they have a squared norm of their
        degree, and noise that is calibrated to norm 1 protects nothing.

    Raises InvalidInput: fewer than 4 nodes, no client, no network.
    """
    require(nodes >= 4, f"Two communities need at least 4 nodes, not {nodes}.")
    require(clients >= 1, f"There must be at least 1 client, not {clients}.")
    require(networks >= 1, f"Every client needs at least 1 network, not {networks}.")
    samples = np.full(clients, nodes * networks)
    plural = "network" if networks == 1 else "networks"
    return Problem(
        name="Model II, block model",
        client_data=ClientData.from_grams(
            _moments(nodes, clients, networks, seed, normalised), samples
        ),
        note=f"{networks} {plural} of {nodes} nodes a client; rows "
        f"{'normalised to norm 1' if normalised else 'as they are'}. "
        "A record is a row, and an edge sits in two of them: for an edge count as for a person "
        "with 2 records.",
        record_norm=1.0 if normalised else None,
    )


@lru_cache(maxsize=4)
def _moments(nodes: int, clients: int, networks: int, seed: int, normalised: bool) -> Array:
    """S_i of every client (read-only, shared by callers)."""
    streams = Streams(seed)
    community = np.arange(nodes) >= nodes // 2
    chance = np.where(community[:, None] == community[None, :], WITHIN, BETWEEN)
    grams = np.zeros((clients, nodes, nodes))
    for client in range(clients):
        generator = streams.generator("data", client + 1)
        density = DENSITY[0] if client < (clients + 1) // 2 else DENSITY[1]
        threshold = (density * chance).astype(np.float32)
        for _ in range(networks):
            rows = _adjacency(generator, threshold, normalised)
            grams[client] += rows.T @ rows
        grams[client] /= nodes * networks
    grams = 0.5 * (grams + grams.transpose(0, 2, 1))
    grams.flags.writeable = False
    return grams


def _adjacency(generator: np.random.Generator, threshold: AnyArray, normalised: bool) -> AnyArray:
    """Rows of one symmetric adjacency matrix with zero diagonal; normalised, of norm 1 (or 0)."""
    nodes = len(threshold)
    upper = np.triu(generator.random((nodes, nodes), dtype=np.float32) < threshold, k=1)
    rows = (upper | upper.T).astype(np.float32)
    if not normalised:
        return rows
    degree = rows.sum(axis=1, keepdims=True)
    # Single precision halves the time; its rounding (1e-7) is part of the data drawn.
    return rows / np.sqrt(np.maximum(degree, 1.0))
