"""Noise at the source: one release of S_i + E_i, everything else is post-processing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

import fedpca_core as fp
from fedpca_core.algorithms.block_krylov import CentredBlockKrylov
from fedpca_core.algorithms.personal_rivals import DecoupledPCA
from fedpca_core.algorithms.registry import METHODS as REGISTRY
from fedpca_core.errors import InvalidInput
from fedpca_core.gaussian_privacy import mu_of
from fedpca_core.guarantee import CLIENT, RECORD, Guarantee, Unit, meanings, together
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.metrics.personal import training_ratios
from fedpca_core.privacy import account, calibration
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.perturbation import symmetric_noise
from fedpca_core.problems.problem import Problem, without_record
from fedpca_core.problems.table import from_table
from fedpca_core.protocol.algorithm import Algorithm
from fedpca_core.questions.personalise.settings import COMPARED as PERSONAL_METHODS
from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.streams import Streams
from fedpca_core.study.pca_settings import ConvergeSettings

FEATURES, CLIENTS, COMPONENTS = 12, 5, 2

METHODS: list[Algorithm] = [
    fp.SSI(COMPONENTS),
    fp.DistributedPower(COMPONENTS, products=4),
    fp.LocalPower(COMPONENTS),
    fp.FAPS(COMPONENTS),
    fp.FAPS(COMPONENTS, inner_rule="conditions", private_start=True),
    fp.VariableSplitting(COMPONENTS),
    fp.VariableSplitting(COMPONENTS, penalty_factor=2.0, constraint="free"),
    fp.BlockKrylov(COMPONENTS),
    CentredBlockKrylov(COMPONENTS),
    fp.OneShot(COMPONENTS),
    fp.OneShot(COMPONENTS, "stacked"),
    fp.FedPower(COMPONENTS, 3),
    fp.FedPE(COMPONENTS),
    fp.FedPG(COMPONENTS),
    fp.PersonalizedPCA(COMPONENTS),
    DecoupledPCA(COMPONENTS),
    fp.GlobalAveraging(COMPONENTS),
    fp.LocalTraining(COMPONENTS),
    fp.Centralized(COMPONENTS),
]
#: Methods that end where the noisy covariance ends.
SHARED_TARGET = [
    method
    for method in METHODS
    if not isinstance(
        method,
        fp.OneShot
        | fp.PersonalizedPCA
        | fp.LocalTraining
        | fp.FedPower
        | fp.GlobalAveraging
        | DecoupledPCA
        | CentredBlockKrylov,  # of records with one more column
    )
    and not (isinstance(method, fp.FAPS) and method.private_start)
    and not isinstance(method, fp.DistributedPower)
]


def name(method: Algorithm) -> str:
    return f"{type(method).__name__} {method.title}"


def records(seed: int, samples: int = 30) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    strong = np.linalg.qr(generator.standard_normal((FEATURES, COMPONENTS)))[0]
    return [
        strong @ generator.standard_normal((COMPONENTS, samples + i))
        + 0.2 * generator.standard_normal((FEATURES, samples + i))
        for i in range(CLIENTS)
    ]


@pytest.fixture(scope="module")
def problem() -> Problem:
    return fp.problems.problem.from_blocks(records(0))


def noisy(problem: Problem, epsilon: float = 5.0, seed: int = 3, **options: object) -> Problem:
    return problem.private(epsilon, 1e-5, 1.0, Streams(seed), **options)  # type: ignore[arg-type]


# ---------------------------------------------------------------------- what is released
def test_noise_is_symmetric_with_half_the_variance_off_the_diagonal() -> None:
    spread = np.array([1.0, 0.5])
    draws = np.stack([symmetric_noise(spread, 40, Streams(seed)) for seed in range(25)])
    assert np.array_equal(draws, draws.swapaxes(-1, -2))
    upper = np.triu_indices(40, 1)
    for client, size in enumerate(spread):
        diagonal = np.diagonal(draws[:, client], axis1=-2, axis2=-1)
        off = draws[:, client, upper[0], upper[1]]
        assert kstest(diagonal.ravel() / size, "norm").pvalue > 1e-3
        assert kstest(off.ravel() / size * np.sqrt(2), "norm").pvalue > 1e-3


def test_neighbours_are_one_gaussian_release_apart(problem: Problem) -> None:
    """The log-likelihood ratio of M_i has the mean mu^2/2 of a single release, not of n^2."""
    spread, runs = 0.3, 600
    change = np.diag([1.0, -1.0] + [0.0] * (FEATURES - 2)) / 10
    scores = []
    weight = np.full((FEATURES, FEATURES), 2.0) - np.eye(FEATURES)  # 1/variance: half off diagonal
    upper = np.triu_indices(FEATURES)
    precision = weight[upper] / spread**2
    for seed in range(runs):
        noise = symmetric_noise(np.array([spread]), FEATURES, Streams(seed))[0][upper]
        scores.append(float(precision @ (noise * change[upper] + 0.5 * change[upper] ** 2)))
    mu = np.linalg.norm(change) / spread
    assert np.mean(scores) == pytest.approx(mu**2 / 2, abs=4 * mu / np.sqrt(runs))
    assert np.std(scores) == pytest.approx(mu, rel=0.1)


def test_noise_is_calibrated_to_each_client(problem: Problem) -> None:
    private = noisy(problem)
    assert private.source is not None
    sizes = problem.client_data.samples
    expected = np.sqrt(2) / (sizes * float(mu_of(5.0, 1e-5)))
    assert np.allclose(private.source.noise, expected, rtol=1e-12)
    assert isinstance(private.guarantee, Guarantee)
    assert private.guarantee.epsilon == pytest.approx(5.0, rel=1e-9)
    multiplier = private.guarantee.noise / private.guarantee.sensitivity
    found = calibration.calibrated("privacy loss", 5.0, 1e-5, 1)
    assert multiplier == pytest.approx(found, rel=1e-3)


def test_the_words_beside_epsilon(problem: Problem) -> None:
    private = noisy(problem)
    assert private.guarantee is not None
    said = private.guarantee.sentence()
    for words in (
        "ε = 5 ",
        "δ: 1e-5",
        "unit: one record of one client, replaced by another",
        "clip norm: 1",
        "one release of Sᵢ + Eᵢ a client; everything else is post-processing",
        "even a dishonest one",
        "accountant: exact composition",
    ):
        assert words in said
    assert said in private.note


def test_records_are_clipped_before_the_second_moments_are_formed(problem: Problem) -> None:
    private = problem.private(1e6, 1e-5, 0.5, Streams(0))
    assert private.source is not None
    clipped = [
        block * (0.5 / np.maximum(np.linalg.norm(block, axis=0), 0.5)) for block in records(0)
    ]
    moments = np.stack([block @ block.T / block.shape[1] for block in clipped])
    assert np.allclose(private.source.clipped.dense(), moments, atol=1e-14)
    assert np.allclose(private.client_data.dense(), moments, atol=1e-2)
    assert private.client_data.traces().max() < 0.26


def test_the_target_is_that_of_the_records_as_they_were(problem: Problem) -> None:
    private = problem.private(0.5, 1e-5, 0.1, Streams(0))
    assert np.array_equal(private.covariance, problem.covariance)
    assert np.array_equal(private.eigenvalues, problem.eigenvalues)
    assert np.array_equal(private.target(2), problem.target(2))
    assert private.heterogeneity == problem.heterogeneity
    assert private.unperturbed is problem and problem.unperturbed is problem
    assert private.digest != problem.digest
    trace = fp.simulate(private, fp.Centralized(2), rounds=1)
    expected = largest_sine(trace.estimate, problem.target(2))
    assert fp.metrics.frame(trace, private).sin_theta.iloc[-1] == pytest.approx(expected)
    assert expected > 1e-3


def test_one_epsilon_scales_the_noise_of_another(problem: Problem) -> None:
    """Dragging the budget repaints one draw; another release is another draw."""
    both = [noisy(problem, e) for e in (1.0, 10.0)]
    noise = [
        one.client_data.dense() - one.source.clipped.dense()
        for one in both
        if one.source is not None
    ]
    ratio = float(mu_of(10.0, 1e-5) / mu_of(1.0, 1e-5))
    assert np.allclose(noise[0], ratio * noise[1], atol=1e-12)
    again, other = noisy(problem, 1.0), noisy(problem, 1.0, release=1)
    assert np.array_equal(again.client_data.dense(), noisy(problem, 1.0).client_data.dense())
    assert not np.allclose(again.client_data.dense(), other.client_data.dense())


# ---------------------------------------------------------------------- post-processing
def registered(key: str) -> Algorithm:
    """A method as the pages make it."""
    sort = PersonaliseSettings if key in PERSONAL_METHODS else ConvergeSettings
    return REGISTRY[key].make(sort(components=COMPONENTS))


#: As the pages make them, and with other parameters.
ALL_METHODS = [registered(key) for key in REGISTRY] + METHODS


def test_the_laws_below_are_of_every_method() -> None:
    assert {one.algorithm for one in REGISTRY.values()} <= {type(method) for method in METHODS}


@pytest.mark.parametrize("method", ALL_METHODS, ids=name)
def test_a_trace_is_a_function_of_the_released_matrices_alone(
    problem: Problem, method: Algorithm
) -> None:
    """Other records, other clipping, the same M_i: the same run, bit for bit."""
    first = noisy(problem)
    other = noisy(
        fp.problems.problem.from_blocks(records(1), weights=list(problem.client_data.weights))
    )
    matrices = ClientData.from_grams(
        first.client_data.dense().copy(), first.client_data.samples, first.client_data.weights
    )
    second = replace(other, client_data=replace(matrices, indefinite=True))
    for dtype in ("float64", "float32"):
        traces = [
            fp.simulate(
                one, method, rounds=6, seed=2, participation=0.6, channel=fp.Channel(dtype=dtype)
            )
            for one in (first, second)
        ]
        assert np.array_equal(traces[0].estimates, traces[1].estimates)
        assert np.isfinite(traces[0].estimates).all()
        for one, two in zip(*(t.transcript.exchanges for t in traces), strict=True):
            for part in ("downlink", "uploads", "feedback"):
                ones, twos = getattr(one, part) or {}, getattr(two, part) or {}
                assert ones.keys() == twos.keys()
                assert all(np.array_equal(ones[key], twos[key]) for key in ones)


@pytest.mark.parametrize("method", ALL_METHODS, ids=name)
def test_every_method_has_the_same_guarantee(problem: Problem, method: Algorithm) -> None:
    private = noisy(problem)
    trace = fp.simulate(private, method, rounds=2, participation=0.6)
    assert account(method, trace.setting, delta=1e-5) == private.guarantee


@pytest.mark.parametrize("method", SHARED_TARGET, ids=name)
def test_methods_end_where_the_noisy_covariance_ends(problem: Problem, method: Algorithm) -> None:
    private = noisy(problem, 40.0)
    data = private.client_data.positive() if isinstance(method, fp.FedPE) else private.client_data
    best = np.linalg.eigh(data.mean())[1][:, : -COMPONENTS - 1 : -1]
    found = fp.simulate(private, method, rounds=300, seed=1).estimate
    assert largest_sine(found, best) < 1e-5


def test_the_personal_method_keeps_its_truth() -> None:
    personal = fp.problems.personal(features=10, components=2, clients=4, samples=40)
    private = personal.private(20.0, 1e-5, 8.0, Streams(1))
    assert isinstance(private, type(personal)) and private.frames is personal.frames
    trace = fp.simulate(private, fp.PersonalizedPCA(2), rounds=20)
    assert trace.estimates.shape == (21, 4, 10, 2)
    # The loss is that of the records, not of the noise.
    estimates = trace.estimate
    assert np.array_equal(training_ratios(estimates, private), training_ratios(estimates, personal))


# ---------------------------------------------------------------------- indefinite matrices
def test_norms_of_indefinite_matrices_are_spectral_norms(problem: Problem) -> None:
    data = noisy(problem, 0.05).client_data
    values = np.linalg.eigvalsh(data.dense())
    assert values.min() < 0
    assert np.allclose(data.spectral_norms(), np.abs(values).max(axis=1))
    assert np.any(data.spectral_norms() > values[:, -1] * (1 + 1e-9))
    positive = data.positive()
    assert np.allclose(np.linalg.eigvalsh(positive.dense()), np.clip(values, 0, None), atol=1e-12)
    assert np.allclose(positive.spectral_norms(), np.clip(values, 0, None)[:, -1])
    some = positive.only(np.array([1, 3]))
    assert some.positive() is some
    assert problem.client_data.positive() is problem.client_data


def test_frames_that_may_grow_do_not_run_away_along_negative_eigenvalues(problem: Problem) -> None:
    """FedPE's loss has no lower bound off the manifold unless the matrices are clipped."""
    method = fp.FedPE(COMPONENTS, initial="uniform", surrogate=False)
    trace = fp.simulate(noisy(problem, 0.5), method, rounds=20)
    assert trace.frames is not None
    assert np.abs(trace.frames[-1]).max() < 10


