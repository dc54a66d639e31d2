"""A link that asks for another run than a page has gets no answer about something else."""

from __future__ import annotations

from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from dashboard.shell import jobs
from fedpca_core.questions.catalogue import PAGES
from tests.test_headless import script_of

KINDS = [page.kind for page in PAGES]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The settings of which a page has asked for a result."""
    found: list[Any] = []

    def ask(study: Any, settings: Any, *rest: Any, **words: Any) -> jobs.Job:
        found.append(settings)
        return jobs.Job(None).refuse("Nothing is computed in this test.")

    monkeypatch.setattr(jobs, "study", ask)
    monkeypatch.setattr(st, "page_link", lambda *where, **words: None)
    return found


def opened(kind: str, **link: Any) -> AppTest:
    app = AppTest.from_file(str(script_of(kind)), default_timeout=60)
    for key, value in link.items():
        app.query_params[key] = value
    app.run()
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    return " ".join(text.value for text in app.markdown).replace("\\", "")


def test_5000_features_are_not_answered_for_16(asked: list[Any]) -> None:
    app = opened("which", features="5000", components="4")
    assert "Features cannot be “5000”: it must be a whole number from 4 to 1000" in said(app)
    assert not asked
    app.run()
    assert not asked and "Features cannot be" in said(app)  # not dismissed by coming again
    (fits,) = [button for button in app.button if button.key == "link_fits_which"]
    assert fits.label == "Use Features: 1000"
    fits.click().run()
    assert asked and {one.features for one in asked} == {1000}
    assert {one.components for one in asked} == {4}  # what fitted stays
    assert "Features cannot be" not in said(app)


@pytest.mark.parametrize("kind", KINDS)
def test_every_page_refuses_what_its_run_cannot_be(asked: list[Any], kind: str) -> None:
    page = next(page for page in PAGES if page.kind == kind)
    name = {"papers": "seeds", "trace": "client"}.get(kind, "clients")
    described = page.parameters()[name]
    app = opened(kind, **{described.key: "1e9"})
    assert not asked
    assert f"{described.label} cannot be" in said(app)
    app.button(key=f"link_fits_{kind}").click().run()
    assert asked or kind == "trace"  # which needs a file first
    assert all(getattr(one, name) == described.fitting("1e9") for one in asked)


def test_a_choice_that_is_not_there_and_one_that_is(asked: list[Any]) -> None:
    app = opened("converge", methods=["FAPS", "Magic"], problem="Moon")
    assert not asked and "Methods cannot be “Magic”" in said(app)
    fits = app.button(key="link_fits_converge")
    assert fits.label == "Use Methods: FAPS; Problem: Geometric spectrum"
    fits.click().run()
    assert {one.methods for one in asked} == {("faps",)}


def test_what_only_shows_it_otherwise_is_replaced(asked: list[Any]) -> None:
    app = opened("converge", axis="Moons")
    assert asked and "Rounds is used instead" in said(app)


def test_more_rounds_than_a_page_draws_are_refused_too(asked: list[Any]) -> None:
    app = opened("attack", rounds="1000", client="2")
    assert not asked
    assert "Rounds of 1000 is too much for this page, which goes up to 200" in said(app)
    app.button(key="link_fits_attack").click().run()
    assert asked and {one.rounds for one in asked} == {200}
    assert {one.client for one in asked} == {2}


def test_an_end_that_depends_on_another_dial_is_one_too(asked: list[Any]) -> None:
    app = opened("anomaly", problem="synthetic", view="leaks", clients="20", client="50")
    assert not asked
    assert "Attacked client of 50 is too much for this page, which goes up to 19" in said(app)
    app.button(key="link_fits_anomaly").click().run()
    assert asked and {one.client for one in asked} == {19}


def test_a_link_from_another_page_is_read_alike(asked: list[Any]) -> None:
    app = opened("which", settings="features=5000&components=4")
    assert not asked and "Features cannot be “5000”" in said(app)
    app.button(key="link_fits_which").click().run()
    assert {(one.features, one.components) for one in asked} == {(1000, 4)}
