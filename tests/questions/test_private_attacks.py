"""What noise leaves to an attacker, against theory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.findings import Status
from fedpca_core.gaussian_privacy import mu_of
from fedpca_core.papers.fedpower import MODELS
from fedpca_core.privacy import product_noise
from fedpca_core.questions.privacy import attacks as records
from fedpca_core.questions.privacy.attacks import (
    PUBLIC,
    Membership,
    Reconstruction,
    RecordMembership,
    beats_guess_from,
    best_error,
    finding,
    membership,
    public_guesses,
)
from fedpca_core.questions.privacy.build import distinct_clients
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.privacy.study import last_value
from fedpca_core.steps import outcome
from fedpca_core.study.sweep import Swept

RUNS = 150
#: Clients of whom the average says little.
DISTINCT = PrivacySettings(
    problem="distinct",
    features=20,
    clients=6,
    samples=500,
    epsilon=5.0,
    delta=1e-5,
    view="attacks",
)


def spiked() -> fp.problems.Problem:
    model = MODELS["spiked"]
    return model.draw(model.sizes["live"], 0)


def one_test(problem: fp.problems.Problem, run: fp.FedPower, runs: int) -> Membership:
    found = outcome(membership(problem, run, runs=runs, seed=10))
    assert found is not None
    return found


@pytest.mark.parametrize(("calibration", "tight"), [("exact", True), ("published", False)])
def test_membership_is_as_easy_as_theory_says(calibration: str, tight: bool) -> None:
    noise = float(product_noise(calibration, 5.0, 1e-4, 10, 5, 30_000))
    found = one_test(spiked(), fp.FedPower(4, 5, period=1, noise=noise), RUNS)
    # Standard error of an area under the curve from n + n runs is below 1/sqrt(6 n).
    assert found.auc == pytest.approx(found.expected_auc, abs=3 * found.uncertainty)
    # The scores are Gaussian with means +-mu^2/2 and variance mu^2.
    mu, ceiling = found.separation, float(mu_of(5.0, 1e-4))
    assert found.first.mean() == pytest.approx(mu**2 / 2, abs=4 * mu / np.sqrt(RUNS))
    assert found.second.mean() == pytest.approx(-(mu**2) / 2, abs=4 * mu / np.sqrt(RUNS))
    assert found.first.std() == pytest.approx(mu, rel=0.2)
    assert mu <= ceiling
    assert (mu > 0.85 * ceiling) is tight
    false, true = found.roc()
    assert false[0] == true[0] == 0 and false[-1] == true[-1] == 1
    assert np.trapezoid(true, false) == pytest.approx(found.auc, abs=0.01)


def test_membership_refuses_what_it_cannot_know() -> None:
    with pytest.raises(InvalidInput, match="p = 1 only, not at p = 2"):
        one_test(spiked(), fp.FedPower(4, noise=1.0), 1)
    with pytest.raises(InvalidInput, match="choose a finite ε"):
        one_test(spiked(), fp.FedPower(4, period=1), 1)


@pytest.mark.parametrize("client", [0, 2])
def test_membership_of_uneven_clients_uses_their_own_noise(client: int) -> None:
    """Scores are N(+-mu^2/2, mu^2) only with the noise that this client really adds."""
    problem = fp.problems.spiked_covariance(10, (100, 300, 900), 3, components=2)
    run = fp.FedPower(2, 3, products=3, period=1, noise=0.02)
    found = outcome(membership(problem, run, runs=150, client=client))
    assert found is not None
    mu = found.separation
    assert found.first.std() == pytest.approx(mu, rel=0.2)
    assert found.first.mean() == pytest.approx(mu**2 / 2, abs=4 * mu / np.sqrt(150))
    setting = fp.simulate(problem, run, rounds=1).setting
    stated = fp.privacy.account(run, setting, delta=1e-4, client=client)
    assert isinstance(stated, fp.privacy.Guarantee) and mu <= stated.mu


@pytest.mark.parametrize("method", [fp.BlockKrylov(2, blocks=4), fp.SSI(2)])
def test_membership_and_audit_of_methods_with_noise_on_every_product(method: fp.SSI) -> None:
    problem = fp.problems.spiked_covariance(10, 200, 4, components=2)
    setting = fp.simulate(problem, method, rounds=1).setting
    run = fp.privacy.within(fp.privacy.noisy(method, 1.0, 4), setting, 2.0, 1e-5)
    found = outcome(membership(problem, run, runs=120))
    assert found is not None
    ceiling = float(mu_of(2.0, 1e-5))
    assert 0.7 * ceiling < found.separation <= ceiling * (1 + 1e-12)
    plain, gaussian, ranking = found.audits(1e-5)
    assert 0 <= plain.epsilon <= gaussian.epsilon <= 2.0
    assert 0 < ranking.epsilon <= 2.0 and ranking.runs == 240


def test_noise_takes_reconstruction_back_to_the_public_guess() -> None:
    problem = distinct_clients()
    guess = public_guesses(problem, 1)
    assert 0.4 < guess[PUBLIC] < guess["even guess I/d"]

    def error(calibration: str, epsilon: float) -> float:
        noise = float(product_noise(calibration, epsilon, 1e-4, 10, 5, 500))
        run = fp.FedPower(4, 5, period=1, noise=noise)
        seen = [fp.simulate(problem, run, rounds=10, seed=seed).transcript for seed in range(3)]
        return float(np.median([best_error(problem, run, one, 1) for one in seen]))

    quiet = fp.FedPower(4, 5, period=1)
    transcript = fp.simulate(problem, quiet, rounds=10).transcript
    assert best_error(problem, quiet, transcript, 1) < 0.1
    low, middle, high = (error("exact", epsilon) for epsilon in (0.5, 10.0, 300.0))
    assert low == pytest.approx(guess[PUBLIC], rel=0.05)
    assert high < middle < low <= guess[PUBLIC] * (1 + 1e-9)
    assert error("published", 300.0) > high


def test_an_attacked_run_may_end_without_a_communication() -> None:
    problem = distinct_clients(features=20, clients=5)
    for noise in (0.0, 0.01):
        run = fp.FedPower(4, 5, period=5, noise=noise)
        assert 10 not in run.times
        transcript = fp.simulate(problem, run, rounds=99).transcript
        assert np.isfinite(best_error(problem, run, transcript))


@pytest.mark.parametrize("method", ["fedpower", "ssi", "block_krylov"])
@pytest.mark.parametrize("problem", ["spiked", "distinct"])
def test_noise_never_helps_the_attacker(
    problem: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One attacker throughout: its error without noise is the smallest of all."""
    monkeypatch.setattr(Reconstruction, "along", ("epsilon", (np.inf, 0.1, 1.0, 10.0, 100.0)))
    settings = replace(DISTINCT, problem=problem, method=method, samples=2000)
    swept = outcome(Reconstruction().run(settings))
    assert swept is not None
    without = last_value(swept, "none")
    assert without is not None
    for kind in ("exact", "published"):
        errors = swept.band(kind, "error")
        assert without <= errors.lower.min() * (1 + 1e-9)
        assert errors.upper.max() <= last_value(swept, PUBLIC) * (1 + 1e-9)
        assert errors.middle[-1] < errors.middle[0]


