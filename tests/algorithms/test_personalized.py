"""Personalised PCA: gradients, manifold, closed forms of the baselines, the paper's order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedpca_core.algorithms.personal_rivals import GlobalAveraging, LocalTraining
from fedpca_core.algorithms.personalized import PersonalizedPCA
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import polar, tangent
from fedpca_core.metrics import personal as measures
from fedpca_core.problems import personal_model as model
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.personal_model import PersonalProblem, personal
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import Simulation, simulate

NOISE = 0.5


def _frames(seed: int, *shape: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(seed).standard_normal(shape))[0]


def _small(seed: int = 3, **options: object) -> PersonalProblem:
    sizes = {"features": 12, "components": 3, "clients": 6, "samples": 8, "spread": 0.2}
    return personal(seed=seed, **{**sizes, **options})  # type: ignore[arg-type]


def _literal_objective(centre, frame, gram, n, variance: float = 0.04) -> np.ndarray:
    """f_i with the features x features matrix written out, for any full-rank frames."""
    inverse = np.linalg.inv(frame @ frame.mT + NOISE * np.eye(frame.shape[-2]))
    fit = np.trace(inverse @ gram, axis1=-2, axis2=-1) - np.linalg.slogdet(inverse)[1]
    return 0.5 * n * fit + np.sum(tangent(centre, frame) ** 2, axis=(-2, -1)) / (2 * variance)


def curve(
    problem: PersonalProblem, algorithm: Algorithm, *, rounds: int
) -> tuple[np.ndarray, np.ndarray]:
    """Every client's fresh error round by round, and the last estimate."""
    run = Simulation(problem, algorithm, rounds=rounds, keep_rounds=False)
    found = [(measures.fresh_ratios(step.estimate, problem), step.estimate) for step in run]
    return np.stack([ratios for ratios, _ in found]), found[-1][1]


def _numeric(function, at: np.ndarray) -> np.ndarray:
    step = 1e-5
    slope = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        shift = np.zeros_like(at)
        shift[index] = step
        slope[index] = (function(at + shift) - function(at - shift)) / (2 * step)
    return slope


@pytest.fixture(scope="module")
def corner() -> dict[str, np.ndarray]:
    """One client in general position, with numeric gradients of both blocks."""
    frame, centre = _frames(1, 7, 2), _frames(2, 7, 2)
    records = np.random.default_rng(3).standard_normal((7, 5))
    gram = records @ records.T / 5
    prior = np.sum
    return {
        "frame": frame,
        "centre": centre,
        "gram": gram,
        "in frame": _numeric(lambda x: _literal_objective(centre, x, gram, 5), frame),
        "prior in frame": _numeric(lambda x: prior(tangent(centre, x) ** 2) / 0.08, frame),
        "in centre": _numeric(lambda x: prior(tangent(x, frame) ** 2) / 0.08, centre),
    }


def test_both_gradients_agree_with_finite_differences(corner) -> None:
    frame, centre, products = corner["frame"], corner["centre"], corner["gram"] @ corner["frame"]
    scale = model.data_scale(np.array([5]), NOISE)[0]
    in_frame = model.frame_gradient(frame, products, centre, scale, 0.04)
    in_centre = model.centre_gradient(frame, centre, 0.04)
    expected = tangent(frame, corner["in frame"])
    np.testing.assert_allclose(in_frame, expected, rtol=0, atol=1e-6 * np.abs(expected).max())
    expected = tangent(centre, corner["in centre"])
    np.testing.assert_allclose(in_centre, expected, rtol=0, atol=1e-6 * np.abs(expected).max())


def test_the_printed_data_gradient_is_wrong_by_exactly_two(corner) -> None:
    data = corner["in frame"] - corner["prior in frame"]
    ambient = model.euclidean_data_gradient(
        corner["frame"][None], (corner["gram"] @ corner["frame"])[None], np.array([5]), NOISE
    )[0]
    np.testing.assert_allclose(ambient, data, rtol=0, atol=1e-6 * np.abs(data).max())
    exact, printed = (
        model.data_scale(np.array([5]), NOISE, gradient) for gradient in ("exact", "printed")
    )
    assert exact == 2 * printed
    slope = tangent(corner["frame"], data)
    half = model.data_gradient(corner["frame"], corner["gram"] @ corner["frame"], printed[0])
    assert np.vdot(slope, slope) / np.vdot(slope, half) == pytest.approx(2, abs=1e-6)


def test_distance_equals_its_definition(corner) -> None:
    frame, centre = corner["frame"], corner["centre"]
    assert model.distance(frame, centre) == pytest.approx(
        float(np.sum(tangent(centre, frame) ** 2)), abs=1e-12
    )


def test_the_retraction_is_the_polar_factor_near_and_far() -> None:
    generator = np.random.default_rng(5)
    base = _frames(6, 4, 9, 3)
    for size in (1e-9, 1e-3, 0.1, 3.0):
        moved = base + size * generator.standard_normal(base.shape)
        left, _, right = np.linalg.svd(moved, full_matrices=False)
        np.testing.assert_allclose(polar(moved), left @ right, rtol=0, atol=3e-14)
    with pytest.raises(InvalidInput, match="diverged"):
        polar(np.full((2, 5, 2), np.nan))


