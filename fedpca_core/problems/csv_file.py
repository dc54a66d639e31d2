"""Reading a visitor's CSV file, whatever its separator, encoding or decimal mark."""

import io
import re
import warnings
from collections.abc import Sequence
from itertools import pairwise

import pandas as pd

from fedpca_core.errors import InvalidInput, require

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


def read_csv(
    content: bytes, title: str = "The file", missing: Sequence[str] = MISSING
) -> pd.DataFrame:
    """Read a table of records.

    ``title``: What to call the file in messages.
    ``missing``: Texts that stand for a missing value besides those pandas knows.

    Returns pandas.DataFrame: ``attrs["reading"]`` says in words how the file was understood
    (separator, decimal mark, encoding, header), where that is not plain.

    Raises InvalidInput: empty, not text, not a table.
    """
    require(len(content.strip()) > 0, f"{title} is empty; choose a CSV file with a header line.")
    for signature, kind in _SIGNATURES.items():
        require(
            not content.startswith(signature), f"{title} is {kind}, not text; save it as CSV first."
        )
    text, encoding = _decoded(content, title)
    separator = _separator(text)
    frame = _parsed(text, separator, ".", title, missing)
    decimal = "."
    if separator != ",":
        # "3,5" is a number in half the world; take that reading where it makes columns numeric.
        other = _parsed(text, separator, ",", title, missing)
        if _numeric(other) > _numeric(frame):
            frame, decimal = other, ","
    require(
        frame.shape[0] > 0,
        f"{title} holds a header but no records; choose a file with one record a line.",
    )
    headless = _is_data([str(column) for column in frame.columns])
    if headless:
        frame = _parsed(text, separator, decimal, title, missing, header=False)
    frame.attrs["reading"] = _story(separator, decimal, encoding, headless)
    return frame


def _decoded(content: bytes, title: str) -> tuple[str, str]:
    """The text, and the name of an unusual encoding."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        attempts = ["utf-16"]
    else:
        attempts = ["utf-8-sig", "cp1252"]
    for encoding in attempts:
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
        agreeing = sum(count == counts[0] for count in counts)
        return (agreeing if counts[0] else 0), counts[0]

    return max(_SEPARATORS, key=score)


def _parsed(
    text: str,
    separator: str,
    decimal: str,
    title: str,
    missing: Sequence[str],
    header: bool = True,
) -> pd.DataFrame:
    try:
        with warnings.catch_warnings():
            # More cells than the header names would otherwise be cut off with a mere warning.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            frame = pd.read_csv(
                io.StringIO(text),
                sep=separator,
                decimal=decimal,
                header=0 if header else None,
                na_values=list(missing),
                skipinitialspace=True,
                index_col=False,
                low_memory=False,
            )
    except (
        pd.errors.ParserError,
        pd.errors.ParserWarning,
        pd.errors.EmptyDataError,
        ValueError,
        OverflowError,
    ) as error:
        detail = str(error).strip().rstrip(".").splitlines()[-1]
        raise InvalidInput(
            f"{title} is not a table ({detail}); every line needs the same number of cells."
        ) from None
    if header:
        frame.columns = pd.Index([str(column).strip() for column in frame.columns])
    else:
        frame.columns = pd.Index([f"column {index + 1}" for index in range(frame.shape[1])])
    return frame


def _is_data(header: list[str]) -> bool:
    """Whether a first line is a record: all numbers, and not a count such as 0, 1, 2 or years."""
    if not all(_NUMBER.fullmatch(cell) for cell in header):
        return False
    numbers = [float(cell.replace(",", ".")) for cell in header]
    counting = all(after == before + 1 for before, after in pairwise(numbers))
    return not (counting and numbers[0].is_integer())


def _numeric(frame: pd.DataFrame) -> int:
    return len(frame.select_dtypes("number").columns)


def _story(separator: str, decimal: str, encoding: str, headless: bool) -> str:
    names = {";": "semicolons", "\t": "tabs", "|": "bars"}
    parts = []
    if separator in names:
        parts.append(f"cells separated by {names[separator]}")
    if decimal == ",":
        parts.append("decimal commas")
    if encoding:
        parts.append(f"encoded as {encoding}")
    if headless:
        parts.append("no header line")
    return f"Read with {', '.join(parts)}." if parts else ""
