"""The live picture: one run, its costs, and what the server makes of the very same messages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from dashboard.views import scene as drawn
from fedpca_core.algorithms.registry import COMPARED, METHODS
from fedpca_core.errors import InvalidInput
from fedpca_core.findings import Status
from fedpca_core.questions.attack.records import pictures
from fedpca_core.questions.home.scene import LivePicture, Scene, _sine, outcome_of, stored
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.steps import outcome
from fedpca_core.study.build import build_problem
from fedpca_core.study.own_data import NoFile, OwnData

DUEL = SceneSettings(clients=4, records_per_client=12.0, components=6, rounds=10, client=1)
SMALL = DUEL.side("ssi")
STUDY = LivePicture()


def found(**changes: object) -> Scene:
    result = outcome(STUDY.run(replace(SMALL, **changes)))  # type: ignore[arg-type]
    assert result is not None
    return result


def test_after_a_few_messages_the_server_has_every_record_exactly():
    scene = found()
    assert scene.certified == 2, "12 records are known after two messages of 6 columns"
    assert np.abs(scene.pictures[scene.certified] - scene.truth).max() < 1e-9
    assert np.abs(scene.pictures[1] - scene.truth).max() > 0.1
    assert list(scene.directions[:3]) == [0, 6, 12]
    words = [drawn.sentence(scene, SMALL, k) for k in range(scene.rounds + 1)]
    assert words[0].startswith("Nothing has been sent yet")
    assert "the server has all 12 digits of client 1, exactly" in words[2]
    assert "exactly" not in words[1]


def test_two_methods_run_on_the_same_problem_and_each_is_what_it_is_alone():
    duel = outcome(STUDY.run(DUEL))
    plain, masked = found(), found(method="faps")
    for one, alone in ((duel, plain), (duel.other, masked)):
        pd.testing.assert_frame_equal(
            one.metrics.drop(columns="seconds", errors="ignore"),
            alone.metrics.drop(columns="seconds", errors="ignore"),
        )
        np.testing.assert_array_equal(one.pictures, alone.pictures)
        assert one.findings == alone.findings
    np.testing.assert_array_equal(duel.truth, duel.other.truth)
    tables = STUDY.tables(duel, DUEL)
    assert list(tables) == ["rounds", "rounds_against"]
    assert list(tables["rounds_against"]["held_error"]) == list(masked.held_error)


def test_a_side_is_known_when_what_it_makes_no_use_of_is_turned():
    def sides(**changes):
        pieces = STUDY.pieces(replace(DUEL, **changes))
        return [STUDY.identity(piece) for piece in pieces]

    before = sides()
    for changes, same in (
        ({"penalty_factor": 0.3}, [True, False]),
        ({"unmask": True}, [True, False]),
        ({"versus": "local_power"}, [True, False]),
        ({"method": "local_power"}, [False, True]),
        ({"seed": 5}, [False, False]),
        ({"price": True}, [False, True]),
    ):
        now = zip(before, sides(**changes), strict=True)
        assert [one == other for one, other in now] == same, changes


@pytest.mark.parametrize("changes", [{"versus": "off"}, {"method": "faps"}, {"versus": "ssi"}])
def test_one_method_alone_is_one_picture(changes):
    assert STUDY.pieces(replace(DUEL, **changes)) == ()
    assert outcome(STUDY.run(replace(DUEL, **changes))).other is None


def test_links_of_steps_show_one_method_as_they_always_did():
    for link in ({"step": ["2"]}, {"step": ["2"], "clients": ["9"]}):
        assert SceneSettings.from_query(link).configuration.opponent is None
    assert SceneSettings.from_query({"clients": ["9"]}).configuration.opponent == "faps"


def test_the_answer_is_the_same_picture_for_methods_that_agree():
    settings = replace(DUEL, rounds=100, versus="block_krylov", components=3)
    duel = outcome(STUDY.run(settings))
    assert duel.metrics["sin_theta"].iloc[-1] < 1e-3
    for one, other in (
        (duel.components, duel.other.components),
        (duel.places, duel.other.places),
    ):
        assert np.abs(one[-1] - other[-1]).max() < 0.02
    assert duel.places.shape == (101, 48, 2)
    assert list(np.bincount(duel.owners)) == [12] * 4
    # The first direction is the one along which the records spread most.
    spread = (duel.places[-1] ** 2).sum(axis=0)
    assert spread[0] >= spread[1]


def test_a_client_alone_is_further_off_than_all_together():
    """What a federation is for; the picture says both."""
    duel = outcome(STUDY.run(DUEL))
    problem = build_problem(DUEL)
    one, all_ = (
        np.linalg.eigh(records @ records.T)[1][:, -DUEL.components :]
        for records in (problem.blocks[DUEL.client], np.hstack(problem.blocks))
    )
    cosine = np.linalg.svd(one.T @ all_)[1].min()
    assert duel.alone == pytest.approx(np.sqrt(1 - cosine**2), abs=1e-7)
    assert duel.sines[-1] < 0.5 * duel.alone


def test_what_is_sent_is_on_show():
    duel = outcome(STUDY.run(DUEL))
    assert duel.message_shape == (64, 6)
    assert duel.message.shape == (11, 6, 8, 8)
    assert np.ptp(duel.message[0]) == 0 < np.ptp(duel.message[1])
    assert np.abs(duel.message[1] - duel.other.message[1]).max() > 0.1
    said = [drawn.held(one, DUEL, 5)[2] for one in (duel, duel.other)]
    assert said[0] == "Has all 12 since message 2: no other whole pixels fit."
    assert said[1] == "No digits read. Harder attack not tried."


def test_the_attack_s_error_falls_with_plain_products_and_not_with_masked_ones():
    plain, masked = found(), found(method="faps")
    assert plain.held_error[0] == masked.held_error[0] == 1.0
    assert plain.held_error[1] > 0.1 and plain.held_error[2] < 1e-6
    assert masked.held_error.min() > 0.3
    released = found(epsilon=10.0, clip_norm=4.0)
    assert released.held_error.min() > 0.3, "noise at the source is measured against the records"
    assert list(STUDY.tables(plain, SMALL)["rounds"]["held_error"]) == list(plain.held_error)


def test_a_table_of_one_s_own_has_its_picture():
    rows = np.random.default_rng(0).integers(0, 50, (40, 9)) / 10
    table = pd.DataFrame(rows, columns=list("abcdefghi"))
    table["owner"] = ["x"] * 3 + ["y"] * 7 + ["z"] * 30
    own = OwnData("own.csv", table.to_csv(index=False).encode())
    settings = replace(SMALL, problem="table", client_column="owner", components=3)
    scene = outcome(STUDY.run(settings, own))
    assert scene is not None
    assert scene.thumbnails.shape == (3, 4, 3, 3), "a client of three rows has a grey fourth"
    assert scene.certified == 3 and scene.records == 7
    last = drawn.sentence(scene, settings, scene.rounds)
    assert "has all 7 rows of client 1 (y), exactly" in last
    assert drawn._stage(scene, settings).names == ["x", "y", "z"]
    with pytest.raises(InvalidInput, match="no client 3 among 3"):
        outcome(STUDY.run(replace(settings, client=3), own))
    with pytest.raises(NoFile, match="under “Your file”"):
        outcome(STUDY.run(settings))


@pytest.mark.parametrize(
    "changes",
    [
        {"secure_aggregation": True},
        {"method": "faps"},
        {"epsilon": 10.0, "clip_norm": 4.0},
        {"upload_noise": 1e-2},
        {"method": "one_shot"},
    ],
)
def test_what_keeps_the_records_keeps_them(changes):
    scene = found(**changes)
    assert scene.certified is None
    assert all(
        "exactly" not in drawn.sentence(scene, replace(SMALL, **changes), k)
        for k in range(scene.rounds + 1)
    )


@pytest.mark.parametrize("method", list(COMPARED))
@pytest.mark.parametrize("secure", [False, True])
def test_every_method_has_a_picture_or_a_sentence(method, secure):
    if secure and METHODS[method].needs_individual_uploads:
        with pytest.raises(InvalidInput, match="switch secure aggregation off"):
            found(method=method, secure_aggregation=True)
        return
    scene = found(method=method, secure_aggregation=secure, penalty_factor=1.0)
    assert scene.pictures.shape == (scene.rounds + 1, 12, 8, 8)
    assert np.ptp(scene.pictures[-1]) > 0.1
    assert np.isfinite(scene.metrics["sin_theta"]).all()


def test_an_angle_has_no_size():
    factor, private = np.random.default_rng(0).normal(size=(2, 6, 3))
    angle = _sine(factor, private)
    with np.errstate(over="raise"):
        assert _sine(1e200 * factor, 1e-200 * private) == pytest.approx(angle, rel=1e-9)
    assert _sine(0 * factor, private) == 1.0 and 0.1 < angle < 1


def test_participation_is_on_the_stage_and_delays_the_server():
    scene = found(participation=0.5, rounds=20)
    assert (scene.present[1:].sum(axis=1) == 2).all() and not scene.present[0].any()
    assert scene.certified is not None and scene.certified > 2


def test_a_guarantee_stands_beside_noise():
    scene = found(epsilon=10.0, clip_norm=4.0)
    assert scene.facts.guarantee is not None and scene.facts.guarantee.private
    assert drawn._protection(scene, replace(SMALL, epsilon=10.0))[0] == "noise"


GRID = [
    {"method": method, "secure_aggregation": secure, **changes}
    for method in ("ssi", "faps", "local_power")
    for secure in (False, True)
    for changes in (
        {"heterogeneity": 1.0},
        {"epsilon": 1.0},
        {"participation": 0.5, "absent": "present"},
        {"joined": 3},
        {"records_per_client": 60.0, "clients": 2},
        {"clients": 2, "client": 3},
    )
]


@pytest.mark.parametrize("changes", GRID, ids=str)
def test_every_combination_leaves_a_picture_or_a_sentence(changes):
    settings = replace(SMALL, **changes)
    try:
        scene = outcome(STUDY.run(settings))
    except InvalidInput as refusal:
        assert len(str(refusal)) > 30 and str(refusal).endswith(".")
        return
    assert scene is not None
    assert scene.pictures.shape[:2] == (scene.rounds + 1, len(scene.truth))
    assert np.ptp(scene.truth) > 0.1
    words = [drawn.sentence(scene, settings, k) for k in range(scene.rounds + 1)]
    assert all(word.endswith(".") for word in words)
    if np.ptp(scene.pictures[-1]) <= 0.1:
        assert "directions" in words[-1] or "not sent" in words[-1]


def test_masked_messages_are_not_said_to_hold_nothing():
    """The replay certifies every record from these very messages; untried, it is said to be so."""
    changes = {"method": "faps", "clients": 3, "records_per_client": 8.0, "components": 8}
    settings = replace(SMALL, **changes)
    masked = outcome(STUDY.run(settings))
    last = [drawn.sentence(masked, settings, masked.rounds), drawn._server(masked, settings, 5)]
    assert all("harder attack not tried" in text for text in last)
    assert not any("nothing" in text for text in last)
    steps = [step.result for step in STUDY.run(replace(settings, unmask=True))]
    waiting = [step for step in steps if step is not None]
    assert waiting, "the masked messages are shown while the replay runs"
    before = drawn.sentence(waiting[0], settings, masked.rounds)
    assert "not tried" in before
    found = outcome(STUDY.run(replace(settings, unmask=True)))
    assert found.certified == found.rounds
    assert "has all 8 digits" in drawn.sentence(found, settings, found.rounds)


REPLAYED = SceneSettings(unmask=True).side("faps")


def test_the_stored_replay_is_shown_while_it_runs_anew():
    """Of the front page's own settings, and of no others."""
    run = STUDY.run(REPLAYED)
    early = next(step.result for step in run if step.result is not None)
    run.close()
    assert early.earlier and early.certified == REPLAYED.rounds
    np.testing.assert_array_equal(early.pictures[-1], early.truth)
    assert early.findings[-1][1].status is Status.OPEN
    assert early.findings[1][1].status is Status.NOT_TRIED, "what a search has not read is not open"
    said = drawn.held(early, REPLAYED, REPLAYED.rounds)[2]
    assert "all 30, exactly, since message 20, by replay of the update" in said
    assert "stored" in said
    other = STUDY.run(replace(REPLAYED, seed=1))
    early = next(step.result for step in other if step.result is not None)
    other.close()
    assert not early.earlier and early.certified is None


