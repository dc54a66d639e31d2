"""The studies of the Anomalies page: order, stopping, thresholds, own files, sweeps, and files."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from fedpca_core import InvalidInput
from fedpca_core.anomaly.evaluation import evaluate, quantile
from fedpca_core.problems import traffic
from fedpca_core.questions.anomaly import detection, leaks, learning, poisoned, task, trained
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.catalogue import STUDIES, studies_of
from fedpca_core.steps import outcome
from tests.tables import own_file

QUICK = AnomalySettings(problem="synthetic", clients=20, components=6, rounds=50)
OWN = AnomalySettings(problem="own", clients=10, components=2, rounds=20)
TOPICS = tuple(AnomalySettings.parameters()["view"].choices)


#: Measured by the clock, so no two runs agree.
@pytest.fixture(scope="module", autouse=True)
def small_traffic():
    """Synthetic traffic of a size at which every topic takes a moment."""

    def small(seed=0):
        return traffic.synthetic(normal=2000, test=800, seed=seed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "synthetic", small)
        for name, value in {"FIRST": 11, "LAST": 18, "ROUNDS": 20}.items():
            patch.setattr(poisoned, name, value)
        patch.setattr(
            learning.Sweeps, "axes", {"penalty_factor": (1.0, 4.0), "components": (2, 30)}
        )
        for memory in (task._SOURCES, task._TASKS, trained._DETECTORS):
            memory._results.clear()
        yield
        for memory in (task._SOURCES, task._TASKS, trained._DETECTORS):
            memory._results.clear()


# ---------------------------------------------------------------------- detection
def test_a_method_is_never_shown_without_its_baselines():
    shown = []
    found = outcome(STUDIES["detection"].run(QUICK), lambda s: shown.append(s.result) or True)
    first = next(result for result in shown if result is not None)
    assert list(first.judged) == ["FedPG", "Centralised PCA", "Norm only"]
    assert set(found.judged) == {*first.judged, "Random subspace", "FedAE", "FedAE-2"}
    assert found.local is not None and first.local is None


def test_stopping_keeps_what_there_is():
    found = outcome(STUDIES["detection"].run(QUICK), lambda step: step.result is None)
    assert list(found.judged) == ["FedPG", "Centralised PCA", "Norm only"]
    assert found.local is None


def test_judgement_at_a_threshold_is_the_plain_evaluation():
    on = task.task(QUICK)
    found = outcome(trained.detector("federated", QUICK))
    whole = trained.judge(on, found)
    assert whole.evaluations[0.9] == evaluate(
        on.attack, found.scores, quantile(found.training_scores, 0.9)
    )
    best = whole.evaluations["oracle"]
    assert best == evaluate(on.attack, found.scores, whole.thresholds["oracle"])
    assert all(
        best.recall - best.fpr >= other.recall - other.fpr for other in whole.evaluations.values()
    )


def test_the_threshold_is_a_view_and_moves_the_summary_only():
    study = STUDIES["detection"]
    strict = replace(QUICK, share=0.99)
    assert study.identity(QUICK) == study.identity(strict)
    found = outcome(study.run(QUICK))
    loose, tight = (found.summary(s).set_index("detector") for s in (QUICK, strict))
    assert loose["recall"]["FedPG"] > tight["recall"]["FedPG"]
    assert loose["auc"]["FedPG"] == tight["auc"]["FedPG"]
    assert loose["accuracy"]["Always alarm"] == 50


# ---------------------------------------------------------------------- learning and sweeps
def test_learning_shows_corrected_and_printed_rules():
    everybody = replace(QUICK, rounds=200, participation=1.0)
    found = outcome(STUDIES["learning"].run(everybody))
    end = {name: table["distance"].iloc[-1] for name, table in found.approach.groupby("method")}
    assert end["FedPG, corrected"] < 1e-5
    assert end["FedPG, printed projection"] > 0.05
    assert found.progress is not None
    np.testing.assert_allclose(
        found.progress["progress"], found.progress["consensus"] + found.progress["stationarity"]
    )
    table = found.approach[found.approach["method"] == "FedPG, corrected"]
    last = found.progress.iloc[-1]
    assert last["round"] == 200
    assert table["distance"].iloc[-1] == pytest.approx(last["distance"], rel=1e-6, abs=1e-12)


def test_a_sweep_says_where_it_is_best_and_what_it_cannot_do():
    study = STUDIES["detection-sweep"]
    found = outcome(study.run(replace(QUICK, sweep="components", seeds=2)))
    assert found.refusals == {
        30: "30 components do not fit 24 features; choose between 1 and 23 components."
    }
    assert set(found.table["seed"]) == {0, 1}
    assert set(found.series) == {"federated", "centralised", "norm"}
    assert learning.best(found, "auc")[0] == 2.0
    penalty = outcome(study.run(replace(QUICK, rounds=20)))
    band = penalty.band("federated", "distance")
    at, value = learning.best(penalty, "distance", lowest=True)
    assert value == band.middle.min() and at == band.x[band.middle.argmin()]
    assert learning.best(penalty, "distance")[1] == band.middle.max()


def test_fedpe_still_gains_from_more_than_ten_local_steps():
    """What the help of the setting says."""
    parameters = replace(QUICK, method="fedpe", rounds=50, participation=0.5)
    distance = {
        steps: outcome(
            STUDIES["detection-sweep"].measure(replace(parameters, local_steps=steps), 0, None)
        )["federated"]["distance"]
        for steps in (10, 30)
    }
    assert distance[30] < 0.9 * distance[10]
    text = AnomalySettings.parameters()["local_steps"].help
    assert "FedPE" in text and "gain nothing" not in text


# ---------------------------------------------------------------------- alarms
def test_the_stream_meets_every_attack_once_between_calm():
    on = task.task(QUICK)
    rows = detection.stream(on)
    kinds = on.types[rows]
    changes = [kinds[0], *(b for a, b in itertools.pairwise(kinds) if a != b)]
    attacks = sorted({str(kind) for kind in on.types} - {"normal"})
    expected = [part for name in attacks for part in ("normal", name)] + ["normal"]
    assert changes == expected
    assert len(set(rows)) == len(rows)
    assert kinds[detection.FIRST_BURST] == attacks[0]


def test_one_score_is_taken_apart():
    found = outcome(STUDIES["alarms"].run(QUICK))
    for flow in (0, 100):
        assert found.parts[flow].sum() == pytest.approx(found.stream["score"][flow])
        table = found.explained(flow)
        assert table["share"].is_monotonic_decreasing
        assert table["share"].sum() == pytest.approx(100)
    assert set(found.clouds) == {"normal", "attack"}
    assert found.flow(replace(QUICK, flow=399)) == len(found.stream) - 1


# ---------------------------------------------------------------------- own files
def test_two_files_that_differ_in_their_labels_never_share_a_result():
    """Once the second visitor was shown the first one's AUC."""
    study, settings = STUDIES["detection"], replace(OWN, label_column="label")
    files = own_file(), own_file(flipped=True)
    assert study.identity(settings, files[0]) != study.identity(settings, files[1])
    right = outcome(study.run(settings, files[0]), lambda step: step.result is None)
    assert right.judged["FedPG"].evaluations["oracle"].auc > 0.9
    wrong = outcome(
        study.run(replace(settings, normal_value="normal"), files[1]),
        lambda step: step.result is None,
    )
    assert wrong.judged["FedPG"].evaluations["oracle"].auc < 0.6
    assert all(
        one.identity(OWN, files[0]) != one.identity(OWN, files[1])
        for one in STUDIES.values()
        if one.settings is AnomalySettings
    )


