"""Consensus methods: exact small cases, conserved quantities, and what they fall back to."""

from __future__ import annotations

import numpy as np
import pytest

from fedpca_core.consensus import (
    FedAvg,
    InexactUzawa,
    JointUzawa,
    ProxSkip,
    Quadratic,
    RandomProblem,
    bounds,
    operators,
    run,
    scalar_pair,
)
from fedpca_core.errors import InvalidInput

MAKERS = [RandomProblem.quadratics, RandomProblem.ridge, RandomProblem.logistic]


def _problem(maker, **options):
    return maker(RandomProblem(**{"clients": 5, "features": 4, "seed": 2, **options}))


@pytest.mark.parametrize("maker", MAKERS)
def test_the_worst_client_has_the_wanted_constants(maker) -> None:
    problem = _problem(maker, strong_convexity=0.25, smoothness=5.0)
    assert problem.strong_convexity == pytest.approx(0.25)
    assert problem.smoothness == pytest.approx(5.0)


@pytest.mark.parametrize("maker", MAKERS)
def test_gradients_agree_with_finite_differences(maker) -> None:
    problem = _problem(maker)
    points = np.random.default_rng(1).standard_normal((5, 4))
    if isinstance(problem, Quadratic):

        def values(x):
            return 0.5 * np.einsum("ci,cij,cj->c", x, problem.hessians, x) - (
                problem.linear * x
            ).sum(axis=1)
    else:

        def values(x):
            margins = problem.labels * np.einsum("csf,cf->cs", problem.records, x)
            data = np.log1p(np.exp(-margins)).mean(axis=1)
            return problem.scale * (data + problem.ridge / 2 * (x**2).sum(axis=1))

    slope = np.zeros_like(points)
    for axis in range(4):
        shift = np.zeros(4)
        shift[axis] = 1e-6
        slope[:, axis] = (values(points + shift) - values(points - shift)) / 2e-6
    np.testing.assert_allclose(problem.gradient(points), slope, atol=1e-7)


@pytest.mark.parametrize("maker", MAKERS)
def test_solutions_and_local_solves_are_stationary(maker) -> None:
    problem = _problem(maker, smoothness=50.0)
    together = problem.gradient(np.tile(problem.solution, (5, 1)))
    assert np.abs(together.sum(axis=0)).max() < 1e-10
    right = np.random.default_rng(3).standard_normal((5, 4))
    points = problem.solve(0.7, right, np.zeros((5, 4)))
    np.testing.assert_allclose(problem.gradient(points) + 0.7 * points, right, atol=1e-10)


def test_many_local_steps_in_the_eigenbasis_are_the_literal_loop() -> None:
    problem = _problem(RandomProblem.quadratics)
    generator = np.random.default_rng(4)
    start, right = generator.standard_normal((2, 5, 4))
    points = start
    for _ in range(37):
        points = points - 0.1 * (problem.gradient(points) + 0.3 * points - right)
    np.testing.assert_allclose(problem.descend(start, right, 0.3, 0.1, 37), points, atol=1e-12)


def test_two_scalar_clients_arrive_in_two_rounds() -> None:
    problem = scalar_pair(0.5, 5.0)
    trace = run(problem, bounds.uzawa_exact(0.5, 5.0, 0.0), 2)
    assert trace.method.dual_step == pytest.approx(10 / 11, rel=1e-15)
    np.testing.assert_allclose(trace.points[1, :, 0], [2, 0.4], rtol=1e-14)
    assert trace.averages[1, 0] == pytest.approx(1.2, rel=1e-14)
    np.testing.assert_allclose(trace.multipliers[1, :, 0], [-8 / 11, 8 / 11], rtol=1e-14)
    np.testing.assert_allclose(trace.multipliers[1], problem.multipliers, rtol=1e-13)
    assert trace.averages[2, 0] == pytest.approx(6 / 11, rel=1e-14)
    assert problem.solution[0] == pytest.approx(6 / 11, rel=1e-15)


def _methods(problem) -> list:
    low, high = problem.strong_convexity, problem.smoothness
    return [
        bounds.scaffnew(high, 3),
        bounds.uzawa_exact(low, high, 0.4),
        bounds.uzawa_steps(low, high, 0.4, 2),
        bounds.uzawa_nine(low, high, 0.0, 3),
        bounds.admm(np.sqrt(low * high)),
    ]