# ---------------------------------------------------------------------- refusals
def table(scaling: str) -> Problem:
    generator = np.random.default_rng(4)
    columns = generator.standard_normal((200, 4)) * 0.2 + np.array([0.5, 0.0, -0.3, 0.1])
    frame = pd.DataFrame(columns, columns=list("abcd"))
    return from_table(frame, list("abcd"), clients=4, scaling=scaling, public_schema=True)


def test_tables_scaled_by_their_own_moments_are_refused(problem: Problem) -> None:
    with pytest.raises(InvalidInput, match="divided by deviations of their own"):
        noisy(replace(problem, own_scale=True))
    with pytest.raises(InvalidInput, match="divided by deviations of their own"):
        table("standardise")
    with pytest.raises(InvalidInput, match="centred on their own mean"):
        noisy(table("centre"))
    assert noisy(table("none")).guarantee is not None


def test_a_noisy_mean_is_paid_for() -> None:
    centred, raw = table("centre"), table("none")
    assert centred.blocks is not None and raw.blocks is not None
    assert centred.own_mean is not None
    back = [block + centred.own_mean[:, None] for block in centred.blocks]
    ordered = [np.sort(np.concatenate(blocks, axis=1)) for blocks in (back, raw.blocks)]
    assert np.allclose(*ordered)
    private = centred.private(1e6, 1e-5, 2.0, Streams(3), mean_share=0.2)
    assert private.source is not None and private.source.mean is not None
    assert np.allclose(private.source.mean, centred.own_mean, atol=1e-3)
    assert np.allclose(private.client_data.mean(), centred.covariance, atol=1e-3)
    spent = noisy(centred, 1.0, mean_share=0.2)
    assert spent.guarantee is not None and spent.source is not None
    assert spent.guarantee.epsilon == pytest.approx(1.0, rel=1e-9)
    assert "noisy mean" in spent.guarantee.sentence() and spent.guarantee.releases == 2
    left = np.sqrt(2) / (50 * spent.source.noise)
    assert np.allclose(left, np.sqrt(0.8) * float(mu_of(1.0, 1e-5)))


