"""What must show on the real data, and the published table's own consistency."""

import pytest

from fedpca_core.algorithms import FedPG
from fedpca_core.anomaly import detectors
from fedpca_core.anomaly.evaluation import area, evaluate
from fedpca_core.anomaly.thresholds import quantile
from fedpca_core.linalg.stiefel import remove_span
from fedpca_core.problems import traffic
from fedpca_core.studies.detection.settings import AnomalySettings
from fedpca_core.studies.papers import iot


@pytest.fixture(scope="module")
def ton(data_folder):
    return traffic.prepare(traffic.load("ton", data_folder))


@pytest.fixture(scope="module")
def unsw(data_folder):
    raw = traffic.load("unsw", data_folder)
    return {name: traffic.prepare(raw, transform=name) for name in ("none", "log")}


def auc(detection, frame):
    return area(detection.attack, detectors.subspace_detector("x", detection, frame).scores)


def test_ton_iot_the_subspace_helps(ton):
    assert auc(ton, None) == pytest.approx(0.784, abs=0.002)
    assert auc(ton, ton.problem.target(2)) == pytest.approx(0.836, abs=0.002)
    run = detectors.federated(ton, FedPG(10), rounds=200)
    found, exact = area(ton.attack, run.scores), auc(ton, ton.problem.target(10))
    assert found > 0.92
    assert found == pytest.approx(exact, abs=0.02)
    honest = evaluate(ton.attack, run.scores, quantile(run.training_scores))
    assert honest.false_positive_rate == pytest.approx(0.05, abs=0.01)
    assert honest.false_negative_rate == pytest.approx(0.49, abs=0.03)


def test_ton_iot_subspace_is_found_where_there_is_a_gap(ton):
    for components in (2, 4):
        assert ton.problem.eigenvalues[components - 1] > 1.5 * ton.problem.eigenvalues[components]
        run = detectors.federated(ton, FedPG(components), rounds=300)
        assert run.frame is not None
        rest = remove_span(run.frame, ton.problem.target(components))
        assert (rest**2).sum() < 0.05**2 * components


def test_ton_iot_self_learning_fails_by_its_threshold(ton):
    local = detectors.self_learning(ton, 10, clients=5)
    assert 0.8 < local.auc < 0.9
    assert local.own_quantile["fpr"] > 0.2


def test_ton_iot_a_shuffled_split_closes_the_gap(data_folder, ton):
    shuffled = traffic.prepare(traffic.load("ton", data_folder), split="iid")
    even = detectors.self_learning(shuffled, 4, clients=5)
    narrow = detectors.self_learning(ton, 4, clients=5)
    assert even.auc == pytest.approx(auc(shuffled, shuffled.problem.target(4)), abs=0.015)
    assert 0.03 < even.false_alarms.mean() < 0.08
    assert narrow.false_alarms.mean() > 0.2


@pytest.mark.parametrize(
    "transform,norm,components,rounds",
    [("none", 0.820, 10, 300), ("none", 0.820, 4, 500), ("log", 0.861, 6, 300)],
)
def test_unsw_fedpg_matches_centralised_but_not_the_norm(unsw, transform, norm, components, rounds):
    detection = unsw[transform]
    assert auc(detection, None) == pytest.approx(norm, abs=0.002)
    run = detectors.federated(detection, FedPG(components), rounds=rounds)
    exact = auc(detection, detection.problem.target(components))
    assert area(detection.attack, run.scores) == pytest.approx(exact, abs=0.02)
    assert exact < norm


def test_unsw_true_rank_two_is_far_below_the_published_figure(unsw):
    assert auc(unsw["none"], unsw["none"].problem.target(2)) == pytest.approx(0.717, abs=0.002)


# ---------------------------------------------------------------------- the paper's table
@pytest.mark.parametrize("key", ["unsw", "ton"])
def test_published_rows_agree_with_themselves_except_fedpe(key):
    for method, row in iot.TABLE_I[key].items():
        implied = iot.implied_accuracy(row, *iot.TEST_RECORDS[key])
        if method == "FedPE":
            assert row.accuracy - implied > 0.4
            assert row.fnr + row.recall > 101
        else:
            assert implied == pytest.approx(row.accuracy, abs=0.02)
        assert 27 <= iot.implied_false_alarm_rate(row, *iot.TEST_RECORDS[key]) < 61


def test_the_table_sets_ours_beside_theirs():
    detection = traffic.prepare(traffic.synthetic(normal=2000, test=800), clients=20)
    table = iot.table(detection, "ton", components=6, rounds=60, clients=4).set_index("method")
    assert table.loc["FedPG", "published_f1"] == 93.55
    assert table.loc["FedBiGAN"].filter(like="published").notna().all()
    assert table["accuracy"].isna()["FedBiGAN"]
    assert table.loc["Always alarm", "f1"] == pytest.approx(200 / 3)
    assert table["auc"]["FedPG"] > table["auc"]["Norm only"]
    unknown = iot.table(detection, "synthetic", components=6, rounds=20, clients=2)
    assert unknown.filter(like="published").isna().all().all()


def test_presets_are_configurations_that_survive_a_file():
    for preset in iot.PRESETS.values():
        reading = AnomalySettings.from_json(preset.to_json())
        assert reading.configuration == preset and reading.notes == ()
        assert preset.algorithm().components == preset.components
