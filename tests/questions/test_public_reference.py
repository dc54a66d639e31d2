"""The Privacy page with a public reference: who is protected, who is attacked, what is said."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.guarantee import Unit
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.privacy.calibration import exact_sensitivity
from fedpca_core.protocol.algorithm import Setting
from fedpca_core.protocol.simulate import simulate
from fedpca_core.questions.privacy import attacks, build, figures
from fedpca_core.questions.privacy.attacks import (
    Reconstruction,
    RecordMembership,
    attacked,
    best_error,
    membership,
    shrunk_error,
)
from fedpca_core.questions.privacy.error_budget import (
    ErrorBudget,
    largest_drift,
    one_round_identity,
    predicted_sine,
)
from fedpca_core.questions.privacy.guarantee import promised
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.privacy.study import PrivateRun, WaysToSpend
from fedpca_core.steps import outcome
from fedpca_core.study.study import Study

SMALL = PrivacySettings(
    problem="distinct", features=20, samples=2000, repetitions=2, delta=1e-5, clients=6,
    local_steps=4, decaying_gaps=False, products=12, public_reference=True,
)  # fmt: skip
ALL = "all records of client 0"


def result_of(study: Study, settings: PrivacySettings):
    found = outcome(study.run(settings))
    assert found is not None
    return found


def words(parts: object) -> str:
    return " ".join(map(str, parts))  # type: ignore[call-overload]


def test_a_link_names_it_and_the_method_has_it() -> None:
    reading = PrivacySettings.from_query({"public": ["true"]})
    assert not reading.faults and reading.configuration.public_reference
    made = build.plain(reading.configuration)
    assert isinstance(made, fp.FedPower) and made.public and made.reference == 0
    assert not build.plain(PrivacySettings()).public_clients
    assert "literal" in SMALL.idle()
    assert "public_reference" in replace(SMALL, method="ssi").idle()
    assert "public_reference" in replace(SMALL, view="ways").idle()


def test_half_the_bytes_for_the_same_epsilon() -> None:
    usual = replace(SMALL, public_reference=False)
    found, other = (result_of(PrivateRun(), one) for one in (SMALL, usual))
    for kind, run in found.runs.items():
        assert run.bytes_up[-1] == other.runs[kind].bytes_up[-1] / (
            1 if kind == "source" else 2
        ) or (kind == "source")
    assert np.array_equal(found.runs["none"].times, other.runs["none"].times)
    assert np.abs(found.runs["none"].sines - other.runs["none"].sines).max() < 1e-9
    one, two = (promised(each).stated[0].guarantee for each in (SMALL, usual))
    assert (one.epsilon, one.noise, one.releases) == (two.epsilon, two.noise, two.releases)
    assert ALL in one.public and ALL not in two.public


def test_what_is_said_names_who_is_public() -> None:
    said = words(figures.protection(promised(SMALL), SMALL))
    assert ALL + " are public" in said and "own basis" not in said
    usual = replace(SMALL, public_reference=False)
    said = words(figures.protection(promised(usual), usual))
    assert "are public" not in said and "own basis" in said
    bare = replace(usual, alignment=False)
    assert "own basis" not in words(figures.protection(promised(bare), bare))


def test_what_is_spent_is_told_of_those_who_are_protected() -> None:
    drawn = replace(SMALL, draws=3)
    found = result_of(PrivateRun(), drawn)
    assert found.spending is not None and list(found.spending["client"]) == [
        "1",
        "2",
        "3",
        "4",
        "5",
    ]
    assert np.isfinite(found.spending.epsilon).all() and len(found.spending.releases) == 5
    assert "whose records are public" in words(figures.private_run(found, drawn))
    usual = replace(drawn, public_reference=False)
    found = result_of(PrivateRun(), usual)
    assert found.spending is not None and found.spending["client"][0] == "0"
    assert "0 is the reference and always uploads" in words(figures.private_run(found, usual))


def test_the_attacked_client_is_not_the_public_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert attacked(SMALL) == 1 and attacked(replace(SMALL, public_reference=False)) == 0
    problem = build.build_problem(SMALL)
    run = build.method(SMALL, build.noise_for(SMALL))
    transcript = simulate(problem, run, rounds=99).transcript
    assert np.isfinite(best_error(problem, run, transcript, 1))
    with pytest.raises(InvalidInput, match="records of client 0 are public"):
        best_error(problem, run, transcript, 0)
    with pytest.raises(InvalidInput, match="records of client 0 are public"):
        outcome(membership(problem, replace(run, period=1), runs=1))
    monkeypatch.setattr(attacks, "TESTS", 2)
    found = result_of(RecordMembership(), SMALL)
    held = float(exact_sensitivity(5, 2000))
    assert found.tests["exact"].separation == pytest.approx(
        np.sqrt(12) * held / build.noise_for(SMALL), rel=0.3
    )
    source = replace(SMALL, calibration="source")
    private = build.private(source, build.records(source), 0)
    assert shrunk_error(private, 1) != shrunk_error(private, 0)
    swept = Reconstruction()
    measured = outcome(swept.measure(replace(SMALL, view="attacks"), 0, None))
    truth = build.build_problem(SMALL)
    assert measured is not None
    guess = attacks.public_guesses(truth, 1)[attacks.PUBLIC]
    assert measured[attacks.PUBLIC]["error"] == guess


def test_the_ways_protect_everybody() -> None:
    ways = replace(SMALL, view="ways", repetitions=1, samples=500, features=12)
    found, other = (
        WaysToSpend().tables(result_of(WaysToSpend(), one), one)["ways"]
        for one in (ways, replace(ways, public_reference=False))
    )
    assert found.equals(other)


@pytest.mark.parametrize("draws", [0, 3])
def test_where_the_error_comes_from_is_exact(draws: int) -> None:
    settings = replace(SMALL, draws=draws, view="budget")
    found = result_of(ErrorBudget(), settings)
    assert found.identity is not None and found.identity.residual.max() < 1e-12


def test_drift_is_measured_to_the_public_path() -> None:
    problem = build.build_problem(SMALL)
    run = replace(build.method(SMALL, 0.05), reference=2)
    trace = simulate(problem, run, rounds=99, seed=3)
    found = one_round_identity(problem, trace)
    assert found.residual.max() < 1e-12
    assert largest_drift(problem, trace) >= found.rho.max() > 0.1


def test_the_floor_knows_of_the_missing_noise() -> None:
    setting = build.public_setting(SMALL)
    problem, run = build.build_problem(SMALL), build.method(SMALL, 1e-3)
    few, many = (
        predicted_sine(problem, replace(run, public=public), setting) for public in (True, False)
    )
    assert few / many == pytest.approx(np.sqrt(5 / 6), rel=1e-3)
    ends = []
    for public in (True, False):
        chosen = replace(run, public=public, period=1)
        sines = [
            largest_sine(
                simulate(problem, chosen, rounds=99, seed=seed).estimate, problem.target(4)
            )
            for seed in range(12)
        ]
        ends.append(np.sqrt(np.mean(np.square(sines))))
    assert ends[0] / ends[1] == pytest.approx(np.sqrt(5 / 6), rel=0.08)


@pytest.mark.parametrize("unit", ["record", "person", "client"])
def test_the_largest_client_needs_no_noise_where_it_is_public(unit: str, monkeypatch) -> None:
    """ε is what was asked for, of the largest client that is protected."""
    sizes = np.array([900, 100, 300])
    public = Setting(20, 3, sizes, sizes / sizes.sum(), record_norm=1.0)
    monkeypatch.setattr(build, "public_setting", lambda *_: public)
    settings = replace(SMALL, unit=unit, held=50, epsilon=3.0)
    found = promised(settings)
    assert found.stated[0].guarantee.epsilon == pytest.approx(3.0, rel=1e-6)
    assert build.several(settings, public) == {"record": 1, "person": 50, "client": 300}[unit]
    assert build.protected(settings, public).tolist() == [100, 300]
    whole = list(found.others.values())[-1]
    assert whole.unit == str(Unit(None)) and whole.epsilon == pytest.approx(
        found.stated[0].guarantee.of_one_record(build.unit(settings), 300)
        .for_unit(Unit(None), 300).epsilon
    )  # fmt: skip