def test_a_long_mean_has_a_clip_norm_of_its_own() -> None:
    """Records far from the origin: clipped at the norm of what is left of them, the mean is off."""
    generator = np.random.default_rng(5)
    columns = generator.standard_normal((400, 4)) * 0.2 + 5.0
    frame = pd.DataFrame(columns, columns=list("abcd"))
    far = from_table(frame, list("abcd"), clients=4, scaling="centre", public_schema=True)
    sources = [
        far.private(1e6, 1e-5, 1.0, Streams(0), mean_share=0.2, mean_clip=clip).source
        for clip in (None, 15.0)
    ]
    assert far.own_mean is not None
    off = [np.linalg.norm(s.mean - far.own_mean) for s in sources if s is not None]  # type: ignore[operator]
    assert off[0] > 5.0 and off[1] < 0.05
    noisy_means = [
        far.private(1.0, 1e-5, 1.0, Streams(0), mean_share=0.2, mean_clip=clip).guarantee
        for clip in (1.0, 15.0)
    ]
    for clip, stated in zip((1, 15), noisy_means, strict=True):
        assert stated is not None and stated.epsilon == pytest.approx(1.0)
        assert f"noisy mean (clip norm {clip})" in stated.sentence()


@pytest.mark.parametrize("share", [0.05, 0.5])
def test_both_releases_compose_to_the_stated_budget(share: float) -> None:
    """The mean of records of norm C moves by 2C/m; measured over pairs of records."""
    samples, clip = 40, 1.0
    private = table("centre").private(2.0, 1e-5, clip, Streams(0), mean_share=share)
    assert private.source is not None
    mean_mu = np.sqrt(share) * float(mu_of(2.0, 1e-5))
    matrix_mu = np.sqrt(2) * clip**2 / (50 * private.source.noise[0])
    assert np.hypot(mean_mu, matrix_mu) == pytest.approx(float(mu_of(2.0, 1e-5)))
    generator = np.random.default_rng(samples)
    ends = generator.standard_normal((2, 3, 500))
    ends /= np.maximum(np.linalg.norm(ends, axis=1, keepdims=True), clip)
    assert np.linalg.norm(ends[0] - ends[1], axis=0).max() <= 2.0 * clip


