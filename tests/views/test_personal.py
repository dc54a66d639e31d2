"""What the Personalise page draws and says of its results."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dashboard.shell import bundle, palette
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.questions.personalise import figures
from fedpca_core.questions.personalise.exposure import Exposed, Exposure
from fedpca_core.questions.personalise.settings import (
    ALONE,
    COMPARED,
    PERSONAL,
    SHARED,
    PersonaliseSettings,
)
from fedpca_core.questions.personalise.study import CollaborationSweep, PersonalComparison
from fedpca_core.steps import outcome

SMALL = PersonaliseSettings(
    features=12, components=3, clients=8, samples=10, rounds=100, seed=1, datasets=2
)


@pytest.fixture(scope="module")
def compared():
    return outcome(PersonalComparison().run(SMALL))


@pytest.fixture(scope="module")
def swept():
    return outcome(CollaborationSweep().run(SMALL))


def test_the_sentence_has_the_numbers_of_the_tables(compared) -> None:
    text = figures.verdict(compared)
    summary = PersonalComparison().tables(compared, SMALL)["summary"].set_index("method")
    assert f"**{summary.loc['Personalised PCA', 'fresh_ratio']:.3f}**" in text
    assert f"training alone settles at {summary.loc['Training alone', 'limit']:.3f}" in text
    assert f"(global averaging) at {summary.loc['Global averaging', 'limit']:.3f}" in text
    assert "After 100 rounds" in text and f"{compared.better} of 8 clients" in text
    stopped = replace(compared, planned=300)
    assert "After 100 of 300 rounds" in figures.verdict(stopped)


@pytest.mark.parametrize(
    ("gain", "begins"),
    [
        (0.01, "**Personalised collaboration pays here.**"),
        (0.0, "**Nothing to gain over training alone here**"),
        (-0.01, "**Training alone is still ahead here**"),
    ],
)
def test_the_verdict_follows_the_gain_over_the_better_extreme(compared, gain, begins) -> None:
    mine = float(compared.fresh[PERSONAL][-1])
    limits = {"local_training": mine + gain, "global_averaging": mine + 1}
    text = figures.verdict(replace(compared, limits=limits))
    assert text.startswith(begins)
    assert ("clients do a little better than alone" in text) == (gain == 0.0)


def test_every_chart_of_errors_is_marked_and_in_the_methods_colours(compared, swept) -> None:
    fresh = figures.curves(compared, SMALL)
    training = figures.curves(compared, replace(SMALL, error_on="training"))
    along = figures.along(swept, SMALL)
    for panel in (fresh, training, along, figures.gains(compared)):
        assert panel.simulation_only
    for panel in (fresh, training, along):
        drawn = {curve.name: curve.colour for curve in panel.curves}
        for key in COMPARED if panel is not along else (PERSONAL, ALONE, SHARED):
            assert palette.style(drawn[METHODS[key].title]) == palette.style(key)
    np.testing.assert_array_equal(fresh.curves[0].y, compared.fresh[PERSONAL])
    np.testing.assert_array_equal(training.curves[0].y, compared.training[PERSONAL])
    assert len(fresh.baselines) == 1 and not training.baselines


def test_the_heat_maps_say_of_how_many_clients_they_are(compared) -> None:
    assert "every two of the 8 clients" in figures.distances(compared)
    many = replace(compared, order=np.arange(200))
    assert "every two of the first 8 of 200 clients" in figures.distances(many)
    true, learned = figures.angles(compared)
    assert true.row_labels == learned.column_labels == [str(client) for client in range(8)]
    scatter = figures.gains(compared)
    assert scatter.curves[0].labels[0] == f"client {compared.order[0]}"


def test_clients_of_a_table_of_ones_own_have_their_names(compared) -> None:
    names = tuple("abcdefgh")
    own = replace(compared, facts=replace(compared.facts, client_names=names))
    for heat in figures.angles(own):
        assert heat.row_labels == heat.column_labels == list(names)
    first = own.order[0]
    assert figures.gains(own).curves[0].labels[0] == f"client {first} ({names[first]})"


def test_the_sweep_has_bands_and_a_mark_at_the_page_s_setting(swept) -> None:
    panel = figures.along(swept, SMALL)
    assert all(curve.lower is not None for curve in panel.curves[:3])
    assert panel.curves[-1].name == "this page's setting" and panel.curves[-1].x == [0.2, 0.2]
    text = figures.where_they_cross(swept)
    assert re.search(r"cross at \*\*a heterogeneity of 0\.\d+\*\*|all along", text)
    one = figures.along(swept, replace(SMALL, datasets=1))
    assert one.curves[0].lower is None
    assert "50 of the 200 clients" in figures.size(replace(SMALL, clients=200))
    assert "50 of" not in figures.size(replace(SMALL, clients=200, sweep="clients"))
    partial = replace(swept, table=swept.table[swept.table["value"] < 0.2])
    assert "Still running" in figures.where_they_cross(partial)


def exposed(
    common: list[float], baseline: list[float], noisy: bool = False, **errors: list[float]
) -> Exposed:
    frames = {
        "round": range(len(common)),
        "common_start": common,
        "independent_start": np.array(common) + 0.5,
        "common_frame_only": baseline,
    }
    return Exposed(pd.DataFrame(frames), pd.DataFrame(errors), noisy)


def test_what_uploads_give_away_in_words() -> None:
    found = exposed(
        [np.nan, 1e-12, 1e-3],
        [np.nan, 0.2, 0.3],
        moment_error=[1e-9, 0.4],
        own_moment_error=[1e-9, 0.4],
        record_error=[1e-9, np.nan],
    )
    text = figures.what_is_recovered(found)
    assert "private basis with an error of 1e-12**. For 1 of 2 clients" in text
    assert "**sample itself** is recovered for 1 of 2" in text
    assert "tell little more" in text and "Where the curve jumps" in text
    several = replace(
        found,
        data=found.data.assign(record_error=np.nan),
        frames=found.frames.assign(common_frame_only=9.0),
    )
    text = figures.what_is_recovered(several)
    assert "sample itself" not in text and "hide the first messages" in text
    assert figures.recovered(found).simulation_only


def test_the_page_as_a_script_names_its_studies() -> None:
    text = bundle.script(SMALL, [PersonalComparison(), CollaborationSweep(), Exposure()])
    compile(text, "script", "exec")
    for study in ("PersonalComparison", "CollaborationSweep", "Exposure"):
        assert f"import {study}" in text


def test_under_noise_the_words_say_who_has_it_and_what_an_attack_gets(compared) -> None:
    noisy = replace(SMALL, epsilon=5.0)
    assert figures.UNCHANGED not in figures.verdict(compared)
    assert figures.UNCHANGED not in figures.size(SMALL)
    assert figures.UNCHANGED in figures.verdict(outcome(PersonalComparison().run(noisy)))
    assert "noise at the source, ε = 5. Training alone" in figures.size(noisy)
    found = exposed(
        [np.nan, 1e-15],
        [np.nan, 0.2],
        noisy=True,
        moment_error=[1e-12, 0.4, 1e-12],
        own_moment_error=[3.0, 0.1, 5.0],
        record_error=[np.nan] * 3,
    )
    text = figures.what_is_recovered(found)
    assert "For 2 of 3 clients a few rounds give the whole noisy covariance" in text
    assert "differs by **4 times its size**" in text  # of those that were recovered
    lost = figures.what_is_recovered(replace(found, data=found.data.assign(moment_error=1.0)))
    assert "times its size" not in lost
