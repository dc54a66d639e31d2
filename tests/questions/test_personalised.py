"""The studies of the Personalise page: comparison, sweep, what uploads give away, old links."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from urllib.parse import parse_qs, urlencode

import numpy as np
import pytest

from fedpca_core.algorithms.registry import METHODS
from fedpca_core.errors import InvalidInput
from fedpca_core.metrics import personal as metrics
from fedpca_core.papers import presets as papers
from fedpca_core.papers.personal_runs import ALONE_WORDS, PERSONAL_PCA, SHARED_WORDS
from fedpca_core.papers.results import shipped, summary
from fedpca_core.protocol.simulate import simulate
from fedpca_core.questions.catalogue import read_settings
from fedpca_core.questions.personalise import exposure
from fedpca_core.questions.personalise import study as module
from fedpca_core.questions.personalise.exposure import Exposure
from fedpca_core.questions.personalise.settings import (
    ALONE,
    COMPARED,
    PERSONAL,
    SHARED,
    PersonaliseSettings,
)
from fedpca_core.questions.personalise.study import (
    AXES,
    FRESH,
    CollaborationSweep,
    PersonalComparison,
)
from fedpca_core.steps import Step, outcome
from tests.tables import own_file

SMALL = PersonaliseSettings(features=15, components=3, clients=20, samples=10, rounds=200, seed=1)
TINY = replace(SMALL, features=10, components=2, clients=4, rounds=50, datasets=1)


def stored(figure: str, value: str, series: str) -> float:
    """The median error on fresh records that came out at the paper's size."""
    table = summary(shipped(f"perpca-{figure}")["paper"]).set_index(["part", "series"])
    return float(table.loc[(value, series), "fresh"])


@pytest.fixture(scope="module")
def compared():
    return outcome(PersonalComparison().run(SMALL))


def test_the_comparison_is_what_whole_runs_give(compared) -> None:
    problem = SMALL.build()
    for key, algorithm in SMALL.methods().items():
        trace = simulate(problem, algorithm, rounds=SMALL.rounds, seed=SMALL.seed)
        for row in (0, 7, 200):
            fresh = metrics.fresh_ratios(trace.estimates[row], problem)
            training = metrics.training_ratios(trace.estimates[row], problem)
            assert compared.fresh[key][row] == pytest.approx(fresh.mean(), rel=1e-12)
            assert compared.training[key][row] == pytest.approx(training.mean(), rel=1e-12)
        assert compared.bytes_sent[key] == trace.bytes_up[-1] + trace.bytes_down[-1]
    assert compared.bytes_sent[ALONE] == 0
    norms = 20 * 8  # one number of every client before the first round
    assert compared.bytes_sent[PERSONAL] == norms + 2 * 200 * 20 * 8 * 15 * 3
    assert compared.fresh[ALONE][-1] == pytest.approx(compared.limits[ALONE], abs=1e-2)


def test_gains_are_sorted_and_of_every_client(compared) -> None:
    assert sorted(compared.order) == list(range(20)) and compared.clients == 20
    assert (np.diff(compared.gains[ALONE]) <= 0).all()
    assert compared.better == (compared.gains[ALONE] > 0).sum()
    for key in (ALONE, SHARED):
        fall = compared.fresh[key][-1] - compared.fresh[PERSONAL][-1]
        assert compared.gains[key].mean() == pytest.approx(fall, abs=1e-12)


def test_angles_are_symmetric_and_of_all_clients_up_to_a_limit(compared, monkeypatch) -> None:
    for angles in (compared.angles, compared.learned):
        assert angles.shape == (20, 20)
        np.testing.assert_allclose(angles, angles.T)
        assert (np.diagonal(angles) == 0).all() and angles.max() <= 90
    monkeypatch.setattr(module, "SHOWN", 3)
    fewer = outcome(PersonalComparison().run(TINY))
    assert fewer.angles.shape == (3, 3) and fewer.clients == 4


def test_a_stopped_comparison_keeps_the_rounds_it_has(monkeypatch) -> None:
    monkeypatch.setattr(module, "PARTIAL_SECONDS", 0.0)
    steps: list[Step] = []

    def watch(step: Step) -> bool:
        steps.append(step)
        return len(steps) < 12

    found = outcome(PersonalComparison().run(SMALL), watch)
    whole = outcome(PersonalComparison().run(SMALL))
    assert found.rounds == 10 and found.planned == 200
    np.testing.assert_array_equal(found.fresh[PERSONAL], whole.fresh[PERSONAL][:11])
    assert [step.fraction for step in steps] == sorted(step.fraction for step in steps)
    assert outcome(PersonalComparison().run(SMALL), lambda step: False) is None


