"""The map of what is at risk: measured, with the reason where nothing is recovered."""

from __future__ import annotations

import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.problems import decay_spectrum, images
from fedpca_core.studies.at_risk import OUTCOMES, risk_map

DIGITS = [images("digits", resolution=side) for side in (3, 8)]


def test_few_records_of_many_features_are_at_risk_and_the_boundary_is_explained():
    cells = {
        (cell.features, cell.records, cell.noise): cell
        for cell in risk_map(DIGITS, (5, 12), (0.0, 1e-2), trials=2, budget=1e8)
    }
    assert len(cells) == 8
    assert cells[64, 5, 0.0].recovered == cells[64, 12, 0.0].recovered == 1.0
    assert cells[64, 12, 0.0].outcome == "recovered"
    assert cells[9, 12, 0.0].recovered == 0.0
    assert cells[9, 12, 0.0].outcome == "rank"
    assert cells[64, 12, 1e-2].outcome == "precision"
    assert cells[64, 12, 1e-2].error > 0.1 > 1e-6 > cells[64, 12, 0.0].error
    assert all(cell.false == 0 and cell.outcome in OUTCOMES for cell in cells.values())


def test_the_map_needs_facts_and_enough_records():
    with pytest.raises(InvalidInput, match="states no grid"):
        list(risk_map([decay_spectrum(6, [20, 20])], (2,)))
    with pytest.raises(InvalidInput, match="need 1500, but there are 1000"):
        list(risk_map([images("digits", max_samples=1000)], (500,)))
