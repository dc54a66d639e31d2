"""PerPCA's figures run otherwise: rates, starts, lengths; FedPower's panels under readings."""

import numpy as np
import pytest

from fedpca_core.linalg.stiefel import polar
from fedpca_core.papers import personal_runs
from fedpca_core.papers.fedpower import CLIENTS, COIN, MODELS, algorithm, figure, panels
from fedpca_core.papers.registry import EXPERIMENTS
from fedpca_core.problems.fedpower_models import block_model
from fedpca_core.problems.personal_model import data_gradient, data_scale
from fedpca_core.protocol.simulate import simulate
from fedpca_core.steps import outcome
from fedpca_core.streams import Streams

SERIES = (*personal_runs.VARIANTS, *personal_runs.BASELINES)


def settings_of(key):
    return EXPERIMENTS[key]._settings("live", 0.2, 0)


@pytest.mark.parametrize("series", ["Training alone", "One shared model"])
def test_a_rate_is_that_of_the_gradient(series):
    settings = settings_of("perpca-1a-rate-2-literal")
    problem = settings.build()
    run = EXPERIMENTS["perpca-1a-rate-2-literal"]._at(0.02, settings, series, problem.client_data)
    before, after = simulate(problem, run, rounds=1).estimates
    scale = data_scale(problem.client_data.samples, settings.noise_variance)
    slopes = data_gradient(before, problem.client_data.apply(before), scale)
    slope = slopes if series == "Training alone" else slopes.mean(axis=0)
    np.testing.assert_allclose(after, polar(before - 0.02 * slope), atol=1e-10)


def test_personalised_pca_takes_one_rate_for_both_frames():
    settings = settings_of("perpca-2a-rates")
    data = settings.build().client_data
    run = EXPERIMENTS["perpca-2a-rates"]._at(0.04, settings, "Personalised PCA", data)
    assert (run.step, run.centre_step, run.start_from) == (0.04, 0.04, "independent")
    own = EXPERIMENTS["perpca-2a-rates"]._at(0.0, settings, "Personalised PCA", data)
    assert own.step is own.centre_step is None


@pytest.mark.parametrize("series", SERIES)
def test_everybody_starts_from_one_frame(series):
    settings = settings_of("perpca-1a-common-literal")
    problem = settings.build()
    run = EXPERIMENTS["perpca-1a-common-literal"]._at(0.0, settings, series, problem.client_data)
    start = simulate(problem, run, rounds=1).estimates[0]
    assert start.ndim == 2 or (start == start[0]).all()


def small(monkeypatch, key, **otherwise):
    experiment = EXPERIMENTS[key]
    monkeypatch.setattr(experiment, "other", {**experiment.other, **otherwise})
    cell = next(one for one in experiment.cells("live", 1) if one.part == "0.2")
    return {one.measure: one.result for one in outcome(experiment.run(cell, "live"))}


def test_the_largest_rate_that_does_not_raise_the_training_error_counts(monkeypatch):
    ends = {
        rate: small(monkeypatch, "perpca-2a-tuned", rates={"0.2": [rate]}, lengths=[60])["training"]
        for rate in (0.005, 0.01, 0.08)
    }
    found = small(monkeypatch, "perpca-2a-tuned", rates={"0.2": [0.005, 0.01, 0.08]}, lengths=[60])
    least = min(ends.values()) + personal_runs.NEAR
    assert found["rate, 0.2"] == max(rate for rate, end in ends.items() if end <= least)
    assert found["training"] == ends[found["rate, 0.2"]]
    assert found["rate, 0.2"] < 0.08


def test_a_length_is_what_a_run_of_that_length_gives(monkeypatch):
    both = small(monkeypatch, "perpca-2a-long", lengths=[5, 9])
    for length in (5, 9):
        alone = small(monkeypatch, "perpca-2a-long", lengths=[length])
        for measure in ("training", "training_rounds", "fresh", "fresh_rounds"):
            assert both[f"{measure}, {length} rounds"] == alone[measure]


def test_panels_under_a_reading_change_every_curve():
    (panel,) = panels("drawn", "3a", draws=CLIENTS)
    assert panel.key == "3a drawn" and not panel.verdict
    for old, new in zip(figure("3a").variants, panel.variants, strict=True):
        assert (old.label, old.period, new.draws) == (new.label, new.period, CLIENTS)
        assert algorithm(panel, new, 1000).draws == CLIENTS
    (panel,) = panels("unaligned", "4a", model=COIN, alignment=False)
    assert panel.model == COIN and not algorithm(panel, panel.variants[0], 1000).alignment


def test_a_coin_chooses_communities_for_all_machines_alike():
    nodes, seed = 120, 5
    problem = block_model(nodes, 4, networks=60, seed=seed, coin=True)
    coin = Streams(seed).generator("data").random(nodes) < 0.5
    assert (coin != (np.arange(nodes) >= nodes // 2)).any()
    for gram in problem.client_data.dense():
        second = np.linalg.eigh(gram)[1][:, -2]
        split = second > np.median(second) if coin.mean() == 0.5 else second > second.mean()
        assert max((split == coin).mean(), (split != coin).mean()) > 0.95
    assert MODELS[COIN].draw(MODELS[COIN].sizes["live"], 0).features == 300
