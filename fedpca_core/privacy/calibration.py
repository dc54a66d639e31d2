"""From a privacy budget to the noise of one product, and back.

One release is ``Y = S_i Z + N`` with orthonormal Z and N of independent N(0, nu^2) entries. Two
calibrations are offered side by side: the published one (FedPower, Theorem 6), valid but several
times larger than needed, and the exact one (corrected here), which uses the true sensitivity and
the closed-form composition of Gaussian releases. The same budget in the eyes of others:
``dp-accounting`` is an independent implementation; its privacy-loss distributions agree with the
closed form to several digits, and its Renyi accountant shows what the paper's tool costs.
"""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from fedpca_core import gaussian_privacy as gaussian
from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import require, require_choice
from fedpca_core.problems.records import check_clip_norm
from fedpca_core.settings import short


def published_sensitivity(columns: int, samples: ArrayLike, clip_norm: float = 1.0) -> Array:
    """Sensitivity of S_i Z in FedPower, Theorem 6: ``2 sqrt(r) C^2/m_i``, column by column."""
    return 2.0 * np.sqrt(columns) * clip_norm**2 / np.asarray(samples, dtype=float)


def exact_sensitivity(columns: int, samples: ArrayLike, clip_norm: float = 1.0) -> Array:
    """Largest change of S_i Z, in Frobenius norm, when one of m_i records of norm C is replaced.

    Corrected here: ``w w^T - v v^T`` has rank 2, so its Frobenius norm is at most
    ``sqrt(2) C^2`` and its spectral norm at most ``C^2``, whatever the number of columns r of the
    orthonormal Z. Both bounds are attained (by orthogonal records in the span of Z).
    """
    size = np.sqrt(2.0) if columns >= 2 else 1.0
    return size * clip_norm**2 / np.asarray(samples, dtype=float)


def published_multiplier(epsilon: float, delta: float, releases: int) -> float:
    """nu over the sensitivity in FedPower, Theorem 6 (sigma_g; natural logarithm)."""
    _check(epsilon, delta, releases)
    spread = np.log(1.0 / delta)
    return float(max(np.sqrt(releases / epsilon), 2.0 * np.sqrt(2.0 * releases * spread) / epsilon))


def renyi_multiplier(epsilon: float, delta: float, releases: int) -> float:
    """nu over the sensitivity when Theorem 6's Renyi bound is solved instead of halved."""
    _check(epsilon, delta, releases)
    twice = 2.0 * np.log(1.0 / delta)
    return float(np.sqrt(releases) / (np.sqrt(twice + 2.0 * epsilon) - np.sqrt(twice)))


def exact_multiplier(epsilon: float, delta: float, releases: int) -> float:
    """nu over the sensitivity by exact composition: ``sqrt(T)/mu(epsilon, delta)``."""
    _check(epsilon, delta, releases)
    return float(np.sqrt(releases) / gaussian.mu_of(epsilon, delta))


#: By kind: noise over sensitivity, and sensitivity.
CALIBRATIONS = {
    "exact": (exact_multiplier, exact_sensitivity),
    "published": (published_multiplier, published_sensitivity),
}


def product_noise(
    kind: str,
    epsilon: float,
    delta: float,
    releases: int,
    columns: int,
    samples: ArrayLike,
    clip_norm: float = 1.0,
) -> Array:
    """nu of clients with so many records each: the standard deviation of every entry of a product.

    ``kind``, {"exact", "published"}. ``epsilon``, ``delta``: Of the whole run, of T ``releases``
    (products with S_i, not communications). ``columns``: r, of every frame.
    """
    require_choice("The calibration of noise", kind, CALIBRATIONS)
    require(columns >= 1, f"A frame has at least 1 column, not {columns}.")
    check_clip_norm(clip_norm)
    multiplier, sensitivity = CALIBRATIONS[kind]
    return multiplier(epsilon, delta, releases) * sensitivity(columns, samples, clip_norm)


