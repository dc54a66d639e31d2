"""A trace as one file: what a run on another machine leaves for the dashboard and the attacks.

The file is NumPy's ``.npz``: arrays as they are, to the last bit, and one entry of JSON for the
rest. It is read without pickle, so a file from a stranger can hold wrong numbers and nothing worse.
Everything in it was seen by the server; clients' states are in it only where a simulation kept
them.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np

from fedpca_core.arrays import AnyArray, Arrays
from fedpca_core.errors import InvalidInput, require
from fedpca_core.guarantee import Guarantee, PaidMean
from fedpca_core.protocol.algorithm import Setting
from fedpca_core.protocol.described import describe, restore
from fedpca_core.protocol.trace import Trace
from fedpca_core.protocol.transcript import Exchange, Transcript

FORMAT = "fedpca trace"
VERSION = 1
#: No file may unpack to more than this.
LARGEST_BYTES = 2**30
#: Parts of a trace and of an exchange that are arrays and always there.
_CURVES = ("estimates", "bytes_up", "bytes_down", "local_products", "seconds")
_WHO = ("participants", "weights", "sum_weights")
#: Parts of an exchange that are named arrays; the last three may be None.
_MESSAGES = ("downlink", "uploads", "sums", "feedback")
#: Parts of a transcript that are exchanges.
_EXCHANGES = ("before", "exchanges")
_NUMBERS = ("round", "local_steps", "recorded", "bytes_up", "bytes_down", "upload_bytes")
_SCALARS = (
    "features", "clients", "participation", "absent", "record_norm", "own_moments", "public",
)  # fmt: skip


def save_trace(trace: Trace, file: str | Path | IO[bytes]) -> None:
    """Write a trace, compressed; ``file`` is a path or an open binary file."""
    arrays: dict[str, AnyArray] = {name: getattr(trace, name) for name in _CURVES}
    arrays |= {f"setting/{name}": getattr(trace.setting, name) for name in ("samples", "weights")}
    for index, state in enumerate(trace.states or ()):
        arrays |= {f"states/{index}/{name}": array for name, array in state.items()}
    entries: dict[str, list[dict[str, Any]]] = {}
    for key in _EXCHANGES:
        entries[key] = []
        for index, exchange in enumerate(getattr(trace.transcript, key)):
            entry, parts = _entry(exchange)
            entries[key].append(entry)
            arrays |= {f"{key}/{index}/{name}": array for name, array in parts.items()}
    guarantee = trace.setting.guarantee
    header = {
        "format": FORMAT,
        "version": VERSION,
        "algorithm": describe(trace.algorithm),
        "seed": int(trace.seed),
        "setting": {name: getattr(trace.setting, name) for name in _SCALARS},
        "guarantee": None if guarantee is None else asdict(guarantee),
        "paid_mean": None if trace.setting.paid_mean is None else asdict(trace.setting.paid_mean),
        "states": None if trace.states is None else [list(state) for state in trace.states],
        "secure_aggregation": trace.transcript.secure_aggregation,
        "dtype": trace.transcript.dtype,
        **entries,
    }
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    content: dict[str, Any] = {"header": text, **arrays}
    np.savez_compressed(file, **content)


def load_trace(file: str | Path | IO[bytes]) -> Trace:
    """Read what `save_trace` wrote.

    Raises
    ------
    InvalidInput
        Not such a file, one of another version, one that is damaged or larger than 1 GB.
    """
    try:
        with zipfile.ZipFile(file) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        require(
            size <= LARGEST_BYTES,
            f"This file unpacks to {size >> 20:,} MB, and {LARGEST_BYTES >> 20:,} MB is the most "
            "that is read; keep fewer rounds, or leave the clients' states out.",
        )
        if not isinstance(file, str | Path):
            file.seek(0)
        with np.load(file, allow_pickle=False) as stored:
            header = json.loads(bytes(stored["header"]).decode())
            arrays = {name: stored[name] for name in stored.files if name != "header"}
    except InvalidInput:
        raise
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InvalidInput(
            f"This is not the file of a trace ({error}); choose one that a run has written (.npz)."
        ) from None
    require(
        isinstance(header, dict) and header.get("format") == FORMAT,
        "This file holds arrays but no trace; choose one that a run has written.",
    )
    require(
        header.get("version") == VERSION,
        f"This trace has version {header.get('version')}, and version {VERSION} is read here; "
        "open it with the version that wrote it.",
    )
    try:
        return _trace(header, arrays)
    except (KeyError, TypeError) as error:
        raise InvalidInput(
            f"The trace is damaged: {error} is missing or of the wrong kind; copy the file again."
        ) from None


def _trace(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> Trace:
    stated, mean = header["guarantee"], header.get("paid_mean")
    setting = Setting(
        **_tuples(header["setting"]),
        samples=arrays["setting/samples"],
        weights=arrays["setting/weights"],
        guarantee=None if stated is None else Guarantee(**_tuples(stated)),
        paid_mean=None if mean is None else PaidMean(**mean),
    )
    names = header["states"]
    states = None
    if names is not None:
        states = tuple(
            {name: arrays[f"states/{index}/{name}"] for name in part}
            for index, part in enumerate(names)
        )
    return Trace(
        algorithm=restore(header["algorithm"]),
        setting=setting,
        seed=header["seed"],
        states=states,
        transcript=Transcript(
            features=setting.features,
            clients=setting.clients,
            samples=setting.samples,
            weights=setting.weights,
            secure_aggregation=header["secure_aggregation"],
            dtype=header["dtype"],
            **{
                key: tuple(
                    _exchange(entry, f"{key}/{index}", arrays)
                    for index, entry in enumerate(header.get(key, ()))  # files without any before
                )
                for key in _EXCHANGES
            },
        ),
        **{name: arrays[name] for name in _CURVES},
    )


def _entry(exchange: Exchange) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """An exchange as what goes into the header and the arrays beside it."""
    entry: dict[str, Any] = {name: getattr(exchange, name) for name in _NUMBERS}
    arrays: dict[str, AnyArray] = {name: getattr(exchange, name) for name in _WHO}
    for name in _MESSAGES:
        part: Arrays | None = getattr(exchange, name)
        entry[name] = None if part is None else list(part)
        arrays |= {f"{name}/{key}": array for key, array in (part or {}).items()}
    return entry, arrays


def _tuples(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Lists of JSON as what they were written from."""
    return {name: tuple(v) if isinstance(v, list) else v for name, v in stored.items()}


def _exchange(entry: Mapping[str, Any], prefix: str, arrays: Mapping[str, AnyArray]) -> Exchange:
    messages: dict[str, Any] = {}
    for name in _MESSAGES:
        keys = entry[name]
        found = {key: arrays[f"{prefix}/{name}/{key}"] for key in keys or ()}
        messages[name] = None if keys is None else found
    parts: dict[str, Any] = {name: entry[name] for name in _NUMBERS}
    parts |= {name: arrays[f"{prefix}/{name}"] for name in _WHO}
    return Exchange(**parts, **messages)