def test_a_long_run_takes_no_more_memory_than_a_short_one() -> None:
    """Models are measured and let go, round by round."""
    sizes = replace(TINY, features=20, components=5, clients=20)
    model = 20 * 20 * 5 * 8

    def peak(rounds: int) -> int:
        tracemalloc.start()
        found = outcome(PersonalComparison().run(replace(sizes, rounds=rounds)))
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found.rounds == rounds
        return used

    peak(50)  # the first run of a process allocates a block of its own
    assert peak(100) - peak(50) < 50 * model  # all of them would be 150


def test_the_sweep_interpolates_between_the_extremes() -> None:
    study = CollaborationSweep()
    found = outcome(study.run(replace(SMALL, datasets=2)))
    mine, alone, shared = (
        found.band(METHODS[key].title, FRESH) for key in (PERSONAL, ALONE, SHARED)
    )
    np.testing.assert_array_equal(mine.x, AXES["heterogeneity"])
    assert mine.middle[0] == pytest.approx(shared.middle[0], abs=0.01)
    assert mine.middle[-1] == pytest.approx(alone.middle[-1], abs=0.02)
    assert (mine.middle <= np.minimum(alone.middle, shared.middle) + 0.02).all()
    assert (mine.lower <= mine.middle).all() and (mine.middle <= mine.upper).all()
    assert 0.1 < metrics.crossover(alone.x, shared.middle, alone.middle) < 1
    assert alone.middle[-1] < shared.middle[-1]
    assert (mine.middle < np.minimum(alone.middle, shared.middle)).any()
    table = study.tables(found, SMALL)["sweep"]
    assert len(table) == len(AXES["heterogeneity"]) * 2 * 3
    assert set(table["seed"]) == {1, 2}


def test_a_stopped_sweep_keeps_what_it_has() -> None:
    varied = replace(TINY, sweep="samples")
    found = outcome(CollaborationSweep().run(varied), lambda step: step.fraction < 0.3)
    assert 0 < found.table["value"].nunique() < len(AXES["samples"])


def test_the_sweep_does_not_read_the_page_s_own_value_of_what_varies() -> None:
    study = CollaborationSweep()
    for swept, values in (
        ("heterogeneity", (0.1, 0.7)),
        ("samples", (5, 80)),
        ("clients", (3, 90)),
    ):
        one, other = (replace(TINY, **{"sweep": swept, swept: value}) for value in values)
        assert study.identity(one) == study.identity(other)
        assert study.identity(one) != study.identity(replace(other, seed=9))
        assert study.identity(one) != study.identity(replace(other, datasets=2))
    assert study.identity(replace(TINY, clients=50)) == study.identity(replace(TINY, clients=200))
    assert study.identity(replace(TINY, clients=50)) != study.identity(replace(TINY, clients=20))


def test_what_is_only_shown_starts_no_run_anew() -> None:
    for change in ({"error_on": "training"}, {"sweep": "clients"}, {"datasets": 9}):
        assert PersonalComparison().identity(TINY) == PersonalComparison().identity(
            replace(TINY, **change)
        )
        assert Exposure().identity(TINY) == Exposure().identity(replace(TINY, **change))
    assert PersonalComparison().identity(TINY) != PersonalComparison().identity(
        replace(TINY, pace=1.0)
    )
    assert Exposure().identity(TINY) == Exposure().identity(replace(TINY, pace=1.0, rounds=100))


@pytest.mark.parametrize(
    ("variant", "options"),
    [
        ("", {}),
        (", gradient as printed", {"gradient": "printed"}),
        (", calibrated prior", {"prior": "calibrated"}),
    ],
)
def test_figure_1b_at_paper_size_on_one_data_set(variant, options) -> None:
    figure = papers.FIGURES["perpca-1b"]
    settings = replace(figure.settings, clients=200, rounds=400, pace=1.0, **options)
    measured = outcome(CollaborationSweep().measure(settings, settings.seed, None))
    titles = {PERSONAL: PERSONAL_PCA + variant, ALONE: ALONE_WORDS, SHARED: SHARED_WORDS}
    for key, title in titles.items():
        found = measured[METHODS[key].title][FRESH]
        assert found == pytest.approx(stored("1b", "0.2", title), abs=0.01)