def true_epsilon(
    noise: ArrayLike,
    delta: float,
    releases: ArrayLike,
    columns: int,
    samples: ArrayLike,
    clip_norm: float = 1.0,
    *,
    before: float = 0.0,
) -> Array:
    """The epsilon that noise nu really gives, by exact sensitivity and composition.

    ``noise``, ``releases`` and ``samples`` may hold one value per client. Infinite without noise; 0
    for a client that released nothing. ``before``: The GDP parameter of what was released before, a
    mean say.
    """
    spread, count = np.asarray(noise, dtype=float), np.asarray(releases, dtype=float)
    require(
        bool((spread >= 0).all()),
        f"Noise is a standard deviation of at least 0, not {spread.min()}.",
    )
    require(bool((count >= 0).all()), f"Releases cannot be fewer than 0: {count.min()}.")
    with np.errstate(divide="ignore", invalid="ignore"):
        mu = np.sqrt(count) * exact_sensitivity(columns, samples, clip_norm) / spread
    return gaussian.epsilon_of(np.hypot(np.where(count == 0, 0.0, mu), before), delta)


def warn_delta(delta: float, samples: IntArray) -> str | None:
    """The sentence for a delta that could be met by publishing whole records; None if it is fine.

    Rule of thumb: delta should be well below one over the records of the smallest client.
    """
    fewest = int(np.min(samples))
    if delta < 1.0 / fewest:
        return None
    return (
        f"δ = {short(delta)} is not below 1/{fewest:,}, one over the records of the "
        "smallest client: a mechanism that publishes one whole record at random would satisfy it. "
        f"δ should be well below {short(1 / fewest, 1)}."
    )


# ------------------------------------------------------------------ other accountants
def calibrated(kind: str, epsilon: float, delta: float, releases: int) -> float:
    """Noise multiplier that dp-accounting finds with its "renyi" or "privacy loss" accountant."""
    import dp_accounting

    def make() -> Any:
        return dp_accounting.rdp.RdpAccountant() if kind == "renyi" else _by_loss(epsilon)

    guess = exact_multiplier(epsilon, delta, releases)

    def event(scale: float) -> Any:
        return dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(scale), releases)

    # An explicit bracket: with a tiny lower end the privacy-loss grid would need hundreds of GB.
    bracket = dp_accounting.ExplicitBracketInterval(0.8 * guess, 2.0 * guess)
    find = dp_accounting.calibrate_dp_mechanism
    return float(find(make, event, epsilon, delta, bracket, tol=1e-6 * guess))


def _by_loss(epsilon: float) -> Any:
    import dp_accounting

    # The grid is relative to epsilon above 1: at epsilon = 100 the default takes 40 s.
    step = 1e-4 * max(1.0, epsilon)
    return dp_accounting.pld.PLDAccountant(value_discretization_interval=step)


def by_coin(multiplier: float, rate: float, delta: float, releases: int) -> float:
    """The ε of Gaussian noise on sums, each over the clients whose own coin fell for it.

    Poisson sampling as dp-accounting's privacy loss has it: a client is added or removed, how the
    coins fell is secret, and the noise does not depend on it.

    ``multiplier``: Noise over what one client adds to a sum, at the most. ``rate``: How likely a
    coin falls for its client. ``releases``: Sums, with coins tossed anew for each.
    """
    import dp_accounting

    plain = float(gaussian.epsilon_of(np.sqrt(releases) / multiplier, delta))
    accountant = _by_loss(plain)
    noise = dp_accounting.GaussianDpEvent(multiplier)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(rate, noise), releases)
    return float(accountant.get_epsilon(delta))


def comparison(epsilon: float, delta: float, releases: int) -> pd.DataFrame:
    """Every accountant's noise for one budget: columns accountant, and noise over sensitivity."""
    found = {
        "Published (Theorem 6)": published_multiplier(epsilon, delta, releases),
        "Its Rényi bound, solved exactly": renyi_multiplier(epsilon, delta, releases),
        "dp-accounting, Rényi": calibrated("renyi", epsilon, delta, releases),
        "dp-accounting, privacy loss": calibrated("privacy loss", epsilon, delta, releases),
        "Exact (Gaussian DP)": exact_multiplier(epsilon, delta, releases),
    }
    return pd.DataFrame({"accountant": list(found), "multiplier": list(found.values())})


def _check(epsilon: float, delta: float, releases: int) -> None:
    gaussian.check_epsilon(epsilon)
    gaussian.check_delta(delta)
    require(releases >= 1, f"A run makes at least 1 product with the data, not {releases}.")
