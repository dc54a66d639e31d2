"""Noise on a grid: the discrete Gaussian to the last digit, its accounting, and nothing rounded."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from fractions import Fraction
from random import Random

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from fedpca_core.attacks import matrix_scores
from fedpca_core.errors import InvalidInput
from fedpca_core.gaussian_privacy import mu_of
from fedpca_core.privacy import gaussian_audit
from fedpca_core.problems import records
from fedpca_core.problems.client_data import second_moment
from fedpca_core.problems.records import LONGEST, WholeMoments, clip, on_grid, whole_moments
from fedpca_flower import on_grid as grid
from fedpca_flower.on_grid import (
    SLACK,
    Below,
    decayed,
    discrete_gaussian,
    release_cost,
    released,
    spent,
    total_variation,
    variance_above,
)


def law(variance: int, most: int) -> dict[int, float]:
    """P(k) for |k| up to ``most``, normalised over all whole numbers."""
    far = range(-60 * math.isqrt(variance) - 60, 60 * math.isqrt(variance) + 61)
    whole = math.fsum(math.exp(-(k**2) / (2 * variance)) for k in far)
    return {k: math.exp(-(k**2) / (2 * variance)) / whole for k in range(-most, most + 1)}


# ---------------------------------------------------------------------- the draw
@pytest.mark.parametrize("variance", [1, 2, 7, 100, 10_000])
def test_draws_have_the_law_of_the_discrete_gaussian(variance: int) -> None:
    below, draws = Random(variance).randrange, 20_000
    found = np.array([discrete_gaussian(variance, below) for _ in range(draws)])
    expected = law(variance, 4 * math.isqrt(variance) + 4)
    step = max(1, math.isqrt(variance) // 4)
    bins: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for k, probability in expected.items():
        bins[k // step][0] += float((found == k).sum())
        bins[k // step][1] += draws * probability
    counted = np.array([pair for pair in bins.values() if pair[1] > 5]).T
    rest = draws - counted.sum(axis=1)
    counts, means = np.column_stack([counted, rest]) if rest[1] > 1 else counted
    assert chisquare(counts, means * counts.sum() / means.sum()).pvalue > 1e-3


class _Open(Exception):
    """A choice that the path so far does not make, with the chances of its outcomes."""


class _Path:
    """Choices already made, in order; the next one is open."""

    def __init__(self, made: tuple[int, ...]) -> None:
        self.made = iter(made)

    def choice(self, *chances: float) -> int:
        made = next(self.made, None)
        if made is None:
            raise _Open(chances)
        return made


class _Compared:
    """A whole number below ``size`` that is only ever compared, so two outcomes are enough."""

    def __init__(self, size: int, path: _Path) -> None:
        self.size, self.path = size, path

    def __lt__(self, above: int) -> bool:
        small = Fraction(min(above, self.size), self.size)
        return self.path.choice(small, 1 - small) == 0


def every_path(draw: Callable[[_Path], int], least: float) -> tuple[dict[int, float], float]:
    """What a sampler gives over all outcomes of its choices, and the chance of those left out."""
    reached: dict[int, float] = defaultdict(float)
    left, waiting = 0.0, [((), 1.0)]
    while waiting:
        made, chance = waiting.pop()
        if chance < least:
            left += chance
            continue
        try:
            reached[draw(_Path(made))] += chance
        except _Open as asked:
            waiting += [
                ((*made, way), chance * float(share))
                for way, share in enumerate(asked.args[0])
                if share
            ]
    return reached, left


@pytest.mark.parametrize(("above", "beneath"), [(0, 1), (1, 1), (1, 3), (7, 9), (5, 2), (7, 1)])
def test_a_coin_of_an_exponential_is_exact(above: int, beneath: int) -> None:
    """From fractions of whole numbers alone: no exponential is ever computed."""

    def coin(path: _Path) -> int:
        return int(decayed(above, beneath, lambda size: _Compared(size, path)))

    reached, left = every_path(coin, 1e-12)
    assert left < 1e-8
    assert reached[1] == pytest.approx(math.exp(-above / beneath), abs=left + 1e-12)


@pytest.mark.parametrize("variance", [4, 5, 9, 12])
def test_with_such_coins_every_draw_is_exact(
    variance: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over all outcomes of all choices, not by drawing; a draw that begins anew is as at first."""
    scale, again = math.isqrt(variance) + 1, 10**6

    def draw(path: _Path) -> int:
        begun = []

        def coin(above: int, beneath: int, below: Below) -> bool:
            heads = math.exp(-above / beneath)
            return path.choice(heads, 1 - heads) == 0

        def below(size: int) -> int:
            begun.extend([size] if size == scale else [])
            if len(begun) == 2:
                raise _Again
            return path.choice(*[1 / size] * size)

        monkeypatch.setattr(grid, "decayed", coin)
        try:
            return discrete_gaussian(variance, below)
        except _Again:
            return again

    reached, left = every_path(draw, 1e-13)
    assert left < 1e-9
    accepted = 1.0 - reached.pop(again)
    for k, probability in law(variance, 12).items():
        assert reached[k] / accepted == pytest.approx(probability, abs=1e-8)


class _Again(Exception):
    """A candidate was turned down."""


