"""The heterogeneity parameter: one sentence, and the laws it promises."""

import itertools

import numpy as np
import pandas as pd
import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.problems import DIAL, decay_spectrum, from_table, images
from fedpca_core.problems.heterogeneity import (
    ExchangeOrder,
    exchange,
    largest_norm,
    leading_scores,
    steady_way,
)
from fedpca_core.problems.spectrum import Rotations, _angles, _turned, balance

TICKS = np.linspace(0.0, 1.0, 21)


def largest_drop(etas):
    """How far a curve falls below an earlier value, relative to its maximum."""
    return (np.maximum.accumulate(etas) - etas).max() / max(etas)


def test_the_definition_is_one_sentence():
    assert DIAL.endswith(".")
    assert DIAL.count(".") == 1


# ---------------------------------------------------------------------- synthetic spectra
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(
    ("features", "samples", "spectrum"),
    [
        (50, (1000,) * 20, {"decay": 1.01}),  # many similar clients
        (50, (1000,) * 10, {"decay": 1.05}),
        (50, (200,) * 5, {"condition": 10.0}),
        (50, (1000,) * 10, {"decay": 1.002}),  # nearly flat: chance is larger than rotation
        (60, (200,) * 3, {"decay": 1.3}),  # steep
        (30, tuple(range(100, 900, 100)), {"decay": 1.1}),
        (20, (40,) * 10, {"condition": 100.0}),
        (10, (30,) * 4, {"decay": 1.2}),
        (4, (20,) * 3, {"decay": 1.3}),
        (20, (100,) * 2, {"decay": 1.05}),
    ],
)
def test_measured_heterogeneity_rises_with_the_dial_of_spectra(features, samples, spectrum, seed):
    """At most 0.2% of a drop between the positions at which draws were compared."""
    etas = [
        decay_spectrum(features, samples, heterogeneity=t, seed=seed, **spectrum).heterogeneity
        for t in TICKS
    ]
    assert largest_drop(etas) <= 2e-3
    assert etas[-1] > etas[0]


def test_the_rotation_is_visible_where_clients_are_large():
    plain, turned = (
        decay_spectrum(30, (20_000,) * 8, 1.2, heterogeneity=t, keep_blocks=False).heterogeneity
        for t in (0.0, 1.0)
    )
    assert plain < 0.1 < 0.5 < turned


def test_a_flat_spectrum_looks_the_same_from_everywhere():
    plain, turned = (decay_spectrum(20, (50, 60), 1.0, heterogeneity=t) for t in (0.0, 1.0))
    np.testing.assert_array_equal(plain.client_data.dense(), turned.client_data.dense())


def test_the_dial_moves_the_data_smoothly():
    near = [
        decay_spectrum(20, (500,) * 4, 1.1, heterogeneity=t).client_data.dense()
        for t in (0.0, 1e-6, 0.5, 0.5 + 1e-6)
    ]
    assert 0 < np.abs(near[1] - near[0]).max() < 1e-5
    assert 0 < np.abs(near[3] - near[2]).max() < 1e-5


@pytest.mark.parametrize("features", [2, 3, 7, 20])
def test_turns_are_rotations_up_to_a_right_angle(features):
    """R D^(1/2) R^T keeps the spectrum, and K has the norm pi/2."""
    roots = np.linspace(1.0, 0.2, features)
    turns = Rotations(roots, clients=3, seed=5)
    for turned in turns.maps(0.7):
        np.testing.assert_allclose(np.linalg.eigvalsh(turned)[::-1], roots, atol=1e-12)
    angles = _angles(features)
    assert angles.max() == pytest.approx(np.pi / 2)
    planes = np.linalg.qr(np.random.default_rng(0).standard_normal((features, features)))[0]
    quarter = _turned(planes, angles * 0.5) @ planes.T
    np.testing.assert_allclose(quarter @ quarter, _turned(planes, angles) @ planes.T, atol=1e-12)
    np.testing.assert_allclose(quarter.T @ quarter, np.eye(features), atol=1e-12)


def test_turns_of_the_clients_are_independent_and_reproducible():
    first, second = Rotations(np.linspace(1, 0.5, 6), 2, seed=1).maps(0.5)
    again = next(Rotations(np.linspace(1, 0.5, 6), 5, seed=1).maps(0.5))
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - second).max() > 0.01


