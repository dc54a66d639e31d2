"""Every method over a grid is the run in one process, to the byte and to rounding."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

import fedpca_core as fp
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.catalogue import KINDS
from tests.engines.small_federation import CLIENTS, grid, over_a_grid, written

PERSONAL = ("personalized", "global_averaging")
CHANCES = [(1.0, "memory"), (0.6, "memory"), (0.6, "present")]


def made(key):
    settings = KINDS["personalise" if key in PERSONAL else "converge"]()
    algorithm = replace(METHODS[key].make(settings), components=3)
    # Below 2 the free version diverges, and then magnifies the last bit a thousandfold a round.
    return replace(algorithm, penalty_factor=3.0) if key == "variable_splitting_free" else algorithm


def assert_same(trace, expected, tolerance=1e-10):
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=tolerance)
    for name in ("bytes_up", "bytes_down", "local_products"):
        np.testing.assert_array_equal(getattr(trace, name), getattr(expected, name), name)
    for name in expected.states[0]:
        np.testing.assert_allclose(trace.state(name), expected.state(name), rtol=1e-9, atol=1e-9)
    assert len(trace.transcript.before) == len(expected.transcript.before)
    ours = (*trace.transcript.before, *trace.transcript.exchanges)
    theirs = (*expected.transcript.before, *expected.transcript.exchanges)
    for here, there in zip(ours, theirs, strict=True):
        np.testing.assert_array_equal(here.participants, there.participants)
        np.testing.assert_allclose(here.sum_weights, there.sum_weights)
        for name in ("round", "local_steps", "bytes_up", "bytes_down", "upload_bytes"):
            assert getattr(here, name) == getattr(there, name), name
        for name, upload in (there.uploads or {}).items():
            received = here.uploads[name]
            if "eigenvectors" in name:  # known up to their signs
                upload, received = upload @ upload.mT, received @ received.mT
            np.testing.assert_allclose(received, upload, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("participation", "absent"), CHANCES)
@pytest.mark.parametrize("key", METHODS)
def test_a_run_over_a_grid_is_the_run_in_one_process(key, participation, absent, tmp_path):
    problem, algorithm = written(tmp_path), made(key)
    options = {"rounds": 6, "seed": 3, "participation": participation, "absent": absent}
    expected = fp.simulate(problem, algorithm, **options)
    trace = over_a_grid(tmp_path, algorithm, **options)
    assert_same(trace, expected)
    assert trace.algorithm == algorithm


@pytest.mark.parametrize(
    "channel",
    [fp.Channel(dtype="float32"), fp.Channel(upload_noise=1e-2)],
    ids=["float32", "upload noise"],
)
@pytest.mark.parametrize("algorithm", [fp.FAPS(3), fp.BlockKrylov(3), fp.FedPG(3)], ids=str)
def test_precision_and_noise_of_the_wire_are_those_in_one_process(algorithm, channel, tmp_path):
    problem = written(tmp_path)
    options = {"rounds": 5, "seed": 1, "participation": 0.6, "channel": channel}
    expected = fp.simulate(problem, algorithm, **options)
    assert_same(over_a_grid(tmp_path, algorithm, **options), expected)


@pytest.mark.parametrize(
    "algorithm",
    [
        Noisy(fp.BlockKrylov(3), noise=0.01, products=4, orthogonal=True),
        fp.FedPower(3, noise=0.01),
        fp.FAPS(3, private_start=True, private_penalty=True, random_inner_steps=True),
        fp.PersonalizedPCA(3),
    ],
    ids=lambda one: one.title,
)
def test_secrets_and_noise_are_drawn_as_in_one_process(algorithm, tmp_path):
    """A batch of one draws what the client would draw among all."""
    problem = written(tmp_path)
    options = {"rounds": 4, "seed": 9, "participation": 0.8}
    expected = fp.simulate(problem, algorithm, **options)
    assert_same(over_a_grid(tmp_path, algorithm, **options), expected)


def test_the_server_never_gets_what_clients_keep(tmp_path):
    """Without the simulation's permission nothing but uploads and public facts leaves a client."""
    from fedpca_flower.job import FedJob
    from fedpca_flower.server_app import run

    written(tmp_path)
    nodes = grid(tmp_path, reveal=False)
    seen = []
    deliver = nodes._app

    def listening(message, context):
        reply = deliver(message, context)
        seen.append((message.metadata.message_type, reply.content))
        return reply

    nodes._app = listening
    trace = run(nodes, FedJob(fp.PersonalizedPCA(3), CLIENTS, rounds=3))
    assert trace.states is None
    assert trace.estimates.shape == (4, 0, 12, 3)  # a model of nobody: all stay where they are
    groups = {(kind, name) for kind, content in seen for name in content.array_records}
    assert groups == {("query.step", "up")}
