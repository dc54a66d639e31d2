"""A batch of one in its place among all, and the server that has nobody's data."""

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Setting
from fedpca_core.streams import Streams
from fedpca_flower.one_of_many import NoneOfMany, OneOfMany

SAMPLES = (30, 4, 50)


@pytest.fixture(params=["grams", "factors"])
def both(request):
    generator = np.random.default_rng(0)
    blocks = [generator.standard_normal((9, count)) for count in SAMPLES]
    whole = ClientData.from_blocks(blocks, keep=request.param)
    ones = [
        OneOfMany.of(
            ClientData.from_blocks([block], keep=request.param),
            client, whole.samples, whole.weights, {},
        )
        for client, block in enumerate(blocks)
    ]  # fmt: skip
    return whole, ones


def test_one_of_many_answers_as_its_row_of_all(both):
    whole, ones = both
    frame = np.linalg.qr(np.random.default_rng(1).standard_normal((9, 3)))[0]
    frames = np.stack([frame, 2 * frame, 3 * frame])
    for client, one in enumerate(ones):
        row = whole.only(np.array([client]))
        assert one.clients == 1 and one.members.tolist() == [client]
        for name in ("dense", "traces", "upper_triangles"):
            np.testing.assert_allclose(getattr(one, name)(), getattr(row, name)(), rtol=1e-12)
        np.testing.assert_allclose(one.spectral_norms(), row.spectral_norms(), rtol=1e-12)
        np.testing.assert_allclose(one.apply(frame), row.apply(frame), atol=1e-14)
        mine = frames[client][None]
        np.testing.assert_allclose(one.apply(mine), row.apply(mine), atol=1e-14)
        active = np.array([False])
        np.testing.assert_array_equal(one.apply(mine, active), row.apply(mine, active))
        assert one.products[client] == 2
        centre = np.eye(9)
        np.testing.assert_allclose(one.gaps(centre), row.gaps(centre), rtol=1e-12)


def test_all_places_share_one_matrix(both):
    _, ones = both
    everybody = ones[0].for_everybody()
    if everybody.grams is not None:
        assert everybody.grams.strides[0] == 0
    else:
        assert everybody.factors[0] is everybody.factors[2]


def test_indefinite_matrices_are_mended_alone():
    generator = np.random.default_rng(2)
    noisy = generator.standard_normal((3, 9, 9))
    noisy = noisy + noisy.swapaxes(1, 2)
    problem = ClientData.from_grams(noisy, np.array(SAMPLES))
    from dataclasses import replace

    whole = replace(problem, indefinite=True)
    own = replace(ClientData.from_grams(noisy[1:2], np.array(SAMPLES[1:2])), indefinite=True)
    one = OneOfMany.of(own, 1, whole.samples, whole.weights, {})
    row = whole.only(np.array([1]))
    np.testing.assert_allclose(one.spectral_norms(), row.spectral_norms())
    np.testing.assert_allclose(one.positive().dense(), row.positive().dense(), atol=1e-12)


ALGORITHMS = [
    fp.SSI(3), fp.FAPS(3), fp.FAPS(3, private_start=True, private_penalty=True), fp.FedPE(3),
    fp.FedPG(3, average="memory"), fp.FedPower(3), fp.BlockKrylov(3), fp.Centralized(3),
    fp.PersonalizedPCA(3), fp.GlobalAveraging(3), fp.LocalTraining(3), fp.VariableSplitting(3),
]  # fmt: skip


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda one: one.title)
def test_what_is_agreed_is_all_that_a_start_needs_of_others(algorithm, both):
    """A start from agreed facts alone is the start from all data: `agreed` names them all."""
    whole, ones = both
    setting = Setting(9, 3, whole.samples, whole.weights)
    streams = Streams(4)
    server, clients = algorithm.start(whole, setting, streams)
    agreed = {name: np.atleast_1d(getattr(whole, name)()) for name in algorithm.agreed}
    nobody = NoneOfMany.facts_only(9, whole.samples, whole.weights, agreed)
    remote, _ = algorithm.start(nobody, setting, streams)
    assert set(remote) == set(server)
    for name, value in server.items():
        np.testing.assert_allclose(remote[name], value, rtol=1e-12, err_msg=name)
    for client, one in enumerate(ones):
        alone = OneOfMany.of(
            one.only(np.array([0])), client, whole.samples, whole.weights, agreed
        ).for_everybody()
        _, state = algorithm.start(alone, setting, streams)
        for name, array in clients.items():
            np.testing.assert_allclose(state[name][client], array[client], rtol=1e-12, atol=1e-14)


def test_the_server_has_nobodys_matrix():
    nobody = NoneOfMany.facts_only(9, np.array(SAMPLES), np.ones(3) / 3, {})
    for asked in ("dense", "mean", "pooled_norm", "upper_triangles"):
        with pytest.raises(InvalidInput, match="nowhere to be had"):
            getattr(nobody, asked)()
    with pytest.raises(InvalidInput, match="nowhere to be had"):
        nobody.apply(np.eye(9)[:, :2])
    with pytest.raises(InvalidInput, match="nowhere to be had"):
        nobody.top_eigenvectors(2)
    assert np.isnan(nobody.spectral_norms()).all()
    assert nobody.only(np.empty(0, dtype=np.int64)).apply(np.eye(9)[:, :2]).shape == (0, 9, 2)


def test_a_start_from_pooled_data_is_refused():
    nobody = NoneOfMany.facts_only(
        9, np.array(SAMPLES), np.ones(3) / 3, {"spectral_norms": np.ones(3)}
    )
    setting = Setting(9, 3, nobody.samples, nobody.weights)
    with pytest.raises(InvalidInput, match="nowhere to be had"):
        fp.PersonalizedPCA(3, start_from="pooled").start(nobody, setting, Streams(0))
