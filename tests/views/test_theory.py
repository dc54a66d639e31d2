"""What the Theory page draws and says of its results."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedpca_core.questions.theory import figures as theory
from fedpca_core.questions.theory.settings import ITERATIONS, TheorySettings
from fedpca_core.questions.theory.study import (
    AgainstClaims,
    Measured,
    PenaltyAndSteps,
    Statements,
)
from fedpca_core.steps import outcome

SMALL = TheorySettings(clients=4, features=3, rounds=50)


def measured(settings: TheorySettings) -> Measured:
    found = outcome(AgainstClaims().run(settings))
    assert found is not None
    return found


@pytest.mark.parametrize("method", ITERATIONS)
def test_every_method_is_drawn_with_what_needs_private_data_marked(method) -> None:
    found = measured(replace(SMALL, method=method))
    norm, factor = theory.convergence(found)
    for panel in (norm, factor):
        for curve in panel.curves:
            assert curve.simulation_only != curve.guide, "claims are public, runs are not"
    exact = [line for line in factor.baselines if line.label.startswith("exact")]
    assert all(line.simulation_only for line in exact)
    assert theory.rivals(found, SMALL).simulation_only
    assert theory.badge(found)[0]


def test_the_badge_doubts_only_what_is_proved_for_quadratics() -> None:
    logistic = replace(SMALL, problem="logistic", kappa=4.0, penalty_factor=0.0, local_steps=8)
    text, colour = theory.badge(measured(replace(logistic, method="steps")))
    assert (text, colour) == ("Theorem 3: holds", "green")
    text, _ = theory.badge(measured(replace(logistic, method="nine")))
    assert text.endswith("(proved for quadratics only)")
    none = theory.badge(measured(replace(SMALL, method="fedavg")))
    assert none == ("No theorem that holds speaks of this choice", "gray")


def test_what_the_run_did_in_words() -> None:
    gone = measured(replace(SMALL, penalty_factor=0.0, dual_scale=2.0, rounds=400))
    assert "diverged" in theory.summary(gone)
    there = measured(replace(SMALL, rounds=200))
    assert f"after **{there.summary['rounds_to_1e-8'][0]:.0f} rounds**" in theory.summary(there)
    early = measured(replace(SMALL, rounds=20))
    assert "ends" in theory.summary(early) and "away from the minimiser" in theory.summary(early)


def test_fedavg_has_a_floor_unless_clients_are_alike_or_step_once() -> None:
    floor = replace(SMALL, rounds=400)
    assert "FedAvg stops" in theory.floor_sentence(measured(floor), floor)
    alike = replace(SMALL, heterogeneity=0.0, rounds=400)
    assert "clients are alike" in theory.floor_sentence(measured(alike), alike)
    early = replace(SMALL, heterogeneity=0.0, rounds=20)
    assert "still moving" in theory.floor_sentence(measured(early), early)
    once = replace(SMALL, local_steps=1, rounds=400)
    assert "gradient descent" in theory.floor_sentence(measured(once), once)


def test_the_table_of_work() -> None:
    work = theory.work_table(measured(replace(SMALL, rounds=200)))
    assert work.loc[0, "Rounds to 1e-8"] == "not reached"
    assert work.loc[0, "Kilobytes sent up"] == work.loc[0, "Local gradients per client"] == "–"
    assert work.loc[3, "Local gradients per client"] == "exact solves"
    assert work.loc[1, "Local gradients per client"] == work.loc[1, "Rounds to 1e-8"]


def test_the_sweeps_and_where_theorem_1_is_silent() -> None:
    settings = replace(SMALL, kappa=100.0)
    found = outcome(PenaltyAndSteps().run(settings))
    assert "it says nothing" in theory.where_it_speaks(settings)
    penalty = theory.against_penalty(found["penalty"], settings)
    steps = theory.against_steps(found["local-steps"], settings)
    for panel in (penalty, steps):
        marked = {curve.name for curve in panel.curves if curve.simulation_only}
        assert marked and all(name.endswith("this problem") for name in marked)
    assert "Theorem 1 says nothing" in [curve.name for curve in penalty.curves]
    low = outcome(PenaltyAndSteps().run(SMALL))
    assert "speaks for every r" in theory.where_it_speaks(SMALL)
    names = [curve.name for curve in theory.against_penalty(low["penalty"], SMALL).curves]
    assert "Theorem 1 says nothing" not in names


def test_the_table_of_verdicts() -> None:
    found = outcome(Statements().run(SMALL))
    table = next(theory.statements(found, SMALL)).rows
    assert len(table) == len(found)
    assert set(table["Verdict"]) == {"✓ holds", "✗ false as printed", "✓ holds, corrected here"}
    row = table[(table["Statement"] == "Theorem 3")].iloc[0]
    assert row["Verdict"] == "✓ holds" and row["Violated"].startswith("0/")
