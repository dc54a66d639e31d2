"""A study: settings in, results out, step by step, whole or in pieces.

Everything that a page computes is a study, and a study serves everything: the page draws its
result while it grows, the command line prints its tables, the download writes them, the cache
knows it by what it reads. A study is a generator, so whoever runs it may stop at every step and
keep what there is.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, Generic, Self, TypeVar, get_args

import pandas as pd

from fedpca_core.settings import Settings, Value
from fedpca_core.steps import Run, Step, changed
from fedpca_core.study.here import named
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData

S = TypeVar("S", bound=Settings)
R = TypeVar("R")


class Study(ABC, Generic[S, R]):
    #: Unique among all studies; names files and cache entries.
    key: ClassVar[str]
    title: ClassVar[str]
    #: What it runs from, as ``Study[...]`` says; several studies of a page share one class.
    settings: ClassVar[type[Settings]]
    #: Fields that the run reads; None stands for all that are not of the view.
    reads: ClassVar[frozenset[str] | None] = None
    #: The field of the settings that opens it on its page, and the value that does; None: always.
    opened_by: ClassVar[tuple[str, Value] | None] = None
    #: When a page gives up on it.
    seconds: ClassVar[float] = 120.0
    #: What it takes at the most, where its settings make no difference; others override `cost`.
    most: ClassVar[Cost]
    #: The most that each field may be in a first look, where many wait; empty: there is none.
    look: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for one in chain(*map(get_args, cls.__dict__.get("__orig_bases__", ()))):
            if hasattr(one, "parameters"):  # settings, not a result
                cls.settings = one

    def wanted(self, settings: S) -> bool:
        """Whether the page shows it with these settings."""
        if self.opened_by is None:
            return True
        name, value = self.opened_by
        return bool(getattr(settings, name) == value)

    def cost(self, settings: S, data: OwnData | None = None) -> Cost:
        """What a run will take, estimated without running anything."""
        return self.most

    def first_look(self, settings: S) -> S | None:
        """Settings whose result shows the outlines sooner, where many wait; None if none would."""
        less = {name: most for name, most in self.look.items() if getattr(settings, name) > most}
        return replace(settings, **less) if less else None

    def look_said(self, look: S) -> str:
        """What a first look is of."""
        described = look.parameters()
        sizes = [
            f"{described[name].label.lower()}: {described[name].texts(getattr(look, name))}"
            for name in self.look
            if not isinstance(getattr(look, name), bool)
        ]
        return f"A first look ({', '.join(sizes)})"

    def in_pieces(self, settings: S) -> Any:
        """Itself where its work falls into pieces (`InPieces`); None elsewhere."""
        return None

    def outlined(self, outlines: R) -> R:
        """A first look's result as it is shown before the rest."""
        return outlines

    def needs(self, settings: S) -> tuple[str, ...]:
        """Keys of the public data sets that a run reads; where one is missing it is refused."""
        return named(settings) if self.reads is None or "problem" in self.reads else ()

    @abstractmethod
    def run(self, settings: S, data: OwnData | None = None) -> Run[R]:
        """Compute, yielding a `Step` now and then and returning the result.

        Raises InvalidInput: settings or data that do not fit; the sentence names the remedy.
        """

    def tables(self, result: R, settings: S) -> dict[str, pd.DataFrame]:
        """Tidy tables by name; by default itself, or what is a table of its fields or entries."""
        if isinstance(result, pd.DataFrame):
            return {self.key: result}
        held = result if isinstance(result, Mapping) else vars(result)
        return {name: one for name, one in held.items() if isinstance(one, pd.DataFrame)}

    def identity(self, settings: S, data: OwnData | None = None) -> Hashable:
        """What the result depends on: the cache key, made here and nowhere else."""
        described = settings.parameters()
        fields = self.reads or {n for n, parameter in described.items() if not parameter.view}
        return self.key, *content_key(settings, fields, data)


def content_key(
    settings: Settings, fields: Collection[str], data: OwnData | None = None
) -> tuple[Hashable, ...]:
    """Some fields of settings and the content of a file: the key of whatever depends on these."""
    kept = tuple(
        (name, getattr(settings, name)) for name in settings.parameters() if name in fields
    )
    return kept, None if data is None else data.digest


def stacked(parts: Iterable[Mapping[str, Any] | pd.DataFrame]) -> pd.DataFrame:
    """Tables, or their columns by name, below each other; no columns where there are none."""
    tables = [pd.DataFrame(one) for one in parts]
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def registered(*studies: Study[Any, Any]) -> Mapping[str, Study[Any, Any]]:
    """Studies by key, in order.

    Raises ValueError: two with the same key.
    """
    found = {study.key: study for study in studies}
    if len(found) < len(studies):
        raise ValueError("Two studies share a key.")
    return found


class InPieces(Study[S, R], Generic[S, R]):
    """A study of independent pieces: starts, points of a sweep, sides, candidates.

    They can be run anywhere and in any order: one after the other here, or on several processes by
    the dashboard (`dashboard.shell.workers`). What a piece gives depends on nothing but its
    identity, so what is kept of a run that was stopped is taken up by the next.

    A piece is whatever tells it from the others, such as the number of a start. Where pieces are
    settings, it is run from each; others say by `run_piece` and `piece_identity` what is done.
    """

    #: What the pieces are, for the progress bar.
    unit: ClassVar[str] = "pieces"

    def in_pieces(self, settings: S) -> Self | None:
        return self if self.pieces(settings) else None

    @abstractmethod
    def pieces(self, settings: S) -> Sequence[Any]:
        """The pieces, those to see first in front; none where the settings are of one piece."""

    def piece(self, settings: Any, data: OwnData | None) -> Run[Any]:
        """The work of settings that are of one piece."""
        return self.run(settings, data)

    def run_piece(self, settings: S, which: Any, data: OwnData | None) -> Run[Any]:
        """The work of one of several pieces."""
        return self.run(which, data)

    def piece_identity(self, settings: S, which: Any, data: OwnData | None) -> Hashable:
        if hasattr(which, "parameters"):  # settings
            return self.identity(which, data)
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

    def narrowed(self, settings: S, which: Any, before: R) -> Any:
        """A piece as it is run, once it is known what the last stage ``before`` it came to."""
        return which

    def enough(self, settings: S, result: R | None) -> bool:
        """Whether the pieces that are left are not needed."""
        return False

    def said(self, done: int, pieces: int, doing: str) -> str:
        """How far the pieces have come, for the progress bar."""
        return f"{done} of {pieces} {self.unit}: {doing}"

    def run(self, settings: S, data: OwnData | None = None) -> Run[R]:
        """Run the pieces in their order."""
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
            found.append((yield from changed(self.run_piece(settings, which, data), news)))
            done, now = len(found), self.gathered(settings, found)
            if done in stages:
                before = now
                if self.enough(settings, now):
                    break
            yield Step(done / len(pieces), self.said(done, len(pieces), "done"), now)
        assert now is not None
        return now