def swept(*errors: float) -> Swept:
    rows = [
        {"value": budget, "seed": 0, "series": series, "measure": "error", "result": error}
        for budget, measured in zip((0.1, 1.0, 10.0), errors, strict=True)
        for series, error in (("exact", measured), (PUBLIC, 1.0))
    ]
    return Swept("epsilon", pd.DataFrame(rows), {})


@pytest.mark.parametrize(
    ("errors", "found"),
    [
        ((1.0, 0.99, 0.5), (10.0, False)),
        ((0.5, 0.4, 0.3), (0.1, True)),  # the edge of the sweep, not a border
        ((0.5, 1.0, 0.3), (10.0, False)),  # an exception below is no border either
        ((1.0, 0.99, 0.96), (None, False)),
    ],
)
def test_the_edge_of_a_sweep_is_not_taken_for_a_border(errors, found) -> None:
    assert beats_guess_from(swept(*errors), "exact") == found


@pytest.mark.parametrize("method", ["fedpower", "ssi", "block_krylov"])
def test_tests_of_a_record_stay_below_their_ceilings(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The uncertainty of fewer runs is wider, and is what is allowed for.
    monkeypatch.setattr(records, "TESTS", 60)
    monkeypatch.setattr(records, "TESTS_AT_SOURCE", 300)
    settings = replace(DISTINCT, method=method)
    found = outcome(RecordMembership().run(settings))
    assert found is not None
    ceiling = float(mu_of(settings.epsilon, settings.delta))
    for kind, test in found.tests.items():
        assert test.separation <= ceiling * (1 + 1e-9)
        highest = found.areas.set_index("epsilon")["gaussian_ceiling"]
        assert test.auc <= highest[settings.epsilon] + 3 * test.uncertainty
        assert np.all(found.areas[f"expected_{kind}"] <= found.areas["gaussian_ceiling"] + 1e-9)
    assert np.all(found.areas["gaussian_ceiling"] < found.areas["permitted"])
    assert found.tests["published"].separation < found.tests["exact"].separation
    quiet = outcome(RecordMembership().run(replace(settings, epsilon=np.inf)))
    assert quiet is not None and not quiet.tests


def test_the_attacked_client_is_there_whoever_is_drawn() -> None:
    swept = outcome(Reconstruction().run(replace(DISTINCT, draws=2)))
    assert swept is not None and not swept.refusals
    assert np.isfinite(swept.band("exact", "error").middle).all()


def test_what_one_attacker_does_not_get_is_not_called_closed() -> None:
    """The finding names the attacker's error and its budgets, and never says that nothing leaks."""
    found = outcome(Reconstruction().run(DISTINCT))
    assert found is not None
    for kind in ("none", "exact"):
        one = finding(found, kind)
        assert one.status in (Status.PARTLY, Status.NOT_OPENED) and one.figure is not None
        assert one.figure.draws > 1 and one.basis
