"""A visitor's own table as traffic: any CSV, with a column of labels or without.

The public CSVs of the known data sets are recognised by their columns and read as their papers do;
of any other table the numeric columns are the features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array, BoolArray
from fedpca_core.errors import require
from fedpca_core.problems.client_data import LARGEST
from fedpca_core.problems.table_cleaning import (
    NAMED,
    cell_numbers,
    client_name,
    distinctly_named,
)
from fedpca_core.problems.table_columns import features, handled, listed
from fedpca_core.problems.table_file import read_table
from fedpca_core.problems.traffic_files import Traffic
from fedpca_core.problems.traffic_schemas import HEADERLESS, Schema, attacks_in, recognise
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


@dataclass(frozen=True, eq=False)
class _Rows:
    """What is usable of a table, and how it was understood."""

    names: tuple[str, ...]
    split_key: str
    values: Array
    attack: BoolArray
    types: np.ndarray
    labelled: bool
    story: str
    owners: np.ndarray | None = None

    def only(self, chosen: np.ndarray, story: str) -> _Rows:
        """Some of the rows."""
        return replace(
            self,
            values=self.values[chosen],
            attack=self.attack[chosen],
            types=self.types[chosen],
            story=self.story + story,
            owners=None if self.owners is None else self.owners[chosen],
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

    ``name``: The file's name, for sentences.
    ``label_column``: The column that says which records are attacks; "" looks for one by its name,
        `NO_LABELS` reads the table without: then every record counts as normal and nothing can be
        measured.
    ``normal_value``: The value of that column that stands for normal; "" takes what usually does
        ("normal", "benign", 0, ...), else the most frequent value.
    ``columns``: The features; none given: all of a known data set, else every numeric column.
    ``client_column``: The column that says whose record it is; "" leaves the split to `prepare`.
    ``missing``, {"drop", "columns", "fill"}: What becomes of missing and infinite cells
        (`handled`); rows of a known data set are dropped.
    ``seed``: Draws that split, and the rows kept of a very long file.
    ``public_schema``: For an epsilon: the columns are those of a known data set or named, each cell
        is read by itself (`cell_numbers`), and no row is left out for what it holds. Labels are
        public.

    Raises InvalidInput: not a table, unknown columns, text in numbers, too few usable rows, only
    one class.
    """
    content = _with_header(content)
    table = distinctly_named(read_table(content, name))
    schema = None if columns else recognise(table.columns)
    if schema is not None:
        # In these files a dash is a value ("does not apply"), not a gap.
        table = schema.spelled(distinctly_named(read_table(content, name, missing=())))
    rows = _usable(
        table, schema, columns, label_column, normal_value, client_column, name, public_schema,
        missing,
    )  # fmt: skip
    rows = _thinned(rows, Streams(seed).generator("data", 1))
    normal = np.flatnonzero(~rows.attack)
    drawn = Streams(seed).generator("data", 2).permutation(normal)
    chosen = np.sort(drawn[: int(_TRAINING_SHARE * len(normal))])
    rest = np.setdiff1d(np.arange(len(rows.attack)), chosen)
    trained = "normal records" if rows.labelled else "records"
    return Traffic(
        name=name if schema is None else schema.title,
        feature_names=rows.names,
        normal=rows.values[chosen],
        split_key=rows.split_key,
        test=rows.values[rest],
        attack=rows.attack[rest],
        types=rows.types[rest],
        labelled=rows.labelled,
        owners=None if rows.owners is None else rows.owners[chosen],
        looked="" if public_schema else _LOOKED,
        note=f"Your file. {rows.story} 60% of the {trained}, drawn at random, train; everything "
        "else is tested.",
    )


