"""One array in NumPy's format, looked at before anything is allocated; never a pickle."""

import struct
import tokenize
import zipfile
import zlib
from dataclasses import dataclass
from math import prod
from typing import IO, Any

import numpy as np

from fedpca_core.arrays import AnyArray

#: What the readers raise when bytes are not what a header promises.
SPOILED = (
    *(ArithmeticError, EOFError, LookupError, OSError, RuntimeError, SyntaxError, ValueError),
    *(TypeError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
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


def promised(file: IO[bytes]) -> ArrayHeader:
    """Read the header, or raise one of `SPOILED`; the file stands at the first number after it."""
    return ArrayHeader(*_READERS[np.lib.format.read_magic(file)](file))


def content(file: IO[bytes], promise: ArrayHeader) -> AnyArray:
    """Read the numbers after a header, bounded by what the file has, or raise one of `SPOILED`."""
    body = file.read(promise.bytes)
    if len(body) != promise.bytes:
        raise EOFError("it ends too early")
    order = "F" if promise.by_columns else "C"
    return np.frombuffer(body, dtype=promise.dtype).reshape(promise.shape, order=order)  # type: ignore[call-overload]
