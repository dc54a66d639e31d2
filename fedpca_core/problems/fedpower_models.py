"""FedPower's two models, kept as second moments only: a spiked covariance and a block model.

Model I: records are Gaussian with covariance ``U U^T + sigma^2 I`` and then bounded in norm. At the
paper's size they fill 1.6 GB; the matrices S_i fit into 1.6 MB, so records are drawn in chunks, in
the eigenbasis (where colouring is a scaling of columns and norms are the same), and forgotten.

Model II, as stated and with several networks a machine: every machine holds undirected networks
over the same nodes in two communities; a record is one row of an adjacency matrix, normalised. An
edge sits in two rows (and changes two norms), so privacy for records is neither privacy for edges
nor for nodes.
"""

from collections.abc import Sequence

import numpy as np

from fedpca_core.arrays import AnyArray, Array
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import orthonormalise
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.problem import Problem, check_components
from fedpca_core.problems.records import treat
from fedpca_core.remembered import Remembered
from fedpca_core.streams import Streams

#: sigma, standard deviation of the noise in every direction.
SPREAD = 0.6
#: Records that stay in cache while they are scaled, bounded and multiplied.
_CHUNK = 2_000
#: Chance of an edge within and between communities, before the machine's own factor.
WITHIN, BETWEEN = 0.25, 0.1
#: The first half of the machines and the second hold networks of different density.
DENSITY = (0.8, 0.6)
_spiked: Remembered[tuple[Array, float]] = Remembered(24)
_networks: Remembered[Array] = Remembered(4)


def spiked_covariance(
    features: int = 100,
    samples: int | Sequence[int] = 100_000,
    clients: int = 20,
    components: int = 4,
    treatment: str = "normalised",
    clip_norm: float = 1.0,
    seed: int = 0,
) -> Problem:
    """FedPower's Model I; the defaults are the paper's.

    ``features``, ``clients``, ``components``: d, m and k of the paper.
    ``treatment``, {"normalised", "clipped", "raw"}: What is done to every record before the second
        moments are formed.
    ``seed``: Of the stream ``"data"``: one U for all clients (not said in the paper), then each.
    """
    sizes = (samples,) * clients if isinstance(samples, int) else tuple(samples)
    check_components(components, features)
    require(
        len(sizes) == clients >= 1 and min(sizes) >= 1,
        f"There must be a positive number of samples for each of the {clients} clients, "
        f"not {list(sizes)}.",
    )

    def made() -> tuple[Array, float]:
        """S_i of every client (read-only, shared by callers) and the longest record's norm."""
        streams = Streams(seed)
        generator = streams.generator("data")
        directions = orthonormalise(generator.normal(0.5, 1.0, (features, components)))
        basis = np.linalg.qr(directions, mode="complete").Q
        scale = np.full(features, SPREAD)
        scale[:components] = np.sqrt(1.0 + SPREAD**2)
        grams = np.zeros((len(sizes), features, features))
        longest = 0.0
        for client, size in enumerate(sizes):
            generator = streams.generator("data", client + 1)
            gram = grams[client]
            for begin in range(0, size, _CHUNK):
                count = min(_CHUNK, size - begin)
                records = generator.standard_normal((count, features)).T * scale[:, None]
                records = treat(records, treatment, clip_norm)
                gram += records @ records.T
                if treatment == "raw":
                    longest = max(longest, float(np.linalg.norm(records, axis=0).max()))
            gram[:] = basis @ (gram / size) @ basis.T
            gram[:] = 0.5 * (gram + gram.T)
        grams.flags.writeable = False
        return grams, longest

    asked = features, sizes, components, treatment, float(clip_norm), seed
    moments, longest_norm = _spiked.get(asked, made)
    return Problem(
        name="Model I, spiked covariance",
        client_data=ClientData.from_grams(moments, np.array(sizes)),
        note=f"Gaussian records with {components} strong directions, sigma = {SPREAD:g}; "
        + ("left raw." if treatment == "raw" else f"{treatment} at norm {clip_norm:g}."),
        record_norm=longest_norm if treatment == "raw" else float(clip_norm),
    )


def block_model(
    nodes: int = 1000,
    clients: int = 20,
    networks: int = 1,
    seed: int = 0,
    *,
    normalised: bool = True,
    coin: bool = False,
) -> Problem:
    """FedPower's Model II; the defaults are the paper's.

    ``nodes``: d: features, and records of one network. The communities are the two halves (their
        sizes are not stated in the paper).
    ``networks``: Of each machine. The paper has 1; at 1 the noise that its theorem asks for drowns
        the communities, at 64 (of 1000 nodes) the published picture returns.
    ``normalised``: Whether rows get norm 1. Left as they are, they have a squared norm of their
        degree, and noise that is calibrated to norm 1 protects nothing.
    ``coin``: Whether a fair coin chooses the community of each node, for all machines alike.
    """
    require(nodes >= 4, f"Two communities need at least 4 nodes, not {nodes}.")
    require(clients >= 1, f"There must be at least 1 client, not {clients}.")
    require(networks >= 1, f"Every client needs at least 1 network, not {networks}.")
    samples = np.full(clients, nodes * networks)

    def made() -> Array:
        """S_i of every client (read-only, shared by callers)."""
        streams = Streams(seed)
        halves = np.arange(nodes) >= nodes // 2
        community = streams.generator("data").random(nodes) < 0.5 if coin else halves
        chance = np.where(community[:, None] == community[None, :], WITHIN, BETWEEN)
        grams = np.zeros((clients, nodes, nodes))
        for client in range(clients):
            generator = streams.generator("data", client + 1)
            density = DENSITY[0] if client < (clients + 1) // 2 else DENSITY[1]
            threshold = (density * chance).astype(np.float32)
            for _ in range(networks):
                drawn = generator.random((nodes, nodes), dtype=np.float32) < threshold
                upper = np.triu(drawn, k=1)
                rows: AnyArray = (upper | upper.T).astype(np.float32)
                if normalised:
                    # Single precision halves the time; its rounding (1e-7) is part of the data.
                    rows = rows / np.sqrt(np.maximum(rows.sum(axis=1, keepdims=True), 1.0))
                grams[client] += rows.T @ rows
            grams[client] /= nodes * networks
        grams = 0.5 * (grams + grams.transpose(0, 2, 1))
        grams.flags.writeable = False
        return grams

    moments = _networks.get((nodes, clients, networks, seed, normalised, coin), made)
    plural = "network" if networks == 1 else "networks"
    return Problem(
        name="Model II, block model",
        client_data=ClientData.from_grams(moments, samples),
        note=f"{networks} {plural} of {nodes} nodes a client; rows "
        f"{'normalised to norm 1' if normalised else 'as they are'}. "
        "A record is a row, and an edge sits in two of them: for an edge count as for a person "
        "with 2 records.",
        record_norm=1.0 if normalised else None,
    )
