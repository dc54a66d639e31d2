"""What the Personalise page computes and says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dashboard.views import personal as personal_view
from fedpca_core.errors import InvalidInput
from fedpca_core.studies.personalised import (
    AXES,
    PRESETS,
    PersonaliseSettings,
    Sweep,
    compare,
    give_away,
    sweep,
)

SMALL = PersonaliseSettings(features=15, components=3, clients=20, samples=10, rounds=200, seed=1)


def _on(fraction: float, text: str) -> bool:
    assert 0 <= fraction <= 1 and text
    return True


@pytest.fixture(scope="module")
def outcome():
    return compare(SMALL, _on)


def test_the_comparison_and_what_is_said_about_it(outcome) -> None:
    assert outcome.fresh["PersonalizedPCA"].shape == (201, 20)
    assert (outcome.fresh["LocalTraining"] >= 1).all()
    np.testing.assert_allclose(
        outcome.gains("LocalTraining"),
        outcome.fresh["LocalTraining"][-1] - outcome.fresh["PersonalizedPCA"][-1],
    )
    assert outcome.fresh["LocalTraining"][-1].mean() == pytest.approx(
        outcome.limits["LocalTraining"], abs=1e-2
    )
    assert outcome.bytes_sent["LocalTraining"] == 0
    assert outcome.bytes_sent["PersonalizedPCA"] == 2 * 200 * 20 * 8 * 15 * 3
    assert len(outcome.table()) == 3 * 201
    text = personal_view.verdict(outcome)
    assert f"**{outcome.fresh['PersonalizedPCA'][-1].mean():.3f}**" in text
    for panel in (
        personal_view.curves(outcome, "fresh"),
        personal_view.curves(outcome, "training"),
        personal_view.gains(outcome),
    ):
        assert all(curve.simulation_only for curve in panel.curves)
    true, learned = personal_view.angles(outcome)
    for heat in (true, learned):
        np.testing.assert_allclose(heat.values, np.asarray(heat.values).T)
        assert (np.diagonal(heat.values) == 0).all()


def test_collaboration_pays_in_between_and_not_when_told_literally() -> None:
    middle = compare(replace(SMALL, samples=20, spread=0.3), _on)
    assert middle is not None
    said = personal_view.verdict(middle)
    assert said.startswith("**Personalised collaboration pays here.**")
    literal = replace(SMALL, reading="literal", spread=0.5, clients=10)
    spread_out = compare(literal, _on)
    assert spread_out is not None
    said = personal_view.verdict(spread_out)
    assert said.startswith("**Nothing to gain over training alone here**")


def test_the_sweep_interpolates_between_the_extremes() -> None:
    found = sweep(SMALL, _on)
    assert found is not None
    mine = found.ratios["PersonalizedPCA"]
    alone, shared = found.ratios["LocalTraining"], found.ratios["GlobalAveraging"]
    assert mine[0] == pytest.approx(shared[0], abs=0.01)
    assert mine[-1] == pytest.approx(alone[-1], abs=0.02)
    assert (mine <= np.minimum(alone, shared) + 0.02).all()
    assert found.crossing is not None and 0.1 < found.crossing < 1
    sentence = personal_view.sweep_sentence(found)
    assert f"{found.crossing:.2g}" in sentence
    panel = personal_view.sweep_panel(found, SMALL)
    assert [curve.name for curve in panel.curves][-1] == "this page's setting"


def test_a_stopped_sweep_keeps_what_it_has() -> None:
    partial: list[Sweep] = []
    found = sweep(
        replace(SMALL, vary="samples"), lambda fraction, _: fraction < 0.3, partial.append
    )
    assert found is not None and found is partial[-1]
    assert 0 < len(found.values) < len(AXES["samples"])
    assert "Still running" in personal_view.sweep_sentence(found)
    assert compare(SMALL, lambda *_: False) is None
    assert give_away(SMALL, lambda *_: False) is None


def test_a_figure_of_the_paper_is_drawn_beside_its_own_settings() -> None:
    preset = PRESETS["figure-1b"][1]
    small = replace(preset, clients=10, rounds=50)
    found = sweep(small, _on)
    assert found is not None
    names = [curve.name for curve in personal_view.sweep_panel(found, small).curves]
    assert "personalised PCA at the size of Figure 1(b)" in names
    other = replace(small, samples=40)
    names = [curve.name for curve in personal_view.sweep_panel(found, other).curves]
    assert not any("Figure" in name for name in names)


def test_one_sample_a_client_is_given_away() -> None:
    found = give_away(replace(SMALL, samples=1), _on)
    assert found is not None
    assert found.errors["common"][1] < 1e-9
    assert found.errors["independent"][1] > 0.05
    assert (found.record_errors < 1e-6).sum() >= 3
    assert "sample itself" in personal_view.exposure_sentence(found)
    assert personal_view.exposure_panel(found).curves


def test_presets_are_configurations_with_links() -> None:
    for name, (title, preset) in PRESETS.items():
        reading = PersonaliseSettings.from_json(preset.to_json())
        assert reading.configuration == preset and not reading.notes, name
        assert title


def test_sizes_that_do_not_fit_are_a_sentence() -> None:
    with pytest.raises(InvalidInput, match="15 components do not fit 15 features"):
        compare(replace(SMALL, components=15), _on)
