"""FAPS beside its convergence theorem: the page says what the dense formulas say."""

import re
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.metrics.faps_theorem import asked, beside_theorem
from fedpca_core.metrics.table import consensus_gap
from fedpca_core.questions.converge import figures
from fedpca_core.questions.converge.study import Convergence
from fedpca_core.steps import outcome
from fedpca_core.study.build import build_problem, simulation
from fedpca_core.study.pca_settings import ConvergeSettings

SMALL = ConvergeSettings(
    methods=("faps",), features=12, clients=4, components=2, rounds=20, sizes="uneven"
)


def multiplier(matrix, x):
    """(8): -P S P⊥ - P⊥ S P."""
    inside = x @ x.T
    outside = np.eye(len(matrix)) - inside
    return -(inside @ matrix @ outside + outside @ matrix @ inside)


def run(**changes):
    settings = replace(SMALL, **changes)
    problem = build_problem(settings)
    return simulation(problem, "faps", settings, record="estimates").finish(), problem


def covered(**changes):
    return run(
        **(
            {"penalty_factor": 1e6, "adaptive": False, "rounds": 50, "inner_rule": "conditions"}
            | changes
        )
    )


@pytest.mark.parametrize("changes", [{}, {"adaptive": False, "penalty_factor": 100.0}])
def test_the_lagrangian_is_equation_9_with_dense_multipliers(changes):
    trace, problem = run(**changes)
    weights, mats = problem.client_data.weights, problem.client_data.dense()
    for k, found in enumerate(beside_theorem(trace, problem).lagrangian):
        z, value = trace.estimates[k], 0.0
        for i, (weight, s) in enumerate(zip(weights, mats, strict=True)):
            x, beta = trace.frames[k, i], trace.state("penalty")[k, i]
            apart = x @ x.T - z @ z.T
            linked = (multiplier(s, x) * apart).sum()
            value += weight * (beta / 4 * (apart**2).sum() - linked / 2 - np.trace(x.T @ s @ x) / 2)
        assert found == pytest.approx(value, rel=1e-9)


def test_where_the_theorem_applies_its_bound_holds_and_the_lagrangian_never_rises():
    found = beside_theorem(*covered())
    assert found.share > 1 and not found.unmet
    assert (found.least <= found.bound).all() and (np.diff(found.bound) < 0).all()
    assert (np.diff(found.lagrangian) <= 1e-12).all()
    assert found.omega > asked(4, 2, 0.25, 2.0, 0.5)  # penalties differ, so rho is above 1


@pytest.mark.parametrize("changes", [{}, {"inner_residual": 0.01}, {"inner_decrease": 0.4}])
def test_where_it_applies_every_local_solve_meets_conditions_13_and_14(changes):
    trace, problem = covered(**changes)
    method, count = trace.algorithm, problem.clients
    assert beside_theorem(trace, problem).share > 1
    beta, mats = trace.state("penalty")[0], problem.client_data.dense()
    spread = (beta * problem.client_data.weights).max() / (beta * problem.client_data.weights).min()
    least = 1 - 1 / (2 * spread * count)
    delta = method.inner_residual * np.sqrt(least) / (2 * np.sqrt(spread * count))
    for k in range(1, trace.rounds):
        z = trace.estimates[k]
        for i, s in enumerate(mats):
            x, new = trace.frames[k, i], trace.frames[k + 1, i]
            h = s + multiplier(s, x) + beta[i] * z @ z.T
            first = np.linalg.norm(h @ x - x @ (x.T @ h @ x))
            last = np.linalg.norm(h @ new - new @ (new.T @ h @ new))
            fell = (np.trace(new.T @ h @ new) - np.trace(x.T @ h @ x)) / 2
            if first > 1e-7 * beta[i]:
                norm = method.inner_curvature * np.linalg.norm(s, 2) + beta[i]
                assert last <= delta * first
                assert fell >= method.inner_decrease / norm * first**2


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"penalty_factor": 0.5, "inner_rule": "fixed"}, "Conditions"),
        ({"penalty_factor": 0.5, "inner_decrease": 0.5}, "c₁ below 0.5"),
        ({"penalty_factor": 0.01, "rounds": 50, "adaptive": True}, "grow"),
    ],
)
def test_what_the_run_does_otherwise_is_said(changes, words):
    found = beside_theorem(*covered(**changes))
    assert words in found.unmet and found.share < 1 and np.isnan(found.bound).all()


def test_it_takes_no_more_memory_than_the_measures_of_the_run():
    """A run whose states just fit would otherwise be refused for what is beside it."""
    trace, problem = run(rounds=200, clients=20, features=50)
    assert trace.frames.shape[0] == 201
    peaks = []
    for made in (lambda: consensus_gap(trace), lambda: beside_theorem(trace, problem)):
        tracemalloc.start()
        made()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]


def test_of_other_runs_it_says_nothing():
    for changes in ({"participation": 0.5}, {"private_start": True}, {"epsilon": 1.0}):
        assert beside_theorem(*run(**changes)) is None
    settings = replace(SMALL, methods=("ssi",))
    problem = build_problem(settings)
    assert beside_theorem(fp.simulate(problem, fp.SSI(2), rounds=3), problem) is None


def test_the_page_names_a_penalty_that_is_enough_and_with_it_draws_the_bound():
    def fold(settings):
        found = outcome(Convergence().run(settings))
        (part,) = figures.theorem(found.theorem, settings)
        note, chart, _ = part.parts
        return note.text, [curve.name for curve in chart.panels[0].curves]

    below = replace(SMALL, adaptive=False, penalty_factor=10.0, rounds=30, inner_rule="conditions")
    said, names = fold(below)
    assert "It says nothing of this run" in said and names == ["least so far"]
    enough = float(re.search(r"penalty factor (\S+) is enough", said)[1])
    said, names = fold(replace(below, penalty_factor=enough))
    assert "It covers this run" in said and names == ["least so far", "C/N"]
