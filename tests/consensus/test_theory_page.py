"""What the Theory page computes: every method finds its claim, and the verdict is measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dashboard.views import theory as theory_view
from dashboard.views import theory_tables
from fedpca_core.consensus.verdicts import verdicts
from fedpca_core.studies.theory import LOW, METHODS, TheorySettings, claim, study, sweeps

SMALL = TheorySettings(clients=4, features=3, rounds=50)


@pytest.mark.parametrize("problem", ["quadratics", "pair", "ridge", "logistic"])
@pytest.mark.parametrize("method", METHODS)
def test_no_claim_is_violated_at_its_own_tuning(problem, method) -> None:
    found = study(replace(SMALL, problem=problem, method=method))
    assert found.verdict in ("holds", "vacuous", "none")
    assert not found.trace.diverged
    assert len(found.rivals) == len(theory_view.RIVALS)
    for panel in (*theory_view.convergence(found), theory_view.rivals(found)):
        assert panel.curves
    assert theory_view.badge(found)[0]
    if found.norm is not None and found.spectral is not None:
        assert found.radius is not None
        assert found.radius <= found.norm * (1 + 1e-9)
        assert found.norm <= found.spectral * (1 + 1e-9)


def test_claims_follow_the_parameters() -> None:
    assert claim(replace(SMALL, method="exact")).name == "Theorem 1"
    assert claim(replace(SMALL, method="scaffnew", local_steps=1)).name == "Corollary 2"
    assert claim(replace(SMALL, method="scaffnew", local_steps=3)).factor is None
    assert claim(replace(SMALL, method="nine", penalty=0.0)).name == "Theorem 10"
    assert claim(replace(SMALL, method="nine", penalty=1.0)).name == "Theorem 9"
    assert claim(replace(SMALL, method="exact", dual_scale=0.5)).factor is None
    assert claim(replace(SMALL, method="steps", problem="logistic")).proved
    assert not claim(replace(SMALL, method="nine", problem="logistic")).proved
    vacuous = replace(SMALL, method="exact", penalty=3.0, condition=100.0)
    assert claim(vacuous).vacuous
    assert study(vacuous).verdict == "vacuous"


def test_too_long_steps_diverge_and_the_bound_says_so_beforehand() -> None:
    found = study(replace(SMALL, method="exact", penalty=0.0, dual_scale=2.0, rounds=400))
    assert found.spectral is not None and found.spectral > 1
    assert found.trace.diverged
    assert "diverged" in theory_view.summary(found)


def test_fedavg_has_a_floor_unless_clients_are_alike_or_step_once() -> None:
    floor = study(replace(SMALL, rounds=400))
    assert "FedAvg stops" in theory_view.floor_sentence(floor, SMALL)
    alike = replace(SMALL, heterogeneity=0.0, rounds=400)
    assert "clients are alike" in theory_view.floor_sentence(study(alike), alike)
    early = replace(SMALL, heterogeneity=0.0, rounds=20)
    assert "still moving" in theory_view.floor_sentence(study(early), early)
    once = replace(SMALL, local_steps=1, rounds=400)
    assert "gradient descent" in theory_view.floor_sentence(study(once), once)


def test_sweeps_contain_the_exact_norms_and_the_window() -> None:
    configuration = replace(SMALL, condition=100.0)
    found = sweeps(configuration)
    claimed = found.by_penalty["ρ of Theorem 1"]
    for name in ("measured, two scalar clients", "measured, this problem"):
        assert (found.by_penalty[name] <= np.maximum(claimed, 0) * (1 + 1e-9)).all()
    bound = found.by_steps["our bound for Scaffnew"]
    assert (found.by_steps["Scaffnew measured, this problem"] <= bound * (1 + 1e-9)).all()
    assert found.steps[bound.argmin()] == pytest.approx(found.root, rel=0.25)
    assert found.window is not None
    inside = (found.penalties > found.window[0]) & (found.penalties < found.window[1])
    assert (claimed[inside] >= 1).all() and (claimed[~inside] < 1).all()
    assert "it says nothing" in theory_view.window_sentence(found)
    assert len(theory_view.sweep_panels(found, configuration)) == 2
    assert "speaks for every r" in theory_view.window_sentence(sweeps(SMALL))


def test_tables() -> None:
    rows = verdicts(count=1)
    table = theory_tables.verdict_table(rows)
    assert len(table) == len(rows)
    assert set(table["Verdict"]) == {"✓ holds", "✗ false as printed", "✓ holds, corrected here"}
    work = theory_tables.work_table(study(replace(SMALL, rounds=200)))
    assert work.loc[0, "Rounds to 1e-8"] == "not reached"
    assert work.loc[3, "Local gradients per client"] == "exact solves"
    assert LOW == 0.5
