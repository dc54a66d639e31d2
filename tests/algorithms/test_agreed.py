"""What clients tell before the first round is counted to the byte, and in the transcript."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.lanczos import largest_eigenvalue
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.questions.catalogue import KINDS
from fedpca_core.streams import Streams
from tests.algorithms.small_problems import COMPONENTS, FEATURES, mixed

CLIENTS = 4
WIDTHS = [("float64", 8), ("float32", 4)]
TELL_THEIR_NORM = [fp.FedPE(COMPONENTS), fp.FedPG(COMPONENTS), fp.PersonalizedPCA(COMPONENTS)]


@pytest.mark.parametrize(("dtype", "width"), WIDTHS)
@pytest.mark.parametrize("algorithm", TELL_THEIR_NORM, ids=lambda one: one.title)
def test_a_norm_is_one_number_of_every_client(algorithm: Algorithm, dtype: str, width: int) -> None:
    """Of all clients, though only two of four take part in a round."""
    problem = mixed()
    channel = fp.Channel(dtype=dtype)
    trace = fp.simulate(problem, algorithm, rounds=2, participation=0.5, channel=channel)
    assert trace.bytes_up[0] == CLIENTS * width
    assert trace.bytes_down[0] == 0
    (told,) = trace.transcript.before
    assert told.round == 0 and told.upload_bytes == width
    norms = problem.client_data.spectral_norms()
    assert told.uploads is not None
    np.testing.assert_array_equal(
        told.uploads["spectral_norm"], norms.astype(dtype).astype(np.float64)
    )
    absent = set(range(CLIENTS)) - set(trace.transcript.exchanges[0].participants.tolist())
    assert trace.transcript.until(1).sent(absent.pop()) == width


@pytest.mark.parametrize(("dtype", "width"), WIDTHS)
def test_a_pooled_eigenvalue_is_a_vector_down_and_up_for_each_product(
    dtype: str, width: int
) -> None:
    problem, channel = mixed(), fp.Channel(dtype=dtype)
    trace = fp.simulate(problem, fp.GlobalAveraging(COMPONENTS), rounds=2, channel=channel)
    before = trace.transcript.before
    assert 2 <= len(before) <= FEATURES
    assert trace.bytes_up[0] == trace.bytes_down[0] == len(before) * CLIENTS * FEATURES * width
    assert trace.local_products[0] == len(before) * CLIENTS
    for exchange in before:
        assert exchange.uploads is not None
        for client, matrix in enumerate(problem.client_data.dense()):
            answer = matrix @ exchange.downlink["frame"]
            np.testing.assert_allclose(exchange.uploads["product"][client], answer, rtol=1e-6)


@pytest.mark.parametrize("key", METHODS)
def test_what_a_method_agrees_on_crosses_the_wire(key: str) -> None:
    personal = key in ("personalized", "global_averaging")
    algorithm = METHODS[key].make(KINDS["personalise" if personal else "converge"]())
    trace = fp.simulate(mixed(), algorithm, rounds=1)
    assert bool(trace.transcript.before) == bool(algorithm.agreed) == bool(trace.bytes_up[0])


def test_faps_keeps_its_penalties_to_itself() -> None:
    """beta_i follows from a client's own ||S_i||, and the server's step needs no beta_i."""
    trace = fp.simulate(mixed(), fp.FAPS(COMPONENTS), rounds=2)
    assert trace.transcript.before == () and trace.bytes_up[0] == 0


def test_norms_are_seen_one_by_one_under_secure_aggregation_too() -> None:
    secure = fp.Channel(secure_aggregation=True)
    trace = fp.simulate(mixed(), fp.FedPG(COMPONENTS), rounds=2, channel=secure)
    assert trace.transcript.exchanges[0].uploads is None
    assert trace.transcript.before[0].uploads is not None
    with pytest.raises(InvalidInput, match="seen one by one; switch secure aggregation off"):
        fp.simulate(mixed(), fp.GlobalAveraging(COMPONENTS), rounds=2, channel=secure)


def test_messages_that_are_not_recorded_are_counted() -> None:
    quiet = fp.Channel(record="estimates")
    trace = fp.simulate(mixed(), fp.FedPE(COMPONENTS), rounds=2, channel=quiet)
    assert trace.bytes_up[0] == CLIENTS * 8
    assert trace.transcript.before[0].uploads is None


def test_a_run_with_noise_at_the_source_tells_norms_of_what_it_released() -> None:
    private = mixed().private(1.0, 1e-5, 3.0, Streams(0))
    trace = fp.simulate(private, fp.FedPG(COMPONENTS), rounds=1)
    told = trace.transcript.before[0].uploads
    assert told is not None
    np.testing.assert_allclose(told["spectral_norm"], private.client_data.spectral_norms())


@pytest.mark.parametrize("size", [2, 5, 40])
@pytest.mark.parametrize("seed", range(3))
def test_the_largest_eigenvalue_of_products_alone(size: int, seed: int) -> None:
    square = np.random.default_rng(seed).standard_normal((size, size))
    for matrix in (square + square.T, square @ square.T, np.eye(size), np.zeros((size, size))):
        found = largest_eigenvalue(lambda vector, of=matrix: of @ vector, size)
        exact = np.linalg.eigvalsh(matrix)
        assert found == pytest.approx(exact[-1], abs=1e-13 * max(1.0, np.abs(exact).max()))
