"""Ridge around a prior: the reconstruction of choice when uploads carry noise.

Plain least squares divides noise by the small singular values of the stacked broadcasts and
explodes. Shrinking towards a public guess S_0 (FedPower, reconstruction from noisy uploads)
minimises ``||S Z - Y||_F^2 + lambda ||S - S_0||_F^2`` over symmetric S in closed form. The strength
lambda is the ratio of the noise variance to the variance expected of ``S - S_0``; when it is not
given it is chosen by the likelihood of the messages themselves.
"""

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.attacks.baselines import scaled_identity
from fedpca_core.attacks.linear import LinearReading, filtered
from fedpca_core.attacks.linear_system import Decomposition, check_prior, read
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import symmetric_part
from fedpca_core.protocol.transcript import Transcript

#: Strengths tried when none is given, in units of the largest squared singular value.
_GRID = np.logspace(-32.0, 8.0, 161)
#: Below this total variance, in directions, nothing is left open for the trace to decide.
_OPEN = 1e-6


def ridge(
    transcript: Transcript,
    client: int = 0,
    prior: Array | None = None,
    *,
    trace: float | None = None,
    strength: float | None = None,
) -> Array:
    """One client's S_i from noisy messages, shrunk towards a public guess, symmetric.

    ``transcript``, ``client``: As in `linear`.
    ``prior``, (features, features) float64: Public guess S_0. When left out, ``trace/features``
        times the identity, or zero if no trace is stated either.
    ``trace``: Stated tr S_i. Gives the default prior, and the estimate is conditioned on it: what
        it lacks goes to each direction in proportion to how little the messages say about it.
    ``strength``: lambda. When left out it maximises the likelihood of the messages under
        independent Gaussian entries of ``S - S_0`` and of the noise, from the transcript alone.
    """
    reading = shrunk(transcript.features, prior, trace, strength)
    return reading.of(read(transcript, client))[0]


def shrunk(
    features: int,
    prior: Array | None = None,
    trace: float | None = None,
    strength: float | None = None,
) -> LinearReading:
    """How `ridge` reads."""
    require(
        strength is None or strength >= 0,
        f"The strength of the ridge must be at least 0, not {strength}; "
        "leave it out to have it chosen.",
    )
    guess = check_prior(prior, features)
    if guess is None and trace is not None:
        guess = scaled_identity(features, trace)
    known = np.zeros((features, features)) if guess is None else symmetric_part(guess)
    return LinearReading(known, lambda found: _solve(found, known, trace, strength))


def _solve(
    found: Decomposition, prior: Array, trace: float | None, strength: float | None
) -> Array:
    if not len(found.sigma):
        return prior
    chosen = _likeliest(found, len(prior)) if strength is None else strength
    sigma = found.sigma
    seen_twice = found.inner * sigma
    weights = sigma[:, None] ** 2 + sigma**2
    # Pairs that were not probed at all keep the prior whatever the strength.
    floor = found.cutoff**2
    inner = np.where(weights > floor, (seen_twice + seen_twice.T) / (weights + 2.0 * chosen), 0.0)
    outer = np.where(sigma > found.cutoff, found.outer * (sigma / (sigma**2 + 2.0 * chosen)), 0.0)
    estimate = prior + filtered(found, inner, outer)
    if trace is None:
        return estimate
    # Conditioning on the trace: the correction is shared out like the posterior variance of the
    # diagonal, which is 1 on unprobed directions and lambda/(sigma^2 + lambda) on probed ones.
    seen = sigma > found.cutoff
    known = np.where(seen, sigma**2 / (sigma**2 + chosen), 0.0)
    share = np.eye(len(prior)) - (found.left * known) @ found.left.T
    total = float(np.trace(share))
    missing = trace - float(np.trace(estimate))
    return estimate + (missing / total) * share if total > _OPEN else estimate


def _likeliest(found: Decomposition, features: int) -> float:
    """Strength of greatest marginal likelihood.

    With entries of ``S - S_0`` of variance tau^2 on the diagonal and tau^2/2 off it (what the
    Frobenius penalty means for a symmetric matrix) and noise of variance nu^2, each independent
    combination of the answers is Gaussian with variance ``nu^2 (1 + weight/lambda)`` where
    ``lambda = nu^2/tau^2``; ``weight`` is sigma_a^2 on the diagonal, (sigma_a^2 + sigma_b^2)/2 off
    it and sigma_b^2/2 towards unprobed directions.
    """
    sigma, inner = found.sigma, found.inner
    upper = np.triu_indices(len(sigma), 1)
    pair_weight = (sigma[upper[0]] ** 2 + sigma[upper[1]] ** 2) / 2.0
    seen = inner * sigma
    along = (seen[upper] + seen.T[upper]) ** 2 / (2.0 * pair_weight)
    crossed = inner * sigma[:, None]
    across = (crossed[upper] - crossed.T[upper]) ** 2 / (2.0 * pair_weight)
    outside = features - len(sigma)
    squares = np.concatenate([np.diag(inner) ** 2, along, (found.outer**2).sum(axis=0)])
    weights = np.concatenate([sigma**2, pair_weight, sigma**2 / 2.0])
    counts = np.concatenate([np.ones(len(sigma) + len(along)), np.full(len(sigma), outside)])
    pure_noise = found.unexplained + float(across.sum())
    scale = float(sigma[0]) ** 2
    growth = 1.0 + weights / (scale * _GRID[:, None])
    left = (squares / growth).sum(axis=1) + pure_noise
    volume = (counts * np.log(growth)).sum(axis=1)
    misfit = found.equations * np.log(np.maximum(left, np.finfo(np.float64).tiny))
    return scale * float(_GRID[np.argmin(misfit + volume)])
