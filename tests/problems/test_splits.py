"""Sizes of clients: whole, positive, summing to the total, in the promised proportions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedpca_core.errors import InvalidInput
from fedpca_core.problems.splits import BY_KIND, SPLITS, by_kind, checked_sizes, samples_per_client


@given(st.sampled_from(SPLITS), st.integers(2, 60), st.integers(0, 5000), st.integers(0, 50))
def test_sizes_are_whole_positive_and_complete(split, clients, extra, seed):
    total = clients + extra
    sizes = samples_per_client(split, clients, total, seed=seed)
    assert len(sizes) == clients
    assert sum(sizes) == total
    assert min(sizes) >= 1
    assert all(type(size) is int for size in sizes)


def test_even_sizes_differ_by_at_most_one():
    sizes = samples_per_client("even", 7, 100)
    assert max(sizes) - min(sizes) == 1


def test_uneven_sizes_are_proportional_to_the_position():
    assert samples_per_client("uneven", 8, 36_000) == tuple(1000 * i for i in range(1, 9))


def test_dirichlet_sizes_are_reproducible_and_respect_their_minimum():
    sizes = samples_per_client("dirichlet", 10, 10_000, seed=3)
    assert sizes == samples_per_client("dirichlet", 10, 10_000, seed=3)
    assert sizes != samples_per_client("dirichlet", 10, 10_000, seed=4)
    assert min(sizes) >= 100  # a tenth of the mean


def test_dirichlet_sizes_are_moderately_uneven():
    drawn = [samples_per_client("dirichlet", 10, 10_000, seed=seed) for seed in range(20)]
    assert 500 < np.mean([np.std(one) for one in drawn]) < 2000


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("odd", 5, 100), "'odd'"),
        (("even", 1, 100), "number of clients is 1; .* at least 2"),
        (("even", 20, 10), r"more clients \(20\) than samples \(10\).*at most 10"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(arguments, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        samples_per_client(*arguments)


@pytest.mark.parametrize(
    ("samples", "sentence"),
    [
        (1000, "list the number of records"),
        ("12", "list the number of records"),
        ([5], "number of clients is 1"),
        ([5, 2.5], r"Client 1 has 2\.5 samples; give a whole number"),
        ([5, 0], r"Client 1 is empty \(0 samples\)"),
        ([5, -3], r"Client 1 is empty \(-3 samples\)"),
    ],
)
def test_sizes_that_are_not_counts_are_refused(samples, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        checked_sizes(samples)


def test_sizes_may_come_as_an_array():
    assert checked_sizes(np.array([3, 4])) == (3, 4)


@pytest.mark.parametrize("split", BY_KIND)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_record_dealt_by_kind_has_one_owner(split, seed):
    kinds = np.random.default_rng(seed).integers(0, 10, size=3000)
    held = by_kind(split, kinds, 20, seed=seed, concentration=0.5)
    assert sorted(np.concatenate(held)) == list(range(3000))
    again = by_kind(split, kinds, 20, seed=seed, concentration=0.5)
    assert all((one == other).all() for one, other in zip(held, again, strict=True))


def shares(held, kinds):
    counted = np.array([np.bincount(kinds[one], minlength=10) for one in held])
    return counted / counted.sum(axis=1, keepdims=True)


def test_a_pathological_client_holds_so_many_kinds_and_shards_hardly_more():
    kinds = np.repeat(np.arange(10), 200)
    for each in (1, 2, 3):
        held = by_kind("pathological", kinds, 20, each=each)
        assert ((shares(held, kinds) > 0).sum(axis=1) == each).all()
        # A shard of a hundred records lies within one kind here, as a kind has two hundred.
        held = by_kind("shards", kinds, 20, each=each)
        assert ((shares(held, kinds) > 0).sum(axis=1) <= 2 * each).all()
    assert {len(one) for one in by_kind("shards", kinds, 20, each=2)} == {100}


def test_a_large_concentration_gives_everybody_the_same_mixture_and_a_small_one_does_not():
    kinds = np.repeat(np.arange(10), 1000)
    spread = {
        alpha: shares(by_kind("dirichlet", kinds, 10, concentration=alpha), kinds).std()
        for alpha in (0.3, 1.0, 1000.0)
    }
    assert spread[1000.0] < 0.01 < 0.05 < spread[1.0] < spread[0.3]


def test_a_split_by_kind_that_leaves_somebody_empty_is_a_sentence():
    kinds = np.repeat(np.arange(2), 30)
    with pytest.raises(InvalidInput, match="Choose fewer clients or a larger α"):
        by_kind("dirichlet", kinds, 25, concentration=0.01)
    with pytest.raises(InvalidInput, match="of 2 kinds, so a client cannot hold 3"):
        by_kind("pathological", kinds, 4, each=3)
    with pytest.raises(InvalidInput, match=r"The split is .* or "):
        by_kind("even", kinds, 4)