@pytest.mark.parametrize("variance", [1, 2, 5, 30, 400])
def test_a_rounded_gaussian_is_no_further_than_is_stated(variance: int) -> None:
    whole = np.arange(-50 * math.isqrt(variance) - 50, 50 * math.isqrt(variance) + 51)
    discrete = np.exp(-(whole**2) / (2 * variance))
    edges = norm.cdf(np.stack([whole - 0.5, whole + 0.5]) / math.sqrt(variance))
    apart = 0.5 * np.abs(discrete / discrete.sum() - (edges[1] - edges[0])).sum()
    assert 0.3 * total_variation(1, variance) < apart < total_variation(1, variance)


# ---------------------------------------------------------------------- whole numbers throughout
def block(rows: int, features: int = 5, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return (
        generator.standard_normal((rows, features))
        * 10.0 ** generator.integers(-3, 4, rows)[:, None]
    )


def moments(rows: np.ndarray, clip_norm: float = 2.0) -> WholeMoments:
    return whole_moments([rows], clip_norm)


def test_moments_are_summed_without_any_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = block(300)
    whole = on_grid(rows, 2.0).astype(int).astype(object)
    expected = whole.T @ whole
    assert (moments(rows).total == expected).all()
    monkeypatch.setattr(records, "_ROWS", 7)
    monkeypatch.setattr(records, "_MOST_ROWS", 100)  # from here on in Python's own numbers
    in_parts = whole_moments(np.array_split(rows, 4), 2.0)
    assert in_parts.total.dtype == object and (in_parts.total == expected).all()
    assert in_parts.samples == 300
    plain = second_moment(clip(rows.T, 2.0))
    scaled = np.array(in_parts.total, dtype=float) * in_parts.unit**2 / 300
    np.testing.assert_allclose(scaled, plain, atol=1e-5)


def test_one_record_moves_the_sum_by_no_more_than_is_stated() -> None:
    """Also where rounding lengthens it, and in the last digit of every other entry: by nothing."""
    rest, worst = block(50, 40), 0.0
    extremes = [*block(20, 40, 1), *(1e9 * np.eye(40)[:3]), np.full(40, 1e30), np.full(40, 3.5)]
    whole = [on_grid(one[None], 2.0)[0].astype(int).astype(object) for one in extremes]
    assert max((one @ one) for one in whole) <= LONGEST**2
    for first in range(len(extremes)):
        for second in range(first):
            sums = [moments(np.vstack([rest, extremes[i]])).total for i in (first, second)]
            change = sums[0].astype(object) - sums[1]
            own = np.outer(whole[first], whole[first]) - np.outer(whole[second], whole[second])
            assert (change == own).all()
            worst = max(worst, int((change**2).sum()) / (2 * LONGEST**4))
    assert 0.99 < worst <= 1.0


# ---------------------------------------------------------------------- what a release is worth
def test_noise_on_the_grid_is_that_of_the_theory() -> None:
    """Symmetric, half the variance off the diagonal, around the second moment."""
    below, mu, rows = Random(3).randrange, 0.8, block(60)
    plain, held = second_moment(clip(rows.T, 2.0)), moments(rows)
    off = np.stack([released(held, mu, below) - plain for _ in range(1500)])
    assert np.array_equal(off, off.swapaxes(1, 2))
    stated = math.sqrt(2) * 2.0**2 / (60 * mu)
    sizes = stated * np.sqrt(0.5 + 0.5 * np.eye(5))
    np.testing.assert_allclose(off.std(axis=0), sizes, rtol=0.08)
    assert (np.abs(off.mean(axis=0)) < 4.5 * sizes / math.sqrt(1500)).all()
    assert variance_above(mu) * held.unit**4 >= (stated * 60) ** 2 / 2
    for sharers in (2, 3, 7):
        together = sharers * variance_above(mu, sharers)
        assert variance_above(mu) <= together < variance_above(mu) + 2 * sharers


def test_releases_compose_and_a_budget_is_kept() -> None:
    one = release_cost(1.0, 1e-6, 30)
    assert spent([one], 1e-6) == pytest.approx(1.0, abs=1e-9)
    assert spent([one, one], 1e-6) == pytest.approx(1.45, abs=0.005)
    assert spent([], 1e-6) == 0.0
    assert spent([one, (math.inf, 0.0)], 1e-6) == math.inf
    assert one[0] < float(mu_of(1.0, 1e-6))  # what is kept of delta is paid for
    assert one[1] < 1e-20 < SLACK * 1e-6
    assert spent([(one[0], 1e-9)], 1e-6) == math.inf  # and no more than that is covered
    with pytest.raises(InvalidInput, match="choose a smaller ε"):
        release_cost(60.0, 1e-6, 1000)


def test_formal_is_above_empirical_on_the_grid() -> None:
    """Neighbours as far apart as they can be; the audit proves a good part of what is stated."""
    epsilon, delta, runs = 3.0, 1e-6, 2500
    mu, _ = release_cost(epsilon, delta, 3)
    rest, below = block(4, 3), Random(0).randrange
    pair = [moments(np.vstack([rest, 10 * row])) for row in np.eye(3)[:2]]
    truths = [np.array(held.total, float) * held.unit**2 / 5 for held in pair]
    spread = np.full(runs, math.sqrt(2) * 2.0**2 / (5 * mu))
    scores = [
        matrix_scores(np.stack([released(held, mu, below) for _ in range(runs)]), *truths, spread)
        for held in pair
    ]
    assert 0.7 * epsilon < gaussian_audit(*scores, delta).epsilon < epsilon
    weak: Below = Random(0).randrange
    loud = [
        matrix_scores(
            np.stack([released(held, 2 * mu, weak) for _ in range(runs)]), *truths, spread / 2
        )
        for held in pair
    ]
    assert gaussian_audit(*loud, delta).epsilon > 1.3 * epsilon
