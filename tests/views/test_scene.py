"""The live picture names its clients as settings, links and tables do: from 0."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shell import limits
from dashboard.views import scene
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.home.scene import LivePicture
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.steps import outcome


def test_the_stage_and_every_sentence_mean_the_client_of_the_settings() -> None:
    settings = SceneSettings(
        versus="off", clients=3, client=2, records_per_client=10, rounds=10, components=4
    )
    found = outcome(LivePicture().run(settings))
    stage = scene._stage(found, settings)
    assert list(stage.names) == ["Client 0", "Client 1", "Client 2"] and stage.attacked == 2
    told = [scene.sentence(found, settings, k) for k in range(1, found.rounds + 1)]
    assert all("client 2" in text for text in (*told, *stage.server[1:]))
    assert scene._truth(found, settings).title == "Records of client 2"


def test_a_picture_is_laid_out_once_for_all_who_look_at_the_same_run() -> None:
    settings = SceneSettings(versus="off", clients=3, rounds=10)
    one, other = (outcome(LivePicture().run(settings)) for _ in range(2))
    view = scene.view(one, settings, False, None)
    assert scene.view(one, settings, False, None) is view
    assert scene.view(other, settings, False, None) is not view
    assert scene.view(one, replace(settings, round=1), False, None) is not view


def test_a_method_that_secure_sums_exclude_is_shown_without_them() -> None:
    entry = Path(__file__).resolve().parents[2] / "dashboard" / "main.py"
    app = AppTest.from_file(str(entry), default_timeout=60)
    link = SceneSettings(method="one_shot", secure_aggregation=True, clients=3).query()
    for name, value in link.items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    assert [box.value for box in app.info] == [
        "One-shot needs every client's own message, which secure sums would hide: the picture "
        "shows it without them."
    ]
    assert app.get("bidi_component")


def test_a_replay_of_too_many_rounds_names_the_parameter_and_offers_fewer(monkeypatch) -> None:
    entry = Path(__file__).resolve().parents[2] / "dashboard" / "main.py"
    app = AppTest.from_file(str(entry), default_timeout=60)
    for name, value in SceneSettings(method="faps", unmask=True, rounds=100).query().items():
        app.query_params[name] = value
    app.run()
    assert not app.exception
    assert any("MB of memory" in box.value for box in app.warning)
    named, refused = (
        [box.value for box in app.warning if "Rounds" in box.value],
        SceneSettings(method="faps", unmask=True, rounds=75),
    )
    assert "**Rounds** at 50" in named[-1]
    with pytest.raises(InvalidInput, match="MB of memory"):
        limits.check(LivePicture(), refused, None)
    offer = app.button(key="remedy_rounds")
    assert offer.label == "Use 50 rounds"
    monkeypatch.setattr(LivePicture, "run", lambda *_: iter(()))  # it would take half a minute
    offer.click().run()
    assert app.select_slider(key="rounds").value == 50, "the widget has it, not the run alone"
