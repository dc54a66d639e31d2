"""Synthetic problems: the pooled spectrum is exact, whatever split, weights or heterogeneity."""

import tracemalloc

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import ClientData, decay_spectrum, spectrum
from fedpca_core.problems.spectrum import singular_values

DIALS = (0.0, 0.3, 1.0)


def blocks(problem):
    """The raw blocks, which small problems keep."""
    assert problem.blocks is not None
    return problem.blocks


def test_geometric_and_arithmetic_singular_values():
    np.testing.assert_allclose(singular_values(4, 2.0, None), [1, 0.5, 0.25, 0.125])
    np.testing.assert_allclose(singular_values(5, None, 5.0), [1, 0.8, 0.6, 0.4, 0.2])
    np.testing.assert_array_equal(singular_values(6, 1.0, None), np.ones(6))
    np.testing.assert_array_equal(singular_values(6, None, 1.0), np.ones(6))
    assert singular_values(3, None, None)[1] == 1 / 1.01


@pytest.mark.parametrize("heterogeneity", DIALS)
@pytest.mark.parametrize("weights", ["records", "equal", (0.5, 0.2, 0.3)])
@pytest.mark.parametrize(
    ("samples", "spectrum"),
    [
        ((300, 200, 250), {"decay": 1.1}),
        ((12, 20, 10), {"condition": 10.0}),  # held as blocks
        ((300, 20, 90), {"decay": 1.0}),  # exactly flat
        ((60, 60, 60), {"decay": 1.8}),  # eigenvalues down to 1e-15
    ],
)
def test_the_pooled_spectrum_is_exact(heterogeneity, weights, samples, spectrum):
    problem = decay_spectrum(30, samples, heterogeneity=heterogeneity, weights=weights, **spectrum)
    expected = np.diag(singular_values(30, spectrum.get("decay"), spectrum.get("condition")) ** 2)
    np.testing.assert_allclose(problem.client_data.mean(), expected, atol=1e-13)
    np.testing.assert_array_equal(problem.covariance, expected)
    np.testing.assert_array_equal(problem.eigenvalues, np.diag(expected))
    np.testing.assert_array_equal(problem.target(3), np.eye(30)[:, :3])


@pytest.mark.parametrize("heterogeneity", DIALS)
@pytest.mark.parametrize("samples", [(300, 200), (30, 10)])
def test_blocks_and_second_moments_are_the_same_data(heterogeneity, samples):
    problem = decay_spectrum(40, samples, 1.05, heterogeneity=heterogeneity)
    assert [block.shape for block in blocks(problem)] == [(40, size) for size in samples]
    again = ClientData.from_blocks(blocks(problem))
    np.testing.assert_allclose(problem.client_data.dense(), again.dense(), atol=1e-13)
    assert (problem.client_data.grams is None) == (samples == (30, 10))


def test_without_blocks_the_problem_is_the_same():
    with_blocks = decay_spectrum(40, (300, 200), 1.05, heterogeneity=0.4, keep_blocks=True)
    without = decay_spectrum(40, (300, 200), 1.05, heterogeneity=0.4, keep_blocks=False)
    assert without.blocks is None
    np.testing.assert_array_equal(without.client_data.grams, with_blocks.client_data.grams)
    # Held as blocks and large enough that nothing is remembered: overwritten in place.
    with_blocks = decay_spectrum(150, (10,) * 30, 1.01, keep_blocks=True)
    without = decay_spectrum(150, (10,) * 30, 1.01, keep_blocks=False)
    assert without.blocks is None
    np.testing.assert_array_equal(without.client_data.dense(), with_blocks.client_data.dense())


def test_shares_are_random_and_depend_on_the_seed_alone():
    first = decay_spectrum(20, (50, 50), 1.1, seed=1)
    assert first.digest == decay_spectrum(20, (50, 50), 1.1, seed=1).digest
    assert first.digest != decay_spectrum(20, (50, 50), 1.1, seed=2).digest
    assert first.digest != decay_spectrum(20, (50, 50), 1.1, seed=1, heterogeneity=0.2).digest


def test_the_pooled_records_do_not_depend_on_the_split():
    even = decay_spectrum(20, (60, 60), 1.1)
    uneven = decay_spectrum(20, (20, 70, 30), 1.1)
    np.testing.assert_allclose(
        np.concatenate(blocks(even), axis=1), np.concatenate(blocks(uneven), axis=1), atol=1e-12
    )


def test_the_global_problem_is_blind_to_the_parameter():
    """SSI sees the pool alone, so its iterates stay the same at every parameter position."""
    runs = [
        fp.simulate(
            decay_spectrum(30, (200, 300, 100), 1.1, heterogeneity=t),
            fp.SSI(components=4),
            rounds=40,
        ).estimates
        for t in DIALS
    ]
    for run in runs[1:]:
        np.testing.assert_allclose(run, runs[0], atol=1e-10)


