"""A run is asked for with the project's settings file, and messages are bare numbers."""

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

import fedpca_core as fp
from fedpca_core.algorithms.registry import COMPARED, METHODS
from fedpca_core.errors import InvalidInput
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_flower.job import FedJob
from fedpca_flower.records import opened, packed, payload


@pytest.mark.parametrize("method", COMPARED)
def test_a_settings_file_is_a_job(method, tmp_path):
    settings = ConvergeSettings(clients=7, components=3, participation=0.5, epsilon=2.0)
    path = tmp_path / "settings.json"
    path.write_text(settings.to_json())
    expected = FedJob.of({"settings": str(path), "method": method})
    assert expected == FedJob.of({"settings": settings.to_json(), "method": method})
    assert expected.algorithm == METHODS[method].make(settings)
    assert (expected.clients, expected.participation) == (7, 0.5)
    assert expected.budget == {"epsilon": 2.0, "delta": settings.delta, "clip": settings.clip_norm}
    assert FedJob.of({"settings": settings.to_json(), "method": method, "rounds": 3}).rounds == 3


def test_a_file_of_one_method_needs_no_other_word():
    text = ConvergeSettings(methods=("faps",)).to_json()
    assert isinstance(FedJob.of({"settings": text}).algorithm, fp.FAPS)
    with pytest.raises(InvalidInput, match="A run is of one method, not of ssi, faps"):
        FedJob.of({"settings": ConvergeSettings(methods=("ssi", "faps")).to_json()})
    with pytest.raises(InvalidInput, match="cannot be read where the server app runs"):
        FedJob.of({"settings": "nowhere.json", "method": "ssi"})


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.array(0.25),
        np.zeros((3, 0)),
        np.arange(4, dtype=np.uint64) << np.uint64(60),
        np.arange(6, dtype=np.float32).reshape(3, 2).T,
        np.array([True, False]),
    ],
    ids=lambda array: f"{array.dtype} {array.shape}",
)
def test_an_array_travels_as_its_bytes_and_nothing_more(array):
    content = packed({"round": 3, "extra": None}, up={"x": array}, down={})
    assert payload(content, "up") == array.nbytes
    assert payload(content, "down") == 0
    told, groups = opened(content)
    assert told == {"round": 3, "extra": None}
    assert set(groups) == {"up"}
    np.testing.assert_array_equal(groups["up"]["x"], array)
    assert groups["up"]["x"].dtype == array.dtype


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"clients": 1}, "at least 2 clients"),
        ({"rounds": 0}, "at least 1 round"),
        ({"weights": "all"}, "'records' or 'equal'"),
        ({"timeout": 0.0}, "are seconds"),
        ({"secure_bound": -1.0}, "must be positive"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(changes, words):
    with pytest.raises(InvalidInput, match=words):
        FedJob(**{"algorithm": fp.SSI(3), "clients": 3, **changes})


def test_a_public_reference_is_no_job_since_nobody_has_its_records():
    with pytest.raises(InvalidInput, match="let the server align"):
        FedJob(algorithm=fp.FedPower(2, public=True), clients=3)
