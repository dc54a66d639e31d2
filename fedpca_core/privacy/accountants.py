"""The same budget in the eyes of several accountants: closed form, Renyi, and privacy loss.

``dp-accounting`` is an independent implementation; its privacy-loss distributions agree with the
closed form to several digits, and its Renyi accountant shows what the paper's tool costs.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core import gaussian_privacy as gaussian
from fedpca_core.privacy.calibration import (
    exact_multiplier,
    published_multiplier,
    renyi_multiplier,
)

#: Where the calibrated multiplier is looked for, relative to the exact one.
_BRACKET = (0.8, 2.0)
#: Step of the privacy-loss grid.
_GRID = 1e-4


def calibrated(kind: str, epsilon: float, delta: float, releases: int) -> float:
    """Noise multiplier that dp-accounting finds with its "renyi" or "privacy loss" accountant."""
    import dp_accounting

    make: Callable[[], Any] = (
        dp_accounting.rdp.RdpAccountant
        if kind == "renyi"
        else lambda: _privacy_loss_accountant(epsilon)
    )
    guess = exact_multiplier(epsilon, delta, releases)
    # An explicit bracket: with a tiny lower end the privacy-loss grid would need hundreds of GB.
    low, high = _BRACKET[0] * guess, _BRACKET[1] * guess
    return float(
        dp_accounting.calibrate_dp_mechanism(
            make,
            lambda scale: dp_accounting.SelfComposedDpEvent(
                dp_accounting.GaussianDpEvent(scale), releases
            ),
            epsilon,
            delta,
            dp_accounting.ExplicitBracketInterval(low, high),
            tol=1e-6 * guess,
        )
    )


def _privacy_loss_accountant(epsilon: float) -> Any:
    import dp_accounting

    # The grid is relative to epsilon above 1: at epsilon = 100 the default takes 40 s.
    return dp_accounting.pld.PLDAccountant(value_discretization_interval=_GRID * max(1.0, epsilon))


def by_coin(multiplier: float, rate: float, delta: float, releases: int) -> float:
    """The ε of Gaussian noise on sums, each over the clients whose own coin fell for it.

    Poisson sampling as dp-accounting's privacy loss has it: a client is added or removed, how the
    coins fell is secret, and the noise does not depend on it.

    ``multiplier``: Noise over what one client adds to a sum, at the most.
    ``rate``: How likely a coin falls for its client.
    ``releases``: Sums, with coins tossed anew for each.
    """
    import dp_accounting

    plain = float(gaussian.epsilon_of(np.sqrt(releases) / multiplier, delta))
    accountant = _privacy_loss_accountant(plain)
    noise = dp_accounting.GaussianDpEvent(multiplier)
    accountant.compose(dp_accounting.PoissonSampledDpEvent(rate, noise), releases)
    return float(accountant.get_epsilon(delta))


def comparison(epsilon: float, delta: float, releases: int) -> pd.DataFrame:
    """Every accountant's noise for one budget, and the epsilon that this noise really gives.

    Columns: accountant, multiplier (noise over sensitivity), ratio (to the exact one),
    true_epsilon (closed form).
    """
    found = {
        "Published (Theorem 6)": published_multiplier(epsilon, delta, releases),
        "Its Rényi bound, solved exactly": renyi_multiplier(epsilon, delta, releases),
        "dp-accounting, Rényi": calibrated("renyi", epsilon, delta, releases),
        "dp-accounting, privacy loss": calibrated("privacy loss", epsilon, delta, releases),
        "Exact (Gaussian DP)": exact_multiplier(epsilon, delta, releases),
    }
    multiplier = np.array(list(found.values()))
    return pd.DataFrame(
        {
            "accountant": list(found),
            "multiplier": multiplier,
            "ratio": multiplier / multiplier[-1],
            "true_epsilon": gaussian.epsilon_of(np.sqrt(releases) / multiplier, delta),
        }
    )
