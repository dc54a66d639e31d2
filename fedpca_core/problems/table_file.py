"""A visitor's file as a table, whatever its kind: how large it is at a glance, and what it holds.

CSV in its dialects, Parquet, and NumPy's .npy and .npz; never a pickle.
"""

import io
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import pandas as pd

from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems import array_file
from fedpca_core.problems.array_file import SPOILED, ArrayHeader
from fedpca_core.problems.csv_file import MISSING, read_csv
from fedpca_core.problems.table_columns import plain

#: How the names of such files end.
SUFFIXES = ("csv", "tsv", "txt", "parquet", "npy", "npz")
_SEPARATORS = (b",", b";", b"\t", b"|")
#: More columns take a quarter of a minute to be read, and no page or command analyses so many.
MOST_COLUMNS = 20_000


def shape(content: bytes, name: str) -> tuple[int, int]:
    """Rows and columns that a file promises, from its header and its line ends alone.

    Raises InvalidInput: the header is broken.
    """
    if content.startswith(b"PAR1"):
        about = _parquet(content, name).metadata
        return about.num_rows, about.num_columns
    if _is_numpy(content):
        with _numpy(content, name) as file:
            rows, columns = _header(file, name).shape
            return rows, columns
    head = content[: content.find(b"\n") + 1 or None]
    return content.count(b"\n") + 1, 1 + max(head.count(separator) for separator in _SEPARATORS)


def read_table(content: bytes, name: str, missing: Sequence[str] = MISSING) -> pd.DataFrame:
    """The table in a file.

    ``name``: What to call the file in messages.
    ``missing``: Texts of a CSV file that stand for a missing value besides those pandas knows.

    Raises InvalidInput: not a table of a kind that is read, too wide for one, or nothing in it.
    """
    columns = shape(content, name)[1]
    require(
        columns <= MOST_COLUMNS,
        f"{name} has about {columns:,} columns, and a table of more than {MOST_COLUMNS:,} is not "
        "read; keep those that are needed.",
    )
    if content.startswith(b"PAR1"):
        file = _parquet(content, name)
        with _looks_like("a Parquet file", name):
            frame = file.read(use_threads=False).to_pandas()
        frame = frame.reset_index(drop=True).set_axis([str(c) for c in frame.columns], axis=1)
    elif _is_numpy(content):
        with _numpy(content, name) as stored:
            promise = _header(stored, name)
            with _looks_like("an array of NumPy", name):
                matrix = array_file.content(stored, promise)
            names = [f"column {index + 1}" for index in range(matrix.shape[1])]
            frame = pd.DataFrame(matrix, columns=names)
    else:
        frame = read_csv(content, name, missing)
    require(
        min(frame.shape) > 0,
        f"{name} holds no records; choose a file with one record a row.",
    )
    return plain(frame)


def _is_numpy(content: bytes) -> bool:
    """Whether this is an array or an archive of arrays (a spreadsheet is another archive)."""
    if content.startswith(b"\x93NUMPY"):
        return True
    if not content.startswith(b"PK\x03\x04"):
        return False
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return any(entry.endswith(".npy") for entry in archive.namelist())
    except SPOILED:
        return False


def _parquet(content: bytes, name: str) -> Any:
    from pyarrow import BufferReader
    from pyarrow.parquet import ParquetFile

    with _looks_like("a Parquet file", name):
        return ParquetFile(BufferReader(content))


def _numpy(content: bytes, name: str) -> IO[bytes]:
    """The array itself, or the only one of an archive, open at its header."""
    if content.startswith(b"\x93NUMPY"):
        return io.BytesIO(content)
    with _looks_like("an archive of NumPy", name):
        archive = zipfile.ZipFile(io.BytesIO(content))
    arrays = [entry for entry in archive.namelist() if entry.endswith(".npy")]
    require(
        len(arrays) == 1,
        f"{name} holds {len(arrays)} arrays ({', '.join(arrays)[:80]}); save one matrix alone.",
    )
    with _looks_like("an archive of NumPy", name):
        return archive.open(arrays[0])


def _header(file: IO[bytes], name: str) -> ArrayHeader:
    """What the beginning of a file says of the matrix in it."""
    with _looks_like("an array of NumPy", name):
        promise = array_file.promised(file)
    require(
        len(promise.shape) == 2 and promise.numeric,
        f"{name} holds an array of shape {promise.shape} and type {promise.dtype}; it must be a "
        "numeric matrix with one record a row.",
    )
    return promise


@contextmanager
def _looks_like(kind: str, name: str) -> Iterator[None]:
    """What a reader raises is a sentence about the file."""
    try:
        yield
    except SPOILED as error:
        detail = str(error).strip().splitlines()
        told = f" ({detail[0][:100].rstrip('.')})" if detail else ""
        raise InvalidInput(
            f"{name} looks like {kind} but cannot be read{told}; save it anew."
        ) from None