def test_a_result_depends_on_the_file_only_where_it_is_asked_for():
    with_file = task.task(QUICK, own_file())
    assert with_file is task.task(QUICK), "the file of another page does not matter here"


@pytest.mark.parametrize("topic", ["detection", "learning", "alarms", "costs", "leaks", "sweeps"])
def test_a_table_without_labels_runs_every_topic_that_needs_none(topic):
    settings = replace(OWN, view=topic, rounds=20)
    data = own_file(labels=False)
    (study,) = studies_of(settings)
    tables = study.tables(outcome(study.run(settings, data)), settings)
    assert all(len(table) for table in tables.values())
    if topic == "detection":
        assert list(tables["summary"].columns) == ["detector", "alarms"]
        assert set(tables["curves"]["quantile"]) == set(trained.SHARES)


@pytest.mark.parametrize("topic", ["poisoning"])
def test_what_needs_labels_says_so(topic):
    settings = replace(OWN, view=topic)
    (study,) = studies_of(settings)
    with pytest.raises(InvalidInput, match=r"own\.csv has no column of labels"):
        outcome(study.run(settings, own_file(labels=False)))


def test_a_file_that_is_missing_is_asked_for():
    with pytest.raises(InvalidInput, match="There is no file yet"):
        outcome(STUDIES["detection-costs"].run(OWN))


