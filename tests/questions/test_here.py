"""Missing data are found before any work, and the same is offered on data that come along."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from fedpca_core.__main__ import main
from fedpca_core.papers.registry import EXPERIMENTS
from fedpca_core.papers.results import reproduce
from fedpca_core.problems.data_sets import MissingData
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.catalogue import PRESETS, studies_of
from fedpca_core.steps import outcome
from fedpca_core.study.here import instead, missing
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.study.study import Study
from scripts import posters

ROOT = Path(__file__).resolve().parents[2]


def test_what_comes_along_needs_nothing_instead():
    for settings in (
        ConvergeSettings(),
        AttackSettings(problem="fashion_mnist"),
        AnomalySettings(),
    ):
        assert missing(settings) is None and instead(settings) is None


def test_faces_become_garments_and_traffic_becomes_iot_23():
    faces = AttackSettings(problem="olivetti", resolution=32, clients=40)
    assert instead(faces) == AttackSettings(problem="fashion_mnist", resolution=0, clients=40)
    assert instead(AttackSettings(problem="olivetti", resolution=16)).resolution == 16
    ton = AnomalySettings(problem="ton", components=10)
    assert instead(ton) == AnomalySettings(problem="iot23", components=4)
    assert instead(AnomalySettings(problem="nsl", components=2)).components == 2


def test_the_garments_of_the_message_are_those_of_the_faces_preset():
    assert instead(PRESETS["ten-faces"].settings) == PRESETS["ten-garments"].settings


def test_ten_garments_come_out_of_one_message():
    settings = PRESETS["ten-garments"].settings
    (records,) = [one for one in studies_of(settings) if one.key == "records"]
    row = records.tables(outcome(records.run(settings)), settings)["summary"].iloc[0]
    assert (row["records"], row["exact"], row["certified_after_round"]) == (10, 10, 1)


@pytest.mark.data("olivetti")
def test_where_the_faces_are_nothing_stands_in_for_them():
    assert instead(PRESETS["ten-faces"].settings) is None


def test_the_command_refuses_before_it_runs_anything(tmp_path, capsys, monkeypatch):
    file = tmp_path / "faces.json"
    file.write_text(PRESETS["ten-faces"].settings.to_json())
    for study in studies_of(PRESETS["ten-faces"].settings):
        monkeypatch.setattr(type(study), "run", None)
    assert main(["run", str(file)]) == 2
    assert "“python -m fedpca_core data olivetti” fetches it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "size", "key"),
    [
        ("images", "paper", "cifar10"),
        ("iot-readings-ton", "paper", "ton"),
        ("iot-readings-unsw", "paper", "unsw"),
        ("iot-learning", "paper", "ton"),
        ("iot-rank-ton", "paper", "ton"),
    ],
)
def test_an_experiment_refuses_before_its_first_cell(name, size, key, tmp_path):
    with pytest.raises(MissingData) as refusal:
        next(reproduce(EXPERIMENTS[name], size, 1, tmp_path))
    assert refusal.value.key == key and list(tmp_path.iterdir()) == []


def test_a_sample_is_not_enough_for_a_paper_s_table():
    """Its averages are over all images that are kept here; pages show the sample and say so."""
    assert "fashion_mnist" in EXPERIMENTS["images"].needs("paper")
    assert EXPERIMENTS["images"].needs("live") == ("digits",)


def test_every_experiment_names_what_it_reads():
    """Whatever a cell or the settings of its page name."""
    for one in EXPERIMENTS.values():
        for size in one.sizes:
            cells = one.cells(size, 1)
            named = {cell.configuration.get("problem") for cell in cells}
            assert named & {"mnist", "cifar10", "ton", "unsw"} <= set(one.needs(size)), one.key


def test_a_study_that_reads_no_problem_needs_none():
    faces = PRESETS["ten-faces"].settings
    needs = {study.key: Study.needs(study, faces) for study in studies_of(faces)}
    assert needs["records"] == needs["reconstruction"] == ("olivetti",)
    (risk,) = [
        one
        for one in studies_of(AttackSettings(problem="olivetti", at_risk=True))
        if one.key == "at_risk"
    ]
    assert risk.needs(faces) == ()


def test_a_poster_of_missing_data_is_left_out_and_no_failure(tmp_path, capsys, monkeypatch):
    # The command sets these for its own process.
    monkeypatch.setattr(logging.getLogger("fedpca"), "disabled", False)
    monkeypatch.setenv("FEDPCA_WORKERS", "0")
    assert posters.main(["ten-faces", "--out", str(tmp_path)]) == 0
    assert "ten-faces is left out: “Olivetti faces” is not on this machine" in (
        capsys.readouterr().err
    )
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]


def cards() -> None:
    from dashboard.views import front

    front.presets()


def test_a_card_whose_data_are_missing_names_the_command_and_opens_what_is_here():
    (html,) = [one.proto.body for one in AppTest.from_function(cards).run().get("html")]
    card = html.partition("One message, ten faces</b>")[2].partition("</div>")[0]
    assert "data olivetti” fetches it" in card and "Opened with Fashion-MNIST meanwhile." in card
    assert "problem%3Dfashion_mnist" in card or "Fashion-MNIST" in card.partition("href")[2]
    whole = html.partition("One message, ten garments</b>")[2].partition("</div>")[0]
    assert "data olivetti" not in whole


def test_the_buttons_of_the_anomalies_page_open_what_is_here(monkeypatch):
    from dashboard.shell import jobs

    monkeypatch.setattr(jobs.Job, "wait", lambda job, seconds: job._done.wait(60))
    app = AppTest.from_file(str(ROOT / "pages" / "anomaly.py"), default_timeout=60).run()
    button = app.button(key="anomaly-ton")
    assert "says where to get it" in button.proto.help
    app.button(key="to_iot23").click().run()
    assert not app.exception
    assert app.session_state["problem"] == "iot23" and app.session_state["components"] == 4
