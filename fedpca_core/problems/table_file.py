"""A visitor's file as a table, whatever its kind: how large it is at a glance, and what it holds.

CSV with any separator, encoding or decimal mark, Parquet, NumPy's .npy and .npz, which are looked
at before anything is allocated; never a pickle.
"""

import io
import re
import struct
import tarfile
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from itertools import compress, pairwise
from math import prod
from typing import IO, Any

import numpy as np
import pandas as pd

from fedpca_core.arrays import AnyArray
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems.table_columns import plain

#: How the names of such files end.
SUFFIXES = ("csv", "tsv", "txt", "parquet", "npy", "npz")
#: More columns take a quarter of a minute to be read, and no page or command analyses so many.
MOST_COLUMNS = 20_000
#: How much of a file is looked at to find its separator.
_HEAD_LINES = 50
_SEPARATORS = (",", ";", "\t", "|")
#: First bytes of files that people take for CSV.
_SIGNATURES = {
    b"PK\x03\x04": "a spreadsheet or zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel spreadsheet",
    b"PAR1": "a Parquet file",
    b"\x93NUMPY": "a NumPy array",
    b"\x1f\x8b": "a gzip archive",
    b"%PDF": "a PDF document",
}
#: Texts that stand for a missing value besides those pandas knows.
MISSING = ["?", "-", "--", "."]
_NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")
#: What the readers raise when bytes are not what a header promises.
SPOILED = (
    *(ArithmeticError, EOFError, LookupError, OSError, RuntimeError, SyntaxError, ValueError),
    *(TypeError, struct.error, tokenize.TokenError),
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error),
)
_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True)
class ArrayHeader:
    """What the header of a stored array says of it."""

    shape: tuple[int, ...]
    #: Whether the first index runs fastest.
    by_columns: bool
    dtype: np.dtype[Any]

    @property
    def bytes(self) -> int:
        """Size of the array without its header."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def numeric(self) -> bool:
        return self.dtype.kind in "fiub" and min(self.shape, default=0) >= 0


def shape(content: bytes, name: str) -> tuple[int, int]:
    """Rows and columns that a file promises, from its header and its line ends alone.

    Raises InvalidInput: the header is broken.
    """
    if content.startswith(b"PAR1"):
        about = _parquet(content, name).metadata
        return about.num_rows, about.num_columns
    if array := _numpy(content, name):
        rows, columns = array[1].shape
        return rows, columns
    head = content[: content.find(b"\n") + 1 or None]
    most = max(head.count(separator.encode()) for separator in _SEPARATORS)
    return content.count(b"\n") + 1, 1 + most


def read_table(content: bytes, name: str, missing: Sequence[str] = MISSING) -> pd.DataFrame:
    """The table in a file.

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
            frame = file.read(use_threads=False).to_pandas().reset_index(drop=True)
        frame = frame.rename(columns=str)
    elif array := _numpy(content, name):
        with _looks_like("an array of NumPy", name):
            matrix = array_content(*array)
        native = matrix.astype(matrix.dtype.newbyteorder("="), copy=False)
        frame = pd.DataFrame(native).rename(columns=_numbered)
    else:
        frame = read_csv(content, name, missing)
    require(min(frame.shape) > 0, f"{name} holds no records; choose a file with one record a row.")
    return plain(frame)


def _parquet(content: bytes, name: str) -> Any:
    from pyarrow import BufferReader
    from pyarrow.parquet import ParquetFile

    with _looks_like("a Parquet file", name):
        return ParquetFile(BufferReader(content))


def _numpy(content: bytes, name: str) -> tuple[IO[bytes], ArrayHeader] | None:
    """An array, or the only one of an archive, open at its first number; None of another kind."""
    file: IO[bytes] = io.BytesIO(content)
    if content.startswith(b"PK\x03\x04"):
        arrays: list[str] = []
        with suppress(*SPOILED):  # a spreadsheet is another archive
            archive = zipfile.ZipFile(file)
            arrays = [entry for entry in archive.namelist() if entry.endswith(".npy")]
        if not arrays:
            return None
        require(
            len(arrays) == 1,
            f"{name} holds {len(arrays)} arrays ({', '.join(arrays)[:80]}); save one matrix alone.",
        )
        with _looks_like("an archive of NumPy", name):
            file = archive.open(arrays[0])
    elif not content.startswith(b"\x93NUMPY"):
        return None
    with _looks_like("an array of NumPy", name):
        promise = promised(file)
    require(
        len(promise.shape) == 2 and promise.numeric,
        f"{name} holds an array of shape {promise.shape} and type {promise.dtype}; it must be a "
        "numeric matrix with one record a row.",
    )
    return file, promise


@contextmanager
def readable(what: str, remedy: str) -> Iterator[None]:
    """What a reader raises becomes a sentence: ``what``, the reader's own words, ``remedy``."""
    try:
        yield
    except InvalidInput:
        raise
    except SPOILED as error:
        detail = str(error).strip().splitlines() or [type(error).__name__]
        raise InvalidInput(f"{what} ({detail[0][:200].rstrip('.')}){remedy}") from None


