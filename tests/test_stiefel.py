"""Laws of frames and subspace distances."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedpca_core.errors import InvalidInput
from fedpca_core.linalg import stiefel
from fedpca_core.streams import Streams


def frame(seed: int, features: int = 12, components: int = 3) -> np.ndarray:
    return stiefel.uniform_frame(np.random.default_rng(seed), features, components)


@given(seed=st.integers(0, 10_000), components=st.integers(1, 6))
@settings(max_examples=30)
def test_orthonormalise_is_the_unique_q_factor(seed: int, components: int) -> None:
    matrix = np.random.default_rng(seed).standard_normal((4, 12, components))
    q = stiefel.orthonormalise(matrix)
    r = q.mT @ matrix
    assert np.allclose(q.mT @ q, np.eye(components), atol=1e-14)
    assert np.allclose(q @ r, matrix, atol=1e-12)
    assert np.all(np.diagonal(r, axis1=-2, axis2=-1) > 0)
    assert np.allclose(np.tril(r, -1), 0, atol=1e-12)
    assert np.allclose(q, stiefel.householder(matrix), atol=1e-12)


@pytest.mark.parametrize("spread", [1e-3, 1e-6, 1e-9, 1e-13, 0.0])
def test_orthonormalise_survives_nearly_dependent_columns(spread: float) -> None:
    rng = np.random.default_rng(1)
    base = rng.standard_normal((20, 1))
    matrix = np.concatenate([base, base + spread * rng.standard_normal((20, 1))], axis=1)
    q = stiefel.orthonormalise(matrix)
    assert np.allclose(q.T @ q, np.eye(2), atol=1e-13)
    assert np.linalg.norm(matrix - q @ (q.T @ matrix)) <= 1e-12 * np.linalg.norm(matrix)


def test_a_diverged_frame_is_a_sentence() -> None:
    with pytest.raises(InvalidInput, match="diverged"):
        stiefel.orthonormalise(np.full((5, 2), np.nan))


def test_batch_equals_one_by_one() -> None:
    matrices = np.random.default_rng(2).standard_normal((7, 9, 4))
    batch = stiefel.orthonormalise(matrices)
    for one, matrix in zip(batch, matrices, strict=True):
        assert np.allclose(one, stiefel.orthonormalise(matrix), atol=1e-13)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25)
def test_distances_depend_on_spans_only(seed: int) -> None:
    first, second = frame(seed), frame(seed + 1)
    rotation = stiefel.uniform_frame(np.random.default_rng(seed + 2), 3, 3)
    flips = np.array([1.0, -1.0, -1.0])
    for changed in (second @ rotation, second * flips):
        assert np.isclose(
            stiefel.projector_distance(first, changed), stiefel.projector_distance(first, second)
        )
        assert np.isclose(stiefel.largest_sine(changed, first), stiefel.largest_sine(second, first))
    dense = np.linalg.norm(first @ first.T - second @ second.T)
    assert np.isclose(stiefel.projector_distance(first, second), dense)
    spectral = np.linalg.norm(first @ first.T - second @ second.T, 2)
    assert np.isclose(stiefel.largest_sine(second, first), spectral)


def test_distance_sees_angles_far_below_the_textbook_floor() -> None:
    angle = 1e-12
    first = np.eye(6)[:, :2]
    second = first.copy()
    second[:, 0] = np.cos(angle) * np.eye(6)[:, 0] + np.sin(angle) * np.eye(6)[:, 5]
    assert np.isclose(stiefel.projector_distance(first, second), np.sqrt(2) * angle, rtol=1e-3)
    assert np.isclose(stiefel.largest_sine(second, first), angle, rtol=1e-3)


def test_a_dropped_column_is_not_overlooked() -> None:
    target = np.eye(6)[:, :3]
    missing = np.eye(6)[:, [0, 1, 4]]
    assert stiefel.largest_sine(missing, target) == pytest.approx(1.0)
    sines = np.linalg.svd(stiefel.remove_span(target, missing), compute_uv=False)
    assert sines == pytest.approx([1.0, 0.0, 0.0])


def test_a_wider_frame_contains_the_target() -> None:
    wide = np.eye(8)[:, :5]
    assert stiefel.largest_sine(wide, np.eye(8)[:, :3]) == 0.0
    assert stiefel.largest_sine(wide, np.eye(8)[:, 4:6]) == pytest.approx(1.0)


def test_procrustes_is_the_best_rotation() -> None:
    first, reference = frame(3), frame(4)
    best = stiefel.procrustes(first, reference)
    least = np.linalg.norm(first @ best - reference)
    rng = np.random.default_rng(5)
    for _ in range(50):
        other = stiefel.uniform_frame(rng, 3, 3)
        assert np.linalg.norm(first @ other - reference) >= least - 1e-12


def test_polar_keeps_the_span_and_is_the_nearest_frame() -> None:
    matrix = np.random.default_rng(6).standard_normal((9, 3))
    nearest = stiefel.polar(matrix)
    assert np.allclose(nearest.T @ nearest, np.eye(3))
    assert stiefel.projector_distance(nearest, stiefel.orthonormalise(matrix)) < 1e-12
    assert np.linalg.norm(nearest - matrix) <= np.linalg.norm(frame(7, 9) - matrix)


def test_tangent_vectors_keep_orthonormality_to_first_order() -> None:
    at = frame(8)
    move = stiefel.tangent(at, np.random.default_rng(9).standard_normal(at.shape))
    assert np.allclose(at.T @ move + move.T @ at, 0, atol=1e-14)


def test_streams_are_named_and_independent() -> None:
    streams = Streams(7)
    draws = streams.generator("noise", 3).standard_normal(5)
    assert np.array_equal(draws, Streams(7).generator("noise", 3).standard_normal(5))
    for other in (("noise", 4), ("start", 3)):
        assert not np.allclose(draws, streams.generator(*other).standard_normal(5))
    assert not np.allclose(draws, Streams(8).generator("noise", 3).standard_normal(5))
    with pytest.raises(InvalidInput, match="-1"):
        Streams(-1)