def test_a_problem_in_use_is_not_changed_by_the_next_one():
    """White shares are remembered between calls; what is handed out must be a copy."""
    for samples in ((200, 300), (4, 5, 4, 5, 4, 5, 4)):
        first = decay_spectrum(20, samples, 1.1)
        before = first.client_data.dense().copy()
        first.client_data.dense()[:] = 7.0
        for block in blocks(first):
            block[:] = 7.0
        np.testing.assert_array_equal(decay_spectrum(20, samples, 1.1).client_data.dense(), before)


def test_large_data_are_generated_in_place():
    """At the paper's size the data fill 2 GB and must not be held twice; here 16 MB."""
    features, samples = 400, (100,) * 50
    size = 8 * features * sum(samples)
    decay_spectrum(8, (4,) * 40, 1.1)  # imports
    tracemalloc.start()
    try:
        problem = decay_spectrum(features, samples, 1.01, keep_blocks=False)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert problem.client_data.grams is None
    # The matrices of the orthonormalisation (features x features) come on top of the data.
    assert peak < 1.1 * size + 6 * 8 * features**2
    np.testing.assert_allclose(problem.client_data.mean(), problem.covariance, atol=1e-13)


def test_large_data_of_many_records_are_the_same_from_one_pass(monkeypatch):
    def made():
        return spectrum.white_shares(60, (50,) * 30, 0, blocks=True, moments=True, remember=False)

    twice = made()
    monkeypatch.setattr(spectrum, "_LARGE_BYTES", 0)
    once = made()
    assert not np.array_equal(twice.moments, once.moments)
    np.testing.assert_allclose(once.moments, twice.moments, atol=1e-13)
    np.testing.assert_allclose(once.blocks, twice.blocks, atol=1e-13)
    np.testing.assert_allclose(once.moments.mean(axis=0), np.eye(60), atol=1e-13)
    np.testing.assert_array_equal(once.moments, once.moments.mT)


def test_one_pass_leaves_what_is_remembered_alone(monkeypatch):
    monkeypatch.setattr(spectrum, "_LARGE_BYTES", 0)
    first = decay_spectrum(20, (200, 300), 1.1, seed=5, keep_blocks=False)
    before = first.client_data.dense().copy()
    first.client_data.dense()[:] = 7.0
    again = decay_spectrum(20, (200, 300), 1.1, seed=5, keep_blocks=False)
    np.testing.assert_array_equal(again.client_data.dense(), before)


@pytest.mark.parametrize(("large", "seed"), [(2**40, 6), (0, 7)])
def test_leading_features_have_the_data_that_they_have_among_all(large, seed, monkeypatch):
    monkeypatch.setattr(spectrum, "_LARGE_BYTES", large)
    whole = decay_spectrum(40, (400, 500), 1.05, seed=seed)
    part = decay_spectrum(40, (400, 500), 1.05, seed=seed, leading=12)
    np.testing.assert_allclose(part.eigenvalues, whole.eigenvalues[:12])
    np.testing.assert_allclose(
        part.client_data.dense(), whole.client_data.dense()[:, :12, :12], atol=1e-13
    )


def test_heterogeneity_of_large_cohorts_is_found_without_all_eigenvalues():
    problem = decay_spectrum(220, (150, 400), 1.02, heterogeneity=0.5)
    gaps = problem.client_data.dense() - problem.covariance
    expected = np.abs(np.linalg.eigvalsh(gaps)).max(axis=1)
    np.testing.assert_allclose(problem.client_data.gaps(problem.covariance), expected, rtol=1e-9)
    only = problem.client_data.only(np.array([1]))
    np.testing.assert_allclose(only.gaps(problem.covariance), expected[1:], rtol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"features": 1}, "1 features; choose at least 2"),
        ({"samples": (100,)}, "number of clients is 1"),
        ({"samples": (100, 0)}, "Client 1 is empty"),
        ({"samples": (10, 10)}, "30 features need at least as many samples .* not 20"),
        ({"decay": 0.9}, r"decay must lie between 1 and .* not 0\.9"),
        ({"decay": float("nan")}, "not nan"),
        ({"decay": 1e6}, "not 1000000"),
        ({"condition": 0.5}, r"between 1 and 1e8, not 0\.5"),
        ({"decay": 1.1, "condition": 5.0}, r"decay \(1\.1\) or a condition number \(5\.0\)"),
        ({"heterogeneity": 1.5}, r"between 0 .* and 1 .* not 1\.5"),
        ({"heterogeneity": float("nan")}, "not nan"),
        ({"weights": "sizes"}, "'sizes'"),
        ({"weights": (1.0,)}, "one positive weight for each of the 2 clients"),
        ({"weights": (1.0, -1.0)}, "one positive weight"),
        ({"seed": -1}, "-1"),
        ({"leading": 31}, "30 features, so that 31 leading ones cannot be made"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        decay_spectrum(**({"features": 30, "samples": (100, 100)} | arguments))


def test_too_many_components_are_refused_with_the_largest_that_fit():
    problem = decay_spectrum(10, (30, 30))
    with pytest.raises(InvalidInput, match=r"12 components do not fit 10 features; .* 1 and 9"):
        problem.target(12)
    with pytest.raises(InvalidInput, match="12 components do not fit 10 features"):
        fp.simulate(problem, fp.SSI(components=12), rounds=2)
