"""Raw network traffic, and the project's Parquet copies of the public data sets."""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.errors import require, require_known
from fedpca_core.problems.data_sets import files_of, find
from fedpca_core.problems.traffic_schemas import SCHEMAS


@dataclass(frozen=True, eq=False)
class Traffic:
    """Raw traffic: normal records to train on, labelled records to test."""

    #: Data set's title.
    name: str
    feature_names: tuple[str, ...]
    #: (records, features) float64: Normal training records.
    normal: Array
    #: Feature by which records are sorted for the non-iid split.
    split_key: str
    #: (records, features) float64.
    test: Array
    #: (records,) bool: Labels of the test records.
    attack: np.ndarray
    #: (records,) object: Attack type as text, "normal" for normal records, "unlabelled" where
    #: nobody says.
    types: np.ndarray
    #: False where nobody knows which records are attacks: ``attack`` is then False throughout.
    labelled: bool = True
    #: Where the records come from and how they were split.
    note: str = ""
    #: (records,) object, optional: Whose normal training record each is, where the records say so.
    owners: np.ndarray | None = None
    #: What was decided by looking at the records, as in `Problem`.
    looked: str = ""

    def __post_init__(self) -> None:
        require(
            len(self.normal) >= 20,
            f"{self.name}: only {len(self.normal)} normal records remain to train on; "
            "at least 20 are needed.",
        )
        if not self.labelled:
            return
        attacks = int(self.attack.sum())
        for count, what in ((attacks, "attacks"), (len(self.attack) - attacks, "normal records")):
            require(
                count > 0,
                f"{self.name}: the test records hold no {what}, so nothing can be detected or "
                "missed; choose a file or a label column that tells both apart, or no labels.",
            )

    @property
    def attack_types(self) -> list[str]:
        """Types of attack among the test records, in alphabetical order."""
        return sorted({str(name) for name in self.types[self.attack]})


def available(folder: str | os.PathLike[str] | None = None) -> tuple[str, ...]:
    """Keys of the real data sets that can be read here; see `data_sets.data_folder`."""
    return tuple(key for key in SCHEMAS if find(key, folder) is not None)


def load(key: str, folder: str | os.PathLike[str] | None = None) -> Traffic:
    """Read one of the public data sets from its Parquet copy.

    ``key``, {"unsw", "ton", "nsl", "iot23"}.
    ``folder``: Where the files are; see `data_sets.data_folder`.

    Raises InvalidInput: unknown name; the files are not there.
    """
    require_known("set of traffic", key, SCHEMAS)
    schema = SCHEMAS[key]
    files = files_of(key, folder)
    # Rows of no split (duplicates, further attacks) are never read.
    kept: dict[str, list[tuple[str, str, Any]]] = {
        "unsw": [("paper_test", "==", True)],
        "ton": [("split", "in", ("train", "test"))],
    }
    tables = [
        pd.read_parquet(file, filters=kept.get(key) if file == files[-1] else None)
        for file in files
    ]
    if key == "unsw":
        training, test = tables
    else:
        split = tables[0]["split"].astype(str)
        training, test = tables[0][split.isin(("train", "train20"))], tables[0][split == "test"]
        if "label" in training:
            training = training[training["label"] == 0]
    attack, types = schema.labels(test)
    return Traffic(
        name=schema.title,
        feature_names=schema.feature_names,
        normal=schema.values(training, files[0].name),
        split_key=schema.split_key,
        test=schema.values(test, files[-1].name),
        attack=attack,
        types=types,
        note=schema.note,
    )
