"""Reading network traffic: the project's Parquet copies, and the public CSVs users bring.

CSVs are read in pieces and at most `MAX_RECORDS` rows of each class are kept (drawn at random), so
memory stays bounded whatever the size of the file.
"""

from __future__ import annotations

import csv
import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems.traffic_schemas import HEADERLESS, SCHEMAS, Schema, recognise
from fedpca_core.streams import Streams

#: The largest CSV that is read, in bytes.
MAX_BYTES = 200 * 1024 * 1024
#: Rows of each class kept of a CSV.
MAX_RECORDS = 120_000
#: Rows read at a time.
_PIECE = 25_000
#: Share of the normal rows of a single CSV that the clients train on.
_TRAINING_SHARE = 0.6

_PARQUET = {
    "unsw": ("unsw_nb15_train_normal.parquet", "unsw_nb15_test.parquet"),
    "ton": ("ton_iot_network.parquet",),
    "nsl": ("nsl_kdd.parquet",),
    "iot23": ("iot23_authors.parquet",),
}

_NOTES = {
    "unsw": "The paper's split: 56,000 normal training flows of the official set, and 20,000 "
    "normal and 45,332 attack flows to test. 16 of the 39 training columns were recovered from a "
    "rounded copy (errors below 0.001 standard deviations).",
    "ton": "The standard release of 211,043 flows, duplicates removed: 31,940 normal flows to "
    "train, 10,000 normal and 56,557 attack flows to test, drawn at random. The paper used a "
    "larger release (114,956 to train) that is no longer to be had. Training and test flows come "
    "from the same captures, which is optimistic.",
    "nsl": "The normal records of the official 20% training set (13,449), tested on the official "
    "test set (9,711 normal, 12,833 attacks); 34 numeric columns.",
    "iot23": "The subset published by the paper's authors: 29,539 normal flows to train, 7,260 "
    "normal and 7,728 attack flows to test; 8 numeric columns.",
}


@dataclass(frozen=True, eq=False)
class Traffic:
    """Raw traffic: normal records to train on, labelled records to test.

    Attributes
    ----------
    name : str
        Data set's title.
    feature_names : tuple of str
    normal : (records, features) float64
        Normal training records.
    split_key : str
        Feature by which records are sorted for the non-iid split.
    test : (records, features) float64
    attack : (records,) bool
        Labels of the test records.
    types : (records,) object
        Attack type as text, "normal" for normal records.
    synthetic : bool
    note : str
        Where the records come from and how they were split.
    """

    name: str
    feature_names: tuple[str, ...]
    normal: Array
    split_key: str
    test: Array
    attack: np.ndarray
    types: np.ndarray
    synthetic: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        require(
            len(self.normal) >= 20,
            f"{self.name}: only {len(self.normal)} normal records remain to train on; "
            "at least 20 are needed.",
        )
        attacks = int(self.attack.sum())
        for count, what in ((attacks, "attacks"), (len(self.attack) - attacks, "normal records")):
            require(
                count > 0,
                f"{self.name}: the test records hold no {what}, so nothing can be detected or "
                "missed; choose a file that holds both normal records and attacks.",
            )


