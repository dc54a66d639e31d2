"""Gaussian differential privacy in closed form: mu, epsilon and delta, each from the other two.

A release of a quantity of sensitivity Delta with Gaussian noise of standard deviation nu per entry
is exactly mu-GDP with ``mu = Delta/nu``, and adaptive releases compose to ``sqrt(sum mu_j^2)``
(Dong, Roth and Su, Gaussian differential privacy, 2022, Corollaries 2.13 and 3.3). All functions
accept arrays and need no random numbers, tables or grids, so a read-out costs far below 1 ms.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, ndtr, ndtri

from fedpca_core.arrays import Array
from fedpca_core.errors import require

_ITERATIONS = 60
_TOLERANCE = 1e-12


def compose(mu: ArrayLike) -> float:
    """GDP parameter of several adaptive releases, ``sqrt(sum mu_j^2)``."""
    return float(np.linalg.norm(np.atleast_1d(np.asarray(mu, dtype=float))))


def gaussian_roc(mu: float, false_alarms: ArrayLike) -> Array:
    """Most detections at these rates of false alarms under mu-GDP, ``Phi(Phi^-1(a) + mu)``.

    What the Gaussian noise of this laboratory permits; (epsilon, delta) alone permits more.
    """
    return np.asarray(ndtr(ndtri(np.asarray(false_alarms, dtype=float)) + mu), dtype=float)


def log_delta(epsilon: ArrayLike, mu: ArrayLike) -> Array:
    """Natural logarithm of the smallest delta that goes with epsilon and mu.

    ``delta = Phi(-eps/mu + mu/2) - exp(eps) Phi(-eps/mu - mu/2)``; taken in logarithms, because
    the two terms nearly cancel and the exponential overflows at large epsilon.
    """
    eps, mu = np.asarray(epsilon, dtype=float), np.asarray(mu, dtype=float)
    first = log_ndtr(-eps / mu + mu / 2)
    # At the ends of the range the difference of the logarithms rounds to 0 from either side.
    ratio = np.minimum(eps + log_ndtr(-eps / mu - mu / 2) - first, -np.finfo(float).tiny)
    return first + np.log(-np.expm1(ratio))


def mu_of(epsilon: ArrayLike, delta: ArrayLike) -> Array:
    """Largest mu such that every mu-GDP mechanism is (epsilon, delta)-DP."""
    eps, dlt = np.broadcast_arrays(np.asarray(epsilon, float), np.asarray(delta, float))
    check_epsilon(eps)
    check_delta(dlt)
    goal = np.log(dlt)

    def step(log_mu: Array) -> tuple[Array, Array]:
        mu = np.exp(log_mu)
        value = log_delta(eps, mu)
        # d delta/d mu = phi(eps/mu - mu/2), the "vega" of the same formula in option pricing.
        density = -0.5 * (eps / mu - mu / 2) ** 2 - 0.5 * np.log(2 * np.pi)
        return value - goal, np.exp(density - value) * mu

    # In natural logarithms: from 1e-9 times epsilon to far beyond any mu of use.
    low = np.log(np.minimum(eps, 1.0)) - 21.0
    high = np.full(eps.shape, np.log(200.0)) + np.log1p(np.sqrt(eps))
    # The zCDP bound, mu^2/2 + mu sqrt(2 log 1/delta) = epsilon, starts close by.
    start = np.log(np.sqrt(-2 * goal + 2 * eps) - np.sqrt(-2 * goal))
    return np.asarray(np.exp(_root(step, low, high, start)), dtype=float)


def epsilon_of(mu: ArrayLike, delta: ArrayLike) -> Array:
    """Smallest epsilon such that a mu-GDP mechanism is (epsilon, delta)-DP.

    Infinite where mu is infinite (no noise), 0 where delta alone already covers the mechanism.
    """
    mus, dlt = np.broadcast_arrays(np.asarray(mu, float), np.asarray(delta, float))
    check_delta(dlt)
    require(bool((mus >= 0).all()), f"The GDP parameter mu must be at least 0, not {mus.min()}.")
    result = np.zeros(mus.shape)
    result[np.isinf(mus)] = np.inf
    finite = np.isfinite(mus) & (mus > 0)
    # delta at epsilon = 0 is the total variation distance, 2 Phi(mu/2) - 1.
    spent = finite & (log_delta(0.0, np.where(finite, mus, 1.0)) > np.log(dlt))
    if spent.any():
        some_mu, goal = mus[spent], np.log(dlt[spent])

        def step(eps: Array) -> tuple[Array, Array]:
            value = log_delta(eps, some_mu)
            return goal - value, np.exp(eps + log_ndtr(-eps / some_mu - some_mu / 2) - value)

        # zCDP's conversion is an upper bound: mu^2/2 + mu sqrt(2 log 1/delta).
        high = some_mu**2 / 2 + some_mu * np.sqrt(-2 * goal)
        result[spent] = _root(step, np.zeros(some_mu.shape), high, 0.7 * high)
    return result


def _root(
    step: Callable[[Array], tuple[Array, Array]], low: Array, high: Array, start: Array
) -> Array:
    """Root of an increasing function in [low, high]: Newton, with bisection as its safeguard."""
    point = np.clip(start, low, high)
    for _ in range(_ITERATIONS):
        # Far from the root a slope may overflow or vanish; the bracket then decides.
        with np.errstate(all="ignore"):
            value, slope = step(point)
            newton = point - value / slope
        low = np.where(value < 0, point, low)
        high = np.where(value < 0, high, point)
        moved = np.where((newton >= low) & (newton <= high), newton, 0.5 * (low + high))
        settled = np.abs(moved - point) <= _TOLERANCE * np.abs(point)
        point = moved
        if bool(settled.all()):
            break
    return point


def check_epsilon(epsilon: ArrayLike) -> None:
    values = np.atleast_1d(np.asarray(epsilon, dtype=float))
    bad = values[~((values >= 1e-9) & (values <= 1e15))]
    require(
        bad.size == 0,
        f"The privacy budget ε must be a positive number, not {bad[0] if bad.size else 0:g}, "
        "from 1e-9 to 1e+15; choose for example 1, or switch the noise off (then ε is infinite).",
    )


def check_delta(delta: ArrayLike) -> None:
    values = np.atleast_1d(np.asarray(delta, dtype=float))
    bad = values[~((values > 0) & (values < 1))]
    require(
        bad.size == 0,
        f"The failure probability δ must lie between 0 and 1, not {bad[0] if bad.size else 0:g}; "
        "choose a value below one over the records of the smallest client.",
    )
