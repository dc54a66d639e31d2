"""What the Anomalies page draws and says: truth is marked, and numbers are read off results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from fedpca_core.problems import traffic
from fedpca_core.questions.anomaly import figures, task
from fedpca_core.questions.anomaly.leaks import Leaked
from fedpca_core.questions.anomaly.poisoned import Courses
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.catalogue import STUDIES, studies_of
from fedpca_core.questions.told import TOLD
from fedpca_core.remembered import forget_everything
from fedpca_core.steps import outcome
from fedpca_core.study.sweep import Swept

PAGE = Path(__file__).resolve().parents[2] / "pages" / "anomaly.py"
SETTINGS = AnomalySettings(problem="synthetic", clients=20, components=6, rounds=20)


@pytest.fixture(scope="module")
def findings():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task, "synthetic", lambda seed: traffic.synthetic(1000, 400, seed))
        forget_everything()  # detectors too, which other tests may have trained on more traffic
        yield outcome(STUDIES["detection"].run(SETTINGS), lambda step: step.result is None)
        forget_everything()  # detectors too, which other tests may have trained on more traffic


def marked(panel) -> set[str]:
    """Curves of a panel that are marked as needing the clients' private data."""
    return {c.name for c in panel.curves if c.simulation_only or panel.simulation_only}


def test_every_topic_has_its_view():
    topics = AnomalySettings.parameters()["view"].choices
    assert {*figures.READING} == {*topics}
    for topic in topics:
        (study,) = studies_of(replace(SETTINGS, view=topic))
        assert study.opened_by == ("view", topic) and study.key in TOLD


def test_centralised_pca_is_marked(findings):
    for panel in (*figures.roc_and_precision(findings), figures.alarm_rates(findings)):
        assert {name.split(" (")[0] for name in marked(panel)} == {"Centralised PCA"}


def test_progress_and_lagrangian_are_marked():
    columns = ["consensus", "stationarity", "lagrangian", "dual_sum", "dual_size", "departure"]
    table = pd.DataFrame({"round": [0, 1, 2], **{name: [1.0, 0.5, 0.1] for name in columns}})
    truth = {panel.key: panel.simulation_only for panel in figures.progress(table)}
    assert truth == {"progress": True, "lagrangian": True, "duals": True, "departure": False}


def test_errors_against_the_truth_are_marked(findings):
    facts = findings.facts
    outside = pd.DataFrame({"round": [1, 2], "error": [0.5, 0.1]})
    leaked = Leaked(facts, "FedPG", outside, pd.DataFrame({"participations": [1], "error": [0.4]}))
    assert all(panel.simulation_only for panel in figures.error_panels(leaked))
    assert figures.what_is_read(leaked).startswith(
        "After 2 participations the dual gives the part outside the model to **10.0%** (simulation"
    )
    course = pd.DataFrame({"rule": "nothing", "round": [1.0, 2.0], "auc": 1.0, "dual_sum": 1.0})
    shown = figures.poison_panels(Courses(facts, "scan", 1, course))
    assert {panel.key: panel.simulation_only for panel in shown} == {
        "poisoned": False,
        "dualsum": True,
    }


def test_a_sweep_marks_the_truth_and_bands_its_seeds():
    rows = [
        {"value": value, "seed": seed, "series": series, "measure": measure, "result": 0.5 + seed}
        for value in (1.0, 4.0)
        for seed in (0, 1)
        for series, measures in (
            ("federated", ("auc", "distance", "seconds")),
            ("centralised", ("auc",)),
            ("norm", ("auc",)),
        )
        for measure in measures
    ]
    found = Swept("penalty_factor", pd.DataFrame(rows), {})
    areas, distances = figures.along(found, "Penalty factor", "FedPG")
    assert marked(areas) == {"centralised PCA"} and marked(distances) == {"FedPG"}
    assert list(distances.curves[0].lower) == [0.5, 0.5]
    assert list(distances.curves[0].upper) == [1.5, 1.5]


def test_the_verdict_never_praises_below_the_floor(findings):
    """AUC .93 beside F1 67.0 and always-alarm 91.9 once read “here the subspace helps”."""
    text = figures.verdict(findings, replace(SETTINGS, share=0.999))
    assert "helps" not in text
    assert "less than the 66.7% of always raising the alarm" in text
    best = figures.verdict(findings, replace(SETTINGS, rule="oracle"))
    assert "oracle’s threshold" in best and "; always raising the alarm has 66.7%." in best


def test_an_epsilon_that_does_not_fit_the_scaling_has_two_ways_out():
    for remedy, expected in (("remedy_0", (5.0, "centre")), ("remedy_1", (np.inf, "global"))):
        app = AppTest.from_file(str(PAGE), default_timeout=120)
        link = {"epsilon": "5", "problem": "Synthetic traffic", "components": "3", "rounds": "20"}
        for key, value in link.items():
            app.query_params[key] = value
        app.run()
        assert any("No ε covers records" in warning.value for warning in app.warning)
        app.button(key=remedy).click().run()
        assert not app.exception
        assert not any("No ε covers records" in warning.value for warning in app.warning)
        assert not [one for one in app.button if str(one.key).startswith("remedy")]
        chosen = app.session_state["epsilon"], app.session_state["standardising"]
        assert chosen == expected
