"""Lattice tools: reduction, short vectors, shorter generators."""

from __future__ import annotations

import numpy as np
import pytest

from fedpca_core.attacks.lattice.reduction import (
    reduce_basis,
    reduce_generators,
    short_vectors,
    sieve,
)


def rotation(size: int, generator: np.random.Generator) -> np.ndarray:
    return np.linalg.qr(generator.standard_normal((size, size)))[0]


@pytest.mark.parametrize("size", [1, 3, 8])
def test_rotated_whole_vectors_reduce_to_the_rotation(size):
    generator = np.random.default_rng(size)
    turn = rotation(size, generator)
    rows = generator.integers(-20, 21, (3 * size + 4, size)) @ turn
    found = reduce_generators(rows, 1e-3)
    assert found.gap > 1e6
    assert found.noise < 1e-9
    np.testing.assert_allclose(found.basis @ found.basis.T, np.eye(size), atol=1e-9)
    np.testing.assert_array_equal(found.combinations, np.rint(found.combinations))
    np.testing.assert_allclose(found.combinations @ rows, found.basis, atol=1e-12)


def test_relations_measure_the_noise_of_the_rows():
    generator = np.random.default_rng(5)
    rows = generator.integers(-9, 10, (40, 6)) @ rotation(6, generator)
    found = reduce_generators(rows + 1e-5 * generator.standard_normal(rows.shape), 1e-2)
    assert 3e-6 < found.noise < 3e-5


@pytest.mark.parametrize(
    ("basis", "bound", "pairs"),
    [
        (np.eye(5), 1.0, 5),
        (np.eye(4), 2.0, 4 + 12),
        (np.array([[1, 1, 0, 0], [1, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1.0]]), 2.0, 12),
    ],
    ids=["Z^5", "Z^4, two shells", "D_4"],
)
def test_short_vectors_are_all_listed_once(basis, bound, pairs):
    found = short_vectors(basis, bound + 1e-9)
    assert len(found) == pairs
    assert ((found**2).sum(axis=1) <= bound + 1e-9).all()
    signed = np.vstack([found, -found])
    assert len(np.unique(np.rint(signed), axis=0)) == 2 * pairs
    assert short_vectors(basis, bound + 1e-9, nodes=3) is None


def test_a_reduced_basis_generates_the_same_lattice():
    generator = np.random.default_rng(2)
    basis = generator.standard_normal((6, 6)) @ np.diag(10.0 ** np.arange(6.0))
    reduced = reduce_basis(basis)
    change = reduced @ np.linalg.inv(basis)
    np.testing.assert_allclose(change, np.rint(change), atol=1e-6)
    assert np.linalg.norm(reduced, axis=1).max() <= np.linalg.norm(basis, axis=1).max()


def test_sieved_rows_are_shorter_and_generate_the_same_lattice():
    generator = np.random.default_rng(3)
    smooth = np.cumsum(generator.integers(-3, 4, (60, 5)), axis=0) + 40.0
    turned = smooth @ rotation(5, generator)
    found = sieve(turned, 0.0, 0.1)
    np.testing.assert_allclose(found.rows, found.combinations @ turned[found.chosen], atol=1e-9)
    assert np.median(np.linalg.norm(found.rows, axis=1)) < 0.2 * np.median(
        np.linalg.norm(turned, axis=1)
    )
    volumes = [
        abs(np.linalg.det(reduce_generators(rows, 1e-4).basis)) for rows in (turned, found.rows)
    ]
    assert volumes[0] == pytest.approx(volumes[1], rel=1e-6)
