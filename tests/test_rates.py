"""Predicted local rates against measured ones, and FAPS's stability numbers."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.metrics import rates
from fedpca_core.protocol.algorithm import Algorithm
from tests.algorithms.small_problems import identical

COMPONENTS = 3


def measured(problem: fp.problems.Problem, algorithm: Algorithm, column: str) -> float:
    """Factor a round over the part of the curve where the slowest direction is alone."""
    trace = fp.simulate(problem, algorithm, rounds=400, channel=fp.Channel(record="estimates"))
    values = fp.metrics.frame(trace, problem)[column].to_numpy()
    low = 1e-8 if column == "sin_theta" else 1e-12
    inside = np.flatnonzero((values < 1e-2) & (values > low))
    begin, end = inside[len(inside) // 2], inside[-1]
    assert end - begin >= 10
    return float((values[end] / values[begin]) ** (1 / (end - begin)))


def test_ssi_and_local_power() -> None:
    problem = identical(1.05)
    predicted = rates.ssi_rate(problem.eigenvalues, COMPONENTS)
    assert predicted == pytest.approx(1.05**-2)
    for algorithm in (fp.SSI(COMPONENTS), fp.LocalPower(COMPONENTS)):
        assert 1 - measured(problem, algorithm, "sin_theta") == pytest.approx(
            1 - predicted, rel=0.02
        )
    # Quadratic measures shrink by the square.
    squared = measured(problem, fp.SSI(COMPONENTS), "relative_error")
    assert squared == pytest.approx(predicted**2, rel=0.002)


@pytest.mark.parametrize("factor", [0.15, 0.5])
@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8, 60])
def test_faps(steps: int, factor: float) -> None:
    problem = identical(1.05)
    algorithm = fp.FAPS(COMPONENTS, factor, adaptive=False, inner_rule="fixed", inner_steps=steps)
    penalty = factor * float(problem.eigenvalues[0])
    predicted = rates.faps_rate(problem.eigenvalues, COMPONENTS, penalty, steps)
    assert 1 - measured(problem, algorithm, "sin_theta") == pytest.approx(1 - predicted, rel=0.02)


def test_exact_inner_solves_are_the_limit() -> None:
    values = identical(1.05).eigenvalues
    exact = rates.faps_rate(values, COMPONENTS, 0.15)
    gap = values[COMPONENTS - 1] - values[COMPONENTS]
    assert exact == pytest.approx(0.15 / (0.15 + gap))
    assert rates.faps_rate(values, COMPONENTS, 0.15, 400) == pytest.approx(exact)
    assert rates.faps_rate(values, COMPONENTS, 0.15, 1) > rates.ssi_rate(values, COMPONENTS)


def test_stability_number_equals_its_sum() -> None:
    outside, inside, penalty = np.array([0.5, 0.9]), np.array([0.8, 0.3]), np.array([0.15, 0.2])
    for steps in (1, 2, 5):
        for i in range(2):
            ratio = outside[i] / (inside[i] + penalty[i])
            total = sum(ratio**k for k in range(steps)) * penalty[i] / (inside[i] + penalty[i])
            found = rates.stability_numbers(outside, inside, penalty, steps)[i]
            assert found == pytest.approx(total)
    most = rates.largest_stable_steps(outside, inside, penalty, 50)
    assert most[0] == 50  # the sum stays below 1 for ever
    assert rates.stability_numbers(outside, inside, penalty, int(most[1]))[1] <= 1
    assert rates.stability_numbers(outside, inside, penalty, int(most[1]) + 1)[1] > 1
    assert rates.largest_stable_steps(np.ones(1), np.zeros(1), np.ones(1), 9).tolist() == [1]


def test_the_threshold_is_where_faps_leaves_the_consensus() -> None:
    """At the solution, FAPS with fixed J is stable for kappa well below 2, unstable above."""
    problem = fp.problems.decay_spectrum(40, (60, 60, 60), 1.05, heterogeneity=0.8, seed=1)
    outside, inside = rates.client_spectra(problem.client_data, problem.target(COMPONENTS))
    norms = problem.client_data.spectral_norms()
    angles, numbers = [], []
    for factor in (0.1, 3.0):
        kappa = rates.stability_numbers(outside, inside, factor * norms, 20).max()
        algorithm = fp.FAPS(COMPONENTS, factor, adaptive=False, inner_rule="fixed", inner_steps=20)
        trace = fp.simulate(problem, algorithm, rounds=800)
        numbers.append(kappa)
        angles.append(float(fp.metrics.frame(trace, problem).sin_theta.iloc[-1]))
    assert numbers[0] > 4 and angles[0] > 1e-3
    assert numbers[1] < 2 and angles[1] < 1e-6


def test_client_spectra_equal_dense_projectors() -> None:
    problem = fp.problems.decay_spectrum(12, (50, 60), 1.2)
    frame = problem.target(COMPONENTS)
    outside, inside = rates.client_spectra(problem.client_data, frame)
    projector = np.eye(12) - frame @ frame.T
    for i, matrix in enumerate(problem.client_data.dense()):
        assert outside[i] == pytest.approx(np.linalg.norm(projector @ matrix @ projector, 2))
        assert inside[i] == pytest.approx(np.linalg.eigvalsh(frame.T @ matrix @ frame)[0])


def test_refusals() -> None:
    with pytest.raises(InvalidInput, match="8 components leave no gap in 5 eigenvalues"):
        rates.ssi_rate(np.ones(5), 8)
    with pytest.raises(InvalidInput, match="penalty must be positive, not 0"):
        rates.faps_rate(np.ones(5), 2, 0.0)
    with pytest.raises(InvalidInput, match="at least 1 inner step, not 0"):
        rates.stability_numbers(np.ones(1), np.ones(1), np.ones(1), 0)
