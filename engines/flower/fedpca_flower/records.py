"""Messages as Flower's records: arrays as bare numbers, everything else as one line of JSON.

An array travels without NumPy's file header, so the bytes of an `ArrayRecord` are those that the
channel counts: its entries at the precision of the wire.
"""

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedpca_core.arrays import AnyArray
from fedpca_core.errors import InvalidInput, require

#: How the bytes are to be read: row by row, the lowest byte of a number first.
BARE = "little-endian rows"
_TOLD = "told"
#: Characters of one message's plain values, and types of its arrays.
_LONGEST = 2**24
_TYPES = ("bool", "int64", "uint64", "float32", "float64")

#: What one side tells the other: plain values, and groups of named arrays.
Told = dict[str, Any]
Groups = dict[str, dict[str, AnyArray]]


def packed(told: Mapping[str, Any], **groups: Mapping[str, AnyArray] | None) -> RecordDict:
    """One message."""
    content = RecordDict({_TOLD: ConfigRecord({"json": json.dumps(told)})})
    for name, arrays in groups.items():
        if arrays:
            content[name] = ArrayRecord({key: _bare(array) for key, array in arrays.items()})
    return content


def opened(content: RecordDict) -> tuple[Told, Groups]:
    """What `packed` packed; a group that was empty is missing.

    Raises InvalidInput: nothing that `packed` could have made.
    """
    try:
        text = content.config_records[_TOLD]["json"]
        require(isinstance(text, str) and len(text) <= _LONGEST, "its plain values are no text")
        told = json.loads(str(text), parse_constant=_no_number)
    except (KeyError, ValueError, RecursionError) as error:
        raise InvalidInput(f"its plain values cannot be read ({error})"[:200]) from None
    require(isinstance(told, dict), "its plain values have no names")
    groups = {
        name: {key: _numbers(key, array) for key, array in record.items()}
        for name, record in content.array_records.items()
    }
    return told, groups


def payload(content: RecordDict, group: str) -> int:
    """Bytes of one group's numbers in a message."""
    record = content.array_records.get(group, {})
    return sum(len(array.data) for array in record.values())


def on_the_wire(arrays: Mapping[str, AnyArray], dtype: str) -> dict[str, AnyArray]:
    """The arrays at the precision of the wire."""
    return {name: np.asarray(array, dtype=dtype) for name, array in arrays.items()}


@contextmanager
def whole(path: Path, *, private: bool) -> Iterator[IO[bytes]]:
    """A file to write that is there only when it is complete, and on the disk; may be private."""
    path.parent.mkdir(0o700 if private else 0o777, parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    flags, mode = os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o666
    with os.fdopen(os.open(part, flags, mode), "wb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)  # the name, too
    os.close(folder)


def save_arrays(file: Path, told: Mapping[str, Any], groups: Groups) -> None:
    """Write plain values and groups of arrays into one private file."""
    entries: dict[str, Any] = {
        f"{group}/{name}": array
        for group, arrays in groups.items()
        for name, array in arrays.items()
    }
    entries[_TOLD] = np.frombuffer(json.dumps(told).encode(), dtype=np.uint8)
    with whole(file, private=True) as written:
        np.savez(written, **entries)


def load_arrays(file: Path) -> tuple[Told, Groups]:
    """Read what `save_arrays` wrote."""
    groups: Groups = {}
    with np.load(file, allow_pickle=False) as stored:
        told: Told = json.loads(bytes(stored[_TOLD]).decode())
        for entry in stored.files:
            group, slash, name = entry.rpartition("/")
            if slash:
                groups.setdefault(group, {})[name] = stored[entry]
    return told, groups


def _bare(array: AnyArray) -> Array:
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return Array(str(array.dtype), tuple(array.shape), BARE, little.tobytes())


def _no_number(name: str) -> None:
    raise InvalidInput(f"{name} is no number")


def _numbers(name: str, array: Array) -> AnyArray:
    shape = tuple(array.shape)
    require(
        array.stype == BARE and array.dtype in _TYPES and all(side >= 0 for side in shape),
        f"the array “{name[:60]}” is written in a way that nobody agreed on",
    )
    bytes_ = np.dtype(array.dtype).itemsize * math.prod(shape)
    require(
        len(array.data) == bytes_,
        f"the array “{name[:60]}” of shape {shape} has {len(array.data)} bytes, not {bytes_}",
    )
    read = np.frombuffer(array.data, dtype=np.dtype(array.dtype).newbyteorder("<"))
    return read.astype(np.dtype(array.dtype)).reshape(shape)
