"""Personalised PCA: clients that resemble each other without being alike, and the model of them.

Each has a latent frame of its own, scattered around a common one (PerPCA, Ozkara, Huang and
Diggavi, section 5). Client i sees ``y = U_i x + e`` with ``x ~ N(0, I)``,
``e ~ N(0, noise_variance I)``; it minimises

    f_i(V, U_i) = n_i/2 (log|W_i| + tr(W_i^{-1} S_i)) + ||P_V(U_i)||_F^2 / (2 prior_variance),

where ``W_i = U_i U_i^T + noise_variance I`` and ``P_V`` projects on the tangent space at the common
frame V. On orthonormal frames everything reduces to tall products: no features-by-features matrix
is formed or inverted here.

The functions of the model accept a batch: ``frames`` is (..., features, components), ``products``
holds ``S_i U_i`` of the same shape, ``scale`` is `data_scale` with one value a client.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import require, require_at_least, require_choice, require_positive
from fedpca_core.linalg.stiefel import polar, symmetric_part, tangent, uniform_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.problem import Problem, check_components
from fedpca_core.streams import Streams

PRIORS = ("std", "literal", "calibrated")
GRADIENTS = ("exact", "printed")
READINGS = ("std", "literal")
#: What stays true of a problem when its clients keep some of their records from training.
_KEPT = ("name", "client_names", "feature_names", "own_mean", "own_scale", "looked", "public")


def data_scale(samples: IntArray, noise_variance: float, gradient: str = "exact") -> Array:
    """Weight c_i = n_i / (s (1 + s)) of a client's data, s the noise variance; (clients, 1, 1).

    ``gradient="printed"`` halves it: PerPCA prints n/2 in front of the data gradient. Corrected
    here to n (finite differences agree); the printed one acts like a prior twice as strong.
    """
    factor = 1.0 if gradient == "exact" else 0.5
    scale = factor * samples / (noise_variance * (1.0 + noise_variance))
    return np.asarray(scale, dtype=float)[:, None, None]


def prior_variance(spread: float, prior: str, features: int, components: int) -> float:
    """sigma_U^2 of the objective for a heterogeneity number, ``spread``, as the paper quotes it.

    ``prior``, {"std", "literal", "calibrated"}: "std" reads it as a standard deviation (spread^2),
        "literal" as a variance, "calibrated" takes the variance that frames drawn with this
        standard deviation really have.
    """
    if prior == "literal":
        return spread
    if prior == "calibrated":
        return effective_variance(features, components, spread)
    return spread**2


def scatter(generator: np.random.Generator, centre: Array, spread: float, clients: int) -> Array:
    """Clients' frames: ``centre`` and tangent noise of entry deviation ``spread``, retracted."""
    noise = generator.standard_normal((clients, *centre.shape))
    return polar(centre + spread * tangent(centre, noise))


@lru_cache(maxsize=256)
def effective_variance(features: int, components: int, spread: float) -> float:
    """Variance per coordinate of the tangent part of frames drawn with ``spread`` (Monte Carlo).

    The prior speaks of a Gaussian on the tangent space, but the retraction shrinks it:
    ``E ||P_V(U)||_F^2 / (d r - r (r + 1) / 2)``. Data-free, with a fixed seed, so everybody can
    compute it.
    """
    centre = np.eye(features, components)
    draws = max(8, 600_000 // (features * components**2))
    frames = scatter(Streams(0).generator("calibration"), centre, spread, draws)
    free = features * components - components * (components + 1) / 2
    return float(distance(frames, centre).mean()) / free


def distance(frames: Array, centre: Array) -> Array:
    """Squared distance ``||P_V(U)||_F^2 = r - ||sym(V^T U)||_F^2``, in [0, r]; shape (...)."""
    aligned = symmetric_part(centre.mT @ frames)
    return frames.shape[-1] - (aligned**2).sum(axis=(-2, -1))


def data_gradient(frames: Array, products: Array, scale: Array) -> Array:
    """Riemannian gradient of the data term, ``-c (I - U U^T) S U``."""
    return -scale * (products - frames @ (frames.mT @ products))


def frame_gradient(
    frames: Array, products: Array, centre: Array, scale: Array, variance: float
) -> Array:
    """Riemannian gradient of f_i in the client's frame."""
    pull = tangent(frames, tangent(centre, frames)) / variance
    return data_gradient(frames, products, scale) + pull


def centre_gradient(frames: Array, centre: Array, variance: float) -> Array:
    """Riemannian gradient of f_i in the common frame, ``-P_V(U sym(V^T U)) / variance``."""
    return -tangent(centre, frames @ symmetric_part(centre.mT @ frames)) / variance


def euclidean_data_gradient(
    frames: Array, products: Array, samples: IntArray, noise_variance: float
) -> Array:
    """Ambient gradient ``n (W^{-1} U - W^{-1} S W^{-1} U)`` at an orthonormal U."""
    s = noise_variance
    inner = products - frames @ (frames.mT @ products) / (1.0 + s)
    return np.asarray(samples, dtype=float)[:, None, None] * (frames - inner / s) / (1.0 + s)


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
    """Draw clients around a common frame, with as many ``samples`` each; nothing is centred.

    ``reading``, {"std", "literal"}: Whether the ``spread`` is the standard deviation of the entries
        or their variance. The paper writes variance, but its findings appear only for the standard
        deviation.

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
            0.5 * (grams + grams.swapaxes(-1, -2)), np.full(clients, samples, dtype=np.int64)
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
    """Clients that learn from ``samples`` of their own records, drawn at random.

    The others are fresh; ``noise_variance`` is what the methods are told.
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
    learnt = [block[:, :samples] for block in mixed]
    return PersonalProblem(
        **{name: getattr(problem, name) for name in _KEPT},
        client_data=ClientData.from_blocks(learnt),
        blocks=tuple(learnt),
        note=f"{problem.note} Each client learns from {samples} of its records; the others are "
        "fresh.",
        frames=problem.client_data.top_eigenvectors(components)[1],
        centre=None,
        noise_variance=noise_variance,
        fresh=ClientData.from_blocks([block[:, samples:] for block in mixed]),
    )
