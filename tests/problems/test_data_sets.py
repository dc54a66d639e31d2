"""Public data sets: what comes along is whole and shipped; all else is found, or named."""

from __future__ import annotations

import hashlib
import re
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.problems import bundled
from fedpca_core.problems.data_sets import (
    DATA_SETS,
    DataSet,
    MissingData,
    data_folder,
    files_of,
    find,
    require_here,
)
from fedpca_core.problems.images import SOURCES, load_images
from fedpca_core.problems.table import heart_table
from fedpca_core.problems.traffic_table import SCHEMAS
from fedpca_core.study.world import PROBLEMS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(bundled.__path__[0])
BUNDLED = {name: sha for one in DATA_SETS.values() for name, sha in one.bundled.items()}


def comes_along(one: DataSet) -> bool:
    """Whether it is there wherever the laboratory is, at least as a sample."""
    return bool(one.bundled) or not one.files


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("name", BUNDLED)
def test_what_comes_along_is_what_the_notice_says(name):
    assert digest(FOLDER / name) == BUNDLED[name]
    notice = (FOLDER / "NOTICE.md").read_text(encoding="utf-8")
    section = notice.partition(f"## {name}:")[2].partition("\n## ")[0]
    assert f"- SHA-256: {BUNDLED[name]}\n" in section
    for said in ("Source", "Licence", "Citation", "Changes"):
        assert f"- {said}: " in section


def test_a_changed_file_would_be_found(tmp_path):
    changed = tmp_path / "iot23_authors.parquet"
    changed.write_bytes((FOLDER / changed.name).read_bytes() + b"\0")
    assert digest(changed) != BUNDLED[changed.name]


def test_nothing_else_comes_along_and_all_of_it_is_shipped():
    files = {path.name for path in FOLDER.iterdir() if path.name != "__pycache__"}
    assert files == {*BUNDLED, "NOTICE.md", "__init__.py"}
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = setup["package-data"]["*"]
    for name in files - {"__init__.py"}:
        assert any(fnmatch(name, pattern) for pattern in patterns), name


@pytest.mark.data("fashion_mnist")
def test_the_sample_is_the_one_that_the_notice_draws():
    everything = np.load(*files_of("fashion_mnist"))
    with np.load(FOLDER / "fashion_mnist_sample.npz") as sample:
        chosen = np.sort(np.random.default_rng(0).choice(10_000, 2_000, replace=False))
        for name in ("X_train", "y_train"):
            np.testing.assert_array_equal(sample[name], everything[name][chosen])


def test_every_set_that_settings_offer_is_registered_under_its_title():
    for key in (*SOURCES, *SCHEMAS):
        assert PROBLEMS[key].startswith(DATA_SETS[key].title)
    assert {"heart", "beijing"} == DATA_SETS.keys() - SOURCES.keys() - SCHEMAS.keys()


@pytest.mark.parametrize("one", DATA_SETS.values(), ids=lambda one: one.key)
def test_everything_a_reader_must_know_is_said(one):
    assert all((one.title, one.purpose, one.holds, one.licence, one.citation))
    assert one.page.startswith("https://")
    assert re.fullmatch("[a-z0-9-]+", one.name)
    assert comes_along(one) or one.originals
    if not comes_along(one):
        assert comes_along(DATA_SETS[one.instead])
    for original in one.originals:
        assert original.sha256 == "" or re.fullmatch("[0-9a-f]{64}", original.sha256)


def test_the_docs_name_every_address_and_say_which_were_not_tried():
    lines = (ROOT / "docs" / "data.md").read_text(encoding="utf-8").splitlines()
    for one in DATA_SETS.values():
        (line,) = [line for line in lines if line.startswith(f"| `{one.name}` |")][-1:]
        if not one.originals:
            assert "http" not in line
            continue
        for original in one.originals:
            given = re.search(r"(https?://\S+) \(not tried\)", line)
            assert given is not None, line
            assert original.address.startswith(given[1]) or (one.by_form and given[1] == one.page)


def test_a_bare_clone_has_images_traffic_and_a_table():
    assert {key for key in DATA_SETS if find(key)} == {"digits", "fashion_mnist", "iot23", "heart"}
    pixels, labels = load_images("fashion_mnist")
    assert pixels.shape == (2_000, 784) and set(labels) == set(range(10))
    assert heart_table().shape[1] == 25


def test_the_folder_is_the_users_unless_another_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert data_folder() == tmp_path / "federated-pca-laboratory"
    monkeypatch.setenv("FEDPCA_DATA", str(tmp_path / "other"))
    assert data_folder() == tmp_path / "other"
    assert data_folder(tmp_path) == tmp_path


def test_a_file_in_the_folder_comes_before_that_of_the_package(monkeypatch, tmp_path):
    found = find("heart")
    assert found is not None and found.bundled
    own = tmp_path / "heart_disease_by_hospital.csv"
    own.write_bytes(found.files[0].read_bytes())
    monkeypatch.setenv("FEDPCA_DATA", str(tmp_path))
    again = find("heart")
    assert again is not None and not again.bundled and again.files == (own,)


def test_half_of_a_data_set_is_none_of_it(tmp_path):
    (tmp_path / "unsw_nb15_test.parquet").touch()
    assert find("unsw", tmp_path) is None
    (tmp_path / "unsw_nb15_train_normal.parquet").touch()
    assert find("unsw", tmp_path) is not None


def test_missing_data_are_refused_by_name():
    require_here(["digits", "heart"])
    with pytest.raises(MissingData, match="“Beijing air, daily” is not on this machine: “py"):
        require_here(["heart", "beijing"])
    with pytest.raises(InvalidInput, match="no data set “moons”"):
        files_of("moons")
