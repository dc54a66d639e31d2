"""What the readings of the IoT paper's table run, and uploads by hand."""

import numpy as np
import pytest

from fedpca_core.algorithms.fedpe_fedpg import FedPG
from fedpca_core.anomaly.evaluation import evaluate, quantile, score
from fedpca_core.papers import iot_runs
from fedpca_core.papers.iot_runs import PARTS, Bytes, TableReadings, by_moments_of, with_penalty
from fedpca_core.papers.judge import read_as
from fedpca_core.papers.registry import ENTRIES
from fedpca_core.problems import traffic
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.steps import outcome


@pytest.fixture(scope="module")
def detection():
    return traffic.prepare(traffic.synthetic(), clients=10)


def test_every_reading_of_the_table_is_run_for_its_methods():
    for name, entry in ENTRIES.items():
        if not name.startswith(("iot/table-1/unsw/", "iot/table-1/ton/")):
            continue
        cells = {(one[0], one[1]) for one in TableReadings(name.split("/")[2]).pieces("paper")}
        for reading in entry.readings:
            if reading.reads and entry.method in (reading.only or (entry.method,)):
                changed = read_as(entry, reading)
                assert (changed.part, changed.series) in cells, (name, reading.name)


def test_records_by_a_client_s_own_moments_are_its_own_z_scores():
    """Whatever moments they were standardised by before."""
    made = np.random.default_rng(0)
    block, tests = made.normal(3.0, 2.0, (4, 50)), made.normal(1.0, 5.0, (30, 4))
    block[2] = 7.0
    by_own = by_moments_of(block, block.T)
    np.testing.assert_allclose(by_own.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(by_own.std(axis=0), [1, 1, 0, 1], atol=1e-12)
    shift, width = made.normal(size=4), np.array([2.0, 0.5, 1.0, 3.0])
    before = (block - shift[:, None]) / width[:, None], (tests - shift) / width
    np.testing.assert_allclose(by_moments_of(*before), by_moments_of(block, tests))


def test_changed_records_are_those_of_clients_and_tests(detection):
    doubled = iot_runs.with_records(detection, lambda records: 2 * records)
    np.testing.assert_allclose(doubled.records, 2 * detection.records)
    np.testing.assert_allclose(doubled.problem.covariance, 4 * detection.problem.covariance)
    np.testing.assert_allclose(
        doubled.problem.client_data.weights, detection.problem.client_data.weights
    )


def test_a_penalty_is_a_number_beside_the_printed_sum(detection):
    """Divided by the records of a client it stands beside their mean, of which the loss is ours."""
    problem = detection.problem
    made = with_penalty(FedPG(2), problem, 3.0)
    used = made.penalty_factor * problem.client_data.spectral_norms().mean()
    assert used * problem.client_data.samples.mean() == pytest.approx(3.0)


def test_rates_at_own_quantiles_are_means_over_clients(detection):
    frame = detection.problem.target(2)
    scores = score(detection.records, frame)
    own = [quantile(score(block.T, frame)) for block in detection.problem.blocks]
    rates = TableReadings("unsw")._rates(detection.attack, "FedPG", scores, own)
    every = [evaluate(detection.attack, scores, level) for level in own]
    assert len(set(own)) == 10
    for name in ("accuracy", "recall", "precision"):
        mean = np.mean([getattr(one, name) for one in every])
        assert rates[f"{name}, own quantile"] == pytest.approx(100 * mean)
    assert not any(
        "quantile" in name
        for name in TableReadings("unsw")._rates(detection.attack, "FedPG", scores)
    )


@pytest.mark.parametrize("part", [*PARTS, *iot_runs.SETTINGS])
def test_settings_of_every_part_are_as_its_reading_says(part):
    """Rank and rounds are those of the reading, else of rank 2; what it changes besides, too."""
    how = PARTS[part].changes if part in PARTS else {}
    found = TableReadings("unsw")._settings(part, how, 3)
    assert isinstance(found, AnomalySettings) and found.seed == 3 and found.clients == 100
    wanted = iot_runs.SETTINGS.get(part, {**iot_runs.SETTINGS["rank 2"], **how})
    for name in ("components", "rounds", "transform", "average", "projection", "standardising"):
        if name in wanted:
            assert getattr(found, name) == wanted[name], name


def test_an_upload_by_hand():
    """49 features: 49·32 + 32 and so on of an autoencoder with a code of 8, over 49·2."""
    chosen = Bytes()
    cells = {(one.part, one.series): one for one in chosen.cells("paper", 1)}
    cell = cells["k = 2, TON-IoT, code of 8", "FedAE"]
    ratio = {one.measure: one.result for one in outcome(chosen.run(cell, "paper"))}["ratio"]
    weights = 50 * 32 + 33 * 8 + 9 * 32 + 33 * 49
    assert ratio == pytest.approx(weights / (49 * 2))
    doubled = cells["k = 28", "FedAE"], cells["k = 14", "FedAE"]
    one, two = ({n.measure: n.result for n in outcome(chosen.run(c, "paper"))} for c in doubled)
    assert two["ratio"] == pytest.approx(2 * one["ratio"])
