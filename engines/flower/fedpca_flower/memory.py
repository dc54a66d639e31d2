"""What a client remembers between messages: in Flower's context, and in its own folder if any.

A SuperNode keeps a context as long as it runs. With a folder (``memory`` in the node's
configuration) the client also survives a restart of its machine: the file is written whole or not
at all, after the step and before the reply leaves.
"""

import re
from pathlib import Path
from typing import Any

from flwr.app import Context

from fedpca_core.arrays import AnyArray
from fedpca_core.errors import require
from fedpca_flower.records import load_arrays, opened, packed, save_arrays


class Memory:
    """Plain values and named arrays of one client in one job.

    ``job``: The job's number, which is that of a run that was resumed, too; the server gives it.

    ``told``: Plain values, ready for JSON.
    ``arrays``: ``state``, ``pending`` (a step whose upload is not known to have counted),
        ``agreed``.

    Raises InvalidInput: a number that is none, which would be part of a file's name.
    """

    def __init__(self, context: Context, job: object) -> None:
        require(
            isinstance(job, str) and bool(re.fullmatch("[0-9a-f]{16}", job)),
            "A job's number has 16 hexadecimal digits; the client refuses any other.",
        )
        self._context, self.job = context, str(job)
        folder = context.node_config.get("memory")
        self._file = Path(str(folder)) / f"run-{job}.npz" if folder else None
        self.told: dict[str, Any] = {}
        self.arrays: dict[str, dict[str, AnyArray]] = {}
        if context.state:
            self.told, self.arrays = opened(context.state)
        elif self._file is not None and self._file.exists():
            self.told, self.arrays = load_arrays(self._file)

    @property
    def on_disk(self) -> bool:
        """Whether the client remembers beyond a restart."""
        return self._file is not None

    def keep(self) -> None:
        """Write down what is remembered."""
        self._context.state = packed(self.told, **self.arrays)
        if self._file is not None:  # it holds the client's secrets
            save_arrays(self._file, self.told, self.arrays)
