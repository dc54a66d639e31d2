"""Wheel and source archive: whole, with one version, and of use outside the clone."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import fedpca_core

ROOT = Path(__file__).resolve().parents[1]
VERSION = fedpca_core.__version__
USE = """
import numpy as np, fedpca_core as fp
from pathlib import Path
assert Path(fp.__file__).is_relative_to(Path.cwd()), fp.__file__
X = np.random.default_rng(0).integers(0, 9, size=(40, 6)).astype(float)
model = fp.FederatedPCA(2, rounds=5, random_state=0).fit(X, groups=np.arange(40) % 4)
print(len(model.leaks()), fp.problems.images("fashion_mnist", 3).clients)
"""


def run(*command: object, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A clone's files in a folder, so that building leaves nothing beside the sources."""
    clone, out = tmp_path_factory.mktemp("clone"), tmp_path_factory.mktemp("dist")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True, text=True,
    )  # fmt: skip
    wanted = ("fedpca_core/", "pyproject.toml", "README.md", "LICENSE")
    for name in filter(None, listing.stdout.split("\0")):
        if name.startswith(wanted) and (ROOT / name).is_file():
            target = clone / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    run("-m", "build", "--quiet", "--no-isolation", "--outdir", out, folder=clone)
    return out


def test_both_are_well_formed(built):
    run("-m", "twine", "check", "--strict", *sorted(built.iterdir()), folder=built)


def test_both_hold_the_data_and_the_notice(built):
    (wheel,), (archive,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert VERSION in wheel.name and VERSION in archive.name
    with tarfile.open(archive) as packed:
        inside = [
            {name.split("/", 1)[1] for name in packed.getnames() if "/" in name},
            set(zipfile.ZipFile(wheel).namelist()),
        ]
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "fedpca_core").rglob("*")
        if path.is_file() and path.suffix in (".py", ".csv", ".json", ".toml", ".npz", ".parquet")
    }
    for names in inside:
        assert sources <= names
        assert "fedpca_core/problems/bundled/NOTICE.md" in names


def test_it_is_of_use_outside_the_clone(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    run(
        "-m", "pip", "install", "--quiet", "--no-deps", "--target", tmp_path, wheel, folder=tmp_path
    )
    assert run("-c", USE, folder=tmp_path).split() == ["3", "3"]
    assert "uneven" in run("-m", "fedpca_core", "presets", folder=tmp_path)


def test_the_version_is_said_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert "version" not in project and project["dynamic"] == ["version"]
    assert f"version: {VERSION}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {VERSION}\n" in (ROOT / "CHANGELOG.md").read_text()
    flower = tomllib.loads((ROOT / "engines/flower/pyproject.toml").read_text())["project"]
    assert flower["version"] == VERSION
