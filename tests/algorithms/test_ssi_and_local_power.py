"""SSI is subspace iteration on the pooled matrix; LocalPower is SSI with local steps at first."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import householder, random_frame
from fedpca_core.streams import Streams
from tests.algorithms.small_problems import COMPONENTS, FEATURES, mixed, reordered


def test_ssi_is_centralised_subspace_iteration() -> None:
    problem = mixed()
    trace = fp.simulate(problem, fp.SSI(COMPONENTS), rounds=60, seed=3)
    frame = random_frame(Streams(3).generator("start"), FEATURES, COMPONENTS)
    for estimate in trace.estimates:
        assert np.abs(estimate - frame).max() < 1e-12
        frame = householder(problem.covariance @ frame)


@pytest.mark.parametrize("algorithm", [fp.SSI(3), fp.LocalPower(3), fp.FAPS(3), fp.BlockKrylov(3)])
def test_the_order_of_clients_does_not_matter(algorithm: fp.SSI) -> None:
    problem = mixed()
    other = reordered(problem, [2, 0, 3, 1])
    first = fp.simulate(problem, algorithm, rounds=15)
    second = fp.simulate(other, algorithm, rounds=15)
    assert np.abs(first.estimates - second.estimates).max() < 1e-9


def test_ssi_does_not_depend_on_how_many_clients_share_the_data() -> None:
    rng = np.random.default_rng(5)
    data = np.linspace(2, 0.5, 12)[:, None] * rng.standard_normal((12, 240))
    estimates = [
        fp.simulate(
            fp.problems.problem.from_blocks(np.split(data, clients, axis=1)), fp.SSI(2), rounds=30
        ).estimates
        for clients in (2, 4, 8)
    ]
    assert np.abs(estimates[1] - estimates[0]).max() < 1e-12
    assert np.abs(estimates[2] - estimates[0]).max() < 1e-12


@pytest.mark.parametrize(
    ("schedule", "steps"),
    [("halving", [8, 4, 2, 1, 1, 1]), ("decay", [8, 7, 6, 5, 4, 3, 2, 1, 1])],
)
def test_schedules_fall_to_one_and_products_follow(schedule: str, steps: list[int]) -> None:
    problem = mixed()
    algorithm = fp.LocalPower(COMPONENTS, 8, schedule)
    trace = fp.simulate(problem, algorithm, rounds=len(steps))
    assert np.diff(trace.local_products).tolist() == [problem.clients * q for q in steps]
    assert [exchange.local_steps for exchange in trace.transcript.exchanges] == steps


def test_the_two_schedules_have_their_own_names() -> None:
    assert fp.LocalPower(2).title == "LocalPower"
    assert fp.LocalPower(2, schedule="decay").title == "LocalPower (decay)"


def test_local_power_equals_a_plain_loop() -> None:
    problem = mixed()
    trace = fp.simulate(problem, fp.LocalPower(COMPONENTS, 4), rounds=6, seed=1)
    client_data = problem.client_data
    frame = random_frame(Streams(1).generator("start"), FEATURES, COMPONENTS)
    for round_, steps in enumerate([4, 2, 1, 1, 1, 1], start=1):
        total = np.zeros_like(frame)
        for weight, matrix in zip(client_data.weights, client_data.dense(), strict=True):
            local = frame
            for _ in range(steps - 1):
                local = householder(matrix @ local)
            total += weight * (matrix @ local)
        frame = householder(total)
        assert np.abs(trace.estimates[round_] - frame).max() < 1e-10


def test_one_local_step_is_ssi() -> None:
    problem = mixed()
    power = fp.simulate(problem, fp.LocalPower(COMPONENTS, 1), rounds=10)
    plain = fp.simulate(problem, fp.SSI(COMPONENTS), rounds=10)
    assert np.array_equal(power.estimates, plain.estimates)


@pytest.mark.parametrize(
    ("algorithm", "text"),
    [
        (fp.LocalPower(3, 0), "local steps must be at least 1, not 0"),
        (fp.LocalPower(3, 8, "thirds"), "'halving' or 'decay', not 'thirds'"),
        (fp.LocalPower(FEATURES), f"{FEATURES} components do not fit {FEATURES} features"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(algorithm: fp.LocalPower, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        fp.simulate(mixed(), algorithm, rounds=1)