def test_second_moments_are_refused_where_their_records_may_be_longer() -> None:
    moments = fp.problems.spiked_covariance(10, 50, 3)
    assert noisy(moments).guarantee is not None
    with pytest.raises(InvalidInput, match="keeps second moments only"):
        moments.private(1.0, 1e-5, 0.5, Streams(0))
    raw = fp.problems.spiked_covariance(10, 50, 3, treatment="raw")
    with pytest.raises(InvalidInput, match="cannot be clipped at 1 any more"):
        noisy(raw)
    with pytest.raises(InvalidInput, match="noisy mean needs the records"):
        noisy(moments, mean_share=0.1)


def test_thin_factors_are_clipped_too() -> None:
    wide = [np.random.default_rng(i).standard_normal((30, 4)) for i in range(3)]
    factors = ClientData.from_factors([block / 2.0 for block in wide])
    private = noisy(Problem("factors", factors), 1e6)
    assert private.client_data.traces() == pytest.approx(1.0, abs=1e-2)


def test_noise_is_not_added_twice_and_no_record_leaves_it(problem: Problem) -> None:
    with pytest.raises(InvalidInput, match="already"):
        noisy(noisy(problem))
    with pytest.raises(InvalidInput, match="another release number"):
        without_record(noisy(problem), 0, 0)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": 0.0}, "ε must be a positive number"),
        ({"delta": 1.0}, "δ must lie between 0 and 1"),
        ({"clip": -1.0}, "clip norm must be positive"),
        ({"mean_share": 1.0}, r"lies in \[0, 1\), not 1.0"),
    ],
)
def test_budgets_that_make_no_sense_are_refused(
    problem: Problem, changes: dict[str, float], words: str
) -> None:
    good = {"epsilon": 1.0, "delta": 1e-5, "clip": 1.0, "streams": Streams(0)}
    with pytest.raises(InvalidInput, match=words):
        problem.private(**{**good, **changes})  # type: ignore[arg-type]


