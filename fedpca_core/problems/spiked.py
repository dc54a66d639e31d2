"""Spiked covariance: FedPower's Model I, kept as second moments only.

Records are Gaussian with covariance ``U U^T + sigma^2 I`` and then bounded in norm. At the paper's
size the records fill 1.6 GB; the matrices S_i fit into 1.6 MB, so records are drawn in chunks, in
the eigenbasis (where colouring is a scaling of columns and norms are the same), and forgotten.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import orthonormalise
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.problem import Problem, check_components
from fedpca_core.problems.records import treat
from fedpca_core.streams import Streams

#: sigma, standard deviation of the noise in every direction.
SPREAD = 0.6
#: Records that stay in cache while they are scaled, bounded and multiplied.
_CHUNK = 2_000


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
    ``samples``: Records of each client.
    ``treatment``, {"normalised", "clipped", "raw"}: What is done to every record before the second
        moments are formed.
    ``clip_norm``: The norm to normalise to or clip at.
    ``seed``: Stream ``"data"``: one U for all clients (not said in the paper), then client by
        client.

    Raises InvalidInput: sizes that do not fit.
    """
    sizes = (samples,) * clients if isinstance(samples, int) else tuple(samples)
    check_components(components, features)
    require(
        len(sizes) == clients >= 1 and min(sizes) >= 1,
        f"There must be a positive number of samples for each of the {clients} clients, "
        f"not {list(sizes)}.",
    )
    grams, longest = _moments(features, sizes, components, treatment, float(clip_norm), seed)
    bound = longest if treatment == "raw" else float(clip_norm)
    return Problem(
        name="Model I, spiked covariance",
        client_data=ClientData.from_grams(grams, np.array(sizes)),
        note=f"Gaussian records with {components} strong directions, sigma = {SPREAD:g}; "
        + ("left raw." if treatment == "raw" else f"{treatment} at norm {clip_norm:g}."),
        record_norm=bound,
    )


@lru_cache(maxsize=24)
def _moments(
    features: int,
    sizes: tuple[int, ...],
    components: int,
    treatment: str,
    clip_norm: float,
    seed: int,
) -> tuple[Array, float]:
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
