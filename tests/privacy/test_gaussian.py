"""Closed forms of Gaussian differential privacy against their inverses and other accountants."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from fedpca_core import gaussian_privacy as gaussian
from fedpca_core.errors import InvalidInput
from fedpca_core.privacy import calibration
from fedpca_core.privacy.calibration import (
    exact_multiplier,
    exact_sensitivity,
    product_noise,
    published_multiplier,
    published_sensitivity,
    renyi_multiplier,
    true_epsilon,
    warn_delta,
)

BUDGETS = (10.0, 1.0, 0.5)


@pytest.mark.parametrize("mu", [0.05, 0.7, 3.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
def test_delta_is_the_hockey_stick_divergence(epsilon: float, mu: float) -> None:
    """delta = integral of (density under mu - e^eps density under 0)_+."""

    def excess(x: float) -> float:
        return float(
            (np.exp(-((x - mu) ** 2) / 2) - np.exp(epsilon - x**2 / 2)) / np.sqrt(2 * np.pi)
        )

    begin = epsilon / mu + mu / 2
    expected = quad(excess, begin, begin + 12, epsabs=1e-16)[0]
    assert float(np.exp(gaussian.log_delta(epsilon, mu))) == pytest.approx(
        expected, rel=1e-6, abs=1e-14
    )


@pytest.mark.parametrize("delta", [0.3, 1e-2, 1e-4, 1e-8, 1e-12])
def test_mu_and_epsilon_are_inverse_functions(delta: float) -> None:
    epsilon = np.array([1e-4, 1e-2, 0.1, 0.5, 1, 3, 10, 100, 1000.0])
    mu = gaussian.mu_of(epsilon, delta)
    assert np.all(np.diff(mu) > 0)
    assert np.allclose(gaussian.epsilon_of(mu, delta), epsilon, rtol=1e-8)
    assert np.allclose(np.exp(gaussian.log_delta(epsilon, mu)), delta, rtol=1e-8)


def test_ends_of_the_scale() -> None:
    assert float(gaussian.epsilon_of(np.inf, 1e-5)) == np.inf
    assert float(gaussian.epsilon_of(0.0, 1e-5)) == 0.0
    assert float(gaussian.epsilon_of(1e-9, 1e-5)) == 0.0  # delta alone covers it
    assert gaussian.compose([3.0, 4.0]) == pytest.approx(5.0)


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_a_budget_must_be_positive(bad: float) -> None:
    with pytest.raises(InvalidInput, match="ε must be a positive number"):
        gaussian.mu_of(bad, 1e-4)


@pytest.mark.parametrize("bad", [0.0, 1.0, -0.1, 2.0, float("nan")])
def test_delta_must_be_a_probability(bad: float) -> None:
    with pytest.raises(InvalidInput, match="δ must lie between 0 and 1"):
        gaussian.epsilon_of(1.0, bad)


@pytest.mark.parametrize(
    ("epsilon", "multiplier", "first", "second"),
    [
        (10.0, 2.714456, 1.213942e-4, 7.677641e-3),
        (1.0, 27.14456, 1.213942e-3, 7.677641e-2),
        (0.5, 54.28912, 2.427883e-3, 0.1535528),
    ],
)
def test_published_noise(epsilon: float, multiplier: float, first: float, second: float) -> None:
    assert published_multiplier(epsilon, 1e-4, 10) == pytest.approx(multiplier, rel=5e-7)
    for columns, samples, noise in ((5, 10**5, first), (2, 10**3, second)):
        found = float(product_noise("published", epsilon, 1e-4, 10, columns, samples))
        assert found == pytest.approx(noise, rel=5e-7)


def test_the_other_branch_of_the_theorem() -> None:
    spread = np.log(1e4)
    for epsilon, wins in ((8.1 * spread, True), (7.9 * spread, False)):
        first = np.sqrt(10 / epsilon)
        assert bool(published_multiplier(epsilon, 1e-4, 10) == pytest.approx(first)) is wins


@pytest.mark.parametrize(
    ("epsilon", "exact", "renyi", "accountant"),
    [(10.0, 1.4397, 1.659, 1.537), (1.0, 10.0741, 13.93, 11.09), (0.5, 18.6378, 27.51, 20.69)],
)
def test_multipliers_of_other_accountants(
    epsilon: float, exact: float, renyi: float, accountant: float
) -> None:
    assert round(exact_multiplier(epsilon, 1e-4, 10), 4) == exact
    assert renyi_multiplier(epsilon, 1e-4, 10) == pytest.approx(renyi, rel=4e-4)
    found = calibration.calibrated("renyi", epsilon, 1e-4, 10)
    assert found == pytest.approx(accountant, rel=1e-3)


@pytest.mark.parametrize("epsilon", BUDGETS)
def test_privacy_loss_distributions_agree_with_the_closed_form(epsilon: float) -> None:
    exact = exact_multiplier(epsilon, 1e-4, 10)
    assert calibration.calibrated("privacy loss", epsilon, 1e-4, 10) == pytest.approx(
        exact, rel=1e-3
    )
    assert calibration.calibrated("renyi", epsilon, 1e-4, 10) > exact


def excess(epsilon: float, multiplier: float, rate: float, added: bool) -> float:
    """The smallest δ for ε of one sum by hand: (1-q) N(0, σ²) + q N(1, σ²) against N(0, σ²)."""
    # The likelihood ratio grows with x: a threshold is the best test.
    odds = (np.exp(-epsilon if added else epsilon) - 1 + rate) / rate
    if odds <= 0:
        return 0.0
    at = multiplier**2 * np.log(odds) + 0.5
    without, shifted = norm.cdf(at / multiplier), norm.cdf((at - 1) / multiplier)
    with_ = (1 - rate) * without + rate * shifted
    if added:  # nobody is seen more often than somebody: below the threshold
        return float(without - np.exp(epsilon) * with_)
    return float(1 - with_ - np.exp(epsilon) * (1 - without))


@pytest.mark.parametrize(("multiplier", "rate"), [(1.0, 0.1), (0.7, 0.02), (3.0, 0.5)])
def test_a_secret_coin_is_worth_what_one_sum_gives_by_hand(multiplier: float, rate: float) -> None:
    delta = 1e-5
    by_hand = max(
        brentq(lambda e, side: excess(e, multiplier, rate, side) - delta, 0, 50, (added,))
        for added in (True, False)
        if excess(0.0, multiplier, rate, added) > delta
    )
    assert calibration.by_coin(multiplier, rate, delta, 1) == pytest.approx(by_hand, rel=2e-3)


def test_a_coin_that_always_falls_buys_nothing_and_a_rare_one_more() -> None:
    plain = float(gaussian.epsilon_of(np.sqrt(10) / 5.0, 1e-5))
    found = [calibration.by_coin(5.0, rate, 1e-5, 10) for rate in (1.0, 0.5, 0.1)]
    assert found[0] == pytest.approx(plain, rel=1e-3) and found == sorted(found, reverse=True)
    # One sum, by the theorem of amplification: log(1 + q (exp ε - 1)) at q δ.
    rate, one = 0.1, float(gaussian.epsilon_of(1.0, 1e-4))
    assert calibration.by_coin(1.0, rate, 1e-5, 1) <= np.log1p(rate * np.expm1(one)) * 1.001


@pytest.mark.parametrize(
    ("epsilon", "first", "second", "true_first", "true_second"),
    [
        (10.0, 5.96, 3.77, 1.20, 2.02),
        (1.0, 8.52, 5.39, 0.089, 0.150),
        (0.5, 9.21, 5.83, 0.040, 0.068),
    ],
)
def test_what_the_published_noise_is_worth(
    epsilon: float, first: float, second: float, true_first: float, true_second: float
) -> None:
    for columns, samples, saving, true in (
        (5, 10**5, first, true_first),
        (2, 10**3, second, true_second),
    ):
        noise = {
            kind: float(product_noise(kind, epsilon, 1e-4, 10, columns, samples))
            for kind in ("published", "exact")
        }
        assert noise["published"] / noise["exact"] == pytest.approx(saving, abs=0.006)
        found = float(true_epsilon(noise["published"], 1e-4, 10, columns, samples))
        assert found == pytest.approx(true, abs=0.006)
        assert float(true_epsilon(noise["exact"], 1e-4, 10, columns, samples)) == pytest.approx(
            epsilon
        )


def test_savings_do_not_depend_on_the_number_of_products() -> None:
    ratios = [
        published_multiplier(1.0, 1e-5, t) / exact_multiplier(1.0, 1e-5, t) for t in (1, 10, 400)
    ]
    assert np.allclose(ratios, ratios[0])


@pytest.mark.parametrize(("columns", "bound"), [(1, 1.0), (2, np.sqrt(2)), (5, np.sqrt(2))])
def test_no_pair_of_records_exceeds_the_exact_sensitivity(columns: int, bound: float) -> None:
    generator = np.random.default_rng(columns)
    features, best = 4, 0.0
    for _ in range(4000):
        records = generator.standard_normal((features, 2))
        records /= np.linalg.norm(records, axis=0)
        if generator.random() < 0.5:
            records[:, 1] = -records[:, 0] + 0.1 * records[:, 1]
            records[:, 1] /= np.linalg.norm(records[:, 1])
        if generator.random() < 0.5:
            records = np.linalg.qr(records)[0]
        change = np.outer(records[:, 0], records[:, 0]) - np.outer(records[:, 1], records[:, 1])
        frame = np.linalg.qr(generator.standard_normal((features, columns)))[0]
        best = max(best, float(np.linalg.norm(change @ frame)))
    assert best <= bound * (1 + 1e-12)
    assert best > 0.95 * bound
    assert float(exact_sensitivity(columns, 50, 2.0)) == pytest.approx(bound * 4 / 50)
    assert float(published_sensitivity(columns, 50, 2.0)) >= bound * 4 / 50


def test_releases_of_each_client() -> None:
    noise = float(product_noise("exact", 1.0, 1e-5, 10, 3, 200))
    found = true_epsilon(noise, 1e-5, np.array([10, 5, 1, 0]), 3, 200)
    assert found[0] == pytest.approx(1.0)
    assert np.all(np.diff(found) < 0) and found[3] == 0
    none = true_epsilon(0.0, 1e-5, np.array([10, 0]), 3, 200)
    assert none[0] == np.inf and none[1] == 0


def test_delta_is_compared_with_the_smallest_client() -> None:
    assert warn_delta(1e-6, np.array([500, 1000])) is None
    said = warn_delta(1e-3, np.array([5000, 1000]))
    assert said is not None and "1/1,000" in said and "δ should be well below 0.001" in said


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kind": "guess"}, "'exact' or 'published'"),
        ({"epsilon": 0.0}, "ε must be a positive number, not 0"),
        ({"epsilon": -2.0}, "ε must be a positive number, not -2"),
        ({"epsilon": 1e308}, "not 1e\\+308, from 1e-9 to"),
        ({"epsilon": 1e-300}, "not 1e-300, from 1e-9 to"),
        ({"delta": 1.5}, "δ must lie between 0 and 1"),
        ({"releases": 0}, "at least 1 product"),
        ({"clip_norm": 0.0}, "clip norm must be positive"),
        ({"clip_norm": 1e200}, "clip norm must be between 1e-100 and"),
        ({"columns": 0}, "at least 1 column"),
    ],
)
def test_calibrations_that_make_no_sense_are_refused(
    changes: dict[str, float | str], words: str
) -> None:
    good = {"kind": "exact", "epsilon": 1.0, "delta": 1e-5, "releases": 10, "columns": 3}
    good["samples"] = 100
    with pytest.raises(InvalidInput, match=words):
        product_noise(**{**good, **changes})  # type: ignore[arg-type]