# ---------------------------------------------------------------------- units and runs
@pytest.mark.parametrize(("held", "epsilon"), [(1, 1.0), (2, 2.1), (5, 5.9), (10, 13.5)])
def test_a_person_with_several_records(held: int, epsilon: float) -> None:
    record = Guarantee(1e-6, 1, float(mu_of(1.0, 1e-6)), 1.0, 1.0, 1.0)
    person = record.for_unit(Unit(held), 1000)
    assert person.mu == pytest.approx(held * record.mu)
    assert person.epsilon == pytest.approx(epsilon, abs=0.05)
    assert (f"{held} records" in person.sentence()) is (held > 1)


def test_noise_for_a_person_is_the_records_noise_times_its_records(problem: Problem) -> None:
    one, person, whole = (noisy(problem, unit=unit).source for unit in (RECORD, Unit(3), CLIENT))
    assert one is not None and person is not None and whole is not None
    assert np.allclose(person.noise, 3 * one.noise)
    # All records of a client change its matrix by sqrt(2) C^2, however many there are.
    assert np.allclose(whole.noise, np.sqrt(2) / float(mu_of(5.0, 1e-5)))
    assert "one client" in whole.guarantee.unit
    samples = int(problem.client_data.samples[0])
    back = replace(one.guarantee, delta=1e-5).for_unit(CLIENT, samples)
    assert back.mu == pytest.approx(samples * one.guarantee.mu)


