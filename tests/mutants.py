"""Files of runs, changed by a stranger: bytes, entries, headers, arrays; the same from one seed."""

from __future__ import annotations

import io
import json
import os
import random
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

#: From which hostile things are drawn: the same ones in every run, unless somebody asks for others.
SEED = int(os.environ.get("FEDPCA_SEED", "20"))
#: What stands in a header instead of what belongs there.
WRONG: tuple[Any, ...] = (
    *(None, True, -1, 0, 1, 2.5, 10**9, 10**30, float("nan"), float("inf"), -float("inf")),
    *("", "x", "\x1b[31m", "\x00", "a" * 20_000, [], [[]], [-1], {}, {"algorithm": "SSI"}),
    {"algorithm": "Noisy", "parameters": {"method": {"algorithm": "Noisy", "parameters": {}}}},
)


def packed(entries: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> bytes:
    """An archive of entries."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", kind) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return file.getvalue()


def unpacked(content: bytes) -> dict[str, bytes]:
    """The entries of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def npy(array: np.ndarray) -> bytes:
    """An array as NumPy stores it."""
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def mutants(content: bytes, seed: int, count: int) -> Iterator[bytes]:
    """Changed copies of a run's file."""
    drawn = random.Random(seed)
    entries = unpacked(content)
    whole = packed(entries)
    ways = (_bytes, _header, _header, _array, _array, _entries)
    for _ in range(count):
        way = drawn.choice(ways)
        if way is _bytes:
            yield _bytes(drawn.choice((whole, content)), drawn)
        else:
            changed = dict(entries)
            for _ in range(drawn.choice((1, 1, 2))):
                way(changed, drawn)
            yield packed(changed, drawn.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)))


def _bytes(content: bytes, drawn: random.Random) -> bytes:
    """Bits turned, a piece lost, doubled or cut off."""
    changed = bytearray(content)
    for _ in range(drawn.choice((1, 3, 50))):
        changed[drawn.randrange(len(changed))] ^= 1 << drawn.randrange(8)
    at, length = drawn.randrange(len(changed)), drawn.randrange(1, 400)
    match drawn.randrange(5):
        case 0:
            del changed[at:]
        case 1:
            del changed[at : at + length]
        case 2:
            changed[at:at] = changed[at : at + length]
    return bytes(changed)


def _header(entries: dict[str, bytes], drawn: random.Random) -> None:
    """A value somewhere in the header is another one, missing, or one too many."""
    try:
        array = np.load(io.BytesIO(entries["header.npy"]), allow_pickle=False)
        header = json.loads(array.tobytes())
        holder, key = drawn.choice(list(places(header)))
    except (ValueError, LookupError, EOFError, RecursionError, AttributeError):
        return  # changed beyond reading already
    match drawn.randrange(4):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[drawn.choice(("__class__", "exchanges", "\x00", "x" * 300))] = drawn.choice(
                WRONG
            )
        case _:
            holder[key] = drawn.choice(WRONG)
    text = json.dumps(header).encode()
    if drawn.random() < 0.05:
        text = drawn.choice((b"[" * 50_000, b'{"a":' + b"9" * 6000 + b"}", b"\xff\xfe", b""))
    entries["header.npy"] = npy(np.frombuffer(text, dtype=np.uint8))


def places(found: Any) -> Iterator[tuple[Any, Any]]:
    """Every value anywhere in JSON, by what holds it and its key there."""
    pairs = found.items() if isinstance(found, dict) else enumerate(found)
    for key, value in list(pairs):
        yield found, key
        if isinstance(value, dict | list):
            yield from places(value)


def _array(entries: dict[str, bytes], drawn: random.Random) -> None:
    """An array with other values, another shape, another type, or one that it only promises."""
    name = drawn.choice([name for name in entries if name != "header.npy"])
    try:
        array = np.load(io.BytesIO(entries[name]), allow_pickle=False)
        array.flat[:0]  # a nested archive has none
    except (ValueError, EOFError, AttributeError, MemoryError):
        return
    wrong = drawn.choice((-1, 0, 10**9, 2**62, float("nan"), float("inf"), 1e300, -1e300))
    match drawn.randrange(8):
        case 0 | 1 if array.size:
            array = array.copy()
            with np.errstate(invalid="ignore", over="ignore"):
                array.flat[drawn.randrange(array.size)] = np.array(wrong).astype(array.dtype)
        case 2:
            array = array[..., None]
        case 3:
            array = np.zeros(array.shape, dtype=drawn.choice(("<c16", "<U3", "<f2", "<i4", "?")))
        case 4:
            array = array.reshape(-1)[: drawn.randrange(array.size + 1)]
        case 5:
            array = np.array([{"a": 1}], dtype=object)
        case 6:
            array = np.concatenate([array.reshape(-1), array.reshape(-1)])
        case _:
            promise = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**12},), }}"
            size = len(promise) + 1
            entries[name] = b"\x93NUMPY\x01\x00" + size.to_bytes(2, "little")
            entries[name] += promise.encode() + b"\n"
            return
    entries[name] = npy(array)


def _entries(entries: dict[str, bytes], drawn: random.Random) -> None:
    """An entry is missing, another one's, one too many, or no array."""
    name, other = drawn.choice(list(entries)), drawn.choice(list(entries))
    match drawn.randrange(5):
        case 0:
            entries.pop(name, None)
        case 1:
            entries[name] = entries[other]
        case 2:
            entries["../" + name] = entries[other]
        case 3:
            entries[name] = packed({"a.npy": entries[other]})
        case _:
            entries[name] = drawn.choice((b"", b"\x80\x04N.", b"\x00" * 3_000_000))
