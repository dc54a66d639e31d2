"""A mean that is kept back hides one picture common to all records, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedpca_core import attacks
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import images
from tests.attacks.test_records import MEAN, moment, some


def same_up_to_common_picture(whole: np.ndarray, block: np.ndarray) -> bool:
    """Whether the records are the true ones above their darkest, or their negative."""
    raised = block - block.min(axis=1, keepdims=True)
    negative = block.max(axis=1, keepdims=True) - block
    return any(
        sorted(map(tuple, whole.T.tolist())) == sorted(map(tuple, one.T.tolist()))
        for one in (raised, negative)
    )


@pytest.mark.parametrize("count", [3, 10, 25])
def test_all_differences_between_records_are_found(count):
    block = some(count, count)
    found = attacks.records_without_mean(moment(block - MEAN[:, None]))
    assert found.certified, found.note
    assert same_up_to_common_picture(found.whole, block)
    assert found.certificate.largest_distance < 1e-3


@pytest.mark.data("olivetti")
def test_so_are_those_of_faces(data_folder):
    problem = images("olivetti", resolution=32, folder=data_folder)
    block, facts = problem.blocks[0], problem.announced
    found = attacks.records_without_mean(moment(block), facts.grid)
    truth = np.rint((block + facts.mean[:, None]) / facts.grid[:, None]).astype(np.int64)
    assert found.certified and same_up_to_common_picture(found.whole, truth)


def failing(kind: str, seed: int) -> tuple[np.ndarray, float]:
    """A block whose differences are not on the grid, and the grid."""
    generator = np.random.default_rng(seed)
    count = 62 if kind == "too many" else int(generator.integers(3, 15))
    block = some(count, seed) - MEAN[:, None]
    if kind == "real":
        block = block + generator.uniform(-0.5, 0.5, block.shape)
    elif kind == "a row of its own":
        # The largest pixel by far is a real number: the rotation may not bend to make it whole.
        block[0] = 1e4 * generator.standard_normal(count)
    return block, generator.uniform(1.02, 1.9) if kind == "wrong grid" else 1.0


@pytest.mark.parametrize("kind", ["wrong grid", "real", "too many", "a row of its own"])
def test_nothing_is_certified_where_it_must_fail(kind):
    for seed in range(8):
        block, grid = failing(kind, seed)
        found = attacks.records_without_mean(moment(block), grid)
        assert not found.certified and found.whole is None, seed
        assert found.note.startswith("Not certified")


def test_a_perturbed_matrix_is_certified_only_where_the_differences_are_right():
    ends = []
    for seed in range(30):
        generator = np.random.default_rng(seed)
        block = some(int(generator.integers(3, 15)), seed)
        matrix = (block - MEAN[:, None]) @ (block - MEAN[:, None]).T / block.shape[1]
        noise = generator.standard_normal(matrix.shape)
        size = 10 ** generator.uniform(-8, 1)
        matrix = matrix + size * (noise + noise.T) / np.sqrt(2.0)
        factor = attacks.factor_of(matrix, block.shape[1], error=size)
        found = attacks.records_without_mean(factor)
        ends.append(found.certified)
        assert not found.certified or same_up_to_common_picture(found.whole, block), seed
        # Noise that is not stated: the differences do not give this matrix back.
        assert not attacks.records_without_mean(replace(factor, error=1e-15)).certified
    assert 0 < sum(ends) < 30  # the noise is small enough for some


def test_it_is_said_whether_nothing_else_explains_the_matrix():
    assert attacks.records_without_mean(moment(some(10) - MEAN[:, None])).certificate.unique


@pytest.mark.parametrize("count", [3, 6, 12, 30])
def test_records_centred_on_their_own_mean_are_found_too(count):
    block = some(count, count)
    found = attacks.records_without_mean(moment(block - block.mean(axis=1, keepdims=True)))
    assert found.certified and found.certificate.unique, found.note
    assert same_up_to_common_picture(found.whole, block)


def test_two_records_are_refused():
    with pytest.raises(InvalidInput, match="at least 3 records, not 2"):
        attacks.records_without_mean(moment(some(2)))
