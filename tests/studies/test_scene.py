"""The live picture: one run, its costs, and what the server makes of the very same messages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dashboard.views import scene as drawn
from fedpca_core.algorithms.registry import COMPARED, METHODS
from fedpca_core.errors import InvalidInput
from fedpca_core.studies.scene.scene import LivePicture, Scene
from fedpca_core.studies.scene.settings import SceneSettings
from fedpca_core.studies.study import outcome

SMALL = SceneSettings(clients=4, records_per_client=12.0, components=6, rounds=10, client=1)
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