# ---------------------------------------------------------------------- leaks
def test_the_server_reads_a_client_of_few_features():
    settings = replace(OWN, rounds=100, participation=0.5, view="leaks")
    found = outcome(STUDIES["leaks"].run(settings, own_file()))
    assert found.outside["error"].iloc[-1] < 0.05
    assert len(found.fitted) == leaks.FITTED_RUNS and found.fitted["error"].iloc[-1] < 1e-2
    assert found.truth.shape == found.found.shape == (5, 5)
    assert found.joined is not None
    with pytest.raises(InvalidInput, match="There is no client 10 among 10"):
        outcome(STUDIES["leaks"].run(replace(settings, client=10), own_file()))


def test_configurations_refuse_nonsense():
    with pytest.raises(InvalidInput, match="Clients cannot be 1"):
        AnomalySettings(clients=1)
    reading = AnomalySettings.from_query({"problem": ["TON-IoT"], "penalty": ["5"]})
    assert reading.configuration.problem == "ton"
    assert reading.configuration.penalty_factor == 4
    assert "Penalty factor cannot be “5”" in reading.faults[0]


# ---------------------------------------------------------------------- noise at the source
NOISY = AnomalySettings(
    problem="synthetic",
    standardising="centre",
    clients=10,
    rounds=50,
    components=3,
    participation=1.0,
    epsilon=1.0,
)


def test_a_subspace_learnt_under_an_epsilon_is_judged_beside_the_one_without() -> None:
    found = outcome(STUDIES["detection"].run(NOISY))
    assert found.facts.promised.guarantee.epsilon == pytest.approx(1.0)
    assert "noisy mean (clip norm 50)" in found.facts.promised.guarantee.sentence()
    assert set(found.judged) == {"FedPG", "Centralised PCA", "Norm only", "Random subspace"}
    assert found.local is None  # a client alone sends nothing; it is not compared under noise
    clear = outcome(STUDIES["detection"].run(replace(NOISY, epsilon=math.inf)))
    assert clear.facts.promised is None and {"FedAE", "FedAE-2"} < set(clear.judged)
    mine, aim = (
        found.judged[name].evaluations["oracle"].auc for name in ("FedPG", "Centralised PCA")
    )
    assert 0.5 < mine < 1 and mine != clear.judged["FedPG"].evaluations["oracle"].auc
    assert aim == clear.judged["Centralised PCA"].evaluations["oracle"].auc


def test_its_records_are_centred_on_the_noisy_mean() -> None:
    clear, noisy = task.task(replace(NOISY, epsilon=math.inf)), task.noisy_task(NOISY)
    mean = noisy.problem.source.mean
    assert np.linalg.norm(mean - clear.problem.own_mean) > 0
    np.testing.assert_allclose(noisy.records + mean, clear.records + clear.problem.own_mean)
    np.testing.assert_allclose(noisy.training + mean, clear.training + clear.problem.own_mean)
    close = task.noisy_task(replace(NOISY, epsilon=100.0)).problem.source.mean
    assert np.linalg.norm(close - clear.problem.own_mean) < 0.5
    short = task.noisy_task(replace(NOISY, epsilon=100.0, mean_clip=5.0)).problem.source.mean
    assert np.linalg.norm(short - clear.problem.own_mean) > 5


@pytest.mark.parametrize("standardising", ["global", "local"])
def test_records_that_are_standardised_by_their_own_moments_get_no_epsilon(standardising) -> None:
    with pytest.raises(InvalidInput, match="Choose “Mean only” under “Standardising”"):
        task.noisy_task(replace(NOISY, standardising=standardising))


LEARNING_TOPICS = [study.key for study in STUDIES.values() if study.settings is AnomalySettings]


@pytest.mark.parametrize("key", LEARNING_TOPICS)
def test_every_topic_that_learns_reads_the_noise(key: str) -> None:
    study = STUDIES[key]
    for change in (
        {"epsilon": math.inf}, {"delta": 1e-4}, {"clip_norm": 5.0}, {"mean_share": 0.5},
        {"mean_clip": 20.0},
    ):  # fmt: skip
        assert study.identity(NOISY) != study.identity(replace(NOISY, **change))


@pytest.mark.parametrize("key", ["alarms", "learning", "detection-costs", "leaks"])
def test_every_topic_says_what_its_run_guarantees(key: str) -> None:
    few = replace(NOISY, rounds=20, epsilon=2.0)
    found = outcome(STUDIES[key].run(few))
    assert found.facts.promised.guarantee.epsilon == pytest.approx(2.0)
    clear = outcome(STUDIES[key].run(replace(few, epsilon=math.inf)))
    assert clear.facts.promised is None
    if key == "leaks":
        # Of the client's own covariance the server now has what the noise leaves of it.
        assert found.outside["error"].iloc[-1] > 1.5 * clear.outside["error"].iloc[-1]
    if key == "detection-costs":
        assert "FedAE" in set(clear.costs["method"]) - set(found.costs["method"])
