"""One-shot averaging and the centralised reference."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import largest_sine
from tests.algorithms.small_problems import COMPONENTS, FEATURES, identical, mixed


@pytest.mark.parametrize("variant", ["projectors", "stacked"])
def test_one_shot_equals_the_dense_average(variant: str) -> None:
    problem = mixed()
    trace = fp.simulate(problem, fp.OneShot(COMPONENTS, variant), rounds=9)
    assert trace.rounds == 1
    average = np.zeros((FEATURES, FEATURES))
    for weight, matrix in zip(
        problem.client_data.weights, problem.client_data.dense(), strict=True
    ):
        values, vectors = np.linalg.eigh(matrix)
        scale = values[-COMPONENTS:] if variant == "stacked" else np.ones(COMPONENTS)
        leading = vectors[:, -COMPONENTS:]
        average += weight * (leading * scale) @ leading.T
    best = np.linalg.eigh(average)[1][:, ::-1][:, :COMPONENTS]
    assert largest_sine(trace.estimate, best) < 1e-10


def test_one_shot_is_exact_for_identical_clients_and_has_a_floor_otherwise() -> None:
    same, uneven = identical(), mixed()
    for variant in ("projectors", "stacked"):
        exact = fp.simulate(same, fp.OneShot(COMPONENTS, variant), rounds=1)
        assert largest_sine(exact.estimate, same.target(COMPONENTS)) < 1e-10
        rough = fp.simulate(uneven, fp.OneShot(COMPONENTS, variant), rounds=100)
        assert 1e-3 < float(largest_sine(rough.estimate, uneven.target(COMPONENTS))) < 0.5


def test_one_shot_counts_only_those_present() -> None:
    problem = mixed()
    for absent in ("memory", "present"):
        trace = fp.simulate(
            problem, fp.OneShot(COMPONENTS), rounds=5, participation=0.5, absent=absent
        )
        assert trace.rounds == 1
        assert trace.bytes_up[-1] == 2 * FEATURES * COMPONENTS * 8
        assert trace.bytes_down[-1] == 0
        assert trace.local_products[-1] == 0


def test_one_shot_needs_single_uploads() -> None:
    with pytest.raises(InvalidInput, match="One-shot needs every client's own upload"):
        fp.simulate(
            mixed(), fp.OneShot(COMPONENTS), rounds=1, channel=fp.Channel(secure_aggregation=True)
        )
    with pytest.raises(InvalidInput, match="averaging is 'projectors' or 'stacked', not 'mean'"):
        fp.simulate(mixed(), fp.OneShot(COMPONENTS, "mean"), rounds=1)


def test_centralised_is_exact_at_once_and_pays_for_the_triangle() -> None:
    problem = mixed()
    trace = fp.simulate(problem, fp.Centralized(COMPONENTS), rounds=9)
    assert trace.rounds == 1
    assert largest_sine(trace.estimate, problem.target(COMPONENTS)) < 1e-12
    assert trace.bytes_up[-1] == 8 * problem.clients * FEATURES * (FEATURES + 1) // 2
    hidden = fp.simulate(
        problem, fp.Centralized(COMPONENTS), rounds=9, channel=fp.Channel(secure_aggregation=True)
    )
    assert np.array_equal(hidden.estimate, trace.estimate)


def test_centralised_hears_each_client_once() -> None:
    problem = mixed()
    trace = fp.simulate(problem, fp.Centralized(COMPONENTS), rounds=99, participation=0.25, seed=3)
    assert problem.clients <= trace.rounds < 99
    heard = np.concatenate([e.participants for e in trace.transcript.exchanges])
    assert sorted(heard.tolist()) == [0, 1, 2, 3]
    assert largest_sine(trace.estimate, problem.target(COMPONENTS)) < 1e-12
    once = fp.simulate(
        problem, fp.Centralized(COMPONENTS), rounds=9, participation=0.5, absent="present"
    )
    assert once.rounds == 1
    assert largest_sine(once.estimate, problem.target(COMPONENTS)) > 1e-3
