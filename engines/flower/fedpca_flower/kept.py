"""A client's records and secrets, behind the few things that a run may ask of them, on its terms.

The records are in the app's own process (`Kept`), or in one of another user that holds the ledger
and the limits, too, whatever the app is (`Served`, `serve`): over a Unix socket a question is a
line of JSON, and the answer another one, with a matrix behind it where there is one. Nothing is
unpickled.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import secrets
import socket
import socketserver
import sys
from collections.abc import Mapping
from dataclasses import astuple, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.perturbation import Budget, perturbed, source_guarantee
from fedpca_core.streams import Streams
from fedpca_flower.ledger import Ledger, Offer
from fedpca_flower.on_grid import release_cost, released
from fedpca_flower.own_records import (
    SUFFIXES,
    read_columns,
    read_moments,
    read_whole_moments,
)
from fedpca_flower.records import Told

#: Streams that only the client may know; all others follow from the public seed.
_SECRET = ("private", "noise", "upload noise", "source noise", "mean noise")
#: Secret streams whose last key is the client.
_BY_CLIENT = ("source noise", "mean noise")
#: Bytes of a question, and seconds for one.
_LONGEST, _PATIENCE = 2**20, 60.0


@dataclass(frozen=True)
class ClientStreams(Streams):
    """Public streams from the run's seed, secret ones from entropy of the client's own.

    With the run's seed in the place of the secret the draws are those of a run in one process,
    which makes runs comparable and protects nobody.
    """

    secret: int = 0
    client: int = 0

    def generator(self, name: str, *key: int) -> np.random.Generator:
        if name not in _SECRET:
            return super().generator(name, *key)
        if name in _BY_CLIENT:
            key = (*key[:-1], self.client)
        return Streams(self.secret).generator(name, *key)


def position(node: Mapping[str, Any]) -> int:
    """Which client this node is: ``client`` in its configuration; a simulation sets a partition."""
    number = node.get("client", node.get("partition-id"))
    require(
        isinstance(number, int) and number >= 0,
        f"The node's configuration says client = {number!r}; give each node a number from 0, "
        "for example --node-config 'client=0 data=\"/srv/records.parquet\"'.",
    )
    assert isinstance(number, int)
    return number


def source(node: Mapping[str, Any], run: Mapping[str, Any]) -> Path:
    """Where the client's records are: its own file or folder, or its part of a simulation's."""
    if node.get("data"):
        return Path(str(node["data"]))
    folder = Path(str(run.get("data", "")))
    require(
        bool(run.get("data")) and folder.is_dir(),
        "This node does not say where its records are; start it with --node-config "
        "'data=\"/srv/records.parquet\"', or simulate with a folder of one file a client "
        "(--run-config 'data=\"...\"').",
    )
    entries = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    client = position(node)
    require(
        client < len(entries),
        f"The folder {folder} holds {len(entries)} files, so there is none for client {client}.",
    )
    return entries[client]


def columns(run: Mapping[str, Any]) -> tuple[str, ...]:
    """The features that the run names."""
    return tuple(name for name in str(run.get("columns", "")).split(",") if name)


def stamp(records: Path) -> list[list[Any]]:
    """Name, time and size of every file, which say at a glance whether anything changed."""
    return [[path.name, path.stat().st_mtime_ns, path.stat().st_size] for path in _files(records)]


def digest(records: Path) -> str:
    """SHA-256 of the records' files, in order."""
    found = hashlib.sha256()
    for path in _files(records):
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def _files(records: Path) -> list[Path]:
    inside = sorted(records.iterdir()) if records.is_dir() else [records]
    return [path for path in inside if path.is_file() and path.suffix.lower() in SUFFIXES]


def client_data(
    records: Path,
    named: tuple[str, ...],
    terms: Mapping[str, float] | None = None,
    streams: ClientStreams | None = None,
) -> ClientData:
    """The records as they are, read once a process as long as the files stay as they are.

    With terms, as in a simulation: clipped, and with noise from its seed, which protects nobody.
    """
    noise = None if terms is None else tuple(sorted(terms.items()))
    return _read(records, json.dumps(stamp(records)), named, noise, streams)


