"""What noise leaves to an attacker, against theory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.privacy import Calibration
from fedpca_core.studies.papers.fedpower import MODELS
from fedpca_core.studies.private.record_attacks import (
    distinct_clients,
    membership,
    public_guesses,
    reconstruction_curve,
    reconstruction_error,
)


@pytest.mark.parametrize(("calibration", "tight"), [("exact", True), ("published", False)])
def test_membership_is_as_easy_as_theory_says(calibration: str, tight: bool) -> None:
    problem = MODELS["spiked"].live(0)
    noise = float(Calibration(calibration, 5.0, 1e-4, 10, 5).noise(30_000))
    run = fp.FedPower(4, 5, period=1, noise=noise)
    found = membership(problem, run, epsilon=5.0, delta=1e-4, runs=250, seed=10)
    # Standard error of an area under the curve from n + n runs is below 1/sqrt(6 n).
    assert found.auc == pytest.approx(found.expected_auc, abs=3 / np.sqrt(6 * 250))
    # The scores are Gaussian with means +-mu^2/2 and variance mu^2.
    mu = found.separation
    assert found.first.mean() == pytest.approx(mu**2 / 2, abs=4 * mu / np.sqrt(250))
    assert found.second.mean() == pytest.approx(-(mu**2) / 2, abs=4 * mu / np.sqrt(250))
    assert found.first.std() == pytest.approx(mu, rel=0.2)
    assert found.separation <= found.ceiling
    assert (found.separation > 0.85 * found.ceiling) is tight
    false, true = found.roc()
    assert false[0] == true[0] == 0 and false[-1] == true[-1] == 1
    assert np.trapezoid(true, false) == pytest.approx(found.auc, abs=0.01)


def test_membership_refuses_what_it_cannot_know() -> None:
    problem = MODELS["spiked"].live(0)
    with pytest.raises(InvalidInput, match="p = 1 only, not at p = 2"):
        membership(problem, fp.FedPower(4, noise=1.0), epsilon=1.0, delta=1e-4)
    with pytest.raises(InvalidInput, match="switch the noise on"):
        membership(problem, fp.FedPower(4, period=1), epsilon=1.0, delta=1e-4)


def test_noise_takes_reconstruction_back_to_the_public_guess() -> None:
    problem = distinct_clients()
    guess = public_guesses(problem)
    assert 0.4 < guess["public answer S"] < guess["even guess I/d"]
    run = fp.FedPower(4, 5, period=1)
    assert reconstruction_error(problem, run) < 0.1
    errors = reconstruction_curve(
        problem, run, calibration="exact", epsilons=(0.5, 10.0, 300.0), delta=1e-4
    )
    assert errors[0] == pytest.approx(guess["public answer S"], rel=0.05)
    assert errors[2] < errors[1] < errors[0] <= guess["public answer S"] * (1 + 1e-9)
    published = reconstruction_curve(
        problem, run, calibration="published", epsilons=(300.0,), delta=1e-4
    )
    assert published[0] > errors[2]


def test_an_attacked_run_may_end_without_a_communication() -> None:
    problem = distinct_clients(features=20, clients=5)
    run = fp.FedPower(4, 5, period=5, noise=0.01)
    assert 10 not in run.times
    assert np.isfinite(reconstruction_error(problem, run))
    assert np.isfinite(reconstruction_error(problem, replace(run, noise=0.0)))
