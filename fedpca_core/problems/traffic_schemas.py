"""The four public intrusion data sets: which columns they have and what becomes of each.

A file is recognised by its columns alone. Features are numeric; categories become one column for
each known level, so that any release of a data set gives the same features.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib.resources import files

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.errors import InvalidInput, require

#: Fields of a schema that are lists of names in the file.
_LISTS = ("numeric", "label_columns", "type_columns", "flags")
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
        numbers = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=float, na_value=np.nan)
        for token, value in tokens.items():
            numbers[(texts == token).to_numpy(dtype=bool, na_value=False)] = value
        text = np.isnan(numbers) & ~(texts.isna() | (texts == "")).to_numpy(dtype=bool)
        text &= (texts.str.casefold() != "nan").to_numpy(dtype=bool, na_value=False)
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

    def labelled(self, table: pd.DataFrame) -> bool:
        """Whether a table holds one of the data set's columns of labels."""
        return not {*self.label_columns, *self.type_columns}.isdisjoint(table)

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


def _read() -> tuple[dict[str, Schema], tuple[str, ...]]:
    """What `traffic_schemas.toml` says, by key, and the columns of files without a header."""
    file = files("fedpca_core.problems").joinpath("traffic_schemas.toml")
    found: dict[str, Schema] = {}
    headerless: tuple[str, ...] = ()
    for key, one in tomllib.loads(file.read_text("utf-8")).items():
        headerless = tuple(one.pop("headerless", "").split()) or headerless
        one |= {name: tuple(one.get(name, "").split()) for name in _LISTS}
        levels = one.pop("categories", {}).items()
        one["categories"] = {column: tuple(words.split()) for column, words in levels}
        found[key] = Schema(key, **one)
    return found, headerless


#: HEADERLESS: columns of NSL-KDD's own files in order.
SCHEMAS, HEADERLESS = _read()


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