@lru_cache(maxsize=64)
def _read(
    records: Path,
    _: str,
    named: tuple[str, ...],
    noise: tuple[tuple[str, float], ...] | None,
    streams: ClientStreams | None,
) -> ClientData:
    if noise is None or streams is None:
        return read_moments(records, named)
    terms = dict(noise)
    budget = Budget(terms["epsilon"], terms["delta"], terms["clip"])
    clipped = read_moments(records, named, budget.clip)
    deviation = source_guarantee(clipped.samples, clipped.weights, budget)[0]
    return perturbed(clipped, deviation / math.sqrt(terms.get("sharers", 1)), streams)


class Kept:
    """Records of one client in this process.

    ``source``: Their file or folder.
    ``node``: The operator's terms: ``epsilon``, ``delta``, ``sharers``, ``least`` (fewest records),
        ``features`` (columns that may be asked for, separated by commas), ``memory``.
    """

    def __init__(self, client: int, source: Path, node: Mapping[str, Any]) -> None:
        self.client, self.source, self.node = client, source, node
        self.name = source.name

    def state(self) -> Told:
        """What the records are known by: at a glance, and to the byte."""
        return {"stamp": stamp(self.source), "digest": digest(self.source)}

    def unchanged(self, seen: Told) -> bool:
        """Whether the records are in a state that was seen before."""
        return stamp(self.source) == seen["stamp"] or digest(self.source) == seen["digest"]

    def columns(self, named: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Name, kind and unit of every feature."""
        self._allow(named)
        return [astuple(one) for one in read_columns(self.source, named)]

    def plain(self, named: tuple[str, ...], job: str) -> ClientData:
        """The second moment without noise, after which no ε can be stated any more.

        Raises InvalidInput: the operator has set a limit, or the records are too few.
        """
        limit = self.node.get("epsilon")
        require(
            limit is None,
            f"Client {self.client} takes part up to ε = {limit} only, and the run adds no noise at "
            "the source; run with a finite ε.",
        )
        self._allow(named)
        data = client_data(self.source, named)
        self._enough(int(data.samples[0]))
        if self.node.get("memory"):
            about = {"run": job, "noise": "none at the source"}
            Ledger.of(self.client, self.node).unbounded(f"run {job}", about)
        return data

    def release(
        self, named: tuple[str, ...], terms: Mapping[str, float], seen: str, job: str
    ) -> ClientData:
        """The one noisy matrix for these terms and this state of the records, which is paid for.

        Its noise comes from the system.

        Raises InvalidInput: more than the operator allows, of ε or of clients that share the noise.
        """
        sharers, most = int(terms.get("sharers", 1)), int(self.node.get("sharers", 1))
        require(
            1 <= sharers <= most,
            f"The run takes {sharers} clients' noise together for enough, and client {self.client} "
            f"relies on {most}; its operator may allow more (sharers in --node-config), or each "
            "client adds its noise in full (colluding=-1).",
        )
        self._allow(named)
        # In sums with other clients the same share would be covered by less: it is one run's alone.
        whose = [] if sharers == 1 else [{"run": job}]
        key = json.dumps([seen, named, sorted(terms.items()), *whose]).encode()

        def prepared() -> Offer:
            epsilon, delta, clip = terms["epsilon"], terms["delta"], terms["clip"]
            moments = read_whole_moments(self.source, named, clip)
            same = digest(self.source) == seen
            require(same, f"{self.name} changed while it was read; try again.")
            self._enough(moments.samples)
            cost = release_cost(epsilon, delta, len(moments.total))
            told = {"epsilon": epsilon, "delta": delta, "clip norm": clip, "columns": named}
            told |= {"run": job, **({"noise shared by": sharers} if sharers > 1 else {})}
            draw = partial(released, moments, cost[0], secrets.randbelow, sharers)
            return Offer(cost, moments.samples, told, draw)

        ledger = Ledger.of(self.client, self.node)
        matrix, samples = ledger.release(hashlib.sha256(key).hexdigest(), prepared)
        self._enough(samples)  # of one that was released under earlier limits too
        return replace(_of_one(matrix, samples), indefinite=True)

    def _enough(self, samples: int) -> None:
        least = int(self.node.get("least", 1))
        require(
            samples >= least,
            f"Client {self.client} has {samples} records, and its operator asks for {least} at "
            "least; it refuses.",
        )

    def _allow(self, named: tuple[str, ...]) -> None:
        allowed = columns({"columns": self.node.get("features", "")})
        require(
            not allowed or (bool(named) and set(named) <= set(allowed)),
            f"Client {self.client} gives the columns {', '.join(allowed)} and no others; name them "
            "(--run-config 'columns=\"a,b,c\"').",
        )


# ---------------------------------------------------------------------- in a process of its own
class Served:
    """The same records, of another user, behind a Unix socket; what is asked is as of `Kept`."""

    def __init__(self, address: str) -> None:
        self.address = self.name = address

    def state(self) -> Told:
        return self._asked("state")[0]

    def unchanged(self, seen: Told) -> bool:
        return bool(self._asked("unchanged", seen=seen)[0]["unchanged"])

    def columns(self, named: tuple[str, ...]) -> list[tuple[str, ...]]:
        return [tuple(one) for one in self._asked("columns", named=named)[0]["columns"]]

    def plain(self, named: tuple[str, ...], job: str) -> ClientData:
        return self._data("plain", named=named, job=job)

    def release(
        self, named: tuple[str, ...], terms: Mapping[str, float], seen: str, job: str
    ) -> ClientData:
        asked = {"terms": dict(terms), "seen": seen}
        return replace(self._data("release", named=named, job=job, **asked), indefinite=True)

    def _data(self, ask: str, **values: Any) -> ClientData:
        told, matrix = self._asked(ask, **values)
        assert matrix is not None
        return _of_one(matrix, told["samples"])

    def _asked(self, ask: str, **values: Any) -> tuple[Told, Array | None]:
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(10 * _PATIENCE)  # a release takes its time
                line.connect(self.address)
                line.sendall(json.dumps({"ask": ask, **values}).encode() + b"\n")
                with line.makefile("rb") as answer:
                    told, rest = json.loads(answer.readline()), answer.read()
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"The service that keeps the records does not answer at {self.address} ({error}); "
                "its operator must see whether it runs."
            ) from None
        require("refused" not in told, str(told.get("refused")))
        return told, np.load(io.BytesIO(rest), allow_pickle=False) if rest else None


def _of_one(matrix: Array, samples: int) -> ClientData:
    return ClientData.from_grams(matrix[None], np.array([samples], dtype=np.int64))


def answer(kept: Kept, line: bytes) -> bytes:
    """What the service says to a question, whoever asks: a line of JSON, and perhaps a matrix."""
    matrix: Array | None = None
    try:
        asked = json.loads(line)
        ask, named = asked["ask"], tuple(map(str, asked.get("named", ())))
        if ask == "state":
            told: Told = kept.state()
        elif ask == "unchanged":
            told = {"unchanged": kept.unchanged(asked["seen"])}
        elif ask == "columns":
            told = {"columns": kept.columns(named)}
        else:
            job = str(asked["job"])[:100]
            if ask == "plain":
                data = kept.plain(named, job)
            elif ask == "release":
                terms = {str(name): float(value) for name, value in asked["terms"].items()}
                data = kept.release(named, terms, str(asked["seen"]), job)
            else:
                raise InvalidInput(f"There is no question {str(ask)[:50]!r}.")
            told, matrix = {"samples": int(data.samples[0])}, data.dense()[0]
    except InvalidInput as refusal:
        told = {"refused": str(refusal)}
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
        told = {"refused": "This is no question that a run asks of records."}
    written = io.BytesIO()
    if matrix is not None:
        np.save(written, np.ascontiguousarray(matrix))
    return json.dumps(told).encode() + b"\n" + written.getvalue()


class _Line(socketserver.StreamRequestHandler):
    timeout = _PATIENCE

    def handle(self) -> None:
        try:
            line = self.rfile.readline(_LONGEST)
            self.wfile.write(answer(self.server.kept, line))  # type: ignore[attr-defined]
        except OSError:
            pass  # who asked is gone


class Service(socketserver.ThreadingUnixStreamServer):
    """Answers over a socket that the owner's group may use, and nobody else."""

    daemon_threads = True

    def __init__(self, address: Path, kept: Kept) -> None:
        address.unlink(missing_ok=True)
        mask = os.umask(0o117)
        try:
            super().__init__(str(address), _Line)
        finally:
            os.umask(mask)
        self.kept = kept


def serve(address: str, node: Mapping[str, Any]) -> None:
    """Keep a client's records until the process ends."""
    kept = Kept(position(node), source(node, {}), node)
    kept.state()
    with Service(Path(address), kept) as service:
        service.serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1], json.loads(sys.argv[2]))