@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("spectrum", [{"decay": 1.1}, {"condition": 10.0}])
def test_more_clients_leave_the_draws_of_the_first(spectrum, value):
    """The map that keeps the pooled spectrum exact is of all of them: records move a little."""
    few, many = (
        decay_spectrum(20, (100,) * clients, heterogeneity=value, **spectrum) for clients in (8, 9)
    )
    moved = [
        np.linalg.norm(a - b) / np.linalg.norm(a)
        for a, b in zip(few.blocks, many.blocks, strict=False)
    ]
    assert max(moved) < 0.1  # 1.4, were they drawn anew
    assert min(moved) > 0


def test_balance_restores_the_spectrum_over_many_orders_of_magnitude():
    roots = 10.0 ** -np.linspace(0, 15, 30)
    mixed = np.random.default_rng(2).standard_normal((30, 200))
    pooled = (roots[:, None] * (mixed @ mixed.T / 200)) * roots
    mend = balance(pooled, roots)
    restored = mend @ pooled @ mend.T / np.outer(roots, roots)  # accurate relative to each entry
    np.testing.assert_allclose(restored, np.eye(30), atol=1e-12)
    np.testing.assert_allclose(balance(np.diag(roots**2), roots), np.eye(30), rtol=1e-12)
    with pytest.raises(InvalidInput, match="too steep to be rotated"):
        balance(np.zeros((30, 30)), roots)


# ---------------------------------------------------------------------- records
def test_at_one_every_record_is_at_home_and_sizes_never_change():
    home = np.random.default_rng(0).permutation(100)
    sizes = (10, 60, 30)
    for value in (0.0, 0.33, 1.0):
        held = exchange(home, sizes, value, ExchangeOrder.drawn(sizes, 4))
        assert [len(own) for own in held] == list(sizes)
        assert sorted(np.concatenate(held)) == list(range(100))
    np.testing.assert_array_equal(
        np.concatenate(exchange(home, sizes, 1.0, ExchangeOrder.drawn(sizes, 4))), home
    )


@pytest.mark.parametrize("value", [0.0, 0.25, 0.5, 0.8])
def test_every_client_keeps_the_share_of_the_parameter(value):
    sizes = (100, 300, 40)
    home = np.arange(sum(sizes))
    held = exchange(home, sizes, value, ExchangeOrder.drawn(sizes, 1))
    begin = 0
    for size, own in zip(sizes, held, strict=True):
        position = np.arange(begin, begin + size)
        # In the exchange a record comes home again only by closing the ring on itself.
        assert abs((own == position).sum() - value * size) <= 1
        begin += size