def test_the_stored_replay_is_what_a_fresh_run_finds():
    fresh = outcome(STUDY.run(REPLAYED))
    assert not fresh.earlier
    now, kept = outcome_of(fresh, REPLAYED), stored()
    assert kept.settings == now.settings, "write it anew: python -m scripts.replayed"
    assert (now.round, now.levels) == (kept.round, kept.levels)
    for one, other in zip(now.findings, kept.findings, strict=True):
        assert (one.status, one.attack, one.figure) == (other.status, other.attack, other.figure)


@pytest.mark.parametrize("kind", ["eigenvectors", "skew", "rotated", "repeated", "nothing"])
def test_columns_at_right_angles_are_the_same_pictures_as_their_decomposition(kind):
    square = np.random.default_rng(5).standard_normal((16, 16))
    values, vectors = np.linalg.eigh(square + square.T)
    order = np.argsort(-np.abs(values))
    factor = vectors[:, order] * np.sqrt(np.abs(values[order]))
    if kind == "skew":
        factor = square[:, :5]
    elif kind == "rotated":  # right angles, the smallest first
        factor = factor[:, ::-1]
    elif kind == "repeated":
        factor[:, 9:] = 0.0
    elif kind == "nothing":
        factor[:] = 0.0
    left, sizes, _ = np.linalg.svd(factor, full_matrices=False)
    shown = pictures.eigen_tiles(factor, 12, (4, 4))
    kept = int((sizes[:12] > 1e-9 * sizes[0]).sum())
    expected = pictures.column_tiles(left[:, :kept], (4, 4))
    # Of either sign: black for white.
    differs = np.minimum(np.abs(shown[:kept] - expected), np.abs(1 - shown[:kept] - expected))
    assert differs.max(initial=0.0) < 1e-10
    np.testing.assert_array_equal(shown[kept:], 0.5)
