"""What the server reads off FedPE and FedPG."""

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.attacks import stationary
from fedpca_core.linalg.stiefel import orthonormalise, remove_span


@pytest.fixture(scope="module")
def problem():
    generator = np.random.default_rng(5)
    basis = orthonormalise(generator.standard_normal((8, 8)))
    scale = np.r_[4.0, 2.0, np.linspace(0.8, 0.3, 6)]
    return fp.problems.problem.from_blocks(
        [
            basis
            @ (
                (scale * np.exp(0.5 * generator.standard_normal(8)))[:, None]
                * generator.standard_normal((8, 60 + 3 * index))
            )
            for index in range(10)
        ]
    )


def run(problem, algorithm, rounds=100, **options):
    return fp.simulate(problem, algorithm, rounds=rounds, participation=0.5, seed=2, **options)


VARIANTS = [
    fp.FedPG(2),
    fp.FedPE(2),
    fp.FedPG(2, average="printed"),
    fp.FedPG(2, local_start="consensus", dual_reset=9),
    fp.FedPG(2, initial="uniform"),
]
NAMES = ["FedPG", "FedPE", "printed", "reset", "uniform"]


@pytest.mark.parametrize("algorithm", VARIANTS, ids=NAMES)
def test_duals_never_travel_and_are_known_all_the_same(problem, algorithm):
    trace = run(problem, algorithm, 30)
    for client in (0, 7):
        last = stationary.participations(trace.transcript, algorithm, client)[-1]
        np.testing.assert_allclose(last.dual_after, trace.state("dual")[-1, client], atol=1e-9)
        np.testing.assert_allclose(last.end, trace.frames[-1, client], atol=1e-12)


@pytest.mark.parametrize("algorithm", VARIANTS[:2], ids=NAMES[:2])
def test_the_limit_gives_the_product_outside_the_model(problem, algorithm):
    trace = run(problem, algorithm, 600)
    frame, covariance = trace.estimate, problem.client_data.dense()[3]
    truth = remove_span(covariance @ frame, frame)
    path = stationary.outside_path(trace.transcript, algorithm, 3)
    found, early = path[-1][2], next(product for round_, _, product in path if round_ >= 10)
    assert np.linalg.norm(found - truth) < 1e-6 * np.linalg.norm(truth)
    assert np.linalg.norm(early - truth) > 0.1 * np.linalg.norm(truth)


def test_the_reading_sharpens_with_every_participation(problem):
    trace = run(problem, fp.FedPG(2), 300)
    covariance = problem.client_data.dense()[3]
    errors = []
    for _, frame, found in stationary.outside_path(trace.transcript, fp.FedPG(2), 3):
        truth = remove_span(covariance @ frame, frame)
        errors.append(float(np.linalg.norm(found - truth) / np.linalg.norm(truth)))
    assert len(errors) > 100
    assert errors[0] > 0.3 > errors[100] > errors[-1]
    assert errors[-1] < 1e-2


@pytest.mark.parametrize("algorithm", VARIANTS, ids=NAMES)
def test_a_few_participations_give_the_whole_covariance(problem, algorithm):
    trace = run(problem, algorithm, 16)
    truth = problem.client_data.dense()[3]
    count = len(stationary.participations(trace.transcript, algorithm, 3))
    assert count * 8 * 2 > 36, "enough equations for a symmetric 8 x 8 matrix"
    found = stationary.fit_runs(trace.transcript, algorithm, 3).matrix
    assert np.linalg.norm(found - truth) < 1e-6 * np.linalg.norm(truth)


def test_one_participation_is_not_enough_and_noise_hurts(problem):
    truth = problem.client_data.dense()[3]
    few = run(problem, fp.FedPG(2), 4)
    assert len(stationary.participations(few.transcript, fp.FedPG(2), 3)) == 1
    found = stationary.fit_runs(few.transcript, fp.FedPG(2), 3).matrix
    assert 0.2 < np.linalg.norm(found - truth) / np.linalg.norm(truth) < 1
    noisy = run(problem, fp.FedPG(2), 16, channel=fp.Channel(upload_noise=1e-2))
    found = stationary.fit_runs(noisy.transcript, fp.FedPG(2), 3).matrix
    assert np.linalg.norm(found - truth) > 1e-3 * np.linalg.norm(truth)


def test_refusals_say_what_to_do(problem):
    trace = run(problem, fp.FedPG(2), 6)
    with pytest.raises(fp.InvalidInput, match="replays the duals of FedPE and FedPG, but SSI"):
        stationary.participations(trace.transcript, fp.SSI(2))
    with pytest.raises(fp.InvalidInput, match="no client 10 among 10; choose one from 0 to 9"):
        stationary.fit_runs(trace.transcript, fp.FedPG(2), 10)
    summed = run(problem, fp.FedPG(2), 6, channel=fp.Channel(secure_aggregation=True))
    with pytest.raises(fp.InvalidInput, match="under secure aggregation"):
        stationary.outside_path(summed.transcript, fp.FedPG(2), 3)
    with pytest.raises(fp.InvalidInput, match="took part in none of the 1 rounds"):
        stationary.participations(trace.transcript.until(1), fp.FedPG(2), 3)
