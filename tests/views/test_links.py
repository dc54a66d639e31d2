"""What a page says and shows of the run that a link asks for.

What a reader needs a browser for, drawing, keyboard and addresses, is in tests/browser.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.player.encode import header
from dashboard.shell import jobs, limits, share
from fedpca_core.errors import InvalidInput
from fedpca_core.study.own_data import OwnData

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.usefixtures("patient", "two_seeds")
PRINTED = "FedPG, printed projection"
TRAFFIC = {"problem": "Synthetic traffic", "components": 6}
THEORY = {"clients": 4, "features": 3}
FEW = {"candidates": ["Block Krylov", "Centralised"]}


def opened(page: str, **query: object) -> AppTest:
    """A page as a link opens it."""
    app = AppTest.from_file(str(ROOT / "pages" / f"{page}.py"), default_timeout=120)
    app.query_params.update({key: str(value) for key, value in query.items()})
    return at_rest(app)


def at_rest(app: AppTest) -> AppTest:
    """The page, run until nothing computes any more."""
    app.run()
    assert not app.exception and not app.get("skeleton") and not app.get("progress")
    return app


def said(app: AppTest) -> str:
    """The words of a page, without the marks of bold."""
    parts = [*app.markdown, *app.info, *app.warning, *app.error, *app.success, *app.caption]
    return "\n".join(part.value for part in parts).replace("**", "")


def views(app: AppTest) -> dict[str, dict[str, Any]]:
    """The header of every view of a page, by its key."""
    found = [header(view.proto.bytes) for view in app.get("bidi_component")]
    return {view["key"]: view for view in found}


def panels(app: AppTest) -> list[str]:
    return [panel["key"] for view in views(app).values() for panel in view["panels"]]


def error_of(app: AppTest, method: str) -> float:
    """The error under the last picture that the server makes from a method."""
    images = [image for row in views(app)["attack_view"]["images"] for image in row]
    (made,) = (one for one in images if one["title"].endswith(f"reconstruction from {method}"))
    found = re.search(r"error ([0-9.e+-]+)", made["captions"][-1])
    assert found
    return float(found[1])


def distance_of(app: AppTest, method: str) -> float:
    """How far a method is from the subspace that it should learn, in its last round."""
    (view,) = (
        one.proto.bytes for one in app.get("bidi_component") if b"approach" in one.proto.bytes
    )
    about = header(view)
    (panel,) = (one for one in about["panels"] if one["key"] == "distance")
    (curve,) = (one for one in panel["curves"] if one["name"] == method)
    offset, count, kind = curve["y"]["block"]
    start = -(-(4 + int.from_bytes(view[:4], "little")) // 8) * 8
    return float(np.frombuffer(view, f"<{kind}", count, start + offset)[-1])


# ------------------------------------------------------------------ What leaks?
def test_under_secure_aggregation_the_server_reads_the_sums() -> None:
    app = opened("attack", secure="true")
    assert "shown is the adversary who reads the sums" in said(app)
    assert 0.1 < error_of(app, "SSI") < 1


@pytest.mark.parametrize(("colluders", "low", "high"), [(4, 0, 1e-8), (2, 0.05, 1)])
def test_collusion_undoes_secure_aggregation(colluders, low, high) -> None:
    told = "Sees sums, and some clients tell theirs"
    app = opened("attack", secure="true", attack=told, colluders=colluders)
    assert low < error_of(app, "SSI") < high


def test_an_unknown_client_is_a_sentence() -> None:
    app = opened("attack", client=50)
    assert "There is no client 50 among 5; choose an attacked client from 0 to 4." in said(app)
    app.slider(key="client").set_value(2)
    at_rest(app)
    assert "There is no client" not in said(app) and len(panels(app)) == 4


def test_methods_that_send_models_are_read_too() -> None:
    app = opened("attack", elsewhere="FedPG")
    assert panels(app).count("outside") == 1
    # IoT-23 has few enough features to be fitted whole.
    assert "the two fits differ by that record: a cosine of 1.0000 to the truth" in said(app)
    assert "personal_exposure" in views(opened("attack", elsewhere="Personalised PCA"))


# ------------------------------------------------------------------ What is proved?
def test_other_step_sizes_leave_no_theorem_but_our_bound() -> None:
    text = said(opened("theory", **THEORY, omega=2, penalty=0, rounds=400))
    assert "No theorem that holds speaks of this choice" in text
    assert "The run diverged" in text


def test_a_logistic_problem_works_too() -> None:
    app = opened("theory", **THEORY, rounds=50, problem="Logistic regression", method="ADMM")
    assert "Theorem 11: holds" in said(app)


# ------------------------------------------------------------------ What stands out?
def test_the_printed_rules_drift_and_the_corrected_do_not() -> None:
    link = {**TRAFFIC, "rounds": 300, "participation": 1, "clients": 20, "view": "Learning"}
    app = opened("anomaly", **link)
    assert distance_of(app, "FedPG, corrected") < 1e-6
    assert distance_of(app, PRINTED) > 0.1


def test_poisoning_shows_all_rules() -> None:
    link = {**TRAFFIC, "rounds": 100, "clients": 40, "view": "Poisoning"}
    text = said(opened("anomaly", **link))
    assert "1 of 40 clients lies from round 101 to 180" in text
    rates = re.search(r"still (\d\.\d+) with the plain mean; (\d\.\d+) \(reset", text)
    assert rates
    still, healed = map(float, rates.groups())
    assert healed > 0.95 > still


def test_the_server_reads_more_with_every_round() -> None:
    text = said(opened("anomaly", **TRAFFIC, rounds=200, view="Leaks"))
    outside = re.search(r"the part outside the model to ([\d.]+)%", text)
    assert outside and float(outside[1]) < 10
    assert "Fitting the whole covariance is shown for up to 12 features" in text


# ------------------------------------------------------------------ One model for all?
def test_sizes_that_do_not_fit_are_a_sentence() -> None:
    link = {"datasets": 1, "rounds": 50, "features": 10, "components": 12}
    told = "12 components do not fit 10 features; choose between 1 and 9 components."
    assert told in said(opened("personalise", **link))


@pytest.mark.parametrize(
    ("page", "asked", "fits"),
    [
        ("home", {"components": 10}, "Use 5 components"),
        ("converge", {"components": 9, "clients": 60}, "Use 40 clients and 5 components"),
        ("attack", {"components": 9}, "Use 5 components"),
        (
            "which",
            FEW | {"components": 9, "columns": list("abcdef"), "scaling": "Centre only"},
            "Use 5 components",
        ),
        ("privacy", {"components": 8, "columns": list("abcdef")}, "Use 5 components"),
        ("personalise", {}, "Use 40 clients and 5 components"),
    ],
)
def test_a_table_too_small_for_the_settings_has_a_way_out(page, asked, fits):
    values = np.random.default_rng(0).normal(size=(40, 7))
    values[:, 6] = 1  # a constant column is no feature
    csv = pd.DataFrame(values, columns=list("abcdefg")).to_csv(index=False)
    app = AppTest.from_file(str(ROOT / "pages" / f"{page}.py"), default_timeout=120)
    app.query_params.update({"problem": "Your own table"} | as_text(asked))
    app.session_state["_own_table"] = OwnData("own.csv", csv.encode())
    at_rest(app)
    (button,) = (one for one in app.button if one.key == "remedy_fitting")
    assert button.label == fits
    button.click()
    at_rest(app)
    components = next(box for box in app.slider if box.key == "components")
    assert f"{components.value} components" in fits, "the widget has it, not the run alone"
    assert not [one for one in app.button if one.key == "remedy_fitting"]
    assert "do not fit" not in said(app) and "more clients" not in said(app)


def as_text(asked: dict[str, Any]) -> dict[str, Any]:
    return {name: one if isinstance(one, list) else str(one) for name, one in asked.items()}


@pytest.mark.parametrize(
    ("page", "asked"),
    [
        ("converge", {"epsilon": 10, "scaling": "Centre only"}),
        ("privacy", {}),
        ("which", FEW | {"scaling": "Centre only"}),
        ("personalise", {"epsilon": 50, "scaling": "As they are", "clients": 4, "samples": 2}),
    ],
)
def test_a_table_under_an_epsilon_has_its_columns_named(page, asked):
    """In a sentence, with a button; then they stand beside ε as public."""
    values = np.random.default_rng(0).normal(size=(400, 5))
    csv = pd.DataFrame(values, columns=list("abcde")).to_csv(index=False)
    app = AppTest.from_file(str(ROOT / "pages" / f"{page}.py"), default_timeout=120)
    few = {"components": 2}
    app.query_params.update({"problem": "Your own table"} | as_text(few | asked))
    app.session_state["_own_table"] = OwnData("own.csv", csv.encode())
    at_rest(app)
    assert "at least 2 columns are named beforehand" in said(app)
    (button,) = (one for one in app.button if one.key == "remedy_columns")
    assert button.label == "Name the 5 numeric columns"
    button.click()
    at_rest(app)
    assert not [one for one in app.button if one.key == "remedy_columns"]
    assert "named beforehand" not in said(app)
    if page != "which":
        assert "the columns (a, b, c, d, e)" in said(app)
    assert app.query_params["columns"] == list("abcde")


def test_what_a_dial_asks_for_begins_before_the_widgets_are_drawn(monkeypatch):
    app = opened("home", clients=3, perclient=10, rounds=10, components=4)
    asked: list[object] = []
    submit = jobs.Registry.submit

    def heard(self: jobs.Registry, key: Any, *rest: Any, **options: Any) -> jobs.Job:
        asked.extend([key] * (key[0] == "scene"))
        return submit(self, key, *rest, **options)

    monkeypatch.setattr(jobs.Registry, "submit", heard)
    monkeypatch.setattr(jobs, "perhaps", lambda *_, **__: None)  # what may be asked for next
    at_rest(app)
    assert len(asked) == 1, "what was asked for already is asked for by the page alone"
    # Where no other widget hangs on it only the picture runs: nothing is drawn before it.
    turned = (("clients", 4, 1), ("heterogeneity", 0.5, 1), ("epsilon", 1.0, 2))
    for key, value, times in (*turned, ("epsilon", 2.0, 1), ("method", "local_power", 2)):
        at_rest(app)  # the tree of such a run has nothing but the picture
        asked.clear()
        boxes = [*app.slider, *app.select_slider, *app.selectbox, *app.segmented_control]
        next(box for box in boxes if box.key == key).set_value(value)
        at_rest(app)
        assert len(asked) == times and len(set(asked)) == 1, key


@pytest.mark.parametrize("page", ["home", "converge"])
def test_a_parameter_on_which_no_other_widget_hangs_runs_its_picture_alone(page, monkeypatch):
    small = {"home": {"perclient": 10, "components": 4}, "converge": {"features": 20, "starts": 1}}
    app = opened(page, clients=3, rounds=10, **small[page])
    taken: list[Any] = []
    for what in ("take_away", "offers"):  # the front page has a menu of its own around the offers
        monkeypatch.setattr(share, what, lambda settings, *_: taken.append(settings))
    before = views(app)
    app.session_state["share_front"] = True
    next(box for box in app.slider if box.key == "heterogeneity").set_value(0.5)
    at_rest(app)
    assert not app.slider and not app.selectbox, "no widget is drawn again"
    assert views(app) != before and {settings.heterogeneity for settings in taken} == {0.5}
    assert app.session_state["_parameters_of_the_world"]["heterogeneity"] == 0.5, "it travels"
    after = views(app)
    at_rest(app)
    assert app.slider and views(app) == after, "the whole page shows the same"
    # On others hang widgets: the whole page runs.
    next(box for box in app.select_slider if box.key == "epsilon").set_value(1.0)
    at_rest(app)
    assert app.slider and any(box.key == "delta" for box in app.select_slider)


def test_a_page_that_was_cut_short_runs_from_its_beginning():
    app = opened("converge", clients=3, rounds=10, features=20, starts=1)
    app.session_state["_page_converge"]["whole"] = False  # as a run leaves it that another ended
    next(box for box in app.slider if box.key == "heterogeneity").set_value(0.5)
    at_rest(app)
    assert app.slider, "its widgets are drawn too"


@pytest.mark.parametrize("page", ["personalise", "theory", "which", "attack"])
def test_a_reason_why_nothing_is_computed_is_given_once(page, monkeypatch):
    def refused(self: Any, *rest: Any) -> None:
        raise InvalidInput("This server has the day off; come back tomorrow.")

    monkeypatch.setattr(type(limits.LIMITS), "check", refused)
    app = opened(page)
    told = [warning.value for warning in app.warning]
    assert len([text for text in told if "the day off" in text.replace("\\", "")]) == 1, told
    assert any("for the reason given above" in caption.value for caption in app.caption)


def test_a_link_leads_to_one_row_of_a_paper() -> None:
    for filters in ({}, {"verdict": "out of scope"}):
        app = opened("papers", row="faps/table-1/ssi/rounds", **filters)
        box = app.selectbox(key="row")
        assert box.value == "faps/table-1/ssi/rounds"
        assert "Rounds that SSI needs." in said(app) and "Printed: 207." in said(app)
    # Those that are listed come first, after the way back.
    way_back, first, *_ = box.options
    assert way_back.startswith("Choose a row")
    box.set_value(first)
    assert "out of scope" in said(at_rest(app)) and "Printed: 207." not in said(app)


def test_a_dial_that_was_turned_on_another_page_says_nothing_of_this_one(monkeypatch):
    """It may have had a value there that is none here."""
    app = AppTest.from_file(str(ROOT / "pages" / "home.py"), default_timeout=60)
    app.query_params.update({"clients": "3", "perclient": "10", "rounds": "10"})
    app.session_state["_turned"] = "epsilon", 3.3
    app.session_state["_page_of_dials"] = "converge"
    at_rest(app)
    assert not app.exception and "_turned" not in app.session_state