def test_figure_1a_has_the_paper_s_order_and_its_plateaus() -> None:
    figure = papers.FIGURES["perpca-1a"]
    found = outcome(PersonalComparison().run(figure.settings))
    last = {key: values[-1] for key, values in found.fresh.items()}
    assert last[PERSONAL] < last[SHARED] < last[ALONE]
    for key, title in ((ALONE, ALONE_WORDS), (SHARED, SHARED_WORDS)):
        assert last[key] == pytest.approx(stored("1a", "0.2", title), abs=0.01)

    def within(key: str) -> int:
        values = found.fresh[key]
        return int(np.flatnonzero(values > values[-1] + 0.002)[-1])

    assert within(SHARED) < within(ALONE) < within(PERSONAL)


def test_read_literally_nobody_gains() -> None:
    settings = replace(SMALL, reading="literal", heterogeneity=0.5, clients=10)
    found = outcome(PersonalComparison().run(settings))
    assert found.fresh[PERSONAL][-1] > min(found.limits.values()) - 0.002


def test_one_sample_a_client_is_given_away() -> None:
    found = outcome(Exposure().run(replace(SMALL, samples=1)))
    assert found.frames["common_start"][1] < 1e-9
    assert found.frames["independent_start"][1] > 0.05
    assert len(found.data) == 5 and found.records >= 3 and found.moments >= 3


def test_the_attack_is_part_of_the_settings_and_ends_at_its_size() -> None:
    assert not Exposure().wanted(SMALL)
    wanted = replace(SMALL, exposure=True)
    assert Exposure().wanted(wanted)
    link = wanted.query_string()
    assert "exposure=true" in link
    large = replace(wanted, features=41)
    assert not Exposure().wanted(large)
    with pytest.raises(InvalidInput, match="up to 40 features, not 41; choose fewer"):
        outcome(Exposure().run(large))
    assert outcome(Exposure().run(wanted), lambda step: step.fraction < 0.1) is None


def test_sizes_that_do_not_fit_are_a_sentence() -> None:
    with pytest.raises(InvalidInput, match="15 components do not fit 15 features"):
        outcome(PersonalComparison().run(replace(SMALL, components=15)))


# ---------------------------------------------------------------------- noise at the source
NOISY = replace(SMALL, epsilon=2.0, samples=80, clip_norm=4.0)


def test_with_an_epsilon_all_but_training_alone_learn_from_the_noisy_matrices(compared) -> None:
    problem = NOISY.build()
    found = outcome(PersonalComparison().run(NOISY))
    assert problem.guarantee == found.facts.guarantee is not None
    assert problem.guarantee.epsilon == pytest.approx(2.0)
    for key, algorithm in NOISY.methods().items():
        used = problem.unperturbed if key == ALONE else problem
        trace = simulate(used, algorithm, rounds=NOISY.rounds, seed=NOISY.seed)
        fresh = metrics.fresh_ratios(trace.estimate, problem)
        assert found.fresh[key][-1] == pytest.approx(fresh.mean(), rel=1e-12)
    clear = outcome(PersonalComparison().run(replace(NOISY, epsilon=np.inf)))
    assert clear.facts.guarantee is None and compared.facts.guarantee is None
    np.testing.assert_array_equal(found.fresh[ALONE], clear.fresh[ALONE])
    for key in (PERSONAL, SHARED):
        assert found.fresh[key][-1] > clear.fresh[key][-1] + 0.005
    assert found.limits[ALONE] == clear.limits[ALONE]
    assert found.fresh[SHARED][-1] == pytest.approx(found.limits[SHARED], abs=5e-3)


def test_a_larger_budget_leads_back_to_no_noise() -> None:
    clear = outcome(PersonalComparison().run(replace(NOISY, epsilon=np.inf)))
    errors = [
        outcome(PersonalComparison().run(replace(NOISY, epsilon=epsilon, clip_norm=20.0))).fresh[
            PERSONAL
        ]
        for epsilon in (100.0, 10.0, 1.0)
    ]
    ends = [float(values[-1]) for values in errors]
    assert float(clear.fresh[PERSONAL][-1]) < ends[0] < ends[1] < ends[2]


def test_every_study_runs_anew_with_another_budget() -> None:
    for study in (PersonalComparison(), CollaborationSweep(), Exposure()):
        for change in ({"epsilon": 1.0}, {"delta": 1e-4}, {"clip_norm": 2.0}):
            assert study.identity(TINY) != study.identity(replace(TINY, **change))


