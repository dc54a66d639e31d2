"""The discrete Gaussian: whole numbers with ``P(k) ~ exp(-k^2/(2 v))``, drawn exactly.

A Gaussian of floating-point numbers is none in its last digits, which can give a record away
(Mironov, "On significance of the least significant bits for differential privacy", 2012). Here
nothing is rounded: Algorithms 1 to 3 of Canonne, Kamath and Steinke, "The discrete Gaussian for
differential privacy" (2020), from uniform whole numbers alone.
"""

import math
from collections.abc import Callable

#: A whole number below a bound, all alike: `secrets.randbelow` in a deployment.
Below = Callable[[int], int]


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
