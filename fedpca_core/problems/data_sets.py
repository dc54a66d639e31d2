"""Every public data set of the laboratory: what it is for, whose it is, and where it is found here.

What comes with the package is always found. The others lie in the folder of data files, where the
command `COMMAND` puts them; nothing but that command ever asks for something over a network.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from fedpca_core.errors import InvalidInput, require_known
from fedpca_core.settings import said_in

#: The environment variable that names another folder of data files.
FOLDER_VARIABLE = "FEDPCA_DATA"
#: What lists the data sets and fetches them.
COMMAND = "python -m fedpca_core data"
#: Another folder of data files, where one is given.
Folder = str | os.PathLike[str] | None
_BUNDLED = "fedpca_core.problems.bundled"
#: The folder's name below the place where a system keeps a user's data.
_OURS = "federated-pca-laboratory"


@dataclass(frozen=True)
class Original:
    """One file as its publisher gives it out."""

    name: str
    #: Empty where the publisher gives it out through a page, a form or a login.
    address: str = ""
    #: Empty where none is known.
    sha256: str = ""
    megabytes: float = 0.0


@dataclass(frozen=True)
class DataSet:
    #: key, name, title: In settings and links; for the command; on screen.
    key: str
    name: str
    title: str
    #: What it is for here.
    purpose: str
    #: What is kept of it.
    holds: str
    licence: str
    citation: str
    #: The publisher's page about it.
    page: str
    #: As they are called in the folder of data files; none: another package brings the data.
    files: tuple[str, ...] = ()
    #: Files of the package that stand for them, by the checksums (SHA-256) of their content.
    bundled: Mapping[str, str] = field(default_factory=dict)
    #: What the bundled files hold, where that is less than the files in the folder.
    sample: str = ""
    originals: tuple[Original, ...] = ()
    #: Key of a data set that comes with the laboratory and serves the same purpose.
    instead: str = ""

    @property
    def by_form(self) -> bool:
        """Whether its publisher gives it out through a page, where no program can fetch it."""
        return bool(self.originals) and not all(one.address for one in self.originals)

    @property
    def megabytes(self) -> float:
        return sum(one.megabytes for one in self.originals)


@dataclass(frozen=True)
class DataFiles:
    """Where a data set lies: its files, and whether they are those of the package."""

    files: tuple[Path, ...]
    bundled: bool


class MissingData(InvalidInput):
    """A data set is not on this machine; ``key`` says which."""

    def __init__(self, key: str) -> None:
        one = DATA_SETS[key]
        instead = DATA_SETS.get(one.instead)
        otherwise = f", or choose {instead.title}, which is here" if instead else ""
        super().__init__(
            f"“{one.title}” is not on this machine: “{COMMAND} {one.name}” "
            f"{'says where to get it' if one.by_form else 'fetches it'}{otherwise}."
        )
        self.key = key


def _data_set(key: str, files: Iterable[str] = (), originals: Any = (), **more: Any) -> DataSet:
    made = tuple(Original(**each) for each in originals)
    return DataSet(key, files=tuple(files), originals=made, **more)


DATA_SETS: Mapping[str, DataSet] = {
    key: _data_set(key, **one) for key, one in said_in("problems/data_sets").items()
}


def data_folder(folder: Folder = None) -> Path:
    """The folder of data files: the one given, else the one FEDPCA_DATA names, else the user's."""
    named = os.environ.get(FOLDER_VARIABLE, "") if folder is None else os.fspath(folder)
    if named:
        return Path(named)
    from platformdirs import user_data_path

    return user_data_path(_OURS, appauthor=False)


def find(key: str, folder: Folder = None, *, whole: bool = False) -> DataFiles | None:
    """Where the files of a data set are: in the folder of data files, else in the package.

    A sample that comes along counts, unless the ``whole`` set is asked for.
    """
    require_known("data set", key, DATA_SETS)
    one = DATA_SETS[key]
    root = data_folder(folder)
    stored = tuple(root / name for name in one.files)
    if all(path.is_file() for path in stored):
        return DataFiles(stored, bundled=not stored)
    if one.bundled and not (whole and one.sample):
        package = Path(str(resources.files(_BUNDLED)))
        return DataFiles(tuple(package / name for name in one.bundled), bundled=True)
    return None


def require_here(keys: Iterable[str], *, whole: bool = False) -> None:
    """Raise `MissingData` before any work is done where a data set is missing, or a sample only."""
    for key in keys:
        files_of(key, whole=whole)


def files_of(key: str, folder: Folder = None, *, whole: bool = False) -> tuple[Path, ...]:
    """The files of a data set; `InvalidInput` of no such key, `MissingData` of none here."""
    found = find(key, folder, whole=whole)
    if found is None:
        raise MissingData(key)
    return found.files
