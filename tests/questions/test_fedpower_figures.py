"""FedPower's figures at live size: the orders and ratios the presets claim."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import largest_sine
from fedpca_core.papers.fedpower import FIGURES, MODELS, figure
from fedpca_core.privacy import product_noise
from fedpca_core.problems import Problem
from fedpca_core.problems.data_sets import files_of
from fedpca_core.questions.privacy import build, error_budget
from fedpca_core.questions.privacy.error_budget import (
    communication_times,
    largest_drift,
    one_round_identity,
    predicted_sine,
    theory_terms,
)
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.privacy.study import Curves, PaperFigure
from fedpca_core.steps import outcome
from fedpca_core.study.own_data import OwnData


@pytest.fixture(scope="module")
def bands() -> dict[str, Curves]:
    figures = {key: PrivacySettings(figure=key, repetitions=6) for key in FIGURE_KEYS}
    found = {key: outcome(PaperFigure().run(settings)) for key, settings in figures.items()}
    return {key: curves for key, curves in found.items() if curves is not None}


FIGURE_KEYS = ("3a", "3b", "3c", "3d", "4b", "4d", "4e")


def plateaus(curves: Curves) -> list[float]:
    return [run.final for run in curves.values()]


def live() -> Problem:
    model = MODELS["spiked"]
    return model.draw(model.sizes["live"], 0)


def test_longer_gaps_are_ahead_at_equal_rounds_and_end_together(
    bands: dict[str, Curves],
) -> None:
    one, two, four = bands["3a"].values()
    # The fourth communication of p = 4 is its last; the orders hold for the means of log angles.
    for round_ in (1, 2):
        assert four.middle[round_] < two.middle[round_]
    assert np.log(four.sines[:, 1:4]).mean() < np.log(two.sines[:, 1:4]).mean()
    assert np.log(two.sines[:, 1:4]).mean() < np.log(one.sines[:, 1:4]).mean() + 0.1
    assert np.allclose(plateaus(bands["3a"]), 0.2, rtol=0.2)


def test_plateaus_are_almost_in_proportion_to_one_over_epsilon(
    bands: dict[str, Curves],
) -> None:
    ten, one, half = plateaus(bands["3b"])
    assert ten < one < half
    assert one / ten == pytest.approx(10, rel=0.25)
    assert half / one == pytest.approx(2, rel=0.25)


def test_drawing_as_many_as_there_are_is_worse_than_everybody(
    bands: dict[str, Curves],
) -> None:
    full, twenty, twelve, eight = plateaus(bands["3c"])
    assert full < 0.9 * twenty
    assert twenty < twelve < eight
    assert eight / twenty == pytest.approx(1.3, rel=0.2)


def test_exact_noise_lowers_the_plateau_nine_times(bands: dict[str, Curves]) -> None:
    published, exact = bands["3b"]["ε = 0.5"].final, bands["3d"]["ε = 0.5"].final
    assert published / exact == pytest.approx(9.2, rel=0.15)


def test_model_two_fails_as_stated_and_works_with_many_networks(
    bands: dict[str, Curves],
) -> None:
    assert min(plateaus(bands["4b"])) > 0.95
    assert max(plateaus(bands["4d"])) < 2e-3
    ten, one, half = plateaus(bands["4e"])
    assert ten < one < half < 0.2
    # Without noise the shelf while gaps are above one, then the drop.
    shelf = bands["4d"]["p = 4, no noise"].middle
    assert 1e-3 < shelf[2] < 1e-2 and 0.5 < shelf[3] / shelf[2] < 2 and shelf[4] < shelf[3] / 4


def test_claims_at_the_papers_size_hold_for_its_noise() -> None:
    """Averaged noise of Model II over the signal: 2.4 at epsilon = 10, 49 at 0.5."""
    for epsilon, ratio in ((10.0, 2.4), (0.5, 49.0)):
        noise = float(product_noise("published", epsilon, 1e-4, 10, 2, 1000))
        averaged = noise * (np.sqrt(1000) + np.sqrt(2)) / np.sqrt(20)
        assert averaged / 0.0231 == pytest.approx(ratio, rel=0.05)


def test_figures_are_complete_and_unknown_ones_refused() -> None:
    assert [entry.key for entry in FIGURES] == [
        "3a",
        "3b",
        "3c",
        "3d",
        "4a",
        "4b",
        "4c",
        "4d",
        "4e",
    ]
    assert all(entry.model in MODELS and entry.verdict for entry in FIGURES)
    with pytest.raises(InvalidInput, match="choose one of 3a"):
        figure("5")


def test_a_stopped_figure_keeps_the_curves_it_has() -> None:
    settings = PrivacySettings(figure="3a", repetitions=2)
    found = outcome(PaperFigure().run(settings), lambda step: step.result is None)
    assert found is not None and list(found) == ["p = 1"]


@pytest.mark.parametrize("draws", [None, 8])
@pytest.mark.parametrize("period", [1, 4, 5])
def test_one_round_identity(draws: int | None, period: int) -> None:
    problem = fp.problems.spiked_covariance(features=20, samples=500, clients=12, seed=1)
    run = fp.FedPower(3, 4, period=period, draws=draws, noise=1e-3)
    trace = fp.simulate(problem, run, rounds=99, seed=3)
    found = one_round_identity(problem, trace)
    assert len(found.residual) == len(run.times)
    assert found.residual.max() < 1e-11
    gaps = np.diff(communication_times(run))[: len(run.times)]
    single = gaps == 1
    assert np.all(found.sampling[single] < 1e-12)
    assert np.all(found.rho[single] == 0)
    if draws is None:
        # With equal frames and everybody the deviations cancel; otherwise they do not.
        assert np.all(found.heterogeneity[single] < 1e-12)
    else:
        assert np.all(found.heterogeneity > 1e-6)
    if period > 1:
        assert found.rho[0] > 0.01


def test_only_noise_makes_the_noise_term() -> None:
    problem = fp.problems.spiked_covariance(features=20, samples=500, clients=12, seed=1)
    for noise in (0.0, 2e-3):
        run = fp.FedPower(3, 4, period=3, draws=5, noise=noise)
        trace = fp.simulate(problem, run, rounds=99, seed=3)
        found = one_round_identity(problem, trace)
        assert np.all((found.noise > 0) == (noise > 0))


def test_ablation_ends_at_the_run_and_adds_nothing_where_there_is_nothing() -> None:
    problem = fp.problems.spiked_covariance(features=20, samples=500, clients=12, seed=1)
    run = fp.FedPower(3, 4, period=3, draws=5, noise=2e-3)
    found = error_budget.ablation(problem, run, seed=4)
    trace = fp.simulate(problem, run, rounds=99, seed=4)
    table = fp.metrics.frame(trace, problem)
    assert np.allclose(found[-1], table["sin_theta"])
    same = error_budget.ablation(problem, fp.FedPower(3, 4, period=1), seed=4)
    assert np.abs(np.diff(same, axis=0)).max() == 0


def test_theory_terms_say_vacuous_rather_than_a_number() -> None:
    problem = live()
    noise = float(product_noise("published", 0.5, 1e-4, 10, 5, 30_000))
    loud, single = fp.FedPower(4, 5, period=2, draws=20, noise=noise), fp.FedPower(4, 5, period=1)
    for run, vacuous in ((loud, True), (single, False)):
        trace = fp.simulate(problem, run, rounds=99)
        rho = largest_drift(problem, trace)
        assert 0 <= rho <= np.sqrt(2) + 1e-9
        terms = theory_terms(problem, run, trace.setting, rho)
        assert terms.vacuous is vacuous
        assert (terms.noise is None) == (terms.drift is None) == vacuous
        assert terms.allowed < 0.1
    assert terms.rho == 0 and terms.drift is not None and terms.drift > 0
    assert terms.sampling is None


@pytest.mark.parametrize("draws", [None, 8])
def test_noise_floor_predicts_the_final_angle(draws: int | None) -> None:
    problem = live()
    noise = float(product_noise("published", 1.0, 1e-4, 10, 5, 30_000))
    run = fp.FedPower(4, 5, period=1, noise=noise, draws=draws)
    setting = fp.simulate(problem, run, rounds=1).setting
    predicted = predicted_sine(problem, run, setting)
    target = problem.target(4)
    estimates = [fp.simulate(problem, run, rounds=10, seed=seed).estimate for seed in range(9)]
    finals = [largest_sine(estimate[None], target)[0] for estimate in estimates]
    assert np.median(finals) == pytest.approx(predicted, rel=0.2)


AIR = ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")
#: Real data sets, clip norms below and above their records' norms, and how long a run is.
CLIPPED = [
    ("digits", 0.5, 100.0), ("digits", 3.0, 100.0), ("digits", 1.0, 10.0),
    ("olivetti", 1.0, 100.0), ("auto", 0.5, 1.0), ("auto", 10.0, 1.0), ("auto", 10.0, 100.0),
    ("auto", 50.0, 10.0), ("table", 1.0, 1.0), ("table", 1.0, 100.0), ("table", 50.0, 10.0),
]  # fmt: skip
#: What they read that does not come along.
READ = {"olivetti": "olivetti", "auto": "ton", "table": "beijing"}


@pytest.mark.parametrize(("local_steps", "draws"), [(1, 0), (2, 0), (1, 5)])
@pytest.mark.parametrize("components", [2, 4])
@pytest.mark.parametrize(
    ("name", "clip", "epsilon"),
    [
        pytest.param(*row, marks=pytest.mark.data(READ[row[0]]) if row[0] in READ else ())
        for row in CLIPPED
    ],
)
def test_the_predicted_floor_is_that_of_the_clipped_records(
    name: str, clip: float, epsilon: float, components: int, local_steps: int, draws: int,
) -> None:  # fmt: skip
    """Within a factor of 1.5 of the run on real records, whatever clipping took of them."""
    c = PrivacySettings(
        problem=name, clip_norm=clip, epsilon=epsilon, components=components, clients=10,
        local_steps=local_steps, draws=draws, client_column="station" if name == "table" else "",
        columns=AIR if name == "table" else (),
    )  # fmt: skip
    data = OwnData.of(*files_of("beijing")) if name == "table" else None
    problem = build.build_problem(c, data)
    run = build.method(c, build.noise_for(c, data=data))
    assert isinstance(run, fp.FedPower)
    predicted = predicted_sine(problem, run, build.public_setting(c, data))
    target = problem.target(components)
    ends = [fp.simulate(problem, run, rounds=run.rounds, seed=seed).estimate for seed in range(5)]
    measured = np.median([largest_sine(end, target) for end in ends])
    assert predicted / 1.5 <= measured <= 1.5 * predicted
