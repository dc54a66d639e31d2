"""Row membership: is one record in a client's data?

The server compares how well two candidates for a client's matrix, with and without the record,
explain the noisy answers. With Gaussian noise the log-likelihood ratio is the best test there is
(Neyman and Pearson), so it bounds every other attack of this kind (FedPower, attack surface).
"""

import numpy as np
from scipy.special import ndtr

from fedpca_core.arrays import Array
from fedpca_core.attacks.linear import check_prior, check_took_part
from fedpca_core.errors import InvalidInput, require
from fedpca_core.protocol.transcript import Transcript


def membership_score(
    transcript: Transcript, first: Array, second: Array, noise: float, client: int = 0
) -> tuple[float, float]:
    """Log-likelihood ratio of two candidates for S_i, and how far apart the two hypotheses lie.

    A positive ratio speaks for the first. It is N(+mu^2/2, mu^2) under the first candidate and
    N(-mu^2/2, mu^2) under the second, with ``mu = sqrt(sum_j ||(A - A') Z_j||_F^2) / nu``; itself
    it is ``sum_j <Y_j - (A + A')/2 Z_j, (A - A') Z_j> / nu^2`` over the pairs (Z_j, Y_j).

    ``first``, ``second``, (features, features): For example with and without one record.
    ``noise``: Standard deviation nu of the Gaussian noise on every uploaded entry (public).
    """
    _check_noise(noise)
    for candidate in (first, second):
        check_prior(candidate, transcript.features)
    if transcript.exchanges:
        check_took_part(transcript, client)
    middle, difference = 0.5 * (first + second), first - second
    total = squared = 0.0
    for probe, answer in transcript.pairs(client):
        apart = difference @ probe
        total += float(np.vdot(answer - middle @ probe, apart))
        squared += float(np.linalg.norm(apart)) ** 2
    return total / noise**2, float(np.sqrt(squared) / noise)


def matrix_scores(released: Array, first: Array, second: Array, noise: Array) -> Array:
    """Log-likelihood ratio of two candidates for S_i from each client's ``S_i + E_i``, (clients,).

    E_i has variance nu_i^2 on the diagonal and nu_i^2/2 off it (``noise`` is nu), so every entry of
    the whole matrix counts alike: ``<M_i - (A + A')/2, A - A'> / nu^2``, N(+-mu^2/2, mu^2) with
    ``mu = ||A - A'||_F / nu``.

    ``released``, (clients, features, features): What clients hand over in the one-round covariance;
    every other method's messages are made from the same matrices and cannot say more.
    """
    _check_noise(float(np.min(noise)))
    off = released - 0.5 * (first + second)
    return np.asarray(np.tensordot(off, first - second, axes=2) / np.asarray(noise) ** 2)


def permitted_roc(epsilon: float, delta: float, false_alarms: Array) -> Array:
    """Most detections that (epsilon, delta)-differential privacy permits, whatever the noise.

    Source: Kairouz, Oh and Viswanath, 2015.
    """
    alarms = np.asarray(false_alarms, dtype=float)
    upper = 1.0 - np.exp(-epsilon) * (1.0 - delta - alarms)
    return np.asarray(np.minimum(np.minimum(delta + np.exp(epsilon) * alarms, upper), 1.0))


def permitted_auc(epsilon: float, delta: float) -> float:
    """Area under `permitted_roc`: ``1 - (1 - delta)^2 / (1 + e^epsilon)``."""
    return float(1.0 - (1.0 - delta) ** 2 / (1.0 + np.exp(epsilon)))


def theoretical_auc(separation: float) -> float:
    """Area under the curve of the best test, ``Phi(mu / sqrt(2))``."""
    return float(ndtr(separation / np.sqrt(2.0)))


def permitted_ranking(separation: float) -> float:
    """Most pairs of a member and a stranger that any attack on one release can rank right.

    Both records are drawn alike and one of them is in the data. Were the other in it, the same
    attack would rank the pair right as often, so an attack that is right with chance q has
    detections q at false alarms 1 - q; a release of ``mu``-Gaussian differential privacy (one
    record replaced by another) permits ``q <= Phi(mu / 2)``.
    """
    return float(ndtr(separation / 2.0))


def empirical_auc(first_scores: Array, second_scores: Array) -> float:
    """Share of pairs in which a run of the first candidate scores higher; ties count half."""
    first = np.asarray(first_scores, dtype=float)
    second = np.sort(np.asarray(second_scores, dtype=float))
    require(
        len(first) > 0 and len(second) > 0,
        f"The area under the curve needs runs of both candidates, not {len(first)} and "
        f"{len(second)}.",
    )
    below = np.searchsorted(second, first, side="left")
    up_to = np.searchsorted(second, first, side="right")
    return float((below + up_to).mean() / (2.0 * len(second)))


def _check_noise(noise: float) -> None:
    if not (np.isfinite(noise) and noise > 0):
        raise InvalidInput(
            f"Membership is a question about noisy answers, and the noise is {noise}; give its "
            "positive standard deviation (without noise one look at the answers decides)."
        )
