"""Clients that resemble each other without being alike: the generator of personalised PCA.

Frames U_i scatter around a common V; client i records ``y = U_i x + e`` (PerPCA, section 5).
"""

from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require, require_at_least, require_choice, require_positive
from fedpca_core.linalg.stiefel import uniform_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.personal_model import scatter
from fedpca_core.problems.problem import Problem, check_components
from fedpca_core.streams import Streams

READINGS = ("std", "literal")


@dataclass(frozen=True, eq=False, kw_only=True)
class PersonalProblem(Problem):
    """A problem whose clients each have a frame of their own."""

    #: (clients, features, components) float64: The true U_i, or the leading directions of all
    #: records of a client (simulation only).
    frames: Array
    #: (features, components) float64, or None: The frame V they scatter around (simulation only),
    #: where they were drawn.
    centre: Array | None
    #: Variance of the measurement noise; the data have variance 1.
    noise_variance: float
    #: Records that no method sees, where models cannot be judged in closed form.
    fresh: ClientData | None = None


def personal(
    *,
    features: int = 30,
    components: int = 10,
    clients: int = 50,
    samples: int = 10,
    spread: float = 0.2,
    reading: str = "std",
    noise_variance: float = 0.5,
    seed: int = 0,
) -> PersonalProblem:
    """Draw clients around a common frame.

    ``samples``: Records of every client.
    ``spread``: Heterogeneity as the paper quotes it.
    ``reading``, {"std", "literal"}: Whether that number is the standard deviation of the entries or
        their variance. The paper writes variance, but its findings appear only for the standard
        deviation.

    Returns PersonalProblem: second moments are not centred; every client counts the same.

    Frames, data and noise draw from separate streams, so turning ``spread`` moves the same clients
    apart and turning ``samples`` leaves their frames alone.
    """
    check_components(components, features)
    require(clients >= 1, f"There must be at least 1 client, not {clients}.")
    require(samples >= 1, f"Every client needs at least 1 sample, not {samples}.")
    require_at_least("The spread of the clients", spread, 0, "0 makes them all alike")
    require_choice("The reading of the spread", reading, READINGS)
    require_positive("The noise variance", noise_variance, 0.5)
    streams = Streams(seed)
    deviation = float(np.sqrt(spread)) if reading == "literal" else spread
    centre = uniform_frame(streams.generator("data", 0), features, components)
    frames = scatter(streams.generator("data", 1), centre, deviation, clients)
    signal = streams.generator("data", 2).standard_normal((clients, components, samples))
    noise = streams.generator("data", 3).standard_normal((clients, features, samples))
    records = frames @ signal + np.sqrt(noise_variance) * noise
    # The matrices S_i are small here, and a batched product with them beats a loop over factors.
    grams = records @ records.swapaxes(-1, -2) / samples
    return PersonalProblem(
        name=f"{clients} clients around a common frame, spread {spread:g}",
        client_data=ClientData.from_grams(
            0.5 * (grams + grams.swapaxes(-1, -2)),
            np.full(clients, samples, dtype=np.int64),
        ),
        blocks=tuple(records),
        note="Synthetic: each client's basis is a random step away from a common one; "
        "nothing is centred.",
        frames=frames,
        centre=centre,
        noise_variance=noise_variance,
    )


def personal_records(
    problem: Problem, *, components: int, samples: int, noise_variance: float, seed: int = 0
) -> PersonalProblem:
    """Clients with records of their own, who learn from a few of them.

    ``problem``: With its blocks.
    ``samples``: Records from which each client learns, drawn at random; the others are fresh.
    ``noise_variance``: What the methods are told.

    Returns PersonalProblem: every client counts the same.

    Raises InvalidInput: too many components, or a client without a fresh record.
    """
    check_components(components, problem.features)
    require(samples >= 1, f"Every client needs at least 1 sample, not {samples}.")
    assert problem.blocks is not None  # a table keeps them
    held = [block.shape[1] for block in problem.blocks]
    least = int(np.argmin(held))
    who = problem.client_names[least] if problem.client_names else str(least)
    require(
        held[least] > samples,
        f"Client {who} has {held[least]} records, so none would be left to judge a model that "
        f"learns from {samples}; choose fewer samples per client, or another split.",
    )
    generator = Streams(seed).generator("data", 4)
    mixed = [generator.permutation(block, axis=1) for block in problem.blocks]
    return PersonalProblem(
        name=problem.name,
        client_data=ClientData.from_blocks([block[:, :samples] for block in mixed]),
        blocks=tuple(block[:, :samples] for block in mixed),
        client_names=problem.client_names,
        feature_names=problem.feature_names,
        note=f"{problem.note} Each client learns from {samples} of its records; the others are "
        "fresh.",
        own_mean=problem.own_mean,
        own_scale=problem.own_scale,
        looked=problem.looked,
        public=problem.public,
        frames=problem.client_data.top_eigenvectors(components)[1],
        centre=None,
        noise_variance=noise_variance,
        fresh=ClientData.from_blocks([block[:, samples:] for block in mixed]),
    )