def label_columns(table: pd.DataFrame) -> list[str]:
    """Columns of a table that could hold labels: few distinct values, each on several rows."""
    few = [str(c) for c in table.columns if 2 <= table[c].nunique() <= min(200, len(table) // 4)]
    likely = [c for c in few if c.casefold() in _LABEL_NAMES]
    return likely + [c for c in few if c not in likely]


def _with_header(content: bytes) -> bytes:
    """NSL-KDD's own files have no header line; give them one."""
    first = content.split(b"\n", 1)[0].decode("utf-8", errors="replace").strip().split(",")
    if 41 <= len(first) <= len(HEADERLESS) and first[1].casefold() in ("tcp", "udp", "icmp"):
        return ",".join(HEADERLESS[: len(first)]).encode() + b"\n" + content
    return content


def _usable(
    table: pd.DataFrame,
    schema: Schema | None,
    columns: Sequence[str],
    label_column: str,
    normal_value: str,
    client_column: str,
    name: str,
    public_schema: bool,
    missing: str,
) -> _Rows:
    known = [column for column in table.columns if column.casefold() in _LABEL_NAMES]
    read = len(table)
    if label_column == NO_LABELS:
        label_column, known_label = "", False
    else:
        known_label = not label_column and schema is not None and schema.labelled(table)
        if not label_column and not known_label:
            label_column = min(
                known, key=lambda column: _LABEL_NAMES.index(column.casefold()), default=""
            )
    story = []
    if client_column:
        _check_named(table, [client_column], name)
        table = table[table[client_column].notna()]
    if known_label:
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
    labels = {*known, label_column, client_column}
    if schema is not None:
        names, values = schema.feature_names, schema.values(table, name, strict=not public_schema)
    elif public_schema:
        names, values = _named_features(table, [c for c in columns if c not in labels], name)
    else:
        names, values, said = _features(table, columns, labels, name, missing)
        story.append(said)
    if public_schema:
        story.append("A cell without a number counts as 0.")
        values = np.where(np.abs(values) <= LARGEST, values, 0.0)
    finite = np.isfinite(values).all(axis=1)
    require(
        bool(finite.any()),
        f"Every record of {name} has an empty or infinite cell; fill or drop these columns.",
    )
    left = read - int(finite.sum())
    gaps = f", {left:,} with empty or infinite cells left out" if left else ""
    whole = _Rows(
        names,
        names[0] if schema is None else schema.split_key,
        values,
        attack,
        types,
        known_label or bool(label_column),
        " ".join(part for part in (f"{read:,} records read{gaps}.", *story) if part),
        table[client_column].map(client_name).to_numpy(dtype=object) if client_column else None,
    )
    return whole.only(np.flatnonzero(finite), "")


def _check_named(table: pd.DataFrame, columns: Sequence[str], name: str) -> None:
    for column in columns:
        require(
            column in table,
            f"{name} has no column “{column}”; its columns are {listed(list(table.columns))}.",
        )


def _named_features(
    table: pd.DataFrame, columns: Sequence[str], name: str
) -> tuple[tuple[str, ...], Array]:
    """The columns that were named, each cell read by itself."""
    _check_named(table, columns, name)
    require(
        len(columns) >= 2,
        f"Under an ε {NAMED}; choose those of {name} under “Columns”.",
    )
    return tuple(columns), np.column_stack([cell_numbers(table[column]) for column in columns])


def _features(
    table: pd.DataFrame, columns: Sequence[str], labels: set[str], name: str, missing: str
) -> tuple[tuple[str, ...], Array, str]:
    """The numeric columns of a table that is none of the known data sets."""
    _check_named(table, columns, name)
    numbers, text = features(table, columns, labels)
    filled = [column for column in numbers if bool(numbers[column].notna().any())]
    count = np.arange(len(table))
    numbering = [
        column
        for column in filled
        if len(table) > 1 and np.array_equal(numbers[column] - numbers[column].iloc[0], count)
    ]
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


def _thinned(rows: _Rows, generator: np.random.Generator) -> _Rows:
    """At most `MAX_RECORDS` of each class, drawn at random, in the order of the file."""
    kept = []
    for kind in (False, True):
        found = np.flatnonzero(rows.attack == kind)
        if len(found) > MAX_RECORDS:
            found = generator.choice(found, MAX_RECORDS, replace=False)
        kept.append(found)
    chosen = np.sort(np.concatenate(kept))
    if len(chosen) == len(rows.attack):
        return rows
    return rows.only(
        chosen,
        f" {len(chosen):,} are kept (at most {MAX_RECORDS:,} of each class, drawn at random).",
    )
