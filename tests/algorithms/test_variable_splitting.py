"""Variable splitting: a plain loop, its fixed points, and the divergence of the free version."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import random_frame
from fedpca_core.streams import Streams
from tests.algorithms.small_problems import COMPONENTS, mixed


def svd_polar(matrix: np.ndarray) -> np.ndarray:
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return left @ right


@pytest.mark.parametrize(("constraint", "factor"), [("stiefel", 0.15), ("free", 2.5)])
def test_a_run_equals_the_plain_loop(constraint: str, factor: float) -> None:
    problem = mixed()
    algorithm = fp.VariableSplitting(COMPONENTS, factor, 3, constraint)
    trace = fp.simulate(problem, algorithm, rounds=12, seed=5)
    client_data = problem.client_data
    consensus = random_frame(Streams(5).generator("start"), problem.features, COMPONENTS)
    frames = [consensus] * problem.clients
    duals = [np.zeros_like(consensus)] * problem.clients
    for round_ in range(1, 13):
        total = np.zeros_like(consensus)
        for client, matrix in enumerate(client_data.dense()):
            beta = factor * float(np.linalg.norm(matrix, 2))
            frame = frames[client]
            for _ in range(3):
                image = matrix @ frame + duals[client] + beta * consensus
                frame = svd_polar(image) if constraint == "stiefel" else image / beta
            frames[client] = frame
            total += client_data.weights[client] * (beta * frame - duals[client])
        consensus = svd_polar(total)
        for client, matrix in enumerate(client_data.dense()):
            beta = factor * float(np.linalg.norm(matrix, 2))
            duals[client] = duals[client] - beta * (frames[client] - consensus)
        assert np.abs(trace.estimates[round_] - consensus).max() < 1e-10
    if constraint == "stiefel":
        gram = trace.estimate.T @ trace.estimate
        assert np.abs(gram - np.eye(COMPONENTS)).max() < 5e-15


def test_both_versions_reach_the_target_and_the_orthonormal_one_sooner() -> None:
    problem = mixed()
    angles = {}
    for constraint, factor in (("stiefel", 0.15), ("free", 2.0)):
        algorithm = fp.VariableSplitting(COMPONENTS, factor, 5, constraint)
        trace = fp.simulate(problem, algorithm, rounds=400)
        angles[constraint] = fp.metrics.frame(trace, problem).sin_theta.to_numpy()
    assert angles["stiefel"][-1] < 1e-12
    assert angles["free"][-1] < 1e-6
    assert (angles["stiefel"] < 1e-6).argmax() < (angles["free"] < 1e-6).argmax() / 2


def test_free_frames_diverge_below_twice_the_norm_and_say_so() -> None:
    problem = mixed()
    algorithm = fp.VariableSplitting(COMPONENTS, 1.0, 5, "free")
    setting = fp.Simulation(problem, algorithm, rounds=1).setting
    (note,) = algorithm.notes(setting)
    assert "factor 1 is below 2" in note
    with pytest.raises(InvalidInput, match="the run has diverged"):
        fp.simulate(problem, algorithm, rounds=3000)
    assert fp.VariableSplitting(COMPONENTS, 2.0, 5, "free").notes(setting) == ()
    assert fp.VariableSplitting(COMPONENTS).notes(setting) == fp.SSI(2).notes(setting) == ()


def test_names_and_gaps_of_the_two_versions() -> None:
    problem = mixed()
    free = fp.VariableSplitting(COMPONENTS, 2.0, constraint="free")
    assert fp.VariableSplitting(2).title == "Variable splitting"
    assert free.title == "Variable splitting (free)"
    table = fp.metrics.frame(fp.simulate(problem, free, rounds=2), problem)
    assert table.consensus_gap.isna().all()


@pytest.mark.parametrize(
    ("algorithm", "text"),
    [
        (fp.VariableSplitting(3, -1.0), "must be positive, not -1.0"),
        (fp.VariableSplitting(3, inner_steps=0), "inner steps must be at least 1, not 0"),
        (fp.VariableSplitting(3, constraint="sphere"), "'stiefel' or 'free', not 'sphere'"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(algorithm: fp.VariableSplitting, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        fp.simulate(mixed(), algorithm, rounds=1)
