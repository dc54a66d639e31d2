"""The story: every step runs, and its sentence says what the tables of its run say."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from fedpca_core.__main__ import main
from fedpca_core.questions.catalogue import PRESETS, read_settings
from fedpca_core.questions.home.scene import LivePicture
from fedpca_core.questions.home.settings import STEPS, SceneSettings
from fedpca_core.questions.home.story import CHAPTERS, FAIR, NEAR, STORY, fair
from fedpca_core.settings import Settings
from fedpca_core.steps import outcome

STUDY = LivePicture()
_RUNS: dict[str, dict] = {}


def tables(key):
    """The tables of a step, run once."""
    if key not in _RUNS:
        settings = CHAPTERS[key].settings
        result = outcome(STUDY.run(settings))
        _RUNS[key] = STUDY.tables(result, settings)
    return _RUNS[key]


def ending(key):
    return tables(key)["story"]["ending"].iloc[0]


def off(sines):
    return np.degrees(np.arcsin(np.clip(sines, 0, 1)))


def test_the_first_step_counts_the_messages_until_the_answer_stays_near():
    rounds = tables("1")["rounds"]
    found = int(re.match(r"(\d+) messages", ending("1")).group(1))
    assert (off(rounds["sin_theta"][found:]) <= NEAR).all()
    assert off(rounds["sin_theta"][found - 1]) > NEAR
    sent = rounds["bytes_up"][found] / CHAPTERS["1"].settings.clients / 1e3
    assert f"{sent:.3g} kB from each client" in ending("1")


def test_the_second_names_the_message_that_tells_everything():
    rounds = tables("2")["rounds"]
    found = int(re.search(r"message (\d+) of 20", ending("2")).group(1))
    assert rounds["records_held"][found] == 30 and rounds["records_held"][found - 1] == 0
    assert rounds["directions_held"][found] >= 30 > rounds["directions_held"][found - 1]
    assert f"off by {off(rounds['sin_theta'][found]):.1f}°" in ending("2")


def test_an_ending_calls_a_client_by_its_name():
    settings = replace(CHAPTERS["2"].settings, clients=4, records_per_client=10.0, rounds=10)
    result = outcome(STUDY.run(settings))
    named = replace(result, facts=replace(result.facts, client_names=("a", "b", "c", "Dora")))
    story = STUDY.tables(named, settings)["story"]
    assert "of client 3 (Dora), exactly" in story["ending"].iloc[0]
    assert "of client 3 (Dora)?" in story["asked"].iloc[0]


def test_the_mask_holds_until_it_is_replayed():
    assert (tables("3")["rounds"]["records_held"] == 0).all()
    assert "none of the records" in ending("3") and "not been tried" in ending("3")
    replayed = tables("4")["rounds"]
    assert replayed["records_held"].iloc[-1] == CHAPTERS["4"].settings.records_per_client
    assert "give all 15 digits of client 3, exactly" in ending("4")
    # The very same messages: masking has changed nothing in the run.
    same = tables("3")["rounds"]["sin_theta"].to_numpy()
    np.testing.assert_array_equal(same, replayed["sin_theta"].to_numpy())


def test_the_replay_ends_as_often_as_its_step_says():
    held = {}
    for seed in range(6):
        settings = replace(CHAPTERS["4"].settings, seed=seed)
        rounds = STUDY.tables(outcome(STUDY.run(settings)), settings)["rounds"]
        held[seed] = int(rounds["records_held"].iloc[-1])
    assert "for five of the seeds 0 to 5" in CHAPTERS["4"].told
    assert sorted(held.values()) == [0, 15, 15, 15, 15, 15], held


def test_sums_hide_the_client_and_not_who_joins():
    sums, joined = tables("5")["rounds"], tables("6")["rounds"]
    assert (sums["records_held"] == 0).all()
    assert f"with {sums['directions_held'].iloc[-1]} directions of all 8 clients" in ending("5")
    found = int(re.search(r"After message (\d+)", ending("6")).group(1))
    assert joined["records_held"][found] == 8 and (joined["records_held"][:found] == 0).all()


def test_the_price_is_read_off_the_errors_at_every_budget():
    prices = tables("7")["prices"]
    assert list(prices["epsilon"]) == list(SceneSettings.parameters()["epsilon"].grid)
    good = fair(tables("7"))
    angles = off(prices["sin_theta"])
    assert (angles[prices["epsilon"] >= good] <= FAIR).all()
    assert angles[prices["epsilon"] < good].iloc[-1] > FAIR
    assert f"From ε = {good:g} on" in ending("7")
    assert f"ε = 0.1 it is off by {angles.iloc[0]:.1f}°" in ending("7")


@pytest.mark.parametrize("chapter", STORY, ids=STEPS)
def test_an_ending_is_true_of_another_run_too(chapter):
    """Nothing that the sentence states is written down: on another run it says something else."""
    settings = replace(
        chapter.settings, records_per_client=60.0, rounds=10, components=4, epsilon=float("inf")
    )
    settings = replace(settings, unmask=False, price=False)
    result = outcome(STUDY.run(settings))
    found = STUDY.tables(result, settings)
    if chapter.guess == "epsilon":
        assert "Switch on “Error at every ε”" in chapter.ending(found, settings)
        found["prices"] = tables("7")["prices"].assign(sin_theta=1.0)
        assert "No ε on offer" in chapter.ending(found, settings)
        return
    said = chapter.ending(found, settings)
    assert said != ending(chapter.key) or chapter.key == "3"
    if chapter.key not in ("1", "6"):
        assert (found["rounds"]["records_held"] == 0).all()
        assert "exactly" not in said


def test_a_step_names_everything_in_a_link_and_in_a_file(tmp_path, capsys):
    read = SceneSettings.from_query({"step": ["4"], "lecture": ["true"]}).configuration
    assert replace(read, lecture=False) == CHAPTERS["4"].settings and read.lecture
    changed = SceneSettings.from_query({"step": ["4"], "clients": ["6"]}).configuration
    assert changed.clients == 6 and changed.method == "ssi", "a link with settings is what it says"
    file = tmp_path / "step.json"
    file.write_text(json.dumps({"kind": "scene", "step": "5"}), encoding="utf-8")
    assert read_settings(file.read_text()) == CHAPTERS["5"].settings
    assert main(["run", str(file)]) == 0
    assert ending("5") in " ".join(capsys.readouterr().out.split())


def test_the_steps_are_presets_and_lead_somewhere():
    assert [f"story-{key}" for key in STEPS] == [n for n in PRESETS if n.startswith("story-")]
    for chapter in STORY:
        door = chapter.opens(chapter.settings)
        assert isinstance(door, Settings) and type(door) is not SceneSettings
        assert "{" not in chapter.filled(chapter.told + chapter.asked, chapter.settings)
