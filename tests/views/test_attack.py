"""What the Attack page says and draws of its studies, and where its links lead."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.shell import presets
from dashboard.shell.controls import packed
from fedpca_core.papers.faps import PRESETS, preset
from fedpca_core.questions.attack.differencing import OneMoreRecord
from fedpca_core.questions.attack.figures import covariance, records
from fedpca_core.questions.attack.reconstruction import ClientReconstruction
from fedpca_core.questions.attack.records.study import ClientRecords
from fedpca_core.questions.attack.replay import DEFENCES, ReplayAttack
from fedpca_core.settings import Settings
from fedpca_core.steps import outcome
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings

ROOT = Path(__file__).resolve().parents[2]
SMALL = AttackSettings(features=10, components=2, samples=40, rounds=10)


def run(study, **changes):
    return outcome(study.run(replace(SMALL, **changes)))


def opened(page: str, settings: Settings) -> AppTest:
    """A page as a link from Home opens it, whose widgets share many names."""
    app = AppTest.from_file(str(ROOT / "dashboard" / "main.py"), default_timeout=60).run()
    for name, value in packed(settings).items():
        app.query_params[name] = value
    app.switch_page(f"../pages/{page}.py").run()
    assert not app.exception
    return app


def test_the_verdict_says_what_was_learned_and_when() -> None:
    words = covariance.verdict(run(ClientReconstruction()))
    assert "From **SSI**, the client's covariance: has it: relative error below 1e-6" in words
    assert "Whole after round 5" in words
    assert "not tried" in words and "replay of the update" in words
    sums = covariance.verdict(run(ClientReconstruction(), secure_aggregation=True))
    assert "relative error" in sums and "replay" not in sums


def test_the_note_of_figure_1_names_the_round_of_its_run() -> None:
    entry = preset("figure-1a")
    found = outcome(ClientReconstruction().run(entry.configuration()))
    (stated,) = re.findall(r"after round (\d+)", entry.point)
    words = covariance.verdict(found)
    assert f"Whole after round {stated}," in words


def test_panels_mark_what_needs_the_truth() -> None:
    found = run(ClientReconstruction(), starts=3)
    errors, progress, angles = covariance.panels(found, AttackSettings(starts=3))
    assert errors.simulation_only and progress.simulation_only and angles.simulation_only
    one = errors.curves[0]
    assert (one.lower <= one.y).all() and (one.y <= one.upper).all()
    assert [mark.simulation_only for mark in errors.baselines][-1]


def test_the_replay_says_how_it_knows() -> None:
    found = run(ReplayAttack())
    words = covariance.replay_said(found)
    assert "and the residual tells it so" in words and "from one start" in words
    assert covariance.fit_panel(found).baselines[0].value == found.attack.tolerance
    short = covariance.replay_said(run(ReplayAttack(), random_inner_steps=True, budget=100))
    assert "tells it that the fit is not exact" in short and "also knows" not in short
    assert set(covariance._ENDED) == {"sums", "products", "explained", "noise", "starts", "budget"}
    assert "None" in DEFENCES


def test_one_more_record_in_words() -> None:
    words = records.joined_said(run(OneMoreRecord(), rounds=20, record=3))
    assert "From **SSI** the server has the record that joined" in words and "knows it" in words
    assert "From **FAPS** the server cannot be sure" in words and "sums only" not in words
    sums = run(OneMoreRecord(), rounds=20, record=3, secure_aggregation=True, attacked=("ssi",))
    assert "hide whose record" in records.joined_said(sums)


def test_sums_are_not_called_the_client() -> None:
    small = replace(SMALL, problem="digits", attacked=("ssi",), records_per_client=6, clients=3)
    for secure, whose in ((False, "the client"), (True, "the sum of all clients")):
        settings = replace(small, secure_aggregation=secure)
        found = outcome(ClientRecords().run(settings))
        assert records.panel(found, settings).title == f"How much of {whose} the server holds"


# ------------------------------------------------------------------ presets and links
@pytest.mark.parametrize("entry", PRESETS, ids=lambda entry: entry.name)
def test_a_preset_is_recognised_whatever_is_shown_of_it(entry) -> None:
    for value in entry.values or (None,):
        chosen = entry.configuration(value)
        match = presets.found(replace(chosen, measure="kkt", accuracy=1e-3))
        if entry.name == "default":
            assert match is None
        else:
            assert match is not None and match[0] is entry and match[1] == value


@pytest.mark.parametrize(
    "name", ["vary-features", "vary-components", "rates", "one-shot", "one-more-record"]
)
def test_a_card_opens_its_page_with_its_own_note(name: str) -> None:
    entry = preset(name)
    page = "attack" if isinstance(entry.settings, AttackSettings) else "converge"
    app = opened(page, entry.configuration())
    notes = [text.value for text in app.markdown if text.value.startswith(f"**{entry.title}.**")]
    assert len(notes) == 1


@pytest.mark.parametrize(
    ("page", "label", "start", "end"),
    [
        (
            "converge",
            "Attack this run",
            ConvergeSettings(rounds=50, features=20, starts=1, heterogeneity=0.2),
            AttackSettings,
        ),
        (
            "attack",
            "Compare the costs of this run",
            AttackSettings(rounds=20, features=20, samples=200, participation=0.5),
            ConvergeSettings,
        ),
    ],
)
def test_a_door_leads_to_the_same_run(page, label, start, end) -> None:
    app = opened(page, start)
    door = next(link for link in app.get("page_link") if link.proto.label == label)
    (link,) = parse_qs(door.proto.query_string)["settings"]
    there = end.from_query(parse_qs(link, keep_blank_values=True)).configuration
    assert there == start.carried(end)
    shared = set(start.parameters()) & set(end.parameters()) - {"methods", "attacked"}
    differing = {name for name in shared if getattr(there, name) != getattr(start, name)}
    assert differing == set()


def test_secure_aggregation_leaves_something_on_the_page() -> None:
    app = opened("attack", replace(SMALL, secure_aggregation=True, replay=True))
    said = " ".join(box.value for box in app.info)
    assert "the adversary who reads the sums" in said
    assert "no single upload to replay" in said
    card = next(text.value for text in app.markdown if "**Gets:**" in text.value)
    assert "error" in card and "sum of the uploads" in card and "above" not in card


def test_a_method_that_ends_early_keeps_its_last_pictures() -> None:
    settings = replace(
        SMALL, problem="digits", attacked=("ssi", "block_krylov"), rounds=20, differencing=True
    )
    for study, drawn in (
        (ClientRecords(), lambda found: records.rows(found, settings, 20)),
        (ClientReconstruction(), covariance.rows),
        (OneMoreRecord(), lambda found: records.joined_rows(found, 20)),
    ):
        images = [image for row in drawn(outcome(study.run(settings))) for image in row]
        assert {len(image.frames) for image in images} == {1, 21}
        assert {len(image.captions) for image in images} <= {1, 21}


def test_what_is_sent_once_is_drawn_whatever_its_shape() -> None:
    sent = ("centralized", "one_shot_stacked", "one_shot")
    settings = replace(SMALL, problem="digits", attacked=("ssi",), once=sent)

    def captions(**changes) -> dict[str, list[str]]:
        changed = replace(settings, **changes)
        drawn = records.rows(outcome(ClientRecords().run(changed)), changed, 10)
        return {row[0].title.removesuffix(": received"): list(row[0].captions) for row in drawn}

    said = captions()
    assert said["Centralised"][1].endswith("the first 60 of its 64 columns as pictures")
    assert said["One-shot"][1].endswith("client 0: its columns as pictures")
    assert said["SSI"][0] == "nothing yet"
    assert "nothing in this round" in captions(participation=0.4)["SSI"]
    assert "a sum over clients" in captions(secure_aggregation=True)["Centralised"][1]
