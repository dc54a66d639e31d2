"""One client's records, read from where they lie and reduced batch by batch.

A folder, CSV, Parquet or NPY; one record a row everywhere. What stays in memory is one batch and
the smaller of S_i (features x features) and the records themselves, so a file may be larger than
the machine's memory: NPY is mapped, Parquet and CSV are read in batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems.client_data import LARGEST, ClientData
from fedpca_core.problems.records import clip

SUFFIXES = (".csv", ".parquet", ".npy")
#: Bytes of one batch of records.
BATCH_BYTES = 32 * 1024 * 1024
#: Rows of a Parquet or CSV batch, whose width is known only after the first one.
_ROWS = 4096


def read_moments(
    source: str | Path, columns: Sequence[str] = (), clip_norm: float | None = None
) -> ClientData:
    """The data of one client behind products with S_i, from its file or folder of files.

    Parameters
    ----------
    source : path
        A ``.csv``, ``.parquet`` or ``.npy`` file of one record a row, or a folder of such files,
        whose records are taken together.
    columns : sequence of str
        Features, in this order; empty: all columns. An NPY file has no names.
    clip_norm : float, optional
        Norm at which every record is clipped.

    Raises
    ------
    InvalidInput
        No such file, a column that is missing or not numeric, missing or infinite values, files of
        different width, no records.
    """
    kept: list[Array] = []
    total: Array | None = None
    rows, width = 0, 0
    for place, batch in _batches(Path(source), columns):
        values = _checked(place, batch)
        width = width or values.shape[1]
        require(
            values.shape[1] == width,
            f"{place} has {values.shape[1]} features and the records before it {width}; "
            "files of one client must have the same columns.",
        )
        # Contiguous by record, so that the two halves of a product read it once.
        records = values if clip_norm is None else clip(values.T, clip_norm).T
        rows += len(records)
        if total is None and 2 * rows < width:
            kept.append(np.array(records))
            continue
        if total is None:
            total = np.zeros((width, width))
            for earlier in kept:
                total += earlier.T @ earlier
            kept = []
        total += records.T @ records
    require(rows > 0, f"{source} holds no records; give the client data or leave it out.")
    samples = np.array([rows], dtype=np.int64)
    if total is not None:
        gram = 0.5 * (total + total.T) / rows
        return ClientData.from_grams(gram[None], samples)
    return ClientData.from_factors([np.concatenate(kept).T / np.sqrt(rows)])


def _batches(source: Path, columns: Sequence[str]) -> Iterator[tuple[Path, Array]]:
    """Records in batches, (rows, features), with the file they come from."""
    if source.is_dir():
        files = sorted(path for path in source.iterdir() if path.suffix.lower() in SUFFIXES)
        require(
            bool(files), f"The folder {source} holds no {', '.join(SUFFIXES)} file; put one there."
        )
        for path in files:
            yield from _batches(path, columns)
        return
    require(source.is_file(), f"There is no file {source}; give the path of the client's records.")
    suffix = source.suffix.lower()
    try:
        if suffix == ".npy":
            parts: Iterator[Array | pd.DataFrame] = _mapped(source, columns)
        elif suffix == ".csv":
            parts = _csv(source)
        elif suffix == ".parquet":
            parts = _parquet(source)
        else:
            raise InvalidInput(
                f"{source} is none of {', '.join(SUFFIXES)}; save the records as one of these."
            )
        for part in parts:
            yield source, part if isinstance(part, np.ndarray) else _numbers(source, part, columns)
    except InvalidInput:
        raise
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{source} cannot be read ({error}); save it anew.") from None


def _mapped(source: Path, columns: Sequence[str]) -> Iterator[Array]:
    require(
        not columns,
        f"The columns of {source} have no names, so none can be chosen; leave the choice out or "
        "save the records as CSV or Parquet.",
    )
    stored = np.load(source, mmap_mode="r", allow_pickle=False)
    require(
        stored.ndim == 2 and stored.dtype.kind in "fiub",
        f"{source} holds an array of shape {stored.shape} and type {stored.dtype}; "
        "it must be a numeric matrix of one record a row.",
    )
    step = max(1, BATCH_BYTES // (8 * max(1, stored.shape[1])))
    for begin in range(0, len(stored), step):
        yield np.asarray(stored[begin : begin + step], dtype=float)


def _csv(source: Path) -> Iterator[pd.DataFrame]:
    with pd.read_csv(source, chunksize=_ROWS) as reader:
        yield from reader


def _parquet(source: Path) -> Iterator[pd.DataFrame]:
    from pyarrow.parquet import ParquetFile

    with ParquetFile(source) as file:
        for batch in file.iter_batches(batch_size=_ROWS):
            yield batch.to_pandas()


def _numbers(source: Path, table: pd.DataFrame, columns: Sequence[str]) -> Array:
    chosen = list(columns) or [str(name) for name in table.columns]
    table = table.rename(columns=str)
    missing = [name for name in chosen if name not in table.columns]
    require(
        not missing,
        f"{source} has no column {', '.join(missing)}; it has {', '.join(table.columns)}.",
    )
    require(len(table) > 0, f"{source} holds no records; give the client data or leave it out.")
    words = [name for name in chosen if not pd.api.types.is_numeric_dtype(table[name])]
    require(
        not words,
        f"The columns {', '.join(words)} of {source} are not numeric; choose the features with "
        "“columns”.",
    )
    return table[chosen].to_numpy(dtype=float)


def _checked(place: Path, values: Array) -> Array:
    bad = int((~np.isfinite(values)).sum())
    require(bad == 0, f"{place} holds {bad} missing or infinite values; drop or impute them first.")
    size = float(np.abs(values).max(initial=0.0))
    require(
        size <= LARGEST,
        f"{place} holds values up to {size:.3g}, whose powers overflow; change their unit.",
    )
    return values
