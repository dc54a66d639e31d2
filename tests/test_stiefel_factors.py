"""Orthonormal and polar factors by products agree with LAPACK over spreads, batches and scales."""

from __future__ import annotations

import numpy as np
import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.linalg import stiefel
from fedpca_core.linalg.stiefel import inverse_root


def frames(spread: float, batch: int | None, scale: float = 1.0) -> np.ndarray:
    """Frames whose singular values run evenly from 1 to ``spread`` times ``scale``."""
    rng = np.random.default_rng(3)
    shape = () if batch is None else (batch,)
    left = np.linalg.qr(rng.standard_normal((*shape, 30, 4)))[0]
    right = np.linalg.qr(rng.standard_normal((*shape, 4, 4)))[0]
    return scale * (left * np.linspace(1.0, spread, 4)) @ right


@pytest.mark.parametrize("batch", [None, 1, 7])
@pytest.mark.parametrize("spread", [1.0, 1.1, 1.4, 1.6, 3.0, 1e3, 1e5, 1e7])
def test_polar_factor_is_that_of_the_svd(spread: float, batch: int | None) -> None:
    for scale in (1.0, 1e-6, 1e8):
        given = frames(spread, batch, scale)
        left, _, right = np.linalg.svd(given, full_matrices=False)
        found = stiefel.polar(given)
        assert np.abs(found - left @ right).max() < 1e-14 * max(spread, 3)
        gram = np.swapaxes(found, -1, -2) @ found
        assert np.abs(gram - np.eye(4)).max() < 4e-15


@pytest.mark.parametrize("size", [1, 2, 5, 9])
def test_inverse_root_by_products_is_that_of_the_eigenvectors(size: int) -> None:
    rng = np.random.default_rng(size)
    vectors = np.linalg.qr(rng.standard_normal((6, size, size)))[0]
    for ratio in (1.0, 1.0 + 1e-9, 1.001, 1.2, 2.0, 3.0):
        values = rng.uniform(1.0, ratio, (6, size)) * np.array([1e-9, 1, 1, 3, 7, 1e12])[:, None]
        matrices = (vectors * values[:, None, :]) @ vectors.swapaxes(-1, -2)
        exact = (vectors / np.sqrt(values)[:, None, :]) @ vectors.swapaxes(-1, -2)
        found = inverse_root(matrices)
        assert found is not None
        np.testing.assert_allclose(found, exact, rtol=0, atol=2e-15 * np.abs(exact).max() * size)


def test_inverse_root_declines_what_products_would_serve_badly() -> None:
    far = np.array([np.eye(3), np.diag([1.0, 1.0, 0.01])])
    assert inverse_root(far) is None
    assert inverse_root(np.array([np.eye(3), np.full((3, 3), np.nan)])) is None


@pytest.mark.parametrize("batch", [None, 7])
@pytest.mark.parametrize("spread", [1.0, 3.0, 1e3, 1e6, 1e9])
def test_orthonormal_factor_is_that_of_householder(spread: float, batch: int | None) -> None:
    given = frames(spread, batch)
    found = stiefel.orthonormalise(given)
    assert np.abs(found - stiefel.householder(given)).max() < 1e-14 * spread
    gram = np.swapaxes(found, -1, -2) @ found
    assert np.abs(gram - np.eye(4)).max() < 4e-15
    rough, _ = stiefel.reconditioned(given)
    if spread < 1e8:
        gram = np.swapaxes(rough, -1, -2) @ rough
        assert np.abs(gram - np.eye(4)).max() < 1e-14 * spread**2


def test_a_lost_column_does_not_break_either() -> None:
    given = frames(2.0, 3)
    given[1, :, 2] = given[1, :, 0]
    rough, _ = stiefel.reconditioned(given)
    for found in (stiefel.orthonormalise(given), stiefel.polar(given), rough):
        assert np.isfinite(found).all()
    gram = np.swapaxes(stiefel.polar(given), -1, -2) @ stiefel.polar(given)
    assert np.abs(gram - np.eye(4)).max() < 4e-15


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e200])
def test_diverged_frames_are_refused_in_words(bad: float) -> None:
    given = frames(2.0, 3)
    given[1, 4, 2] = bad
    with pytest.raises(InvalidInput, match="the run has diverged"):
        stiefel.polar(given)
