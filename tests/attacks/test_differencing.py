"""One record that comes or goes between two runs: the difference gives it away."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core import attacks
from fedpca_core.attacks.linear import completion
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import images, without_record
from fedpca_core.problems.problem import from_blocks
from tests.attacks.runs import faps, followed, problem, transcript

SECURE = fp.Channel(secure_aggregation=True)
AFTER = problem(20, 60, clients=4)
BEFORE = without_record(AFTER, 1, 7)
RECORD = AFTER.blocks[1][:, 7]
UNEQUAL = [block[:, : 20 + 10 * index] for index, block in enumerate(AFTER.blocks)]


def cosine(first: np.ndarray, second: np.ndarray) -> float:
    return float(abs(first @ second) / np.linalg.norm(first) / np.linalg.norm(second))


def read(algorithm, rounds, attack, client=1, **options):
    """The server's view of both runs, each from a start of its own."""
    runs = [
        transcript(of, algorithm, rounds, seed, **options)
        for seed, of in enumerate((BEFORE, AFTER))
    ]
    counts = [attacks.records_behind(run, client) for run in runs]
    return attacks.differencing(*[attack(run, client) for run in runs], *counts)


def test_the_difference_of_the_true_matrices_is_the_record():
    matrices = [of.client_data.dense()[1] for of in (BEFORE, AFTER)]
    found = attacks.differencing(*matrices, 59, 60)
    sign = np.sign(RECORD.sum())
    np.testing.assert_allclose(found.records, sign * RECORD, atol=1e-10)
    assert found.purity == pytest.approx(1.0, abs=1e-10)
    gone = attacks.differencing(*matrices[::-1], 60, 59)
    np.testing.assert_allclose(gone.records, found.records, atol=1e-12)


@pytest.mark.parametrize(
    "algorithm", [fp.SSI(4), fp.LocalPower(4), fp.BlockKrylov(4)], ids=lambda a: a.title
)
def test_answers_that_are_products_give_the_record_away(algorithm):
    found = read(algorithm, 20, attacks.symmetric)
    assert cosine(found.records, RECORD) > 1 - 1e-10
    assert np.linalg.norm(found.records) == pytest.approx(np.linalg.norm(RECORD), rel=1e-5)
    assert found.purity > 1 - 1e-5


def test_float32_messages_hardly_help():
    found = read(fp.SSI(4), 20, attacks.symmetric, channel=fp.Channel(dtype="float32"))
    assert cosine(found.records, RECORD) > 0.999


def test_the_replay_reads_the_joining_from_faps():
    after = problem(8, 60, clients=4)
    before = without_record(after, 1, 7)
    algorithm = faps()
    matrices = []
    for of in (before, after):
        run = transcript(of, algorithm, 20)
        trace = float(np.trace(of.client_data.dense()[1]))
        matrices.append(attacks.replay(attacks.Replaying(run, algorithm, 1, trace=trace)).estimate)
    found = attacks.differencing(*matrices, 59, 60)
    assert cosine(found.records, after.blocks[1][:, 7]) > 1 - 1e-6


def test_the_linear_attack_on_faps_finds_no_record_and_says_so():
    found = read(faps(4), 20, attacks.linear)
    assert cosine(found.records, RECORD) < 0.9
    assert found.purity < 0.9


def test_secure_aggregation_hides_whose_record_it_is_but_not_the_record():
    found = read(fp.SSI(4), 20, attacks.pooled, client=3, channel=SECURE)  # anybody's view
    assert cosine(found.records, RECORD) > 1 - 1e-8
    assert found.purity > 1 - 1e-4


def test_changing_participants_give_record_and_client():
    options = {"channel": SECURE, "participation": 0.5}
    own = read(fp.SSI(3), 60, attacks.pooled, **options)
    assert cosine(own.records, RECORD) > 1 - 1e-6
    runs = [transcript(of, fp.SSI(3), 60, **options) for of in (BEFORE, AFTER)]
    assert [attacks.records_behind(run, 1) for run in runs] == [59, 60]
    assert [attacks.records_behind(run, 2) for run in runs] == [60, 60]


def test_noise_on_the_uploads_buries_a_record():
    found = read(fp.SSI(4), 20, attacks.symmetric, channel=fp.Channel(upload_noise=0.03))
    assert cosine(found.records, RECORD) < 0.9
    assert found.purity < 0.9


def test_an_image_that_joins_is_seen():
    after = images(clients=10)
    before = without_record(after, 3, 11)
    runs = [transcript(of, fp.SSI(5), 30) for of in (before, after)]
    counts = [attacks.records_behind(run, 3) for run in runs]
    paths = [followed(completion().after_each(run, 3)).estimates for run in runs]
    found = attacks.differencing(*paths, *counts)
    assert found.records.shape == (31, 64)
    assert cosine(found.records[-1], after.blocks[3][:, 11]) > 0.999
    assert cosine(found.records[3], after.blocks[3][:, 11]) < 0.99
    assert found.records[0].tolist() == [0.0] * 64 and found.purity[0] == 0.0


def test_without_record_leaves_out_that_one_and_keeps_everything_else():
    assert BEFORE.client_data.samples.tolist() == [60, 59, 60, 60]
    np.testing.assert_array_equal(BEFORE.blocks[1], np.delete(AFTER.blocks[1], 7, axis=1))
    np.testing.assert_array_equal(BEFORE.blocks[0], AFTER.blocks[0])
    np.testing.assert_allclose(BEFORE.client_data.weights, np.array([60, 59, 60, 60]) / 239)
    equal = from_blocks(UNEQUAL, weights="equal", record_norm=9.0)
    left = without_record(equal, 0, 0)
    np.testing.assert_allclose(left.client_data.weights, 0.25)
    assert left.record_norm == 9.0


def test_refusals_say_what_does_not_fit():
    with pytest.raises(InvalidInput, match="Client 1 has no record 60; choose one from 0 to 59"):
        without_record(AFTER, 1, 60)
    with pytest.raises(InvalidInput, match="There is no client 4 among 4"):
        without_record(AFTER, 4, 0)
    single = from_blocks([np.eye(3)[:, :1], np.eye(3)])
    with pytest.raises(InvalidInput, match="Client 0 holds a single record"):
        without_record(single, 0, 0)
    flat = fp.problems.decay_spectrum(20, [40, 40], condition=10.0, keep_blocks=False)
    with pytest.raises(InvalidInput, match="records of this problem are not kept"):
        without_record(flat, 0, 0)
    matrix = np.eye(3)
    with pytest.raises(InvalidInput, match=r"exactly one record .* 10 and 12"):
        attacks.differencing(matrix, matrix, 10, 12)
    with pytest.raises(InvalidInput, match="as many rounds of both runs"):
        attacks.differencing(matrix, np.stack([matrix] * 2), 10, 11)
    equal = from_blocks(UNEQUAL, weights="equal")
    run = transcript(equal, fp.SSI(4), 5, channel=SECURE)
    with pytest.raises(InvalidInput, match="do not count by their records"):
        attacks.records_behind(run, 0)


def test_a_client_of_fedpg_that_trains_again_gives_its_new_record_away():
    """The covariance fitted to six participations is exact enough to subtract."""
    after = problem(8, 60, clients=4)
    algorithm = fp.FedPG(2)
    matrices = []
    for of in (without_record(after, 1, 7), after):
        run = transcript(of, algorithm, 12)
        matrices.append(attacks.stationary.fit_runs(run.until(6), algorithm, 1).matrix)
    found = attacks.differencing(*matrices, 59, 60)
    assert cosine(found.records, after.blocks[1][:, 7]) > 0.9999