def _looks_like(kind: str, name: str) -> AbstractContextManager[None]:
    return readable(f"{name} looks like {kind} but cannot be read", "; save it anew.")


def read_csv(
    content: bytes, title: str = "The file", missing: Sequence[str] = MISSING
) -> pd.DataFrame:
    """Read a table of records.

    ``missing``: Texts that stand for a missing value besides those pandas knows.

    Returns pandas.DataFrame: ``attrs["reading"]`` says in words how the file was understood
    (separator, decimal mark, encoding, header), where that is not plain.
    """
    require(len(content.strip()) > 0, f"{title} is empty; choose a CSV file with a header line.")
    for signature, kind in _SIGNATURES.items():
        require(
            not content.startswith(signature), f"{title} is {kind}, not text; save it as CSV first."
        )
    text, encoding = _decoded(content, title)
    separator = _separator(text)
    # "3,5" is a number in half the world; take that reading where it makes columns numeric.
    how = {"sep": separator, "na_values": list(missing)}
    marks = [mark for mark in ".," if mark != separator]
    readings = {mark: _parsed(text, title, decimal=mark, **how) for mark in marks}
    decimal, frame = max(readings.items(), key=lambda one: one[1].select_dtypes("number").shape[1])
    require(
        frame.shape[0] > 0,
        f"{title} holds a header but no records; choose a file with one record a line.",
    )
    headless = _is_data(list(frame.columns))
    if headless:
        frame = _parsed(text, title, decimal=decimal, header=None, **how)
        frame = frame.rename(columns=lambda name: _numbered(int(name)))
    names = {";": "semicolons", "\t": "tabs", "|": "bars"}
    said = {
        f"cells separated by {names.get(separator)}": separator in names,
        "decimal commas": decimal == ",",
        f"encoded as {encoding}": bool(encoding),
        "no header line": headless,
    }
    parts = ", ".join(compress(said, said.values()))
    frame.attrs = {"text": True, "reading": f"Read with {parts}." if parts else ""}
    return frame


def _numbered(place: int) -> str:
    return f"column {place + 1}"


def _decoded(content: bytes, title: str) -> tuple[str, str]:
    """The text, and the name of an unusual encoding."""
    marked = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    for encoding in ("utf-16",) if marked else ("utf-8-sig", "cp1252"):
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        if "\x00" not in text:
            return text, "" if encoding == "utf-8-sig" else encoding
    raise InvalidInput(f"{title} is not a text file in a known encoding; save it as CSV in UTF-8.")


def _separator(text: str) -> str:
    """The separator that cuts the first lines into equally many cells, and into the most."""
    lines = [line for line in text[:200_000].splitlines()[:_HEAD_LINES] if line.strip()]

    def score(separator: str) -> tuple[int, int]:
        counts = [re.sub(r'"[^"]*"', "", line).count(separator) for line in lines]
        return (sum(count == counts[0] for count in counts) if counts[0] else 0), counts[0]

    return max(_SEPARATORS, key=score)


def _parsed(text: str, title: str, **how: Any) -> pd.DataFrame:
    try:
        with warnings.catch_warnings():
            # More cells than the header names would otherwise be cut off with a mere warning.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            file = io.StringIO(text)
            return pd.read_csv(
                file, skipinitialspace=True, index_col=False, low_memory=False, **how
            ).rename(columns=lambda name: str(name).strip())
    except (pd.errors.ParserWarning, ValueError, OverflowError) as error:
        detail = str(error).strip().rstrip(".").splitlines()[-1]
        raise InvalidInput(
            f"{title} is not a table ({detail}); every line needs the same number of cells."
        ) from None


def _is_data(header: list[str]) -> bool:
    """Whether a first line is a record: all numbers, and not a count such as 0, 1, 2 or years."""
    if not all(_NUMBER.fullmatch(cell) for cell in header):
        return False
    numbers = [float(cell.replace(",", ".")) for cell in header]
    counting = all(after == before + 1 for before, after in pairwise(numbers))
    return not (counting and numbers[0].is_integer())


def promised(file: IO[bytes]) -> ArrayHeader:
    """Read the header, or raise one of `SPOILED`; the file stands at the first number after it."""
    return ArrayHeader(*_READERS[np.lib.format.read_magic(file)](file))


def array_content(file: IO[bytes], promise: ArrayHeader) -> AnyArray:
    """Read the numbers after a header, bounded by what the file has, or raise one of `SPOILED`."""
    body = file.read(promise.bytes)
    if len(body) != promise.bytes:
        raise EOFError("it ends too early")
    order = "F" if promise.by_columns else "C"
    return np.frombuffer(body, dtype=promise.dtype).reshape(promise.shape, order=order)  # type: ignore[call-overload]
