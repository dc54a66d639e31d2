"""Guarantees carry their meaning; clipping is enforced; every machine pays what it released."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.gaussian_privacy import epsilon_of
from fedpca_core.privacy import (
    Guarantee,
    Refusal,
    account,
    product_noise,
    releases_made,
    spent,
)
from fedpca_core.problems.perturbation import Budget
from fedpca_core.problems.records import clip, normalise
from fedpca_core.problems.table import from_table
from fedpca_core.protocol.algorithm import Setting
from fedpca_core.questions.personalise.settings import COMPARED as PERSONAL
from fedpca_core.questions.personalise.settings import PersonaliseSettings
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.streams import Streams
from fedpca_core.study.pca_settings import ConvergeSettings


@pytest.fixture(scope="module")
def problem() -> fp.problems.Problem:
    return fp.problems.spiked_covariance(features=15, samples=2000, clients=10)


@pytest.fixture(scope="module")
def setting(problem: fp.problems.Problem) -> Setting:
    data = problem.client_data
    return Setting(15, 10, data.samples, data.weights, record_norm=1.0)


def run(kind: str = "exact", epsilon: float = 2.0, **changes: object) -> fp.FedPower:
    noise = float(product_noise(kind, epsilon, 1e-5, 10, 3, 2000))
    return fp.FedPower(2, 3, noise=noise, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("period", [1, 2, 4, 5])
def test_every_schedule_composes_all_local_products(setting: Setting, period: int) -> None:
    found = account(run(period=period), setting, delta=1e-5)
    assert isinstance(found, Guarantee)
    assert found.releases == found.composition == 10
    assert found.epsilon == pytest.approx(2.0)


def test_published_noise_buys_more_than_it_says(setting: Setting) -> None:
    found = account(run("published"), setting, delta=1e-5)
    assert isinstance(found, Guarantee)
    assert found.epsilon < 2.0 / 4


def test_sampling_is_named_and_does_not_amplify(setting: Setting) -> None:
    full, drawn = (account(run(draws=k), setting, delta=1e-5) for k in (None, 4))
    assert isinstance(full, Guarantee) and isinstance(drawn, Guarantee)
    assert full.epsilon == drawn.epsilon
    assert drawn.sampling.startswith("4 clients drawn with replacement")
    assert "no amplification" in drawn.sampling


def test_subsets_without_replacement_are_named(problem: fp.problems.Problem) -> None:
    data = problem.client_data
    some = Setting(15, 10, data.samples, data.weights, participation=0.3, record_norm=1.0)
    found = account(fp.privacy.noisy(fp.SSI(3), 0.1, 5), some, delta=1e-5)
    assert isinstance(found, Guarantee)
    assert found.sampling.startswith("3 clients drawn without replacement")


def test_beside_epsilon_stand_the_words_that_give_it_a_meaning(setting: Setting) -> None:
    found = account(run(), setting, delta=1e-5, clip_norm=1.0)
    assert isinstance(found, Guarantee)
    for words in ("ε = 2", "δ: 1e-5", "one record of one client", "clip norm: 1", "GDP"):
        assert words in found.sentence()
    assert set(found.terms()) == {
        "δ",
        "unit",
        "clip norm",
        "released",
        "towards",
        "sampling",
        "accountant",
        "taken as public",
        "noise",
    }


@pytest.mark.parametrize("method", [fp.FedPower(2), fp.SSI(2), fp.BlockKrylov(2)])
def test_without_noise_epsilon_is_infinite_never_a_number(setting: Setting, method: fp.SSI) -> None:
    found = account(method, setting, delta=1e-5)
    assert isinstance(found, Guarantee)
    assert found.epsilon == np.inf and not found.private
    assert found.budget == "∞" and found.mu == np.inf
    assert "ε = ∞" in found.sentence()


@pytest.mark.parametrize(
    "method", [fp.FAPS(2), fp.FedPE(2), fp.FedPG(2), fp.LocalPower(2), fp.algorithms.OneShot(2)]
)
def test_no_epsilon_where_a_step_cannot_be_accounted(setting: Setting, method: fp.FAPS) -> None:
    found = account(method, setting, delta=1e-5)
    assert isinstance(found, Refusal)
    assert found.reason.endswith(".") and "no ε" in found.reason


@pytest.mark.parametrize("key", [key for key, entry in METHODS.items() if not entry.accounts])
def test_there_is_one_reason_why_a_method_has_no_epsilon(setting: Setting, key: str) -> None:
    """The registry's, whoever asks: the accountant of a run or the page of a budget."""
    entry = METHODS[key]
    page = PersonaliseSettings() if key in PERSONAL else ConvergeSettings(components=2)
    found = account(entry.make(page), setting, delta=1e-5)
    assert isinstance(found, Refusal) and entry.refusal and entry.refusal in found.reason
    if entry.compared:
        assert build.refusal(PrivacySettings(method=key)).reason.endswith(
            found.reason.partition(entry.refusal)[2]
        )
        assert entry.refusal in build.refusal(PrivacySettings(method=key)).reason