def test_frames_stay_orthonormal_for_a_thousand_rounds_above_the_safe_step() -> None:
    problem = _small()
    algorithm = PersonalizedPCA(components=3).prepared(problem.client_data)
    assert algorithm.step is not None
    run = Simulation(
        problem, replace(algorithm, step=1.5 * algorithm.step), rounds=1000, keep_rounds=False
    )
    for step in run:
        last = step.estimate
    gram = last.mT @ last
    assert np.abs(gram - np.eye(3)).max() < 1e-12


@pytest.mark.parametrize("gradient", ["exact", "printed"])
@pytest.mark.parametrize("prior", model.PRIORS)
def test_the_objective_falls_in_every_round_with_the_default_steps(gradient, prior) -> None:
    problem = _small(spread=0.3)
    algorithm = PersonalizedPCA(components=3, spread=0.3, gradient=gradient, prior=prior)
    trace = simulate(problem, algorithm, rounds=120, seed=1)
    variance = algorithm.variance(problem.features)
    # The gradient printed in the paper descends a data term half as large.
    scale = (1.0 if gradient == "exact" else 0.5) * problem.client_data.samples
    centres = [exchange.downlink["centre"] for exchange in trace.transcript.exchanges]
    values = np.array(
        [
            _literal_objective(centre, frames, problem.client_data.dense(), scale, variance).mean()
            for centre, frames in zip(centres, trace.estimates, strict=False)
        ]
    )
    assert np.diff(values).max() <= 1e-11 * np.abs(values).max()
    assert values[0] - values[-1] > 1


def test_local_training_reaches_every_clients_own_eigenvectors() -> None:
    problem = _small(samples=20)
    found, _ = curve(problem, LocalTraining(components=3), rounds=400)
    best = measures.fresh_ratios(measures.oracles(problem)["local"], problem)
    assert found[-1].mean() == pytest.approx(best.mean(), abs=1e-3)
    trace = simulate(problem, LocalTraining(components=3), rounds=3)
    assert trace.bytes_up[-1] == trace.bytes_down[-1] == 0


def test_global_averaging_reaches_the_pooled_eigenvectors() -> None:
    problem = _small(samples=20)
    found, estimate = curve(problem, GlobalAveraging(components=3), rounds=400)
    best = measures.oracles(problem)["global"]
    assert found[-1].mean() == pytest.approx(measures.fresh_ratios(best, problem).mean(), abs=1e-3)
    np.testing.assert_allclose(estimate @ estimate.T, best @ best.T, atol=1e-3)


def test_local_models_fit_few_samples_perfectly_and_generalise_badly() -> None:
    problem = _small(samples=3)
    local = measures.oracles(problem)["local"]
    np.testing.assert_allclose(measures.training_ratios(local, problem), 0, atol=1e-12)
    assert (measures.fresh_ratios(local, problem) > 1).all()


def test_a_tight_prior_gives_the_global_model_and_a_loose_one_the_local() -> None:
    problem = _small(samples=40, spread=0.1)
    best = measures.oracles(problem)
    tight, _ = curve(
        problem,
        PersonalizedPCA(components=3, spread=1e-3, start_from="pooled"),
        rounds=600,
    )
    shared = measures.fresh_ratios(best["global"], problem).mean()
    assert tight[-1].mean() == pytest.approx(shared, abs=1e-3)
    loose, _ = curve(
        problem, PersonalizedPCA(components=3, spread=1e3, start_from="common"), rounds=600
    )
    alone = measures.fresh_ratios(best["local"], problem).mean()
    assert loose[-1].mean() == pytest.approx(alone, abs=1e-3)


def test_rotating_the_data_changes_no_error() -> None:
    problem = _small()
    turn = _frames(9, 12, 12)
    turned = replace(
        problem,
        client_data=ClientData.from_grams(
            turn @ problem.client_data.dense() @ turn.T, problem.client_data.samples
        ),
        frames=turn @ problem.frames,
        centre=turn @ problem.centre,
    )
    algorithm = PersonalizedPCA(components=3, start_from="pooled")  # a start that turns along
    first, _ = curve(problem, algorithm, rounds=80)
    second, _ = curve(turned, algorithm, rounds=80)
    # The pooled starts may differ by signs of eigenvectors, but the prior depends on those of
    # the centre and of the clients only jointly.
    np.testing.assert_allclose(first, second, atol=1e-9)


def test_the_fresh_ratio_is_what_fresh_samples_give() -> None:
    problem = _small()
    estimate = measures.oracles(problem)["global"]
    generator = np.random.default_rng(4)
    errors = []
    for frame in problem.frames:
        records = frame @ generator.standard_normal((3, 100_000))
        records += np.sqrt(NOISE) * generator.standard_normal((12, 100_000))
        missed = records - estimate @ (estimate.T @ records)
        errors.append(float((missed**2).sum(axis=0).mean()) / (9 * NOISE))
    np.testing.assert_allclose(measures.fresh_ratios(estimate, problem), errors, rtol=0.01)