def test_no_clients_records_change_its_matrix_by_more(problem: Problem) -> None:
    generator = np.random.default_rng(2)
    worst = 0.0
    for _ in range(300):
        held = [generator.standard_normal((4, 3)) for _ in range(2)]
        if generator.random() < 0.5:  # records along one line each are the worst
            held = [np.outer(q, np.ones(3)) for q in np.linalg.qr(held[0])[0].T[:2]]
        held = [block / np.linalg.norm(block, axis=0) for block in held]
        first, second = (block @ block.T / 3 for block in held)
        worst = max(worst, float(np.linalg.norm(first - second)))
    assert worst == pytest.approx(np.sqrt(2))


def test_two_runs_compose(problem: Problem) -> None:
    one = problem.private(1.0, 1e-6, 1.0, Streams(0)).guarantee
    other = problem.private(1.0, 1e-6, 1.0, Streams(0), release=1).guarantee
    assert one is not None and other is not None
    both = together([one, other])
    assert both.epsilon == pytest.approx(1.45, abs=0.005)
    assert both.mu == pytest.approx(np.sqrt(2) * one.mu)
    assert both.releases == 2 and "2 runs" in both.sentence()
    assert together([one]) is one
    with pytest.raises(InvalidInput, match="one unit"):
        together([one, one.for_unit(Unit(2), 30)])


def test_what_epsilon_means_for_others(problem: Problem) -> None:
    one = problem.private(1.0, 1e-6, 1.0, Streams(0)).guarantee
    assert one is not None
    said = meanings(one, 34)
    ends = [stated.epsilon for stated in said.values()]
    assert next(iter(said)) == "one record" and list(said)[-1] == "a client (all 34 records)"
    assert ends[:5] == pytest.approx([1.0, 1.45, 2.1, 5.9, 13.5], abs=0.05)
    assert said["a client (all 34 records)"].mu == pytest.approx(34 * one.mu)
    assert ends == sorted(ends)
    assert list(meanings(one, 5))[2:] == ["a person with 2 records", "a client (all 5 records)"]
    assert list(meanings(one, 1))[2:] == ["a client (1 record)"]
    assert meanings(one, 1)["a client (1 record)"].epsilon == pytest.approx(1.0)


def test_how_often_a_replacement_is_noticed(problem: Problem) -> None:
    """The rate of the likelihood-ratio test of two Gaussians that are mu apart."""
    stated = Guarantee(1e-6, 1, 0.7, 1.0, 1.0, 1.0)
    draws = np.random.default_rng(0).standard_normal((2, 200_000))
    measured = float((draws[1] + stated.mu > np.quantile(draws[0], 0.95)).mean())
    assert stated.noticed(0.05) == pytest.approx(measured, abs=0.005)
    assert Guarantee(1e-6, 1, 0.0, 1.0, 1.0, 1.0).noticed(0.05) == pytest.approx(0.05)
    assert Guarantee(1e-6, 1, 0.7, 0.0, 1.0, 1.0).noticed(0.05) == 1.0