def test_a_reason_says_nothing_that_the_method_belies() -> None:
    """FedPG makes a stated number of local steps; averaging steps with the server's own length."""
    assert "number depends" not in METHODS["fedpg"].refusal
    for key in PERSONAL:
        assert "own step" not in METHODS[key].refusal


def test_uneven_clients_share_one_epsilon() -> None:
    uneven = fp.problems.spiked_covariance(features=12, samples=(100, 500, 2000), clients=3)
    data = uneven.client_data
    setting = Setting(12, 3, data.samples, data.weights, record_norm=1.0)
    found = [account(run(), setting, delta=1e-5, client=i) for i in range(3)]
    values = [entry.epsilon for entry in found if isinstance(entry, Guarantee)]
    assert len(values) == 3 and np.allclose(values, values[0])
    made = [entry.noise for entry in found if isinstance(entry, Guarantee)]
    assert made[0] == pytest.approx(20 * made[2])


def test_each_machine_pays_for_the_rounds_it_uploaded(problem: fp.problems.Problem) -> None:
    algorithm = run(period=4, draws=3)
    trace = fp.simulate(problem, algorithm, rounds=99, seed=2)
    made = releases_made(trace)
    gaps = [4, 3, 2, 1]
    expected = np.zeros(10, dtype=int)
    for gap, exchange in zip(gaps, trace.transcript.exchanges, strict=True):
        expected[exchange.participants] += gap
    assert np.array_equal(made, expected)
    assert made[0] == 10 and made.min() < 10
    paid = spent(trace, algorithm, delta=1e-5)
    assert paid[0] == pytest.approx(2.0)
    assert np.all(paid[made < 10] < 2.0) and np.all(paid[made == 0] == 0)


def test_what_was_spent_holds_the_noisy_mean() -> None:
    blocks = np.random.default_rng(0).standard_normal((10, 15, 200))
    budget = Budget(2.0, 1e-5, 1.0, mean_share=0.2)
    bounded = fp.problems.problem.from_blocks(list(blocks)).bounded(budget, Streams(0))
    noise = float(product_noise("exact", budget.for_products, 1e-5, 10, 3, 200))
    algorithm = fp.FedPower(2, 3, noise=noise, period=4, draws=2)
    trace = fp.simulate(bounded, algorithm, rounds=99, seed=2)
    made, paid = releases_made(trace), spent(trace, algorithm, delta=1e-5)
    stated = account(algorithm, trace.setting, delta=1e-5)
    assert isinstance(stated, Guarantee)
    assert paid[made == 10] == pytest.approx(stated.epsilon) and stated.epsilon == pytest.approx(2)
    mean = np.sqrt(0.2) * budget.mu
    assert made.min() == 0 and paid[made == 0] == pytest.approx(float(epsilon_of(mean, 1e-5)))


def test_expected_releases_match_the_draws(problem: fp.problems.Problem, setting: Setting) -> None:
    algorithm = run(draws=4)
    made = np.mean(
        [
            releases_made(fp.simulate(problem, algorithm, rounds=99, seed=seed))
            for seed in range(150)
        ],
        axis=0,
    )
    expected = 10 * (1 - (1 - setting.weights) ** 4)
    assert made[0] == 10 and np.allclose(made[1:], expected[1:], rtol=0.18)