def test_the_calibrated_variance_is_that_of_the_generator() -> None:
    expected = {(30, 10, 0.1): 0.0075, (30, 10, 0.2): 0.0182, (100, 20, 0.1): 0.0050}
    for (features, components, spread), value in expected.items():
        assert model.effective_variance(features, components, spread) == pytest.approx(
            value, rel=0.02
        )
    problem = _small(clients=400)
    measured = model.distance(problem.frames, problem.centre).mean() / (36 - 6)
    assert model.effective_variance(12, 3, 0.2) == pytest.approx(measured, rel=0.03)


def test_a_round_costs_one_frame_in_each_direction_and_the_start_one_number() -> None:
    problem = personal(clients=7, samples=4)
    trace = simulate(problem, PersonalizedPCA(), rounds=2)
    assert trace.bytes_up.tolist() == [7 * 8, 7 * 8 + 7 * 2400, 7 * 8 + 2 * 7 * 2400]
    assert trace.bytes_down[-1] == 2 * 7 * 2400
    assert trace.estimates.shape == (3, 7, 30, 10)


def test_a_run_that_keeps_no_rounds_has_no_trace() -> None:
    run = Simulation(_small(), PersonalizedPCA(components=3), rounds=2, keep_rounds=False)
    assert [step.index for step in run] == [0, 1, 2]
    with pytest.raises(InvalidInput, match="keep_rounds=True"):
        run.trace()


def test_secure_aggregation_changes_nothing() -> None:
    problem = _small()
    plain = simulate(problem, PersonalizedPCA(components=3), rounds=20)
    hidden = simulate(
        problem, PersonalizedPCA(components=3), rounds=20, channel=Channel(secure_aggregation=True)
    )
    np.testing.assert_array_equal(plain.estimate, hidden.estimate)


def test_absent_clients_keep_their_frames() -> None:
    problem = _small()
    trace = simulate(problem, PersonalizedPCA(components=3), rounds=1, participation=0.5)
    moved = np.abs(trace.estimates[1] - trace.estimates[0]).max(axis=(1, 2)) > 0
    assert set(np.flatnonzero(moved)) == set(trace.transcript.exchanges[0].participants)
    assert moved.sum() == 3


def test_read_literally_nobody_gains_by_collaborating() -> None:
    problem = personal(clients=50, samples=10, spread=0.2, reading="literal")
    best = measures.oracles(problem)
    alone = measures.fresh_ratios(best["local"], problem).mean()
    assert alone < measures.fresh_ratios(best["global"], problem).mean()
    assert alone < measures.fresh_ratios(problem.centre, problem).mean()
    algorithm = PersonalizedPCA(10, 0.2, NOISE, prior="literal", start_from="pooled")
    ratios, _ = curve(problem, algorithm, rounds=300)
    assert ratios[-1].mean() == pytest.approx(alone, abs=0.005)


def test_angles_and_crossover() -> None:
    flat = np.eye(5)[:, :2]
    tilt = np.stack([flat, -flat[:, ::-1], np.eye(5)[:, 1:3]])
    tilt[2, :, 1] = [0, 0, 1, 0, 0]
    np.testing.assert_allclose(
        measures.angles_between(tilt), [[0, 0, 90], [0, 0, 90], [90, 90, 0]], atol=1e-5
    )
    axis = np.array([1.0, 10.0, 100.0])
    assert measures.crossover(axis, np.array([0, 1, 3]), np.array([2, 2, 2])) == pytest.approx(
        10**1.5
    )
    assert measures.crossover(axis, np.zeros(3), np.ones(3)) is None


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"spread": 0.0}, "spread of the clients must be positive"),
        ({"noise_variance": -1.0}, "noise variance must be positive, not -1"),
        ({"prior": "flat"}, "'std', 'literal' or 'calibrated', not 'flat'"),
        ({"gradient": "half"}, "'exact' or 'printed', not 'half'"),
        ({"step": 0.0}, "step must be positive, not 0"),
        ({"start_from": "zero"}, "not 'zero'"),
        ({"components": 12}, "12 components do not fit 12 features"),
    ],
)
def test_what_does_not_fit_is_refused(options, sentence) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        simulate(_small(), PersonalizedPCA(**{"components": 3, **options}), rounds=1)


def test_the_pooled_start_is_refused_where_it_is_stationary() -> None:
    problem = personal(features=12, components=6, clients=3, samples=2)
    with pytest.raises(InvalidInput, match="pooled start is stationary"):
        simulate(problem, PersonalizedPCA(components=6, start_from="pooled"), rounds=1)


def test_clients_that_train_alone_may_start_alike() -> None:
    problem = _small(samples=20)
    first = simulate(problem, LocalTraining(3, alike=True), rounds=1).estimates[0]
    assert (first == first[0]).all()
    apart = simulate(problem, LocalTraining(3), rounds=1).estimates[0]
    assert not np.allclose(apart[0], apart[1])
