"""What is a client's own: its records, its secrets, and its terms."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fedpca_core.errors import require
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.own_records import SUFFIXES, read_moments
from fedpca_core.problems.perturbation import Budget, perturbed, source_guarantee
from fedpca_core.streams import Streams

#: Streams that only the client may know; all others follow from the public seed.
_SECRET = ("private", "noise", "upload noise", "source noise", "mean noise")
#: Secret streams whose last key is the client.
_BY_CLIENT = ("source noise", "mean noise")


@dataclass(frozen=True)
class ClientStreams(Streams):
    """Public streams from the run's seed, secret ones from entropy of the client's own.

    With the run's seed in the place of the secret the draws are those of a run in one process,
    which makes runs comparable and protects nobody.
    """

    secret: int = 0
    client: int = 0

    def generator(self, name: str, *key: int) -> np.random.Generator:
        """Open the stream ``name``."""
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
    budget = None if terms is None else Budget(terms["epsilon"], terms["delta"], terms["clip"])
    sharers = 1 if terms is None else int(terms.get("sharers", 1))
    return _read(records, json.dumps(stamp(records)), named, budget, streams, sharers)


@lru_cache(maxsize=64)
def _read(
    records: Path,
    _: str,
    named: tuple[str, ...],
    budget: Budget | None,
    streams: ClientStreams | None,
    sharers: int,
) -> ClientData:
    if budget is None or streams is None:
        return read_moments(records, named)
    clipped = read_moments(records, named, budget.clip)
    noise = source_guarantee(clipped.samples, clipped.weights, budget)[0]
    return perturbed(clipped, noise / math.sqrt(sharers), streams)