def available(folder: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """Keys of the real data sets that can be read from ``folder`` (default: FEDPCA_DATA)."""
    root = _folder(folder)
    if root is None:
        return ()
    return tuple(k for k, names in _PARQUET.items() if all((root / n).is_file() for n in names))


def load(key: str, folder: str | os.PathLike[str] | None = None) -> Traffic:
    """Read one of the public data sets from its Parquet copy.

    Parameters
    ----------
    key : {"unsw", "ton", "nsl", "iot23"}
    folder : path, optional
        Where the files are; the environment variable FEDPCA_DATA by default.

    Raises
    ------
    InvalidInput
        Unknown name; the files are not there.
    """
    require(
        key in SCHEMAS,
        f"There is no data set called {key!r}; choose one of {', '.join(SCHEMAS)}.",
    )
    schema = SCHEMAS[key]
    root = _folder(folder)
    require(
        root is not None and key in available(folder),
        f"{schema.title} was not found: FEDPCA_DATA must name a folder that holds "
        f"{' and '.join(_PARQUET[key])}; or upload the public CSV.",
    )
    assert root is not None
    # Rows of no split (duplicates, further attacks) are never read.
    kept: dict[str, list[tuple[str, str, Any]]] = {
        "unsw": [("paper_test", "==", True)],
        "ton": [("split", "in", ("train", "test"))],
    }
    tables = [
        pd.read_parquet(root / name, filters=kept.get(key) if name == _PARQUET[key][-1] else None)
        for name in _PARQUET[key]
    ]
    if key == "unsw":
        training, test = tables
    else:
        split = tables[0]["split"].astype(str)
        training, test = tables[0][split.isin(("train", "train20"))], tables[0][split == "test"]
        if "label" in training:
            training = training[training["label"] == 0]
    attack, types = schema.labels(test, _PARQUET[key][-1])
    return Traffic(
        name=schema.title,
        feature_names=schema.feature_names,
        normal=schema.values(training, 0, _PARQUET[key][0]),
        split_key=schema.split_key,
        test=schema.values(test, 0, _PARQUET[key][-1]),
        attack=attack,
        types=types,
        note=_NOTES[key],
    )


def _folder(folder: str | os.PathLike[str] | None) -> Path | None:
    name = os.environ.get("FEDPCA_DATA") if folder is None else folder
    return Path(name) if name else None


# ---------------------------------------------------------------------- CSV
@dataclass(frozen=True, eq=False)
class _Rows:
    """What was kept of one CSV."""

    schema: Schema
    values: Array
    attack: np.ndarray
    types: np.ndarray
    read: int
    left_out: int


def load_csv(
    training: str | os.PathLike[str] | BinaryIO,
    test: str | os.PathLike[str] | BinaryIO | None = None,
    *,
    seed: int = 0,
) -> Traffic:
    """Read the public CSV of a known data set, recognised by its columns.

    Parameters
    ----------
    training : path or binary file
        Labelled records; only the normal ones are trained on.
    test : path or binary file, optional
        Labelled records to test. Without it, 60% of the normal records of ``training`` train and
        everything else is tested.
    seed : int
        Draws that split, and the rows kept of a very long file.

    Raises
    ------
    InvalidInput
        Too large, not text, unknown columns, text in numbers, no labels, only one class.
    """
    first = _read(training, seed)
    title = first.schema.title
    if test is not None:
        second = _read(test, seed + 1)
        require(
            second.schema is first.schema,
            f"The training file is {title} but the test file is {second.schema.title}; "
            "choose two files of the same data set.",
        )
        return Traffic(
            name=title,
            feature_names=first.schema.feature_names,
            normal=first.values[~first.attack],
            split_key=first.schema.split_key,
            test=second.values,
            attack=second.attack,
            types=second.types,
            note=f"Your files. Training: {_story(first)} Test: {_story(second)}",
        )
    normal = np.flatnonzero(~first.attack)
    drawn = Streams(seed).generator("data", 2).permutation(normal)
    chosen = np.sort(drawn[: int(_TRAINING_SHARE * len(normal))])
    rest = np.setdiff1d(np.arange(len(first.attack)), chosen)
    return Traffic(
        name=title,
        feature_names=first.schema.feature_names,
        normal=first.values[chosen],
        split_key=first.schema.split_key,
        test=first.values[rest],
        attack=first.attack[rest],
        types=first.types[rest],
        note=f"Your file. {_story(first)} 60% of the normal records, drawn at random, train; "
        "everything else is tested.",
    )


def _story(rows: _Rows) -> str:
    text = f"{rows.read:,} records read"
    if rows.left_out:
        text += f", {rows.left_out:,} with empty or infinite cells left out"
    kept = len(rows.attack)
    if kept < rows.read - rows.left_out:
        text += f", {kept:,} kept (at most {MAX_RECORDS:,} of each class, drawn at random)"
    return text + "."


def _read(source: str | os.PathLike[str] | BinaryIO, seed: int) -> _Rows:
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        require(path.is_file(), f"There is no file {path.name}; check its name.")
        with path.open("rb") as file:
            return _read_file(file, path.name, seed)
    return _read_file(source, Path(getattr(source, "name", "the file")).name, seed)


def _read_file(file: BinaryIO, name: str, seed: int) -> _Rows:
    size = file.seek(0, io.SEEK_END)
    file.seek(0)
    require(size > 0, f"{name} is empty; choose a CSV file with a header.")
    require(
        size <= MAX_BYTES,
        f"{name} has {size / 2**20:,.0f} MB, more than the {MAX_BYTES // 2**20} MB that are read; "
        "choose a part of it.",
    )
    head = file.readline(1 << 20)
    file.seek(0)
    try:
        header = head.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InvalidInput(f"{name} is not a text file; choose a CSV file.") from None
    separator = max(",;\t|", key=header.count)
    columns = [cell.strip() for cell in next(csv.reader([header.strip()], delimiter=separator), [])]
    headerless = len(columns) in (41, 42, 43) and columns[1].casefold() in ("tcp", "udp", "icmp")
    names = list(HEADERLESS[: len(columns)]) if headerless else columns
    schema = recognise(names, name)
    spelled = {known.casefold(): known for known in schema.needed}
    labels = {known.casefold() for known in (*schema.label_columns, *schema.type_columns)}
    renamed = [spelled.get(given.casefold(), given.casefold()) for given in names]
    wanted = [c for c in dict.fromkeys(renamed) if c in schema.needed or c in labels]
    keepers = _Keepers(schema, Streams(seed).generator("data", 1))
    try:
        pieces = pd.read_csv(
            file,
            sep=separator,
            header=None,
            names=renamed,
            skiprows=0 if headerless else 1,
            usecols=wanted,
            chunksize=_PIECE,
            encoding="utf-8",
            low_memory=False,
        )
        for piece in pieces:
            keepers.add(piece, name)
    except InvalidInput:
        raise
    except UnicodeDecodeError:
        raise InvalidInput(
            f"{name} holds bytes that are not UTF-8 text; save it as UTF-8."
        ) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        detail = str(error).strip().rstrip(".").splitlines()[-1]
        raise InvalidInput(
            f"{name} could not be read as a table ({detail}); check that every line has the same "
            "number of cells."
        ) from None
    return keepers.finish(name)


class _Keepers:
    """A uniform sample of bounded size of each class, in the order of the file."""

    def __init__(self, schema: Schema, generator: np.random.Generator) -> None:
        self.schema = schema
        self.generator = generator
        self.read = 0
        self.left_out = 0
        self._kept: dict[bool, list[np.ndarray]] = {}

    def add(self, piece: pd.DataFrame, name: str) -> None:
        """Take in some rows."""
        values = self.schema.values(piece, self.read, name)
        attack, types = self.schema.labels(piece, name)
        finite = np.isfinite(values).all(axis=1)
        order = self.read + np.arange(len(piece))
        self.read += len(piece)
        self.left_out += int((~finite).sum())
        for kind in (False, True):
            rows = np.flatnonzero(finite & (attack == kind))
            fresh = [
                values[rows],
                types[rows],
                order[rows],
                self.generator.random(len(rows)),
            ]
            held = self._kept.get(kind)
            if held is not None:
                fresh = [np.concatenate(pair) for pair in zip(held, fresh, strict=True)]
            if len(fresh[3]) > MAX_RECORDS:
                # The rows with the smallest of independent uniform numbers are a uniform sample.
                best = np.sort(np.argpartition(fresh[3], MAX_RECORDS)[:MAX_RECORDS])
                fresh = [part[best] for part in fresh]
            self._kept[kind] = fresh

    def finish(self, name: str) -> _Rows:
        """Everything kept, in the order of the file."""
        require(self.read > 0, f"{name} holds a header but no records; choose a complete file.")
        require(
            self.read > self.left_out,
            f"Every record of {name} has an empty or infinite cell; fill or drop these columns.",
        )
        values, types, order, _ = (
            np.concatenate(pair) for pair in zip(self._kept[False], self._kept[True], strict=True)
        )
        attack = np.repeat([False, True], [len(self._kept[kind][2]) for kind in (False, True)])
        rank = np.argsort(order)
        return _Rows(self.schema, values[rank], attack[rank], types[rank], self.read, self.left_out)
