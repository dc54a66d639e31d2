"""One client's records, read from where they lie and reduced batch by batch.

A folder, CSV, Parquet or NPY; one record a row everywhere. What stays in memory is one batch and
the smaller of S_i (features x features) and the records themselves, so a file may be larger than
the machine's memory: NPY is mapped, Parquet and CSV are read in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems.client_data import LARGEST, ClientData
from fedpca_core.problems.records import WholeMoments, clip, whole_moments
from fedpca_core.problems.table_columns import cell_numbers, listed

SUFFIXES = (".csv", ".parquet", ".npy")
#: Bytes of one batch of records.
BATCH_BYTES = 32 * 1024 * 1024
#: Most rows of a Parquet or CSV batch.
_ROWS = 4096
_NO_RECORDS = "{source} holds no records; give the client data or leave it out."


def read_moments(
    source: str | Path, columns: Sequence[str] = (), clip_norm: float | None = None
) -> ClientData:
    """The data of one client behind products with S_i, from its file or folder of files.

    ``columns``: Features, in this order; empty: all columns. An NPY file has no names.
    ``clip_norm``: Norm at which every record is clipped, for an epsilon: cells are then read one by
        one, as by `read_whole_moments`.
    """
    kept: list[Array] = []
    total: Array | None = None
    rows = 0
    private = clip_norm is not None
    for place, batch in _batches(Path(source), columns, cell_by_cell=private):
        # Contiguous by record, so that the two halves of a product read it once.
        records = _checked(place, batch) if clip_norm is None else clip(batch.T, clip_norm).T
        rows += len(records)
        kept.append(records)
        if total is None and 2 * rows >= records.shape[1]:
            total = np.zeros((records.shape[1], records.shape[1]))
        if total is not None:
            for one in kept:
                total += one.T @ one
            kept = []
    if total is None:
        return ClientData.from_factors([np.concatenate(kept).T / np.sqrt(rows)])
    gram = 0.5 * (total + total.T) / rows
    return ClientData.from_grams(gram[None], np.array([rows], dtype=np.int64))


def read_whole_moments(
    source: str | Path, columns: Sequence[str], clip_norm: float
) -> WholeMoments:
    """The moments of one client's records on a grid, for a release under an epsilon.

    Nothing is decided by looking at the records: the columns are named beforehand (but for an NPY
    file) and count as public, and each cell is read by itself (`cell_numbers`), so that no record
    changes what becomes of another.
    """
    batches = _batches(Path(source), columns, cell_by_cell=True)
    return whole_moments((batch for _, batch in batches), clip_norm)


@dataclass(frozen=True)
class Column:
    """What a file says of one feature; empty where it does not say it."""

    #: NPY files have none.
    name: str = ""
    #: "number" or "yes or no", from the type that the file declares; CSV files declare none.
    kind: str = ""
    #: From the field's metadata ``unit`` of a Parquet file. In a name it is part of the name.
    unit: str = ""

    def __str__(self) -> str:
        more = ", ".join(part for part in (self.kind, self.unit) if part)
        return f"“{self.name}”" + (f" ({more})" if more else "")


def first_difference(one: Sequence[Column], other: Sequence[Column]) -> int | None:
    """The first place, from 0, at which two lists of columns differ; None where they fit."""
    for place, (mine, others) in enumerate(zip(one, other, strict=False)):
        said = zip(astuple(mine), astuple(others), strict=True)
        if any(a and b and a != b for a, b in said):  # what one does not say cannot differ
            return place
    return None if len(one) == len(other) else min(len(one), len(other))


def read_columns(source: str | Path, columns: Sequence[str] = ()) -> tuple[Column, ...]:
    """The features in the order in which `read_moments` takes them, without reading a record."""
    files = _files(Path(source))
    first, *others = (_columns_of(path, columns) for path in files)
    for path, found in zip(files[1:], others, strict=True):
        at = first_difference(found, first)
        require(
            at is None,
            f"{path} differs from {files[0].name} in column {(at or 0) + 1}; files of one client "
            "must have the same columns in the same order.",
        )
    return first


def _files(source: Path) -> list[Path]:
    """The file itself, or those of a folder."""
    if not source.is_dir():
        return [source]
    files = sorted(path for path in source.iterdir() if path.suffix.lower() in SUFFIXES)
    require(bool(files), f"The folder {source} holds no {', '.join(SUFFIXES)} file; put one there.")
    return files


@contextmanager
def _readable(source: Path) -> Iterator[str]:
    """The kind of a file; what a reader raises is a sentence about the file."""
    require(source.is_file(), f"There is no file {source}; give the path of the client's records.")
    try:
        yield source.suffix.lower()
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{source} cannot be read ({error}); save it anew.") from None


def _chosen(source: Path, columns: Sequence[str], found: Sequence[str]) -> list[str]:
    missing = [name for name in columns if name not in found]
    require(not missing, f"{source} has no column {listed(missing)}; it has {listed(found)}.")
    return list(columns or found)


def _columns_of(source: Path, columns: Sequence[str]) -> tuple[Column, ...]:
    with _readable(source) as suffix:
        if suffix == ".npy":
            stored = np.load(source, mmap_mode="r", allow_pickle=False)
            kind = "yes or no" if stored.dtype.kind == "b" else "number"
            return (Column(kind=kind),) * (stored.shape[1] if stored.ndim == 2 else 0)
        if suffix == ".parquet":
            from pyarrow.parquet import read_schema

            schema = read_schema(source)
            index = (schema.pandas_metadata or {}).get("index_columns", [])
            found = {
                field.name: Column(
                    field.name,
                    "yes or no" if str(field.type) == "bool" else "number",
                    (field.metadata or {}).get(b"unit", b"").decode("utf-8", "replace"),
                )
                for field in schema
                if field.name not in index
            }
        else:
            found = {str(name): Column(str(name)) for name in pd.read_csv(source, nrows=0).columns}
    return tuple(found[name] for name in _chosen(source, columns, list(found)))


def _batches(
    source: Path, columns: Sequence[str], *, cell_by_cell: bool = False
) -> Iterator[tuple[Path, Array]]:
    """Records in batches, (rows, features), with the file they come from; at least one."""
    width: int | None = None
    for path in _files(source):
        for batch in _batches_of(path, columns, cell_by_cell):
            width = batch.shape[1] if width is None else width
            require(
                batch.shape[1] == width,
                f"{path} has {batch.shape[1]} features and the records before it {width}; "
                "files of one client must have the same columns.",
            )
            yield path, batch
    require(width is not None, _NO_RECORDS.format(source=source))


def _batches_of(source: Path, columns: Sequence[str], cell_by_cell: bool) -> Iterator[Array]:
    with _readable(source) as suffix:
        if suffix == ".npy":
            require(
                not columns,
                f"The columns of {source} have no names, so none can be chosen; leave the choice "
                "out or save the records as CSV or Parquet.",
            )
            stored = np.load(source, mmap_mode="r", allow_pickle=False)
            require(
                stored.ndim == 2 and stored.dtype.kind in "fiub",
                f"{source} holds an array of shape {stored.shape} and type {stored.dtype}; "
                "it must be a numeric matrix of one record a row.",
            )
            step = _fitting(stored.shape[1])
            for begin in range(0, len(stored), step):
                part = np.asarray(stored[begin : begin + step], dtype=float)
                # What `cell_numbers` does.
                yield np.where(np.abs(part) <= LARGEST, part, 0.0) if cell_by_cell else part
            return
        require(
            suffix in SUFFIXES,
            f"{source} is none of {', '.join(SUFFIXES)}; save the records as one of these.",
        )
        for table in _tables(source, cell_by_cell):
            yield _numbers(source, table, columns, cell_by_cell)


def _tables(source: Path, as_text: bool) -> Iterator[pd.DataFrame]:
    """A CSV or Parquet file in batches."""
    if source.suffix.lower() == ".csv":
        with source.open("rb") as file:
            rows = min(_ROWS, _fitting(file.readline().count(b",") + 1))
        # As text, or a column's type would depend on all of its cells.
        kind = str if as_text else None
        how: Any = {"dtype": kind, "keep_default_na": not as_text}
        with pd.read_csv(source, chunksize=rows, **how) as reader:
            yield from reader
        return
    from pyarrow.parquet import ParquetFile

    with ParquetFile(source) as file:
        for batch in file.iter_batches(min(_ROWS, _fitting(len(file.schema_arrow)))):
            yield batch.to_pandas()


def _fitting(width: int) -> int:
    """Records of a batch."""
    return max(1, BATCH_BYTES // (8 * max(1, width)))


def _numbers(
    source: Path, table: pd.DataFrame, columns: Sequence[str], cell_by_cell: bool
) -> Array:
    require(
        bool(columns) or not cell_by_cell,
        f"Finding the numeric columns of {source.name} would look at its records, which no ε "
        "covers; name them (--run-config 'columns=\"a,b,c\"').",
    )
    table = table.rename(columns=str)
    chosen = _chosen(source, columns, list(table.columns))
    require(len(table) > 0, _NO_RECORDS.format(source=source))
    if cell_by_cell:
        return np.column_stack([cell_numbers(table[name]) for name in chosen])
    # Of the types at once: to look at each of 100,000 columns takes as long as to read them.
    table = table[chosen]
    words = [str(name) for name, kind in table.dtypes.items() if not is_numeric_dtype(kind)]
    require(
        not words,
        f"The columns {listed(words)} of {source} are not numeric; choose the features with "
        "“columns”.",
    )
    return table.to_numpy(dtype=float)


def _checked(place: Path, values: Array) -> Array:
    bad = int((~np.isfinite(values)).sum())
    require(bad == 0, f"{place} holds {bad} missing or infinite values; drop or impute them first.")
    size = float(np.abs(values).max(initial=0.0))
    require(
        size <= LARGEST,
        f"{place} holds values up to {size:.3g}, whose powers overflow; change their unit.",
    )
    return values
