"""A trace as one file: what a run on another machine leaves for the dashboard and the attacks.

The file is NumPy's ``.npz``: arrays as they are, to the last bit, and one entry of JSON for the
rest. It is read without pickle, every array's header before its numbers, and every part must fit
the counts of the others: a file from a stranger can hold wrong numbers and nothing worse.
Everything in it was seen by the server; clients' states are in it only where a simulation kept
them.
"""

import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import numpy as np

from fedpca_core.arrays import AnyArray, Arrays
from fedpca_core.errors import InvalidInput, require
from fedpca_core.guarantee import Guarantee, PaidMean
from fedpca_core.problems.table_file import array_content, promised, readable
from fedpca_core.protocol.algorithm import Setting
from fedpca_core.protocol.described import describe, made, restore
from fedpca_core.protocol.trace import Trace
from fedpca_core.protocol.transcript import PUBLIC, Exchange, Transcript
from fedpca_core.settings import said

FORMAT = "fedpca trace"
VERSION = 1
#: No file may unpack to more than this, and its header to no more than that.
LARGEST_BYTES, LARGEST_HEADER = 2**30, 2**25
#: Largest counts that are believed: a client's records, and bytes or products of a run.
MOST_RECORDS, MOST_BYTES = 10**12, 10**18
#: Numbers beyond this overflow when they are squared.
LARGEST = 1e100
_TYPES = {"f": np.dtype(np.float64), "i": np.dtype(np.int64), "u": np.dtype(np.uint8)}
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Lengths of an array's sides; None is any.
Shape = tuple[int | None, ...]
#: Parts of a trace and of an exchange that are arrays and always there.
_COUNTS = ("bytes_up", "bytes_down", "local_products")
_CURVES = ("estimates", "seconds", *_COUNTS)
_WHO = ("participants", "weights", "sum_weights")
#: Parts of an exchange that are named arrays; the last three may be None.
_MESSAGES = ("downlink", "uploads", "sums", "feedback")
#: Sides of the messages that methods send; those of others are numbers, triangles or columns.
_SIDES = {
    **dict.fromkeys(("spectral_norm", "penalty"), 0),
    "covariance": 1,
    **dict.fromkeys(("frame", "product", "centre", "moved_centre", "gradient"), 2),
    **dict.fromkeys(("eigenvectors", "scaled_eigenvectors"), 2),
}
#: Parts of a transcript that are exchanges.
_EXCHANGES = ("before", "exchanges")
#: Parts of the header that are no numbers and texts.
_NESTED: dict[str, Any] = {
    **dict.fromkeys(("guarantee", "paid_mean"), dict | None),
    **dict.fromkeys(_EXCHANGES, list),
    **{"setting": dict, "states": list | None},
}
_NUMBERS = ("round", "local_steps", "recorded", "bytes_up", "bytes_down", "upload_bytes")
_SCALARS = (
    "features", "clients", "participation", "absent", "record_norm", "own_moments", "public",
)  # fmt: skip
_MISSING = "The trace is damaged: “{}” is missing; copy it again."
_WRONG_KIND = "The trace is damaged: “{}” is missing or of the wrong kind; copy the file again."


def save_trace(trace: Trace, file: str | Path | IO[bytes]) -> None:
    """Write a trace, compressed; ``file`` is a path or an open binary file."""
    setting = trace.setting
    arrays: dict[str, AnyArray] = {name: getattr(trace, name) for name in _CURVES}
    arrays |= {f"setting/{name}": getattr(setting, name) for name in ("samples", "weights")}
    for index, state in enumerate(trace.states or ()):
        arrays |= {f"states/{index}/{name}": array for name, array in state.items()}
    entries: dict[str, list[dict[str, Any]]] = {}
    for key in _EXCHANGES:
        entries[key] = []
        for index, exchange in enumerate(getattr(trace.transcript, key)):
            place = f"{key}/{index}"
            entry = {name: getattr(exchange, name) for name in _NUMBERS}
            arrays |= {f"{place}/{name}": getattr(exchange, name) for name in _WHO}
            for name in _MESSAGES:
                part: Arrays | None = getattr(exchange, name)
                entry[name] = None if part is None else list(part)
                arrays |= {f"{place}/{name}/{each}": one for each, one in (part or {}).items()}
            entries[key].append(entry)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "algorithm": describe(trace.algorithm),
        "seed": int(trace.seed),
        "setting": {name: getattr(setting, name) for name in _SCALARS},
        "guarantee": None if setting.guarantee is None else asdict(setting.guarantee),
        "paid_mean": None if setting.paid_mean is None else asdict(setting.paid_mean),
        "states": None if trace.states is None else [list(state) for state in trace.states],
        "secure_aggregation": trace.transcript.secure_aggregation,
        "dtype": trace.transcript.dtype,
        **entries,
    }
    content: Any = {"header": np.frombuffer(json.dumps(header).encode(), dtype=np.uint8), **arrays}
    np.savez_compressed(file, **content)