def test_the_sweep_has_noise_in_every_run() -> None:
    varied = replace(TINY, sweep="samples")
    clear, noisy = (
        outcome(CollaborationSweep().run(one)) for one in (varied, replace(varied, epsilon=1.0))
    )
    bands = {key: METHODS[key].title for key in (ALONE, SHARED)}
    same, more = ([one.band(bands[k], FRESH).middle for one in (clear, noisy)] for k in bands)
    np.testing.assert_array_equal(*same)
    assert (more[1] > more[0]).all()


def test_an_attack_recovers_what_was_released_and_no_more() -> None:
    found = outcome(Exposure().run(replace(SMALL, epsilon=100.0)))
    assert found.noisy and found.moments >= 2
    recovered = found.data["moment_error"] < exposure.EXACT
    assert (found.data["own_moment_error"][recovered] > 0.3).all() and found.own > 0.3
    single = outcome(Exposure().run(replace(SMALL, epsilon=100.0, samples=1)))
    assert single.records == 0
    clear = outcome(Exposure().run(SMALL))
    assert not clear.noisy
    np.testing.assert_array_equal(clear.data["own_moment_error"], clear.data["moment_error"])


def test_presets_are_configurations_with_links() -> None:
    names = [preset.name for preset in papers.PERPCA]
    assert len(set(names)) == len(names) == 8
    for preset in papers.PERPCA:
        assert read_settings(preset.settings.to_json()) == preset.settings
        query = parse_qs(
            urlencode(preset.settings.query(complete=True), doseq=True), keep_blank_values=True
        )
        assert PersonaliseSettings.from_query(query).configuration == preset.settings
        assert preset.title and preset.point


def test_the_exposure_s_clients_are_few() -> None:
    many = outcome(Exposure().run(replace(TINY, clients=200)))
    few = outcome(Exposure().run(replace(TINY, clients=exposure.CLIENTS)))
    np.testing.assert_array_equal(many.frames["common_start"], few.frames["common_start"])


OWN = replace(TINY, problem="table", client_column="label", components=1, samples=20)


def test_a_table_of_ones_own_is_judged_on_rows_that_nobody_learns_from() -> None:
    data = own_file()
    problem = OWN.build(data)
    whole = replace(OWN, samples=40).build(data)
    assert problem.clients == 2 and problem.fresh is not None and problem.blocks is not None
    for client, kept in ((0, 30), (1, 330)):  # 50 odd rows, 350 normal ones
        assert problem.fresh.samples[client] == kept
    # The rows kept from training and those learnt from are all the rows there are.
    for client, rows in enumerate((50, 350)):
        learnt = problem.blocks[client] @ problem.blocks[client].T
        kept = problem.fresh.dense()[client] * (rows - 20)
        more = whole.blocks[client] @ whole.blocks[client].T
        other = whole.fresh.dense()[client] * (rows - 40)
        np.testing.assert_allclose(learnt + kept, more + other, rtol=1e-10)
    models = problem.frames
    missed = metrics.fresh_ratios(models, problem)
    for client in range(2):
        moment, model = problem.fresh.dense()[client], models[client]
        rest = np.eye(5) - model @ model.T
        share = np.trace(rest @ moment @ rest) / np.trace(moment)
        assert missed[client] == pytest.approx(share, rel=1e-10)
    found = outcome(PersonalComparison().run(OWN, data))
    assert found.own and set(found.fresh) == set(COMPARED)
    assert all(0 < values[-1] < 1 for values in found.fresh.values())
    tables = PersonalComparison().tables(found, OWN)
    assert set(tables["gains"]["client"]) == {"odd", "normal"}
    assert tables["angles"].loc[0, ["client", "other"]].tolist() == list(found.facts.client_names)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"samples": 80}, "Client odd has 50 records, so none would be left"),
        ({"components": 10}, "10 components do not fit 5 features"),
        ({"client_column": "station"}, "station"),
        ({"epsilon": 5.0}, "divided by deviations of their own"),
    ],
)
def test_a_table_that_does_not_fit_is_a_sentence(changes, message) -> None:
    with pytest.raises(InvalidInput, match=message):
        replace(OWN, **changes).build(own_file())
    with pytest.raises(InvalidInput, match="choose a CSV, Parquet or NumPy file"):
        OWN.build()


def test_the_clients_that_a_column_names_do_not_vary() -> None:
    with pytest.raises(InvalidInput, match="names the clients, so their number stays"):
        outcome(CollaborationSweep().run(replace(OWN, sweep="clients"), own_file()))
    found = outcome(CollaborationSweep().run(replace(OWN, sweep="samples"), own_file()))
    assert set(found.refusals) == {80, 160, 320}, "the odd client has 50 rows"
