"""A client's release on a grid: whole numbers from the record to the noise, and their accounting.

Everything is exact, so the sensitivity and the noise are those of the theory: records are clipped
and put on a grid, their second moment is a matrix of whole numbers, and each entry on and above the
diagonal gets a discrete Gaussian, of half the variance above it (`symmetric_noise` on the grid).
A Gaussian of floating-point numbers is none in its last digits, which can give a record away
(Mironov, "On significance of the least significant bits for differential privacy", 2012). Here
nothing is rounded: Algorithms 1 to 3 of Canonne, Kamath and Steinke, "The discrete Gaussian for
differential privacy" (2020), from uniform whole numbers alone.

Which bound is used: with rounded Gaussian noise, post-processing of Gaussian noise, the release is
exactly mu-GDP and composes as every release here. The discrete Gaussian is within a total variation
tau of that (`total_variation`, summed over entries and releases), so what is (epsilon, delta) with
the one is (epsilon, delta + (1 + e^epsilon) tau) with the other; a thousandth of delta is kept for
it. At 2^80, the variance in use, tau is about 1e-21.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.gaussian_privacy import compose, epsilon_of, mu_of
from fedpca_core.problems.records import LONGEST, WholeMoments

#: A whole number below a bound, all alike: `secrets.randbelow` in a deployment.
Below = Callable[[int], int]
#: Share of delta that is kept for the difference between discrete and rounded Gaussian noise.
SLACK = 1e-3


def discrete_gaussian(variance: int, below: Below) -> int:
    """One draw with ``P(k) ~ exp(-k^2/(2 variance))``."""
    scale = math.isqrt(variance) + 1
    while True:
        drawn = laplace(scale, below)
        # exp(-(|k| - v/t)^2/(2 v)) turns a Laplace density into a Gaussian one.
        off = (abs(drawn) * scale - variance) ** 2
        if decayed(off, 2 * variance * scale**2, below):
            return drawn


def laplace(scale: int, below: Below) -> int:
    """One draw with ``P(k) ~ exp(-|k|/scale)``."""
    while True:
        rest = below(scale)
        if not decayed(rest, scale, below):
            continue
        whole = 0
        while decayed(1, 1, below):
            whole += 1
        size = rest + scale * whole
        if below(2) == 0:
            return size
        if size:  # zero has one sign
            return -size


def decayed(above: int, beneath: int, below: Below) -> bool:
    """True with probability exp(-above/beneath)."""
    while above > beneath:
        if not decayed(1, 1, below):
            return False
        above -= beneath
    count = 1
    while below(count * beneath) < above:
        count += 1
    return count % 2 == 1


def total_variation(coordinates: int, variance: int) -> float:
    """Bound on the total variation between discrete Gaussians and rounded ones, at most 1.

    In one coordinate the rounded one has ``Z E exp(-(2 k u + u^2)/(2 v))`` times the probability of
    the discrete one at k, with u uniform in [-1/2, 1/2] and a constant Z above 1 (Poisson's sum).
    By Jensen's inequality that is at least ``1 - 1/(24 v)``, and nothing else counts.
    """
    return min(1.0, coordinates / (24.0 * variance))


def variance_above(mu: float, sharers: int = 1) -> int:
    """Variance above the diagonal, in squared units: half of ``(sensitivity/mu)^2``, rounded up.

    One record replaced changes the sum of ``x x^T`` by ``sqrt(2) LONGEST^2`` at most. Of
    ``sharers`` clients that add their noise up, each has that share of the variance; the sum of
    discrete Gaussians is one but for a factor of ``1 + 10 (sharers - 1) exp(-pi^2 variance)``,
    which no number here can tell from 1 (Kairouz, Liu and Steinke, "The distributed discrete
    Gaussian mechanism for federated learning with secure aggregation", 2021).
    """
    return math.ceil(LONGEST**4 / (sharers * Fraction(mu) ** 2))


def released(moments: WholeMoments, mu: float, below: Below, sharers: int = 1) -> Array:
    """M_i = S_i + E_i of one client, (features, features) float64; some 20 us an entry.

    ``moments``: Of clipped records. ``mu``: What one record's replacement may cost, in Gaussian
    differential privacy. ``sharers``: Clients whose noise must add up for that; only the sum of
    their matrices may be seen. ``below``: Where the randomness comes from.
    """
    variance, features = variance_above(mu, sharers), len(moments.total)
    noisy = np.zeros((features, features))
    for row in range(features):
        for column in range(row, features):
            spread = variance if column > row else 2 * variance
            drawn = int(moments.total[row, column]) + discrete_gaussian(spread, below)
            noisy[row, column] = noisy[column, row] = float(drawn)
    return np.asarray(noisy * (moments.unit**2 / moments.samples))


def release_cost(epsilon: float, delta: float, features: int) -> tuple[float, float]:
    """What a release within a budget costs: its mu, and its tau."""
    mu = float(mu_of(epsilon, delta * (1.0 - SLACK)))
    apart = total_variation(features * (features + 1) // 2, variance_above(mu))
    require(
        spent([(mu, apart)], delta) < math.inf,
        f"At ε = {epsilon:g} and δ = {delta:g} δ does not cover that noise on a grid is not quite "
        "Gaussian; choose a smaller ε.",
    )
    return mu, apart


def spent(costs: Sequence[tuple[float, float]], delta: float) -> float:
    """Epsilon of all releases (`release_cost`); infinite where delta does not cover their tau."""
    if not costs:
        return 0.0
    total = compose([mu for mu, _ in costs])
    if not math.isfinite(total):
        return math.inf
    epsilon = float(epsilon_of(total, delta * (1.0 - SLACK)))
    covered = math.exp(math.log(SLACK * delta) - float(np.logaddexp(0.0, epsilon)))
    return epsilon if sum(apart for _, apart in costs) <= covered else math.inf