def test_at_zero_clients_hold_random_shares():
    """Records of a class spread over clients as in random sampling."""
    sizes = (500,) * 10
    home = np.arange(5000)
    held = exchange(home, sizes, 0.0, ExchangeOrder.drawn(sizes, 2))
    counts = np.array([[(own // 500 == k).sum() for k in range(10)] for own in held])
    assert 25 < counts.min() < 50 < counts.max() < 80  # hypergeometric: 50 ± 6.4


def test_a_small_move_exchanges_few_records():
    home = np.arange(1000)
    sizes = (250,) * 4
    way = ExchangeOrder.drawn(sizes, 3)
    before, after = (np.concatenate(exchange(home, sizes, t, way)) for t in (0.4, 0.41))
    assert 0 < (before != after).sum() <= 2 * 14


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("clients", [4, 30, 100])
def test_measured_heterogeneity_rises_with_the_dial_of_images(clients, seed):
    """Down to 18 images a client; the tolerance is what directions left out can add."""
    etas = [images(clients=clients, heterogeneity=t, seed=seed).heterogeneity for t in TICKS]
    assert largest_drop(etas) <= 2e-3
    assert etas[-1] > 2 * etas[0]


@pytest.mark.data("olivetti", "cifar10")
@pytest.mark.parametrize(("name", "clients"), [("olivetti", 40), ("cifar10", 10)])
def test_measured_heterogeneity_rises_with_the_dial_of_few_large_images(data_folder, name, clients):
    etas = [
        images(
            name, clients, heterogeneity=t, resolution=16, max_samples=1000, folder=data_folder
        ).heterogeneity
        for t in TICKS
    ]
    assert largest_drop(etas) <= 2e-3
    assert etas[-1] > 2 * etas[0]


@pytest.mark.data("beijing")
def test_measured_heterogeneity_rises_where_the_natural_clients_are_nearly_alike(data_folder):
    """Twelve stations of one city: at home they differ hardly more than random shares do."""
    table = pd.read_csv(data_folder / "beijing_air_daily.csv")
    etas = [
        from_table(table, client_column="station", heterogeneity=t, seed=1).heterogeneity
        for t in TICKS
    ]
    assert largest_drop(etas) <= 2e-3
    assert etas[-1] > 1.2 * etas[0]


def test_a_way_that_deals_given_shares_keeps_all_other_laws():
    """At 0 the shares, at 1 home; between them every record once, and small moves stay small."""
    home, shares = (np.random.default_rng(seed).permutation(200) for seed in (5, 6))
    sizes = (50,) * 4
    way = ExchangeOrder(ExchangeOrder.drawn(sizes, 3).marks, *ExchangeOrder.circles(home, shares))
    held = [np.concatenate(exchange(home, sizes, t, way)) for t in TICKS]
    np.testing.assert_array_equal(held[0], shares)
    np.testing.assert_array_equal(held[-1], home)
    for before, after in itertools.pairwise(held):
        np.testing.assert_array_equal(np.sort(after), np.arange(200))
        assert (before != after).sum() <= 2 * (10 + 4)


def few_records():
    rng = np.random.default_rng(1)
    classes = np.repeat(np.arange(4), 15)
    return rng.standard_normal((60, 10)) * (1.0 + np.eye(4, 10)[classes]), np.arange(60), (15,) * 4


def way_etas(records, home, sizes, way):
    pooled = records.T @ records / len(records)
    etas = []
    for t in TICKS:
        held = [records[own] for own in exchange(home, sizes, t, way)]
        gaps = np.stack([own.T @ own / len(own) for own in held]) - pooled
        etas.append(np.abs(np.linalg.eigvalsh(gaps)).max())
    return np.array(etas)


def test_a_laid_way_rises_where_drawn_ones_fall():
    records, home, sizes = few_records()
    drops = [
        largest_drop(way_etas(records, home, sizes, ExchangeOrder.drawn(sizes, 0, attempt)))
        for attempt in range(20)
    ]
    assert min(drops) > 0.005  # otherwise there is nothing to lay
    assert largest_drop(way_etas(records, home, sizes, steady_way(records, home, sizes, 0))) <= 1e-3


def test_a_laid_way_keeps_the_shares_and_the_small_moves():
    records, home, sizes = few_records()
    way = steady_way(records, home, sizes, 0)
    np.testing.assert_array_equal(np.sort(way.ring), home)
    for begin in range(0, 60, 15):
        marks = np.sort(way.marks[begin : begin + 15])
        np.testing.assert_allclose(np.diff(marks), 1 / 15, atol=1e-12)
    again = steady_way(records.copy(), home, sizes, 0)
    np.testing.assert_array_equal(again.marks, way.marks)


def test_where_no_way_can_rise_the_ends_are_kept_all_the_same():
    """Every client at home has the same records: the parameter can only go down."""
    records = np.tile(np.random.default_rng(3).standard_normal((8, 5)), (4, 1))
    home, sizes = np.arange(32), (8,) * 4
    etas = way_etas(records, home, sizes, steady_way(records, home, sizes, 0))
    assert etas[0] > 0.1 and etas[-1] < 1e-12


@pytest.mark.parametrize("features", [5, 60, 1100])
def test_leading_scores_are_principal(features):
    rng = np.random.default_rng(0)
    records = rng.standard_normal((80, features)) * 0.9 ** np.arange(features)
    scores = leading_scores(records, 6)
    singular = np.linalg.svd(records, compute_uv=False)[: scores.shape[1]]
    found = np.linalg.svd(scores, compute_uv=False)
    np.testing.assert_allclose(found, singular, rtol=1e-8)


@pytest.mark.parametrize("value", [-0.1, 1.01, float("nan")])
def test_a_dial_outside_its_range_is_refused(value):
    with pytest.raises(InvalidInput, match=f"between 0 .* and 1 .* not {value}"):
        exchange(np.arange(4), (2, 2), value, ExchangeOrder.drawn((2, 2), 0))


@pytest.mark.parametrize("clients", [1, 2, 9])
@pytest.mark.parametrize("size", [1, 7, 40])
def test_largest_norm_is_that_of_all_eigenvalues(clients: int, size: int) -> None:
    generator = np.random.default_rng(size)
    for scale in (1e-30, 1.0, 1e30):
        matrices = scale * generator.standard_normal((clients, size, size))
        matrices += matrices.swapaxes(1, 2)
        matrices[clients // 2 :] *= generator.choice([0.0, 0.999, 1.0])  # also ties and zeros
        assert largest_norm(matrices) == np.abs(np.linalg.eigvalsh(matrices)).max()
