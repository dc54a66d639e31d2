"""A study of independent pieces, each of them settings of the same study.

A piece can be run anywhere and in any order: one after the other here, in several processes by the
dashboard (`dashboard.shell.workers`), or by itself from its own link. What a piece gives does not
depend on who runs it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Generic, TypeVar

from fedpca_core.settings import Settings
from fedpca_core.steps import Run, Step, changed
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study

S = TypeVar("S", bound=Settings)
R = TypeVar("R")


class Divided(Study[S, R], Generic[S, R]):
    """A study whose work falls into pieces.

    Class attributes
    ----------------
    unit : str
        What the pieces are, for the progress bar.
    """

    unit: ClassVar[str] = "pieces"

    @property
    def worker(self) -> Study[Any, Any]:
        """The study that does one piece, whose result may be another than the whole's."""
        return self

    @abstractmethod
    def pieces(self, settings: S) -> Sequence[Settings]:
        """The settings of the pieces, those to see first in front; none where this is a piece."""

    def piece(self, settings: Any, data: OwnData | None) -> Run[Any]:
        """The work of one piece."""
        return self.worker.run(settings, data)

    @abstractmethod
    def gathered(self, settings: S, found: Sequence[Any]) -> R | None:
        """One result from those of the pieces that are done, in the order of `pieces`.

        The last may be of a piece that is not done yet. None while there is nothing to show.
        """

    def said(self, done: int, pieces: int, doing: str) -> str:
        """How far the pieces have come, for the progress bar."""
        return f"{done} of {pieces} {self.unit}: {doing}"

    def run(self, settings: S, data: OwnData | None = None) -> Run[R]:
        pieces = self.pieces(settings)
        if not pieces:
            return (yield from self.piece(settings, data))
        found: list[Any] = []

        def news(step: Step[Any]) -> Step[R]:
            growing = [] if step.result is None else [step.result]
            so_far = self.gathered(settings, found + growing) if growing else None
            fraction = (len(found) + step.fraction) / len(pieces)
            return Step(fraction, self.said(len(found), len(pieces), step.text), so_far)

        for one in pieces:
            found.append((yield from changed(self.piece(one, data), news)))
            done = len(found)
            text = self.said(done, len(pieces), "done")
            yield Step(done / len(pieces), text, self.gathered(settings, found))
        whole = self.gathered(settings, found)
        assert whole is not None
        return whole
