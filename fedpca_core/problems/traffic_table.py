"""Measured traffic: the public intrusion data sets, and a visitor's own table.

A file of a known data set is recognised by its columns alone and read as the paper does: features
are numeric; categories become one column for each known level, so that any release gives the same
features. Of any other table the numeric columns are the features.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.errors import InvalidInput, require, require_known
from fedpca_core.problems.client_data import LARGEST
from fedpca_core.problems.data_sets import Folder, files_of, find
from fedpca_core.problems.table import NAMED
from fedpca_core.problems.table_columns import (
    cell_numbers,
    client_name,
    distinctly_named,
    features,
    handled,
    listed,
)
from fedpca_core.problems.table_file import read_table
from fedpca_core.problems.traffic import Traffic
from fedpca_core.settings import said_in
from fedpca_core.streams import Streams

#: Rows of each class kept of a long file.
MAX_RECORDS = 120_000
#: What settings write where a table is to be read without labels.
NO_LABELS = "(none)"
#: Share of the normal rows that the clients train on.
_TRAINING_SHARE = 0.6
#: Columns that hold labels, whatever else is in a table; the first found counts.
_LABEL_NAMES = (
    *("label", "labels", "class", "attack", "target", "anomaly", "outlier", "is_attack"),
    *("is_anomaly", "malicious", "attack_cat", "attack_type", "detailed-label", "detailed_label"),
)
_LOOKED = "numeric columns were found and rows with empty cells left out by looking at the records"
#: Fields of a schema that are lists of names in the file.
_LISTS = ("numeric", "label_columns", "type_columns", "flags", "headerless")
_NORMAL_WORDS = ("normal", "benign", "0", "0.0", "false", "-")


def _distinct(cells: pd.Series) -> tuple[IntArray, list[str]]:
    """Codes of all cells and the few distinct texts they stand for."""
    codes, values = pd.factorize(cells, use_na_sentinel=False)
    return codes.astype(np.int64), [str(value).strip() for value in values]


@dataclass(frozen=True)
class Schema:
    """Columns of one data set."""

    #: key, title: Short name in configurations, and name on screen.
    key: str
    title: str
    #: Numeric features in order.
    numeric: tuple[str, ...]
    #: Feature by which the paper sorts records before cutting them into clients.
    split_key: str
    #: label_columns, type_columns: Where the label (normal or attack) and the attack's type stand;
    #: the first found counts.
    label_columns: tuple[str, ...]
    type_columns: tuple[str, ...]
    #: mapping of column to levels: One indicator feature for each level.
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Texts that stand for a number in any numeric column.
    tokens: Mapping[str, float] = field(default_factory=dict)
    #: Columns in which a dash means "does not apply" (-1) rather than 0.
    flags: tuple[str, ...] = ()
    #: Columns of its own files in order, where these have no header line.
    headerless: tuple[str, ...] = ()
    #: What is kept of the public data set, and how that differs from the paper's.
    note: str = ""

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        levels = ((column, level) for column, known in self.categories.items() for level in known)
        return (*self.numeric, *map("=".join, levels))

    @property
    def needed(self) -> tuple[str, ...]:
        """Columns without which a file is not recognised."""
        return (*self.numeric, *self.categories)

    def values(self, table: pd.DataFrame, file: str, *, strict: bool = True) -> Array:
        """All features of some rows; NaN where a cell is empty or, where not strict, holds text."""
        found = [self._numbers(table[column], column, file, strict) for column in self.numeric]
        for column, levels in self.categories.items():
            codes, texts = _distinct(table[column])
            known = np.array(["none" if text == "-" else text for text in texts], dtype=object)
            found += [(known == level)[codes] for level in levels]
        return np.column_stack(found).astype(float)

    def _numbers(self, cells: pd.Series, column: str, file: str, strict: bool) -> Array:
        if cells.dtype.kind in "fiub":
            return cells.to_numpy(dtype=float)
        texts = cells.astype("string").str.strip()
        tokens = {**self.tokens, "-": -1.0 if column in self.flags else 0.0}
        spelled = texts.replace({token: str(value) for token, value in tokens.items()})
        numbers = pd.to_numeric(spelled, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
        text = np.isnan(numbers) & ~texts.fillna("").str.casefold().isin(("", "nan")).to_numpy()
        if strict and text.any():
            row = int(np.flatnonzero(text)[0])
            raise InvalidInput(
                f"Column '{column}' of {file} holds text where numbers are expected "
                f"(“{str(texts.iloc[row])[:40]}” in record {row + 1}); "
                "correct or delete these records."
            )
        return numbers

    def spelled(self, table: pd.DataFrame) -> pd.DataFrame:
        """A table of this data set with its columns in the usual capitals."""
        usual = (*self.needed, *self.label_columns, *self.type_columns)
        names = {name.casefold(): name for name in usual}
        return table.set_axis([names.get(c.casefold(), c) for c in table.columns], axis=1)

    def labels(self, table: pd.DataFrame) -> tuple[BoolArray, np.ndarray]:
        """Whether each row is an attack, and its type as text ("normal" for normal rows)."""
        label = next((name for name in self.label_columns if name in table), None)
        type_ = next((name for name in self.type_columns if name in table), None)
        attack, types, _ = attacks_in(table[label or type_])
        if label is not None and type_ is not None:
            codes, words = _distinct(table[type_])
            types = np.array(words, dtype=object)[codes]
            types[~attack] = "normal"
        return attack, types


def attacks_in(
    labels: pd.Series, normal_value: str = "", *, guess: bool = False
) -> tuple[BoolArray, np.ndarray, str]:
    """Whether each label means an attack, its type as text, and how that was decided.

    ``normal_value``: The label of normal records; "" takes the words that usually stand for it.
    ``guess``: Whether the most frequent of several labels is taken, and said, where there is none
        of these words.
    """
    codes, words = _distinct(labels)
    said = ""
    # Zeek's labels read "Malicious   C&C": what follows the gap is the type.
    normal = [re.split(r"\s{2,}", word.casefold())[0] in _NORMAL_WORDS for word in words]
    if normal_value:
        require(
            normal_value in words,
            f"No record has the label “{normal_value}”; the labels are {', '.join(words[:8])}.",
        )
        normal = [word == normal_value for word in words]
    elif guess and not any(normal) and len(words) > 1:
        common = int(np.bincount(codes).argmax())
        normal = [code == common for code in range(len(words))]
        said = f"Its most frequent label, “{words[common]}”, counts as normal."
    attack: BoolArray = ~np.array(normal, dtype=bool)[codes]
    coded = all(word in ("0", "1", "0.0", "1.0", "True", "False") for word in words)
    types = np.where(attack, "attack" if coded else np.array(words, dtype=object)[codes], "normal")
    return attack, types.astype(object), said


def _schema(key: str, one: Mapping[str, Any]) -> Schema:
    lists = {name: tuple(one.get(name, "").split()) for name in _LISTS}
    levels = {column: tuple(words.split()) for column, words in one.get("categories", {}).items()}
    return Schema(key, **{**one, **lists, "categories": levels})


SCHEMAS = {key: _schema(key, one) for key, one in said_in("problems/traffic_schemas").items()}
#: Columns of NSL-KDD's own files in order.
HEADERLESS = SCHEMAS["nsl"].headerless


def recognise(columns: Iterable[str]) -> Schema | None:
    """The data set all of whose columns are there (upper and lower case are the same), if any."""
    present = {column.casefold() for column in columns}
    complete = [
        schema
        for schema in SCHEMAS.values()
        if {column.casefold() for column in schema.needed} <= present
    ]
    # The widest that fits: IoT-23's few columns may also stand in a wider table.
    return max(complete, key=lambda schema: len(schema.needed), default=None)


def available(folder: Folder = None) -> tuple[str, ...]:
    """Keys of the real data sets that can be read here; see `data_sets.data_folder`."""
    return tuple(key for key in SCHEMAS if find(key, folder) is not None)


def load(key: str, folder: Folder = None) -> Traffic:
    """Read a public data set from its Parquet copy; refused where it is not known or not here."""
    require_known("set of traffic", key, SCHEMAS)
    schema = SCHEMAS[key]
    files = files_of(key, folder)
    # Rows of no split (duplicates, further attacks) are never read.
    kept: dict[str, list[tuple[str, str, Any]]] = {
        "unsw": [("paper_test", "==", True)],
        "ton": [("split", "in", ("train", "test"))],
    }
    training = test = pd.read_parquet(files[-1], filters=kept.get(key))
    if len(files) > 1:
        training = pd.read_parquet(files[0])
    else:
        training = test[test["split"].isin(("train", "train20"))]
        test = test[test["split"] == "test"]
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


def read_traffic(
    content: bytes,
    name: str,
    *,
    label_column: str = "",
    normal_value: str = "",
    columns: Sequence[str] = (),
    client_column: str = "",
    missing: str = "drop",
    seed: int = 0,
    public_schema: bool = False,
) -> Traffic:
    """Read a CSV file; 60% of the normal records train, everything else is tested.

    ``label_column``: Says which records are attacks; "" looks for one by its name, `NO_LABELS`
        reads the table without: then every record counts as normal and nothing can be measured.
    ``normal_value``: The label that stands for normal; "" takes what usually does ("normal",
        "benign", 0, ...), else the most frequent value.
    ``columns``: The features; none given: all of a known data set, else every numeric column.
    ``client_column``: Says whose record it is; "" leaves the split to `prepare`.
    ``missing``, {"drop", "columns", "fill"}: What becomes of missing and infinite cells
        (`handled`); rows of a known data set are dropped.
    ``seed``: Draws that split, and the rows kept of a very long file.
    ``public_schema``: For an epsilon: the columns are those of a known data set or named, each cell
        is read by itself (`cell_numbers`), and no row is left out for what it holds. Labels are
        public.
    """
    first = content.split(b"\n", 1)[0].decode("utf-8", errors="replace").strip().split(",")
    if 41 <= len(first) <= len(HEADERLESS) and first[1].casefold() in ("tcp", "udp", "icmp"):
        # NSL-KDD's own files have no header line.
        content = ",".join(HEADERLESS[: len(first)]).encode() + b"\n" + content
    table = distinctly_named(read_table(content, name))
    schema = None if columns else recognise(table.columns)
    if schema is not None:
        # In these files a dash is a value ("does not apply"), not a gap.
        table = schema.spelled(distinctly_named(read_table(content, name, missing=())))
    read, known = len(table), [c for c in table.columns if c.casefold() in _LABEL_NAMES]
    if client_column:
        _check_named(table, [client_column], name)
        table = table[table[client_column].notna()]
    # Which records are attacks.
    if label_column == NO_LABELS:
        by_schema, label_column = False, ""
    else:
        told = () if schema is None else (*schema.label_columns, *schema.type_columns)
        by_schema = not label_column and any(column in table for column in told)
        if not label_column and not by_schema:
            label_column = min(known, key=lambda c: _LABEL_NAMES.index(c.casefold()), default="")
    story = []
    if by_schema:
        assert schema is not None
        attack, types = schema.labels(table)
    elif label_column:
        _check_named(table, [label_column], name)
        table = table[table[label_column].notna()]
        attack, types, said = attacks_in(table[label_column], normal_value, guess=True)
        story.append(said)
    else:
        attack = np.zeros(len(table), dtype=bool)
        types = np.full(len(table), "unlabelled", dtype=object)
        story.append("Nobody says which records are attacks, so all of them count as normal.")
    # What is measured of each.
    labels = {*known, label_column, client_column}
    if schema is not None:
        names, values = schema.feature_names, schema.values(table, name, strict=not public_schema)
    elif public_schema:
        names = tuple(column for column in columns if column not in labels)
        _check_named(table, names, name)
        require(len(names) >= 2, f"Under an ε {NAMED}; choose those of {name} under “Columns”.")
        values = np.column_stack([cell_numbers(table[column]) for column in names])
    else:
        names, values, said = _features(table, columns, labels, name, missing)
        story.append(said)
    if public_schema:
        story.append("A cell without a number counts as 0.")
        values = np.where(np.abs(values) <= LARGEST, values, 0.0)
    usable = np.flatnonzero(np.isfinite(values).all(axis=1))
    require(
        len(usable) > 0,
        f"Every record of {name} has an empty or infinite cell; fill or drop these columns.",
    )
    left = read - len(usable)
    gaps = f", {left:,} with empty or infinite cells left out" if left else ""
    kept = _thinned(usable, attack, Streams(seed).generator("data", 1))
    if len(kept) < len(usable):
        most = f"at most {MAX_RECORDS:,} of each class, drawn at random"
        story.append(f"{len(kept):,} are kept ({most}).")
    # Which of them train.
    normal = kept[~attack[kept]]
    drawn = Streams(seed).generator("data", 2).permutation(normal)
    chosen = np.sort(drawn[: int(_TRAINING_SHARE * len(normal))])
    rest = np.setdiff1d(kept, chosen)
    owners = None
    if client_column:
        owners = table[client_column].map(client_name).to_numpy(dtype=object)[chosen]
    labelled = by_schema or bool(label_column)
    said = " ".join(part for part in (f"{read:,} records read{gaps}.", *story) if part)
    return Traffic(
        name=name if schema is None else schema.title,
        feature_names=names,
        normal=values[chosen],
        split_key=names[0] if schema is None else schema.split_key,
        test=values[rest],
        attack=attack[rest],
        types=types[rest],
        labelled=labelled,
        owners=owners,
        looked="" if public_schema else _LOOKED,
        note=f"Your file. {said} 60% of the {'normal ' * labelled}records, drawn at random, "
        "train; everything else is tested.",
    )


def label_columns(table: pd.DataFrame) -> list[str]:
    """Columns of a table that could hold labels: few distinct values, each on several rows."""
    few = [str(c) for c in table.columns if 2 <= table[c].nunique() <= min(200, len(table) // 4)]
    likely = [c for c in few if c.casefold() in _LABEL_NAMES]
    return likely + [c for c in few if c not in likely]


def _check_named(table: pd.DataFrame, columns: Sequence[str], name: str) -> None:
    for column in columns:
        require(
            column in table,
            f"{name} has no column “{column}”; its columns are {listed(list(table.columns))}.",
        )


def _features(
    table: pd.DataFrame, columns: Sequence[str], labels: set[str], name: str, missing: str
) -> tuple[tuple[str, ...], Array, str]:
    """The numeric columns of a table that is none of the known data sets."""
    _check_named(table, columns, name)
    numbers, text = features(table, columns, labels)
    filled = [column for column in numbers if bool(numbers[column].notna().any())]
    count = np.arange(max(len(table), 2))  # one row numbers nothing
    numbering = [c for c in filled if np.array_equal(numbers[c] - numbers[c].iloc[0], count)]
    kept, gaps = handled(numbers[[name for name in filled if name not in numbering]], missing)
    require(
        kept.shape[1] >= 2,
        f"{name} has {kept.shape[1]} numeric column{'s' if kept.shape[1] != 1 else ''} besides its "
        "labels, but at least 2 features are needed; choose other columns or another file.",
    )
    left_out = [column for column in table.columns if column in {*text, *numbering}]
    left_out += [str(column) for column in numbers if column not in filled]
    story = f"Left out, not numeric or mere row numbers: {listed(left_out)}." if left_out else ""
    return tuple(kept.columns), kept.to_numpy(), " ".join(part for part in (gaps, story) if part)


def _thinned(rows: IntArray, attack: BoolArray, generator: np.random.Generator) -> IntArray:
    """At most `MAX_RECORDS` of each class, drawn at random, in the order of the file."""
    kept = []
    for kind in (False, True):
        found = rows[attack[rows] == kind]
        if len(found) > MAX_RECORDS:
            found = generator.choice(found, MAX_RECORDS, replace=False)
        kept.append(found)
    return np.sort(np.concatenate(kept))