@pytest.mark.parametrize("maker", MAKERS)
def test_pythagoras_gives_the_norm_from_the_points(maker) -> None:
    problem = _problem(maker)
    for method in _methods(problem):
        trace = run(problem, method, 12)
        for k in range(12):
            joined = (problem.multipliers - trace.multipliers[k]) - method.dual_step * (
                problem.solution - trace.points[k + 1]
            )
            assert np.linalg.norm(joined) == pytest.approx(trace.norms[k + 1], rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("maker", MAKERS)
def test_every_method_but_fedavg_finds_the_minimiser(maker) -> None:
    problem = _problem(maker)
    for method in [*_methods(problem), bounds.proxskip(0.5, 5.0)]:
        trace = run(problem, method, 400, accuracy=1e-9)
        assert trace.distances[-1] <= 1e-9, method
    wrong = run(problem, bounds.fedavg(5.0, 10), 400)
    assert wrong.distances[-1] > 1e-3
    assert wrong.distances[-1] == pytest.approx(wrong.distances[-2], rel=1e-6)


def test_multipliers_sum_to_zero_after_a_thousand_rounds() -> None:
    problem = _problem(RandomProblem.quadratics)
    for method in (*_methods(problem), bounds.proxskip(0.5, 5.0)):
        trace = run(problem, method, 1000)
        assert np.abs(trace.multipliers[-1].sum(axis=0)).max() < 1e-12


def test_one_local_step_is_gradient_descent_on_the_average() -> None:
    problem = _problem(RandomProblem.quadratics)
    trace = run(problem, bounds.scaffnew(5.0, 1), 30)
    average = np.zeros(4)
    for k in range(30):
        average = average - problem.gradient(np.tile(average, (5, 1))).mean(axis=0) / 5.0
        np.testing.assert_allclose(trace.averages[k + 1], average, atol=1e-13)


def test_scaffnew_is_its_own_pseudo_code() -> None:
    problem = _problem(RandomProblem.logistic)
    trace = run(problem, bounds.scaffnew(5.0, 4), 6)
    average, multipliers = np.zeros(4), np.zeros((5, 4))
    for _ in range(6):
        points = np.tile(average, (5, 1))
        for _ in range(4):
            points = points - (problem.gradient(points) - multipliers) / 5.0
        average = points.mean(axis=0)
        multipliers = multipliers + 5.0 / 4 * (average - points)
    np.testing.assert_allclose(trace.averages[-1], average, atol=1e-13)
    np.testing.assert_allclose(trace.multipliers[-1], multipliers, atol=1e-12)


@pytest.mark.parametrize("maker", MAKERS)
def test_identical_clients_need_no_correction(maker) -> None:
    problem = _problem(maker, heterogeneity=0.0)
    if (
        maker is RandomProblem.logistic
    ):  # labels are drawn client by client; give all the first client's
        labels = np.broadcast_to(problem.labels[:1], problem.labels.shape)
        problem = type(problem)("alike", problem.records, labels, problem.ridge, problem.scale)
    elif maker is RandomProblem.ridge:  # so is the noise in the answers
        linear = np.broadcast_to(problem.linear[:1], problem.linear.shape)
        problem = type(problem)("alike", problem.hessians, linear)
    for steps in (1, 3, 20):
        assert run(problem, bounds.fedavg(5.0, steps), 400).distances[-1] < 1e-12
        trace = run(problem, bounds.scaffnew(5.0, steps), 20)
        assert np.abs(trace.multipliers).max() < 1e-12


def test_the_augmented_iteration_is_a_joint_solve() -> None:
    """Against the saddle point equations of all copies and the average, written out."""
    problem = _problem(RandomProblem.quadratics)
    clients, features = problem.clients, problem.features
    size, penalty, step = clients * features, 0.8, 0.6
    copies = np.tile(np.eye(features), (clients, 1))
    hessian = np.zeros((size, size))
    for client, block in enumerate(problem.hessians):
        rows = slice(client * features, (client + 1) * features)
        hessian[rows, rows] = block
    error = np.random.default_rng(5).standard_normal(size)
    error -= copies @ (copies.T @ error) / clients
    sizes, first = operators.augmented_errors(problem, penalty, step, error, 4)
    assert first == pytest.approx(float(np.linalg.norm(error)))
    system = np.block(
        [
            [hessian + penalty * np.eye(size), -penalty * copies],
            [-penalty * copies.T, penalty * clients * np.eye(features)],
        ]
    )
    solution = np.tile(problem.solution, clients)
    multipliers = problem.multipliers.ravel() - error
    for expected in sizes:
        right = np.concatenate([problem.linear.ravel() + multipliers, -copies.T @ multipliers])
        joint = np.linalg.solve(system, right)
        points, average = joint[:size], copies @ joint[size:]
        gap = solution - points
        assert np.sqrt(gap @ hessian @ gap) == pytest.approx(expected, rel=1e-9)
        multipliers = multipliers + step * (average - points)


@pytest.mark.parametrize("maker", MAKERS)
def test_a_joint_round_is_a_proximal_step_of_the_multipliers(maker) -> None:
    """Both blocks are stationary together, and the multipliers' error shrinks as Theorem 4 says."""
    problem, r = _problem(maker), 0.8
    trace = run(problem, JointUzawa(r, r), 30)
    points, average, before = trace.points[1], trace.averages[1], trace.multipliers[0]
    rest = problem.gradient(points) - before + r * (points - average)
    assert np.abs(rest).max() < 1e-9 and np.abs(points.mean(axis=0) - average).max() < 1e-9
    factors = trace.contractions[np.isfinite(trace.contractions)]
    assert factors.max() <= bounds.theorem_4_two(problem.smoothness, r) * (1 + 1e-9)
    if isinstance(problem, Quadratic):
        assert factors.max() <= operators.augmented_norm(problem, r, r) * (1 + 1e-9)
        loose = run(problem, JointUzawa(r, 0.5 * r), 30).contractions
        assert np.nanmax(loose) <= operators.augmented_norm(problem, r, 0.5 * r) * (1 + 1e-9)


def test_proxskip_counts_only_rounds_that_communicate() -> None:
    problem = _problem(RandomProblem.quadratics)
    trace = run(problem, ProxSkip(0.2, 0.25), 400, seed=1)
    assert 70 < trace.communications[-1] < 130
    assert trace.bytes_up[-1] == trace.communications[-1] * 8 * 4 * 5
    quiet = np.diff(trace.communications) == 0
    assert np.abs(np.diff(trace.multipliers, axis=0)[quiet]).max() == 0


def test_a_divergent_run_stops_and_says_so() -> None:
    trace = run(_problem(RandomProblem.quadratics), InexactUzawa(0.0, 50.0), 500)
    assert trace.diverged
    assert trace.rounds < 500


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: RandomProblem(strong_convexity=5.0, smoothness=0.5).quadratics(),
            "0 < lambda < L",
        ),
        (lambda: RandomProblem(heterogeneity=2.0).quadratics(), "Heterogeneity runs from 0"),
        (lambda: RandomProblem(features=1).quadratics(), "at least 2 features"),
        (lambda: RandomProblem(clients=0).quadratics(), "number of clients must be at least 1"),
        (lambda: FedAvg(0, 0.1), "at least 1 local step, not 0"),
        (lambda: FedAvg(1, -0.1), "step size must be positive, not -0.1"),
        (lambda: InexactUzawa(-1.0, 1.0), "penalty must be at least 0, not -1"),
        (lambda: InexactUzawa(1.0, 0.0), "dual step must be positive, not 0"),
        (lambda: InexactUzawa(1.0, 1.0, 3), "need a step size"),
        (lambda: ProxSkip(0.1, 1.5), "must lie in .0, 1., not 1.5"),
        (lambda: run(scalar_pair(), FedAvg(1, 0.1), 0), "at least 1 round, not 0"),
        (
            lambda: run(scalar_pair(), FedAvg(1, 0.1), 1, start=np.zeros(3)),
            "problem has 1 features",
        ),
        (
            lambda: Quadratic("x", -np.eye(2)[None], np.zeros((1, 2))),
            "not strongly convex",
        ),
    ],
)
def test_what_does_not_fit_is_refused(make, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        make()
