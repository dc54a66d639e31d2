"""Masks that other methods could have: the mask is FAPS's, and what is read is what was hidden."""

import numpy as np
import pytest

from fedpca_core.papers import checks_faps
from fedpca_core.papers.experiment import frame
from fedpca_core.papers.fedpower_runs import fedsvd

RNG = np.random.default_rng(0)


def test_the_mask_is_equation_20_with_one_step_of_subspace_iteration():
    block = RNG.standard_normal((7, 9))
    s, z = block @ block.T, frame(RNG, 7, 2)
    x = np.linalg.qr(s @ z)[0]
    inside, outside = x @ x.T, np.eye(7) - x @ x.T
    mask = 0.3 * inside + outside @ s @ inside + inside @ s @ outside
    np.testing.assert_allclose(checks_faps.masked_product(s, z, 0.3), mask @ z, atol=1e-12)


def test_a_fit_reads_through_the_mask_and_rounds_too_few_hide_the_matrix(monkeypatch):
    assert checks_faps.masked_power(np.random.default_rng(2)) < 1e-9
    monkeypatch.setattr(checks_faps, "ROUNDS", 2)  # 32 numbers for 37 unknowns
    monkeypatch.setattr(checks_faps, "STARTS", 1)
    assert checks_faps.masked_power(np.random.default_rng(2)) > 0.01


@pytest.mark.parametrize("seed", range(2))
def test_components_are_read_through_one_orthogonal_mask_and_not_through_two(seed):
    assert fedsvd(np.random.default_rng(seed), both=False) > 0.95
    assert fedsvd(np.random.default_rng(seed), both=True) < 0.15
