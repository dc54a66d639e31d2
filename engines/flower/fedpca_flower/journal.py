"""What the server was told, in order and on its disk, so that a run which was stopped can go on.

All that a server knows follows from its job and from what it was told. A resumed run therefore goes
through its rounds again, hears the journal instead of its clients, and asks them where that ends.
Clients file their memory under the job's number, which the journal keeps.
"""

import secrets
from dataclasses import replace
from pathlib import Path
from typing import Any

from fedpca_core.errors import InvalidInput, require
from fedpca_flower.job import FedJob
from fedpca_flower.records import Groups, Told, load_arrays, save_arrays

Entry = tuple[Told, Groups]


class Journal:
    """Entries of one job.

    ``folder``: Of the server's own; None keeps nothing.
    ``resume``: Go on from what the folder holds; otherwise that is deleted.
    ``number``: Of the job, 16 hexadecimal digits.

    Raises InvalidInput: nothing to go on from, or the journal of another job.
    """

    def __init__(self, job: FedJob, folder: Path | None = None, *, resume: bool = False) -> None:
        # Rounds and patience may be other ones.
        terms = repr(replace(job, rounds=1, timeout=1.0, patience=0.0))
        self._folder, self._own = folder, secrets.token_hex(8)
        files = [] if folder is None else sorted(folder.glob("*.npz"))
        if not resume:
            for file in files:
                file.unlink()
            files = []
        self._entries = [_read(file) for file in files]
        self._written = len(files)
        require(
            bool(files) or not resume,
            f"There is no run to go on with in {folder}; start it without resume.",
        )
        self.number = self._own
        if files:
            first, _ = self._entries.pop(0)
            self.number = first["number"]
            require(
                first["terms"] == terms,
                f"The run in {folder} was asked for with other settings ({first['terms']:.300}); "
                "use the same ones, or start without resume.",
            )
        else:
            self.add({"number": self.number, "terms": terms}, {})

    @property
    def session(self) -> str:
        """The server's process: that of the next entry while there is one, and then this one."""
        return self._entries[0][0]["session"] if self._entries else self._own

    def next(self, kind: str) -> Entry | None:
        """The next entry, if it is of this kind; None where there is none.

        Raises InvalidInput: a question is due, and the journal tells of another one.
        """
        if not self._entries or (kind == "roster" and self._entries[0][0]["kind"] != kind):
            return None
        told, groups = self._entries.pop(0)
        require(
            told["kind"] == kind,
            f"The journal tells of “{told['kind']}” where the run asks “{kind}”; it belongs to "
            "another version of the program, so start without resume.",
        )
        return told, groups

    @property
    def replays(self) -> bool:
        """Whether entries are left."""
        return bool(self._entries)

    def add(self, told: Told, groups: Groups) -> None:
        """Write an entry down."""
        if self._folder is not None:
            entry = {**told, "session": self._own}
            save_arrays(self._folder / f"{self._written:06d}.npz", entry, groups)
            self._written += 1

    def close(self) -> None:
        """Delete what a finished run needs no more."""
        if self._folder is not None:
            for file in self._folder.glob("*.npz"):
                file.unlink()
            self._folder.rmdir()


def _read(file: Path) -> tuple[Told, dict[str, dict[str, Any]]]:
    try:
        return load_arrays(file)
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInput(
            f"{file} cannot be read ({error}); start without resume, or restore it."
        ) from None
