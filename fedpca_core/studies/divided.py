"""A study of independent pieces, each of them settings of the same study.

A piece can be run anywhere and in any order: one after the other here, in several processes by the
dashboard (`dashboard.shell.workers`), or by itself from its own link. What a piece gives does not
depend on who runs it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from fedpca_core.settings import Settings
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.study import Run, Step, Study, part

S = TypeVar("S", bound=Settings)
R = TypeVar("R")


class Divided(Study[S, R], Generic[S, R]):
    """A study whose work falls into pieces."""

    @property
    def worker(self) -> Study[S, R]:
        """The study that does one piece."""
        return self

    @abstractmethod
    def pieces(self, settings: S) -> Sequence[S]:
        """The settings of the pieces, those to see first in front; none where this is a piece."""

    def piece(self, settings: S, data: OwnData | None) -> Run[R]:
        """The work of one piece."""
        return self.worker.run(settings, data)

    @abstractmethod
    def gathered(self, settings: S, found: Sequence[R]) -> R:
        """One result from those of the pieces that are done, in the order of `pieces`."""

    def run(self, settings: S, data: OwnData | None = None) -> Run[R]:
        pieces = self.pieces(settings)
        if not pieces:
            return (yield from self.piece(settings, data))
        found: list[R] = []
        result: R | None = None
        for done, one in enumerate(pieces):
            ends = done / len(pieces), (done + 1) / len(pieces)
            found.append((yield from part(self.piece(one, data), *ends)))
            result = self.gathered(settings, found)
            yield Step(ends[1], said(done + 1, len(pieces)), result)
        assert result is not None
        return result


def said(done: int, pieces: int) -> str:
    """How far the pieces have come, for the progress bar."""
    return f"{done} of {pieces} pieces"
