"""The reader: a client's whole S_i from a few of its answers."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core import attacks
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.problem import from_blocks
from tests.attacks.runs import faps, relative, transcript, truth

GENERATOR = np.random.default_rng(0)
FEW = from_blocks([GENERATOR.standard_normal((40, 6)) for _ in range(3)])


@pytest.mark.parametrize(
    ("algorithm", "rounds"),
    [(fp.SSI(6), 1), (fp.SSI(4), 2), (fp.BlockKrylov(3), 2), (fp.LocalPower(6, local_steps=4), 3)],
    ids=["SSI, one message", "SSI", "block Krylov", "LocalPower, first single product"],
)
def test_as_many_directions_as_records_read_the_whole_matrix(algorithm, rounds):
    for client in range(3):
        factor = attacks.low_rank(transcript(FEW, algorithm, rounds), client)
        assert factor.complete
        assert factor.matrix.shape == (40, 6)
        assert relative(factor.matrix @ factor.matrix.T, truth(FEW, client)) < 1e-10


def test_it_equals_the_dense_solution_where_both_exist():
    run = transcript(FEW, fp.BlockKrylov(5), 12)
    dense = attacks.symmetric(run, 1)
    factor = attacks.low_rank(run, 1)
    np.testing.assert_allclose(factor.matrix @ factor.matrix.T, dense, atol=1e-10)


def test_a_factor_says_when_the_messages_suffice():
    run = transcript(FEW, fp.SSI(4), 3)
    read = [attacks.low_rank(run.until(rounds)) for rounds in (1, 2, 3)]
    assert [(one.rank, one.complete) for one in read] == [(4, False), (6, True), (6, True)]


def test_a_client_of_lower_rank_than_records_is_read_too():
    block = GENERATOR.standard_normal((40, 3)) @ GENERATOR.standard_normal((3, 20))
    problem = from_blocks([block, block[::-1]])
    factor = attacks.low_rank(transcript(problem, fp.SSI(5), 1), 0)
    assert (factor.rank, factor.complete) == (3, True)
    assert relative(factor.matrix @ factor.matrix.T, truth(problem)) < 1e-12


def test_the_error_covers_the_rounding_of_the_format():
    for dtype in ("float64", "float32"):
        run = transcript(FEW, fp.SSI(8), 1, channel=fp.Channel(dtype=dtype))
        factor = attacks.low_rank(run, 0)
        off = factor.matrix @ factor.matrix.T - truth(FEW)
        assert factor.rank == 6
        size = float(np.abs(factor.matrix).max())
        assert np.abs(off).max() < 20 * size * factor.error
    assert factor.error > 1e-9


def test_stated_noise_raises_the_cut_off_and_the_error():
    run = transcript(FEW, fp.SSI(12), 1, channel=fp.Channel(upload_noise=1e-3))
    naive, aware = attacks.low_rank(run, 0), attacks.low_rank(run, 0, noise=1e-3)
    assert aware.error > 1e6 * naive.error
    off = aware.matrix @ aware.matrix.T - truth(FEW)
    assert np.abs(off).max() < 20 * float(np.abs(aware.matrix).max()) * aware.error


def test_uploads_that_are_no_products_are_seen_to_be_none():
    factor = attacks.low_rank(transcript(FEW, faps(4), 3), 0)
    assert not factor.complete


def test_the_factor_of_a_matrix_is_its_leading_part():
    factor = attacks.factor_of(truth(FEW), 6)
    assert factor.rank == 6
    np.testing.assert_allclose(factor.matrix @ factor.matrix.T, truth(FEW), atol=1e-12)
    assert attacks.factor_of(np.zeros((4, 4)), 3).rank == 0


def test_what_cannot_be_read_is_refused():
    run = transcript(FEW, fp.SSI(4), 2)
    with pytest.raises(InvalidInput, match="There is no client 9"):
        attacks.low_rank(run, 9)
    with pytest.raises(InvalidInput, match="No round of client 0 was read"):
        attacks.low_rank(run.until(0))
    with pytest.raises(InvalidInput, match="noise must be at least 0, not -1"):
        attacks.low_rank(run, 0, noise=-1)
    hidden = transcript(FEW, fp.SSI(4), 2, channel=fp.Channel(secure_aggregation=True))
    with pytest.raises(InvalidInput, match="secure aggregation"):
        attacks.low_rank(hidden, 0)
