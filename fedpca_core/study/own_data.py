"""A visitor's own file: its content, known by what is in it and by nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from fedpca_core.errors import InvalidInput
from fedpca_core.problems.table_file import read_table, shape
from fedpca_core.study.files import read_whole


class NoFile(InvalidInput):
    """Settings ask for a visitor's own file, and there is none."""


@dataclass(frozen=True, eq=False)
class OwnData:
    """A file that a link or a configuration cannot carry."""

    #: The file's name, for sentences.
    name: str
    content: bytes

    @classmethod
    def of(cls, path: Path) -> OwnData:
        """Raises InvalidInput: the file cannot be read."""
        try:
            return cls(path.name, read_whole(path))
        except (OSError, ValueError) as error:  # a path may hold a NUL
            raise InvalidInput(
                f"The file {path} cannot be read ({getattr(error, 'strerror', error)}); give an "
                "existing file."
            ) from None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content: equal files are the same data, whoever brought them."""
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Rows and columns that the file promises; it is not parsed.

        Raises InvalidInput: its header is broken.
        """
        return shape(self.content, self.name)

    @cached_property
    def table(self) -> pd.DataFrame:
        """Raises InvalidInput: the file is no table; the sentence says why."""
        return read_table(self.content, self.name)
