"""What every dial of the front page does over its range, with all else as it is."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from fedpca_core.algorithms.registry import COMPARED
from fedpca_core.questions.home.dials import COARSE, DIALS, DialCurves, NextSteps, at, onward
from fedpca_core.questions.home.scene import LivePicture
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.questions.home.story import degrees
from fedpca_core.steps import outcome

STUDY = DialCurves()
SMALL = SceneSettings(clients=4, records_per_client=12.0, resolution=4, components=3, rounds=10)


def test_every_dial_changes_the_page_as_it_opens_on_at_least_one_side():
    found = outcome(STUDY.run(SceneSettings()))
    assert set(found["dial"]) == set(DIALS)
    # More than rounding, in what is learnt or in what leaks.
    spread = found.groupby(["dial", "method"])[["answer", "attack"]].agg(np.ptp)
    assert (spread.max(axis=1).groupby("dial").max() > 1.0).all(), spread


@pytest.mark.parametrize(("left", "right"), [*combinations(COMPARED, 2)])
def test_a_dial_is_disabled_where_neither_side_uses_it_and_says_why(left, right):
    pair = SceneSettings(method=left, versus=right)
    alone = [{*pair.side(method).idle()} & {*DIALS} for method in (left, right)]
    assert {*pair.idle()} & {*DIALS} == alone[0] & alone[1]
    assert all(pair.idle()[name].endswith(".") for name in alone[0] & alone[1])


def test_what_is_idle_has_no_curve_and_what_one_side_ignores_is_flat_on_it():
    found = outcome(STUDY.run(SMALL))
    flat = found[(found["dial"] == "penalty_factor") & (found["method"] == "ssi")]
    assert flat["answer"].nunique() == flat["attack"].nunique() == 1
    found = outcome(STUDY.run(replace(SMALL, versus="local_power")))
    assert "penalty_factor" not in set(found["dial"])


def test_a_point_is_what_the_picture_shows_there():
    found = outcome(STUDY.run(SMALL))
    row = found[(found["dial"] == "epsilon") & (found["method"] == "faps")].iloc[1]
    scene = outcome(LivePicture().run(replace(SMALL, epsilon=row["value"])))
    assert row["answer"] == degrees(scene.other.sines[-1])
    assert row["attack"] == degrees(scene.other.held_error[-1])
    # And the dial as it is set is among them.
    assert 4.0 in found.loc[found["dial"] == "clients", "value"].tolist()


def test_outlines_of_all_dials_come_first():
    steps = []
    outcome(STUDY.run(SMALL), lambda step: steps.append(step.result) or True)
    shown = [one for one in steps if one is not None]
    assert set(shown[0]["dial"]) == {DIALS[0]}
    first = shown[len(DIALS) - 1]
    many = first.groupby(["dial", "method"]).size()
    assert {name for name, _ in many.index} == {*DIALS} and (many <= COARSE + 1).all()


@pytest.mark.parametrize("name", DIALS)
def test_a_place_is_that_of_a_value_of_the_dial(name):
    dial = SceneSettings.parameters()[name]
    for place in np.linspace(0.0, 1.0, 9):
        there, value = at(dial, float(place))
        assert dial.check(value) == value and at(dial, there) == (there, value)
    assert at(dial, 0.0)[0] == 0.0 and at(dial, 1.0)[0] == 1.0


@pytest.mark.parametrize("method", ["ssi", "local_power"])
def test_one_step_on_a_dial_is_computed_before_it_is_asked_for(method):
    here, steps = SceneSettings(method=method, participation=0.5), NextSteps()
    known = {steps.piece_identity(here, piece, None) for piece in steps.pieces(here)}
    picture, described = LivePicture(), SceneSettings.parameters()
    for name in set(DIALS) - {*here.idle()}:
        dial = described[name]
        steps_of = len(dial.grid) - 1 if dial.grid else round((dial.high - dial.low) / dial.step)
        values = [at(dial, k / steps_of)[1] for k in range(steps_of + 1)]
        now = values.index(getattr(here, name))
        for value in values[max(now - 1, 0) : now] + values[now + 1 : now + 2]:
            turned = replace(here, **{name: value})
            for side in picture.pieces(turned):
                same = side in picture.pieces(here)  # what one side makes no use of
                assert same or picture.piece_identity(turned, side, None) in known, (name, value)


def test_a_dial_that_was_turned_is_turned_on_as_far_up_to_its_end():
    here = SceneSettings(heterogeneity=0.1, participation=0.9, clients=40)
    further = onward(here, "heterogeneity", 0.05)
    assert further is not None and further == replace(here, heterogeneity=0.15)
    back = onward(here, "participation", 1.0)
    assert back is not None and back.participation == 0.8
    assert onward(here, "clients", 39) is None and onward(here, "method", "ssi") is None
