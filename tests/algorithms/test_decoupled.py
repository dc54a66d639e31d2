"""Shared and unique components: what is common is found, what is unique stays, nothing falls."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.personal_rivals import DecoupledPCA
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import projector_distance
from fedpca_core.protocol.simulate import Simulation


def _decoupled(clients: int = 4) -> tuple[fp.problems.Problem, np.ndarray, np.ndarray]:
    """Clients with two shared directions and one of their own each, and a little of all others."""
    rng = np.random.default_rng(2)
    turn = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    shared, unique = turn[:, :2], turn[:, 2 : 2 + clients]
    blocks = []
    for client in range(clients):
        deviation = np.full(12, 0.1)
        deviation[:2], deviation[2 + client] = (2.0, 1.5), 1.0
        blocks.append(np.sqrt(12) * turn * deviation)
    return fp.problems.problem.from_blocks(blocks), shared, unique


def test_shared_and_unique_directions_are_told_apart():
    problem, shared, unique = _decoupled()
    trace = fp.simulate(problem, DecoupledPCA(3, shared=2), rounds=400, seed=1)
    found = trace.estimates[-1]
    for client in range(4):
        assert projector_distance(found[client, :, :2], shared) < 1e-6
        assert projector_distance(found[client, :, 2:], unique[:, client : client + 1]) < 1e-6


def test_what_is_explained_never_falls():
    problem, _, _ = _decoupled()
    run = Simulation(problem, DecoupledPCA(4), rounds=60, seed=0)
    explained = [
        float(np.sum(step.estimate * problem.client_data.apply(step.estimate))) for step in run
    ]
    assert (np.diff(explained) > -1e-9).all() and explained[-1] > 2 * explained[0]


def test_everything_shared_is_the_pooled_space_and_frames_stay_orthonormal():
    problem, _, _ = _decoupled()
    trace = fp.simulate(problem, DecoupledPCA(2, shared=2), rounds=600)
    assert projector_distance(trace.estimates[-1][0], problem.target(2)) < 1e-5
    some = fp.simulate(problem, DecoupledPCA(5), rounds=20).estimates[-1]
    np.testing.assert_allclose(some.mT @ some, np.broadcast_to(np.eye(5), (4, 5, 5)), atol=1e-12)


def test_only_the_shared_frame_travels_and_sums_are_enough():
    problem, _, _ = _decoupled()
    plain = fp.simulate(problem, DecoupledPCA(5, shared=2), rounds=3)
    assert plain.bytes_up[-1] == plain.bytes_down[-1] == 3 * 4 * 8 * 12 * 2
    hidden = fp.simulate(
        problem, DecoupledPCA(5, shared=2), rounds=3,
        channel=fp.Channel(secure_aggregation=True),
    )  # fmt: skip
    np.testing.assert_allclose(plain.estimates[-1], hidden.estimates[-1], atol=1e-9)


def test_what_does_not_fit_is_refused():
    problem, _, _ = _decoupled()
    with pytest.raises(InvalidInput, match="6 shared components of 5"):
        fp.simulate(problem, DecoupledPCA(5, shared=6), rounds=1)