def load_trace(file: str | Path | IO[bytes]) -> Trace:
    """Read what `save_trace` wrote; what does not fit together is refused before it is unpacked.

    Raises InvalidInput: not such a file, one of another version, one that is damaged or larger than
    1 GB, or one whose parts contradict each other.
    """
    remedy = "; choose one that a run has written (.npz)."
    with readable("This is not the file of a trace", remedy), zipfile.ZipFile(file) as archive:
        return _trace(_Parts(archive))


class _Parts:
    """The arrays of an archive, by what their headers promise; unpacked one by one when asked."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        entries = archive.infolist()
        size = sum(entry.file_size for entry in entries)
        require(
            size <= LARGEST_BYTES,
            f"This file unpacks to {size >> 20:,} MB, and {LARGEST_BYTES >> 20:,} MB is the most "
            "that is read; keep fewer rounds, or leave the clients' states out.",
        )
        self._archive = archive
        self._left = {entry.filename.removesuffix(".npy"): entry for entry in entries}
        require(
            len(self._left) == len(entries)
            and all(entry.compress_type in _COMPRESSIONS for entry in entries),
            "This file is packed as no run packs its trace; choose one that a run has written.",
        )

    def header(self) -> dict[str, Any]:
        nothing = "This file holds arrays but no trace; choose one that a run has written."
        entry = self._left.get("header")
        require(entry is not None and entry.file_size <= LARGEST_HEADER, nothing)
        header = json.loads(self.take("header", (None,), "u").tobytes().decode())
        require(isinstance(header, dict) and header.get("format") == FORMAT, nothing)
        require(
            header.get("version") == VERSION,
            f"This trace has version {said(header.get('version'))}, and version {VERSION} is read "
            "here; open it with the version that wrote it.",
        )
        return header

    def take(
        self, name: str, shape: Shape, kind: str = "f", within: tuple[float, float] | None = None
    ) -> AnyArray:
        """One array, each side of ``shape`` as long as it says, its values within a range."""
        entry = self._left.pop(name, None)
        if entry is None:
            raise InvalidInput(_MISSING.format(said(name)))
        with self._archive.open(entry) as file:
            promise = promised(file)
            wanted = len(promise.shape) == len(shape) and all(
                want in (None, have) for want, have in zip(shape, promise.shape, strict=True)
            )
            require(
                wanted and promise.numeric and promise.dtype == _TYPES[kind],
                f"The trace is damaged: “{said(name)}” has the shape {promise.shape} and the type "
                f"{promise.dtype}, which do not fit its other parts; copy it again.",
            )
            require(
                file.tell() + promise.bytes == entry.file_size,
                f"The trace is damaged: “{said(name)}” is not as long as it says; copy it again.",
            )
            array = array_content(file, promise)
        require(
            kind != "f" or bool((np.abs(array) <= LARGEST).all()),
            f"“{said(name)}” of this trace holds values that are no numbers, or beyond "
            f"{LARGEST:g}; a run that diverged cannot be read, nor a file that was changed.",
        )
        if within is not None:
            low, high = within
            require(
                array.size == 0 or (low <= array.min() and array.max() <= high),
                f"“{said(name)}” of this trace must lie between {low:g} and {high:g}, not "
                f"between {array.min(initial=high):g} and {array.max(initial=low):g}; the file was "
                "changed.",
            )
        return array

    def shape_of(self, name: str) -> tuple[int, ...]:
        require(name in self._left, _MISSING.format(said(name)))
        with self._archive.open(self._left[name]) as file:
            return promised(file).shape

    def named(
        self, prefix: str, keys: object, first: tuple[int, ...], features: int | None = None
    ) -> dict[str, AnyArray]:
        """Arrays below a prefix, as the header lists them; their shapes begin with ``first``.

        ``features``: Of a run whose messages these are: what follows is the shape of one.
        """
        require(
            isinstance(keys, list) and all(isinstance(key, str) for key in keys),
            f"The trace is damaged: the names in “{prefix}” are no texts; copy it again.",
        )
        assert isinstance(keys, list)
        found = {}
        for key in keys:
            name = f"{prefix}/{key}"
            rest = self.shape_of(name)[len(first) :]
            if features is not None:
                _check_message(rest, name, features)
            found[key] = self.take(name, (*first, *rest))
        return found

    def check_empty(self) -> None:
        require(
            not self._left,
            f"The trace is damaged: nothing belongs to “{said(next(iter(self._left), ''))}”; copy "
            "it again.",
        )


def _trace(parts: _Parts) -> Trace:
    header = parts.header()
    lacking = dict.fromkeys(("paid_mean", "algorithm", "secure_aggregation", "dtype", "seed"))
    header = {"before": [], **lacking} | header  # older files lack the first two
    for name, kind in _NESTED.items():
        require(isinstance(header.get(name), kind), _WRONG_KIND.format(name))
    guarantee, paid_mean = header["guarantee"], header["paid_mean"]
    if guarantee is not None:
        guarantee.pop("epsilon", None)  # which follows from the rest
        guarantee = made(Guarantee, guarantee, "The terms of the guarantee")
    if paid_mean is not None:
        paid_mean = made(PaidMean, paid_mean, "The terms of the noisy mean")
    setting = made(
        Setting,
        header["setting"],
        "The public facts of the run",
        samples=(samples := parts.take("setting/samples", (None,), "i", (1, MOST_RECORDS))),
        weights=parts.take("setting/weights", samples.shape, within=(0, 1e9)),
        guarantee=guarantee,
        paid_mean=paid_mean,
    )
    require(
        setting.clients == len(samples) > 0 and setting.weights.sum() > 0,
        f"The trace is damaged: it speaks of {setting.clients:,} clients and lists the records of "
        f"{len(samples):,}; copy it again.",
    )
    algorithm = restore(header["algorithm"])
    rounds = len(header["exchanges"])
    of_client = (setting.clients,) if len(parts.shape_of("estimates")) == 4 else ()
    basis = (setting.features, algorithm.unwrapped.width)
    require(
        0 < basis[1] <= basis[0],
        f"The trace is damaged: {basis[1]:,} components of {basis[0]:,} features; copy it again.",
    )
    curves = {name: parts.take(name, (rounds + 1,), "i", (0, MOST_BYTES)) for name in _COUNTS}
    curves["estimates"] = parts.take("estimates", (rounds + 1, *of_client, *basis))
    curves["seconds"] = parts.take("seconds", (rounds + 1,), within=(0, 1e12))
    states = None
    if header["states"] is not None:
        require(len(header["states"]) == rounds + 1, _WRONG_KIND.format("states"))
        states = tuple(
            parts.named(f"states/{index}", keys, (setting.clients,))
            for index, keys in enumerate(header["states"])
        )
    secure, dtype, seed = (header[name] for name in ("secure_aggregation", "dtype", "seed"))
    is_seed = isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**64
    require(
        isinstance(secure, bool) and dtype in ("float64", "float32") and is_seed,
        _WRONG_KIND.format("secure_aggregation, dtype or seed"),
    )
    exchanges: dict[str, Any] = {
        key: tuple(
            _exchange(entry, f"{key}/{index}", parts, setting, secure and key != "before")
            for index, entry in enumerate(header[key])
        )
        for key in _EXCHANGES
    }
    parts.check_empty()
    heard = np.zeros(setting.clients, dtype=bool)
    for exchange in exchanges["exchanges"]:
        heard[exchange.participants] = True
        require(
            not exchange.sum_weights[~heard].any(),
            f"The trace is damaged: the sum of round {exchange.round} counts a client that sent "
            "nothing yet; copy it again.",
        )
    return Trace(
        algorithm=algorithm,
        setting=setting,
        seed=seed,
        states=states,
        transcript=Transcript(
            **{name: getattr(setting, name) for name in PUBLIC},
            secure_aggregation=secure,
            dtype=dtype,
            **exchanges,
        ),
        **curves,
    )


def _exchange(
    entry: object, prefix: str, parts: _Parts, setting: Setting, secure: bool
) -> Exchange:
    require(
        isinstance(entry, dict) and entry.keys() == {*_NUMBERS, *_MESSAGES},
        _WRONG_KIND.format(prefix),
    )
    assert isinstance(entry, dict)
    clients = setting.clients
    present = parts.take(f"{prefix}/participants", (None,), "i", (0, clients - 1))
    messages: dict[str, Any] = dict.fromkeys(_MESSAGES)
    for name in _MESSAGES:
        if entry[name] is not None:
            one_each = (len(present),) if name == "uploads" else ()
            messages[name] = parts.named(
                f"{prefix}/{name}", entry[name], one_each, setting.features
            )
    require(
        messages["downlink"] is not None
        and (messages["sums" if secure else "uploads"] is not None or not entry["recorded"])
        and messages["uploads" if secure else "sums"] is None,
        f"The trace is damaged: “{prefix}” holds "
        f"{'single uploads' if secure else 'sums'} or no messages, which its server did not see; "
        "copy it again.",
    )
    return made(
        Exchange,
        {name: entry[name] for name in _NUMBERS},
        f"The counts of “{prefix}”",
        most=MOST_BYTES,
        participants=present,
        weights=parts.take(f"{prefix}/weights", present.shape, within=(0, 1e9)),
        sum_weights=parts.take(f"{prefix}/sum_weights", (clients,), within=(0, 1e9)),
        **messages,
    )


def _check_message(shape: tuple[int, ...], name: str, features: int) -> None:
    """Refuse a shape that no message has: a number, a triangle of a matrix, or some columns."""
    longest = {0: (), 1: (features * (features + 1) // 2,), 2: (features, features)}
    sides = _SIDES.get(name.rpartition("/")[2], len(shape))
    fits = (
        len(shape) == sides
        and sides in longest
        and shape[:1] == longest[sides][:1]
        and all(1 <= have <= most for have, most in zip(shape, longest[sides], strict=True))
    )
    require(
        fits,
        f"The trace is damaged: “{said(name)}” has the shape {shape} in a run of {features:,} "
        "features; copy it again.",
    )
