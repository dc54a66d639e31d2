"""A mean that is kept back hides one picture common to all records, and nothing else."""

from __future__ import annotations

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
    assert found.largest_distance < 1e-3


def test_so_are_those_of_faces(data_folder):
    problem = images("olivetti", resolution=32, folder=data_folder)
    block, facts = problem.blocks[0], problem.announced
    found = attacks.records_without_mean(moment(block), facts.grid)
    truth = np.rint((block + facts.mean[:, None]) / facts.grid[:, None]).astype(np.int64)
    assert found.certified and same_up_to_common_picture(found.whole, truth)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_certified_on_a_wrong_grid_or_under_noise(seed):
    generator = np.random.default_rng(seed)
    block = some(8, seed) - MEAN[:, None]
    assert not attacks.records_without_mean(moment(block), 1.37 + 0.1 * seed).certified
    noisy = block + generator.standard_normal(block.shape)
    found = attacks.records_without_mean(moment(noisy))
    assert not found.certified and found.whole is None


def test_two_records_are_refused():
    with pytest.raises(InvalidInput, match="at least 3 records, not 2"):
        attacks.records_without_mean(moment(some(2)))
