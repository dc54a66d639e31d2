"""A study of independent pieces: starts, points of a sweep, sides, candidates.

A piece can be run anywhere and in any order: one after the other here, or on several processes by
the dashboard (`dashboard.shell.workers`). What it gives depends on nothing but its identity, so
what is kept of a run that was stopped is taken up by the next.
"""

from abc import abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar, Generic, Protocol, Self, TypeVar

from fedpca_core.settings import Settings
from fedpca_core.steps import Run, Step, changed
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study

S = TypeVar("S", bound=Settings)
R = TypeVar("R")


class KeptPieces(Protocol):
    """Where finished pieces are kept by their identity."""

    def find(self, key: Hashable) -> Any:
        """The piece, or None."""

    def keep(self, key: Hashable, piece: Any) -> None:
        """Keep a finished piece."""


class InPieces(Study[S, R], Generic[S, R]):
    """A study whose work falls into pieces.

    A piece is whatever tells it from the others, such as the number of a start. Where pieces are
    settings, `worker` does each; others say by `run_piece` and `piece_identity` what is done.

    ``unit``: What the pieces are, for the progress bar.
    """

    unit: ClassVar[str] = "pieces"

    @property
    def worker(self) -> Study[Any, Any]:
        """The study that does one piece, whose result may be another than the whole's."""
        return self

    def in_pieces(self, settings: S) -> Self | None:
        return self if self.pieces(settings) else None

    @abstractmethod
    def pieces(self, settings: S) -> Sequence[Any]:
        """The pieces, those to see first in front; none where the settings are of one piece."""

    def piece(self, settings: Any, data: OwnData | None) -> Run[Any]:
        """The work of settings that are of one piece."""
        return self.worker.run(settings, data)

    def run_piece(self, settings: S, which: Any, data: OwnData | None) -> Run[Any]:
        """The work of one of several pieces."""
        return self.worker.run(which, data)

    def piece_identity(self, settings: S, which: Any, data: OwnData | None) -> Hashable:
        """What a piece depends on."""
        if hasattr(which, "parameters"):  # settings
            return self.worker.identity(which, data)
        return self.identity(settings, data), which

    @abstractmethod
    def gathered(self, settings: S, found: Sequence[Any]) -> R | None:
        """One result from those of the pieces that are done, in the order of `pieces`.

        The last may be of a piece that is not done yet. None while there is nothing to show.
        """

    def stages(self, settings: S) -> Sequence[int]:
        """How many pieces may already be `enough`; whoever runs them asks there and nowhere else,
        so that the result does not hang on how fast each was."""
        return ()

    def narrowed(self, settings: S, which: Any, before: R | None) -> Any:
        """A piece as it is run, once it is known what the last stage ``before`` it came to."""
        return which

    def enough(self, settings: S, result: R | None) -> bool:
        """Whether the pieces that are left are not needed."""
        return False

    def said(self, done: int, pieces: int, doing: str) -> str:
        """How far the pieces have come, for the progress bar."""
        return f"{done} of {pieces} {self.unit}: {doing}"

    def run(self, settings: S, data: OwnData | None = None) -> Run[R]:
        return self.resumed(settings, data, None)

    def resumed(self, settings: S, data: OwnData | None, kept: KeptPieces | None) -> Run[R]:
        """Run the pieces in their order, but for those that are ``kept``."""
        pieces = self.pieces(settings)
        if not pieces:
            return (yield from self.piece(settings, data))
        found: list[Any] = []
        stages, before = self.stages(settings), None

        def news(step: Step[Any]) -> Step[R]:
            growing = [] if step.result is None else [step.result]
            so_far = self.gathered(settings, found + growing) if growing else None
            fraction = (len(found) + step.fraction) / len(pieces)
            return Step(fraction, self.said(len(found), len(pieces), step.text), so_far)

        for which in pieces:
            if before is not None:
                which = self.narrowed(settings, which, before)
            key = self.piece_identity(settings, which, data)
            one = None if kept is None else kept.find(key)
            if one is None:
                one = yield from changed(self.run_piece(settings, which, data), news)
                if kept is not None:
                    kept.keep(key, one)
            found.append(one)
            done = len(found)
            now = self.gathered(settings, found)
            if done in stages:
                before = now
            if done in stages and self.enough(settings, now):
                break
            yield Step(done / len(pieces), self.said(done, len(pieces), "done"), now)
        assert now is not None
        return now
