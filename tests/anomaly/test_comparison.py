"""The comparison behind the anomaly page: order, stopping, sweeps, the stream of flows."""

import itertools

import numpy as np
import pandas as pd
import pytest

from fedpca_core import InvalidInput
from fedpca_core.__main__ import main
from fedpca_core.anomaly.evaluation import evaluate
from fedpca_core.anomaly.thresholds import quantile
from fedpca_core.problems import traffic
from fedpca_core.studies.detection import comparison
from fedpca_core.studies.detection.settings import AnomalySettings

QUICK = AnomalySettings(data="synthetic", clients=20, components=6, rounds=50)


@pytest.fixture(scope="module")
def source():
    return traffic.synthetic(normal=2000, test=800)


@pytest.fixture(scope="module")
def detection(source):
    return comparison.prepared(source, QUICK)


def test_a_method_is_never_shown_without_its_baselines(detection):
    published: list[comparison.Findings] = []
    findings = comparison.compare(detection, QUICK, lambda share, text: True, published.append)
    assert next(list(part.judged) for part in published) == [
        "FedPG",
        "Centralised PCA",
        "Norm only",
    ]
    assert set(findings.judged) == {*published[0].judged, "Random subspace", "FedAE", "FedAE-2"}
    assert findings.local is not None
    for judged in findings.judged.values():
        assert judged.detector.trace is None, "a run is too large to keep"


def test_stopping_keeps_what_there_is(detection):
    left = iter([True, False])
    findings = comparison.compare(detection, QUICK, lambda s, t: next(left), lambda part: None)
    assert list(findings.judged) == ["FedPG", "Centralised PCA", "Norm only"]
    assert findings.local is None


def test_judgement_at_a_threshold_is_the_plain_evaluation(detection):
    judged = comparison.judge(detection, comparison.learn(detection, QUICK))
    for rule in ("oracle", "quantile"):
        found = judged.at(detection.attack, rule, 0.9)
        level = (
            judged.oracle if rule == "oracle" else quantile(judged.detector.training_scores, 0.9)
        )
        assert found == evaluate(detection.attack, judged.detector.scores, level)


def test_learning_shows_corrected_and_printed_rules(detection):
    everybody = AnomalySettings(clients=20, components=6, rounds=300, participation=1.0)
    learning = comparison.convergence(
        detection, everybody, lambda share, text: True, lambda part: None
    )
    end = {name: table["distance"].iloc[-1] for name, table in learning.approach.items()}
    assert end["FedPG, corrected"] < 1e-5
    assert end["FedPG, printed projection"] > 0.05
    assert learning.progress is not None
    np.testing.assert_allclose(
        learning.progress["progress"],
        learning.progress["consensus"] + learning.progress["stationarity"],
    )
    table = learning.approach["FedPG, corrected"]
    last = learning.progress.iloc[-1]
    assert last["round"] == 300
    assert table["distance"].iloc[-1] == pytest.approx(last["distance"], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("axis", list(comparison.SWEEPS))
def test_sweeps_grow_point_by_point(source, axis):
    settings = AnomalySettings(clients=20, components=6, rounds=20, sweep=axis)
    tables = list(comparison.sweep(source, settings, lambda share, text: True))
    assert [len(table) for table in tables] == list(range(1, len(tables) + 1))
    whole = tables[-1]
    assert list(whole["value"]) == list(comparison.SWEEPS[axis])
    assert whole["norm"].nunique() == (1 if axis != "clients" else whole["norm"].nunique())
    assert whole[["auc", "centralised", "norm"]].to_numpy().min() > 0.4


def test_the_stream_meets_every_attack_once_between_calm(detection):
    rows = comparison.stream(detection)
    kinds = detection.types[rows]
    changes = [kinds[0], *(b for a, b in itertools.pairwise(kinds) if a != b)]
    attacks = sorted({str(kind) for kind in detection.types} - {"normal"})
    expected = [part for name in attacks for part in ("normal", name)] + ["normal"]
    assert changes == expected
    assert len(set(rows)) == len(rows)


def test_configurations_refuse_nonsense():
    with pytest.raises(InvalidInput, match="Clients cannot be 7"):
        AnomalySettings(clients=7)
    reading = AnomalySettings.from_query({"data": ["TON-IoT"], "penalty": ["5"]})
    assert reading.configuration.data == "ton"
    assert reading.configuration.penalty_factor == 4
    assert "Penalty factor cannot be “5”" in reading.notes[0]


def test_a_configuration_file_runs_without_the_dashboard(tmp_path, capsys):
    file = tmp_path / "anomaly.json"
    file.write_text(QUICK.to_json())
    assert main(["run", str(file), "--out", str(tmp_path)]) == 0
    table = pd.read_csv(tmp_path / "summary.csv").set_index("detector")
    assert table["auc"]["FedPG"] > 0.1 + table["auc"]["Norm only"]
    assert table["accuracy"]["Always alarm"] == 50
    assert "Self-learning PCA" in capsys.readouterr().out
    assert set(pd.read_csv(tmp_path / "types.csv")["type"]) == {
        "flood",
        "scan",
        "exfiltration",
        "beacon",
    }
    assert main(["run", str(file), "--table", "mine.csv"]) == 2
    assert "A CSV file belongs to the data set “Your own file”" in capsys.readouterr().err