def test_a_run_without_its_last_communication_still_costs_all_products(
    problem: fp.problems.Problem,
) -> None:
    trace = fp.simulate(problem, run(period=5), rounds=99)
    assert np.all(releases_made(trace) == 10)


def test_norms_are_bounded_before_second_moments_are_formed() -> None:
    generator = np.random.default_rng(0)
    block = generator.standard_normal((6, 40))
    block[:, 3] = 0.0
    block[:, 4] *= 1e-3
    clipped, normalised = clip(block, 1.0), normalise(block, 1.0)
    lengths = np.linalg.norm(normalised, axis=0)
    assert lengths[3] == 0 and np.allclose(np.delete(lengths, 3), 1.0)
    assert np.linalg.norm(clipped, axis=0).max() <= 1 + 1e-12
    short = np.linalg.norm(block, axis=0) <= 1
    assert np.array_equal(clipped[:, short], block[:, short])
    raw = fp.problems.problem.from_blocks([block, 2 * block])
    safe = bounded(raw, 0.5)
    assert safe.record_norm == 0.5
    assert np.all(safe.client_data.traces() <= 0.25 + 1e-12)


def bounded(problem: fp.problems.Problem, norm: float) -> fp.problems.Problem:
    return problem.bounded(Budget(1.0, 1e-5, norm), Streams(0))


def public(problem: fp.problems.Problem) -> Setting:
    return fp.simulate(problem, fp.SSI(2), rounds=1).setting


def long_records() -> fp.problems.Problem:
    """Every record of norm 7."""
    long = np.random.default_rng(0).standard_normal((6, 40))
    long *= 7 / np.linalg.norm(long, axis=0)
    return fp.problems.problem.from_blocks([long, long[:, ::-1]])


NOISY = [fp.FedPower(2, noise=0.1), fp.privacy.noisy(fp.SSI(2), 0.1, 3)]


@pytest.mark.parametrize("method", NOISY)
def test_no_epsilon_for_records_without_a_bound(method: fp.FedPower) -> None:
    found = account(method, public(long_records()), delta=1e-5)
    assert isinstance(found, Refusal) and "Nothing bounds the norms" in found.reason


@pytest.mark.parametrize("method", NOISY)
def test_no_epsilon_for_records_longer_than_the_clip_norm(method: fp.FedPower) -> None:
    """Noise that suits records of norm 1 protects nothing of one of norm 7."""
    clipped_at_seven = bounded(long_records(), 7.0)
    found = account(method, public(clipped_at_seven), delta=1e-5)
    assert isinstance(found, Refusal) and "norm 7, above the clip norm 1" in found.reason
    assert isinstance(
        account(method, public(clipped_at_seven), delta=1e-5, clip_norm=7.0), Guarantee
    )
    safe = bounded(long_records(), 1.0)
    assert isinstance(account(method, public(safe), delta=1e-5), Guarantee)
    spiked = fp.problems.spiked_covariance(15, 200, 3, treatment="raw")
    found = account(method, public(spiked), delta=1e-5)
    assert isinstance(found, Refusal) and "protects nothing" in found.reason


@pytest.mark.parametrize("scaling", ["standardise", "centre"])
def test_no_epsilon_for_records_scaled_by_their_own_moments(scaling: str) -> None:
    generator = np.random.default_rng(1)
    frame = pd.DataFrame(0.1 * generator.standard_normal((60, 4)), columns=list("abcd"))
    own = from_table(frame, clients=3, scaling=scaling)  # as without an ε
    found = account(fp.FedPower(2, noise=0.1), public(own), delta=1e-5)
    assert isinstance(found, Refusal) and "moments of their own" in found.reason
    named = from_table(frame, list("abcd"), clients=3, scaling="none", public_schema=True)
    plain = bounded(named, 1.0)
    assert isinstance(account(fp.FedPower(2, noise=0.1), public(plain), delta=1e-5), Guarantee)


def test_a_row_of_a_network_is_half_of_an_edge() -> None:
    note = fp.problems.block_model(20, 2).note
    assert "an edge sits in two of them" in note


def test_more_noise_means_a_smaller_epsilon() -> None:
    values = [Guarantee(1e-5, 10, 0.02, 0.1 + i / 100, 1.0, 10.0).epsilon for i in range(200)]
    assert np.all(np.diff(values) < 0)
