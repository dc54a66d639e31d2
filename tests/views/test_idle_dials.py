"""A page disables what makes no difference beside the other values, and says why; nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.shell import limits
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.catalogue import PAGES
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.theory.settings import TheorySettings
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import Settings
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings
from tests.test_headless import script_of

#: Settings in which other parameters have no part than those of the page as it opens.
ELSEWHERE: list[Settings] = [
    ConvergeSettings(methods=("ssi",)),
    ConvergeSettings(methods=("fedpe", "fedpg"), participation=0.5),
    ConvergeSettings(methods=("one_shot", "centralized"), inner_rule="fixed"),
    ConvergeSettings(methods=("faps",), random_inner_steps=True, problem="digits", epsilon=1.0),
    AttackSettings(attacked=("ssi",)),
    AttackSettings(attacked=("ssi",), replay=True),
    SceneSettings(method="faps"),
    SceneSettings(method="fedpe", participation=0.5, epsilon=3.0),
    FrontierSettings(candidates=("ssi",), vary="participation"),
    FrontierSettings(candidates=("fedpg",), vary="epsilon"),
    TheorySettings(method="fedavg"),
    TheorySettings(method="admm", problem="pair"),
    PrivacySettings(method="faps"),
    PrivacySettings(method="ssi", unit="person", trusted="clients"),
    PrivacySettings(view="ways", problem="digits"),
    PrivacySettings(view="accountants"),
    AnomalySettings(problem="synthetic", method="fedpe", participation=1.0),
]


@pytest.fixture(autouse=True)
def nothing_is_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Any, *rest: Any) -> None:
        raise InvalidInput("This server has the day off; come back tomorrow.")

    monkeypatch.setattr(type(limits.LIMITS), "check", refused)
    monkeypatch.setattr(st, "page_link", lambda *where, **words: None)  # the page runs alone


def widgets(app: AppTest) -> dict[str, Any]:
    """Every widget of a page that has a key, as it went to the browser."""
    found: dict[str, Any] = {}

    def walk(block: Any) -> None:
        for node in block.children.values():
            if getattr(node, "children", None):
                walk(node)
            elif getattr(node, "key", None):
                found[node.key] = node.proto

    walk(app._tree)
    return found


def opened(settings: Settings) -> AppTest:
    app = AppTest.from_file(str(script_of(settings.kind)), default_timeout=60)
    for key, value in settings.query().items():
        app.query_params[key] = value
    app.run()
    assert not app.exception
    return app


@pytest.mark.parametrize(
    "settings",
    [*(page() for page in PAGES), *ELSEWHERE],
    ids=lambda one: "&".join([one.kind, *one.query_string().split("&")])[:60],
)
def test_what_makes_no_difference_is_disabled_and_says_why(settings: Settings) -> None:
    app = opened(settings)
    shown, drawn = app.session_state[f"_page_{settings.kind}"]["last"]
    assert {name: getattr(shown, name) for name in drawn} == {
        name: getattr(settings, name) for name in drawn
    }
    idle, there = settings.idle(), widgets(app)
    for name in drawn:
        described = settings.parameters()[name]
        if described.view and described.key not in there:
            continue  # the story keeps some for itself
        widget = there[described.key]
        assert widget.disabled == (name in idle), name
        assert widget.help.startswith(idle.get(name, described.help)), name


def test_another_choice_of_methods_wakes_their_parameters() -> None:
    """The sidebar runs again though the methods stand beside the chart."""
    app = opened(ConvergeSettings(methods=("ssi",)))
    assert app.select_slider(key="rho").disabled and app.select_slider(key="penalty").disabled
    assert "None of the chosen methods" in app.select_slider(key="rho").help
    app.get("button_group")[0].set_value(["fedpe"]).run()
    assert not app.select_slider(key="rho").disabled
    assert app.select_slider(key="penalty").disabled
