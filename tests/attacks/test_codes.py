"""Records of codes follow from their counts, however many there are."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from fedpca_core import attacks
from fedpca_core.attacks.lattice import codes
from fedpca_core.attacks.lattice.codes import records_of_codes, sets_of_records

WORK = 1e10


def table(seed: int, groups: tuple[int, ...], count: int) -> np.ndarray:
    """One-hot columns of groups of categories, (features, records)."""
    generator = np.random.default_rng(seed)
    return np.vstack([np.eye(size)[generator.integers(0, size, count)].T for size in groups])


def same(found: np.ndarray, truth: np.ndarray) -> bool:
    return sorted(map(tuple, found.T.tolist())) == sorted(map(tuple, truth.T.tolist()))


def factor(sent: np.ndarray) -> attacks.Factor:
    return attacks.factor_of(sent @ sent.T / sent.shape[1], sent.shape[1])


@pytest.mark.parametrize("count", [5, 40, 300])
@pytest.mark.parametrize("groups", [(4,), (4, 5), (2, 9)])
def test_two_groups_of_codes_are_told_whatever_the_number_of_records(groups, count):
    truth = table(count, groups, count)
    found = records_of_codes(factor(truth), None, WORK)
    assert found.certified and same(found.whole, truth), found.note
    mean = truth.mean(axis=1) * 0.7 + 0.05
    found = records_of_codes(factor(truth - mean[:, None]), mean, WORK)
    assert found.certified and same(found.whole, truth), found.note


def test_what_is_enumerated_is_all_there_is():
    """Against going through all records of four columns, by brute force."""
    every = np.array(list(itertools.product([0, 1], repeat=4))).T
    for seed in range(60):
        generator = np.random.default_rng(seed)
        truth = every[:, generator.integers(0, 16, 4)]
        counts = truth @ truth.T
        right = {
            chosen
            for chosen in itertools.combinations_with_replacement(range(16), 4)
            if np.array_equal(every[:, chosen] @ every[:, chosen].T, counts)
        }
        found, ended = sets_of_records(counts, 4, 10**6)
        assert ended and len(found) == min(len(right), 2), seed
        assert all(np.array_equal(one @ one.T, counts) for one in found)


def test_where_several_sets_have_the_counts_none_is_certified(monkeypatch):
    """Three columns that are each 1 in half of the records, two at a time in a quarter."""
    even = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 1], [1, 1, 0]]).T.astype(float)
    found = records_of_codes(factor(even), None, WORK)
    assert not found.certified and "more than one set" in found.note
    monkeypatch.setattr(codes, "_SETS", 1)  # a search that ends at the first
    assert records_of_codes(factor(even), None, WORK).certified


def test_a_search_that_did_not_end_certifies_nothing():
    truth = table(0, (5, 5, 5), 60)
    found = records_of_codes(factor(truth), None, 1e5)
    assert not found.certified and "too many sets" in found.note


def test_what_is_no_table_of_counts_is_refused():
    truth = table(1, (4, 5), 50)
    noise = 1e-3 * np.random.default_rng(1).standard_normal((9, 9))
    moment = truth @ truth.T / 50 + noise + noise.T
    assert not records_of_codes(attacks.factor_of(moment, 50), None, WORK).certified
    empty = attacks.Factor(np.zeros((9, 0)), 50, 1.0)  # noise buries all of it
    assert "hides" in records_of_codes(empty, None, WORK).note
    vague = replace(factor(truth), error=0.1)
    assert "hides" in records_of_codes(vague, None, WORK).note
    for told in (49, 51):  # a wrong number of records
        wrong = attacks.factor_of(truth @ truth.T / 50, told)
        assert not records_of_codes(wrong, None, WORK).certified
