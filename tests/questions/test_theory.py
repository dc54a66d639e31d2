"""The studies of the Theory page: every method finds its claim, and the verdict is measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedpca_core.__main__ import main
from fedpca_core.consensus import bounds
from fedpca_core.consensus.methods import run
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.theory import settings as theory_settings
from fedpca_core.questions.theory.settings import ITERATIONS, LOW, REASONS, TheorySettings
from fedpca_core.questions.theory.study import (
    ARRIVED,
    AgainstClaims,
    PenaltyAndSteps,
    Statements,
)
from fedpca_core.steps import outcome
from tests.tables import own_file

SMALL = TheorySettings(clients=4, features=3, rounds=50)


def measured(settings: TheorySettings):
    return outcome(AgainstClaims().run(settings))


@pytest.mark.parametrize("problem", ["quadratics", "pair", "ridge", "logistic"])
@pytest.mark.parametrize("method", ITERATIONS)
def test_no_claim_is_violated_at_its_own_tuning(problem, method) -> None:
    found = measured(replace(SMALL, problem=problem, method=method))
    assert found.verdict in ("holds", "vacuous", "none")
    assert not found.diverged
    assert len(found.summary) == 6
    if found.norm is not None and found.spectral is not None:
        assert found.radius is not None
        assert found.radius <= found.norm * (1 + 1e-9)
        assert found.norm <= found.spectral * (1 + 1e-9)


def test_claims_follow_the_parameters() -> None:
    assert replace(SMALL, method="exact").claim().name == "Theorem 1"
    assert replace(SMALL, method="scaffnew", local_steps=1).claim().name == "Corollary 2"
    assert replace(SMALL, method="scaffnew", local_steps=3).claim().factor is None
    assert replace(SMALL, method="nine", penalty_factor=0.0).claim().name == "Theorem 10"
    assert replace(SMALL, method="nine", penalty_factor=1.0).claim().name == "Theorem 9"
    assert replace(SMALL, method="exact", dual_scale=0.5).claim().factor is None
    rare, often = (replace(SMALL, method="proxskip", probability=p) for p in (0.05, 1.0))
    tuned = replace(rare, probability=0.0).claim().factor
    assert rare.claim().factor > tuned and tuned == pytest.approx(often.claim().factor)
    vacuous = replace(SMALL, method="exact", penalty_factor=3.0, kappa=100.0)
    assert vacuous.claim().factor >= 1
    assert measured(vacuous).verdict == "vacuous"


def test_theorem_3_is_a_claim_about_any_functions_and_holds_beyond_quadratics() -> None:
    speaking = replace(
        SMALL, method="steps", problem="logistic", kappa=4.0, penalty_factor=0.0, local_steps=8
    )
    found = measured(speaking)
    assert found.claim.proved and found.claim.factor < 0.7
    assert found.verdict == "holds"
    assert not replace(speaking, method="nine").claim().proved


def test_a_claim_that_is_exceeded_is_called_violated(monkeypatch) -> None:
    true = SMALL.claim()
    monkeypatch.setattr(TheorySettings, "claim", lambda settings: replace(true, factor=0.3))
    assert measured(SMALL).verdict == "violated"


def test_a_course_says_what_its_run_did() -> None:
    settings = replace(SMALL, rounds=200)
    trace = run(settings.build(), settings.build_method(), settings.rounds, seed=settings.seed)
    found = measured(settings)
    course, last = found.of(), found.summary.iloc[0]
    assert last["rounds"] == trace.rounds == 200 and not found.diverged
    np.testing.assert_allclose(course["norm"], trace.norms / trace.norms[0])
    arrived = int(np.flatnonzero(trace.distances <= ARRIVED)[0])
    assert last["rounds_to_1e-8"] == arrived
    assert last["bytes_up_to_1e-8"] == trace.bytes_up[arrived] == arrived * 4 * 3 * 8
    assert last["largest_factor"] == np.nanmax(trace.contractions)
    rivals = measured(replace(settings, local_steps=5)).summary.set_index("method")
    assert rivals.loc["FedAvg", ["rounds_to_1e-8", "gradients_to_1e-8"]].isna().all()
    one = rivals.loc["Gradient descent (n = 1)"]
    assert one["gradients_to_1e-8"] == one["rounds_to_1e-8"]


def test_too_long_steps_diverge_and_the_bound_says_so_beforehand() -> None:
    found = measured(replace(SMALL, method="exact", penalty_factor=0.0, dual_scale=2.0, rounds=400))
    assert found.spectral is not None and found.spectral > 1
    assert found.diverged


def test_the_sweeps_contain_the_exact_norms_and_the_window() -> None:
    settings = replace(SMALL, kappa=100.0)
    found = outcome(PenaltyAndSteps().run(settings))
    penalty, steps = found["penalty"], found["local-steps"]
    claimed, bound = penalty["Theorem 1"], steps["our bound for Scaffnew"]
    for name in ("two scalar clients", "this problem"):
        assert (penalty[f"exact, {name}"] <= claimed * (1 + 1e-9)).all()
        norms = steps[f"Scaffnew, {name}"]
        assert (norms <= bound * (1 + 1e-9)).all()
        assert (steps[f"Scaffnew, asymptotic, {name}"] <= norms * (1 + 1e-9)).all()
    assert steps["local_steps"][bound.argmin()] == pytest.approx(np.sqrt(100.0), rel=0.25)
    low, high = (end / LOW for end in bounds.vacuous_penalties(LOW, settings.high))
    inside = penalty["penalty_factor"].between(low, high)
    assert (claimed[inside] >= 1).all() and (claimed[~inside] < 1).all()
    assert bounds.best_penalty(LOW, settings.high)[1] <= claimed.min() + 1e-12
    assert bounds.vacuous_penalties(LOW, SMALL.high) is None
    many = outcome(PenaltyAndSteps().run(replace(SMALL, clients=20, features=20)))
    assert "exact, this problem" not in many["penalty"]


def test_the_statements_are_recomputed_for_another_family() -> None:
    study = Statements()
    assert study.identity(SMALL) == study.identity(replace(SMALL, kappa=100.0, seed=5))
    assert study.identity(SMALL) != study.identity(replace(SMALL, family_seed=1))
    assert AgainstClaims().identity(SMALL) == AgainstClaims().identity(
        replace(SMALL, family_seed=1)
    )
    one, other = (outcome(study.run(replace(SMALL, family_seed=seed))) for seed in (0, 3))
    assert list(one["theorem"]) == list(other["theorem"])
    assert not one["worst"].equals(other["worst"])
    assert set(one["verdict"]) == {"holds", "false as printed", "corrected: holds"}


def test_the_penalty_is_counted_in_units_of_the_strong_convexity() -> None:
    assert replace(SMALL, penalty_factor=2.0).penalty == 2.0 * LOW
    assert replace(SMALL, penalty_factor=0.0).coupling > 0


def test_a_value_that_does_not_fit_is_refused(tmp_path, capsys) -> None:
    file = tmp_path / "theory.json"
    text = SMALL.to_json().replace('"penalty_factor": 0.2', '"penalty_factor": -1')
    file.write_text(text, encoding="utf-8")
    assert main(["run", str(file)]) == 2
    assert "Penalty factor cannot be -1" in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="Clients cannot be 21"):
        replace(SMALL, clients=21)


OWN = replace(SMALL, problem="table", client_column="label", target="c", scaling="none")


def test_a_column_of_ones_own_table_is_regressed_on_the_others() -> None:
    data = own_file()
    problem = OWN.build(data)
    assert (problem.clients, problem.features) == (2, 4)
    assert problem.strong_convexity == pytest.approx(LOW)
    assert problem.smoothness == pytest.approx(OWN.high)
    # The minimiser is that of ridge regression, each client's rows counting the same in all.
    moments, answers = [], []
    for _, rows in data.table.groupby("label"):
        records, answer = rows[list("abde")].to_numpy(), rows["c"].to_numpy()
        moments.append(records.T @ records / len(rows))
        answers.append(records.T @ answer / len(rows))
    low, high = np.linalg.eigvalsh(moments).min(), np.linalg.eigvalsh(moments).max()
    ridge = (high - OWN.kappa * low) / (OWN.kappa - 1)
    wanted = np.linalg.solve(np.mean(moments, 0) + ridge * np.eye(4), np.mean(answers, 0))
    np.testing.assert_allclose(problem.solution, wanted, rtol=1e-9)
    found = outcome(AgainstClaims().run(OWN, data))
    assert found.verdict == "holds" and found.norm <= found.spectral * (1 + 1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"target": "z"}, "There is no numeric column “z” to predict; choose one of a, b, c"),
        ({"client_column": "", "clients": 20}, "20 clients with 4 unknowns each are 80 in all"),
        ({"scaling": "standardise", "columns": ("a", "q")}, "q"),
    ],
)
def test_a_table_that_does_not_fit_is_a_sentence(changes, message, monkeypatch) -> None:
    monkeypatch.setattr(theory_settings, "MOST_UNKNOWNS", 60)
    for study in (AgainstClaims(), PenaltyAndSteps()):
        with pytest.raises(InvalidInput, match=message):
            outcome(study.run(replace(OWN, **changes), own_file()))
    with pytest.raises(InvalidInput, match="choose a CSV, Parquet or NumPy file"):
        OWN.build()


def test_every_choice_is_a_method_that_is_tuned_and_claimed() -> None:
    assert list(TheorySettings.parameters()["method"].choices) == list(ITERATIONS)
    for key, without in ITERATIONS.items():
        dials = {name for name in REASONS if name in replace(SMALL, method=key).idle()}
        assert dials == set(without), key
