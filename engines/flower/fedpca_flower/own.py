"""What is a client's own: its records, its secrets, and its terms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fedpca_core.errors import require
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.own_records import read_moments
from fedpca_core.problems.perturbation import Budget, release_source
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


def own_data(
    node: Mapping[str, Any],
    run: Mapping[str, Any],
    budget: Mapping[str, float] | None,
    streams: ClientStreams,
) -> ClientData:
    """The client's data as the run may use them: clipped and with noise where there is a budget."""
    columns = tuple(name for name in str(run.get("columns", "")).split(",") if name)
    source = _source(node, run)
    stamp = tuple(
        (path.name, path.stat().st_mtime_ns, path.stat().st_size)
        for path in (sorted(source.iterdir()) if source.is_dir() else [source])
        if path.exists()
    )
    terms = None if budget is None else (budget["epsilon"], budget["delta"], budget["clip"])
    return _own_data(source, stamp, columns, terms, streams if terms else None)


def _source(node: Mapping[str, Any], run: Mapping[str, Any]) -> Path:
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


@lru_cache(maxsize=64)
def _own_data(
    source: Path,
    stamp: tuple[tuple[str, int, int], ...],
    columns: tuple[str, ...],
    terms: tuple[float, float, float] | None,
    streams: ClientStreams | None,
) -> ClientData:
    """Read once a process as long as the files stay as they are (``stamp``)."""
    if terms is None or streams is None:
        return read_moments(source, columns)
    budget = Budget(*terms)
    clipped = read_moments(source, columns, budget.clip)
    return release_source(clipped, None, budget.clip, budget, streams).data
