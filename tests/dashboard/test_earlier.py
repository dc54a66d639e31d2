"""A poster of a page's state stands where the first result will, and only there."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.player.encode import encode
from dashboard.shell import jobs, meanwhile, workers
from fedpca_core.questions.catalogue import PRESETS
from fedpca_core.questions.converge.study import Convergence
from fedpca_core.questions.which.frontier import Frontier
from fedpca_core.study.panels import Curve, Panel
from scripts import posters

VIEW = encode(
    key="converge_view",
    rounds=1,
    panels=[Panel("one", "One", "round", "error", (Curve("SSI", [0, 1], [1.0, 0.5]),))],
)
TOLD = ["<div>Told.</div>", VIEW, '<div class="fp-table"><table>\n<tr></tr></table></div>']


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The operator's folder, with a poster of one preset."""
    pictures = [("convergence", part) for part in TOLD]
    posters.keep(tmp_path / "uneven.json", posters.earlier(pictures))
    monkeypatch.setattr(meanwhile, "FOLDER", tmp_path)
    return tmp_path


@pytest.fixture
def held(monkeypatch):
    """Nothing is computed before this is set; no result of other tests is known."""
    go, plain = threading.Event(), workers.run

    def run(*asked):
        assert go.wait(60)
        return (yield from plain(*asked))

    monkeypatch.setattr(workers, "run", run)
    jobs.registry.clear()
    yield go
    go.set()
    jobs.registry.clear()


def page() -> None:
    from dashboard.shell import jobs
    from dashboard.shell.parts import drawing
    from fedpca_core.questions.catalogue import PRESETS
    from fedpca_core.questions.converge import figures
    from fedpca_core.questions.converge.study import Convergence

    chosen = PRESETS["uneven"].settings
    jobs.study(Convergence(), chosen, drawing(figures.comparison, chosen))


def views(app: AppTest) -> list[bytes]:
    return [one.proto.bytes for one in app.get("bidi_component")]


def test_a_poster_stands_until_the_result_is_there(folder, held) -> None:
    app = AppTest.from_function(page).run(timeout=60)
    assert not app.exception and not app.get("skeleton")
    assert [one.value for one in app.get("html")] == ["<div>Told.</div>"]  # up to the table
    assert views(app) == [VIEW] and app.get("progress")[0].proto.text.startswith(meanwhile.MARK)
    held.set()
    chosen = PRESETS["uneven"].settings
    assert jobs.registry().find(Convergence().identity(chosen)).wait(60)
    app.run(timeout=60)
    assert len(views(app)) == 1 and views(app) != [VIEW] and not app.get("progress")


def test_without_the_folder_nothing_changes(held, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(meanwhile, "FOLDER", tmp_path / "nowhere")
    app = AppTest.from_function(page).run(timeout=60)
    assert app.get("skeleton") and not views(app)
    assert not app.get("progress")[0].proto.text.startswith(meanwhile.MARK)


def test_only_the_very_state_has_a_poster(folder) -> None:
    chosen = PRESETS["uneven"].settings
    assert meanwhile.drawing(Convergence(), chosen) is not None
    assert meanwhile.drawing(Convergence(), replace(chosen, measure="kkt")) is None
    assert meanwhile.drawing(Convergence(), replace(chosen, seed=1)) is None


def test_a_step_of_the_story_has_its_answer_only_after_the_guess() -> None:
    asked = PRESETS["story-2"].settings
    assert not asked.shown and meanwhile.posed(asked).shown
    assert asked not in meanwhile._names() and meanwhile.posed(asked) in meanwhile._names()


def test_the_parts_of_a_picture_come_back_as_they_were(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(meanwhile, "FOLDER", tmp_path)
    posters.keep(tmp_path / "uneven.json", [("convergence", part) for part in TOLD])
    found = meanwhile._held(tmp_path, PRESETS["uneven"].settings)["pictures"]
    assert found == {"convergence": TOLD}
    assert meanwhile.drawing(Frontier(), PRESETS["uneven"].settings) is None
