"""A visitor's own table as traffic: any CSV, with a column of labels or without.

The public CSVs of the known data sets are recognised by their columns and read as their papers do;
of any other table the numeric columns are the features.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array, BoolArray, IntArray
from fedpca_core.errors import require
from fedpca_core.problems.client_data import LARGEST
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
from fedpca_core.problems.traffic_schemas import HEADERLESS, attacks_in, recognise
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
        by_schema = not label_column and schema is not None and schema.labelled(table)
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
