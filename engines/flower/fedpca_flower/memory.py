"""What a client remembers between messages: in Flower's context, and in its own folder if any.

A SuperNode keeps a context as long as it runs. With a folder (``memory`` in the node's
configuration) the client also survives a restart of its machine: the file is written whole or not
at all, after the step and before the reply leaves.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context

from fedpca_core.arrays import AnyArray
from fedpca_flower.records import opened, packed, whole


class Memory:
    """Plain values and named arrays of one run of one client.

    Attributes
    ----------
    run : int
        Flower's number of the run.
    told : dict
        Plain values, ready for JSON.
    arrays : dict of dicts of arrays
        ``state``, ``pending`` (a step whose upload is not known to have counted), ``agreed``.
    """

    def __init__(self, context: Context) -> None:
        self._context, self.run = context, int(context.run_id)
        folder = context.node_config.get("memory")
        self._file = Path(str(folder)) / f"run-{context.run_id}.npz" if folder else None
        self.told: dict[str, Any] = {}
        self.arrays: dict[str, dict[str, AnyArray]] = {}
        if context.state:
            self.told, self.arrays = opened(context.state)
        elif self._file is not None and self._file.exists():
            self._read(self._file)

    @property
    def on_disk(self) -> bool:
        """Whether the client remembers beyond a restart."""
        return self._file is not None

    def keep(self) -> None:
        """Write down what is remembered."""
        self._context.state = packed(self.told, **self.arrays)
        if self._file is not None:
            self._write(self._file)

    def _read(self, file: Path) -> None:
        with np.load(file, allow_pickle=False) as stored:
            self.told = json.loads(bytes(stored["told"]).decode())
            for name in stored.files:
                group, slash, key = name.partition("/")
                if slash:
                    self.arrays.setdefault(group, {})[key] = stored[name]

    def _write(self, file: Path) -> None:
        entries: dict[str, Any] = {
            f"{group}/{key}": array
            for group, arrays in self.arrays.items()
            for key, array in arrays.items()
        }
        entries["told"] = np.frombuffer(json.dumps(self.told).encode(), dtype=np.uint8)
        with whole(file, private=True) as written:  # it holds the client's secrets
            np.savez(written, **entries)
