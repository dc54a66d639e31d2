"""ε × heterogeneity: what the map must obey whatever the numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedpca_core.questions.catalogue import studies_of
from fedpca_core.questions.converge.figures import budget_panels as panels
from fedpca_core.questions.converge.study import (
    BUDGETS,
    BudgetsAndHeterogeneity,
    Convergence,
    levels,
    measure_at,
)
from fedpca_core.steps import outcome
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import ConvergeSettings

SMALL = ConvergeSettings(
    features=10, components=2, samples=200, clients=3, rounds=20, starts=1,
    methods=("ssi", "block_krylov"), budgets=True,
)  # fmt: skip
STUDY = BudgetsAndHeterogeneity()


@pytest.fixture(scope="module")
def swept():
    return outcome(STUDY.run(SMALL))


def test_a_smaller_budget_costs_more_and_none_costs_nothing(swept):
    for eta in levels(SMALL):
        band = swept.band("Block Krylov", measure_at(eta))
        assert tuple(band.x) == BUDGETS
        assert band.middle[0] > 5 * band.middle[-2] > 0 and band.middle[-1] < 1e-6


def test_a_point_of_the_map_is_the_run_that_converge_shows(swept):
    settings = replace(SMALL, epsilon=2.0, heterogeneity=0.5)
    shown = outcome(Convergence().run(settings)).tables["ssi"][0]["sin_theta"].iloc[-1]
    band = swept.band("SSI", measure_at(0.5))
    assert band.middle[list(band.x).index(2.0)] == pytest.approx(shown, rel=1e-9)


def test_it_is_one_figure_of_small_multiples_on_common_axes(swept):
    found = panels(swept, SMALL)
    assert [panel.title for panel in found] == [f"Heterogeneity {eta:g}" for eta in levels(SMALL)]
    assert len({panel.y_range for panel in found}) == 1
    names = [curve.name for curve in found[0].curves]
    assert names[0] == "SSI" and "Block Krylov" in names
    assert "Block Krylov, ε = ∞" not in names  # rounding, far below the axis


def test_what_the_data_refuse_is_said_of_no_method():
    rows = np.random.default_rng(0).normal(size=(60, 5))
    data = OwnData("own.csv", pd.DataFrame(rows).to_csv(index=False).encode())
    own = replace(SMALL, problem="table", scaling="centre")
    refusals = outcome(STUDY.run(own, data)).refusals
    assert set(refusals) == set(BUDGETS[:-1])
    assert all("columns are named beforehand" in text for text in refusals.values())
    named = replace(own, columns=("0", "1", "2"), scaling="standardise")
    refusals = outcome(STUDY.run(named, data)).refusals
    assert all("divided by deviations of their own" in text for text in refusals.values())


def test_it_runs_when_asked_for_only():
    def keys(settings):
        return [study.key for study in studies_of(settings)]

    assert keys(SMALL) == ["convergence", "budgets"]
    assert keys(replace(SMALL, budgets=False)) == ["convergence"]
