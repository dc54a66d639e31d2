"""One engine for whatever falls into pieces: starts, values of a sweep, cells of a paper's table.

A piece is settings of its own and knows nothing of the others, so pieces can be run anywhere and in
any order: one after the other here, in several processes by the dashboard, in another week by the
command line. Its labels say where it belongs and become columns of every table.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Generic, TypeVar

from fedpca_core.errors import InvalidInput
from fedpca_core.settings import Settings, Value
from fedpca_core.steps import Run, Step, changed
from fedpca_core.studies.limits import Cost
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.study import Study
from fedpca_core.study.result import Result, gathered, labelled

S = TypeVar("S", bound=Settings)

#: Where a piece belongs (columns of its tables), and its settings.
Place = tuple[Mapping[str, Value], Settings]


class Pieces(Study[S, Result], Generic[S]):
    """A study of independent pieces.

    Class attributes
    ----------------
    unit : str
        What the pieces are, for the progress bar.
    forgiving : bool
        Whether a piece that is refused leaves the others: its sentence is kept under its labels.
    """

    unit: ClassVar[str] = "pieces"
    forgiving: ClassVar[bool] = False

    @property
    def worker(self) -> Study[Any, Result]:
        """The study that does one piece, wherever that is."""
        return OnePiece(self)

    @abstractmethod
    def places(self, settings: S) -> Sequence[Place]:
        """The pieces, those to see first in front; none where these settings are one."""

    @abstractmethod
    def piece(self, settings: Any, data: OwnData | None) -> Run[Result]:
        """The work of one piece."""

    def pieces(self, settings: S) -> Sequence[Settings]:
        """The settings of the pieces."""
        return [piece for _, piece in self.places(settings)]

    def gathered(self, settings: S, found: Sequence[Result]) -> Result:
        """One result from those of the pieces that are done, in the order of `places`.

        The last may be of a piece that is not done yet.
        """
        places = self.places(settings)
        parts = [labelled(one, labels) for (labels, _), one in zip(places, found, strict=False)]
        return gathered(parts, complete=len(found) == len(places))

    def said(self, done: int, pieces: int, doing: str) -> str:
        """How far the pieces have come, for the progress bar."""
        return f"{done} of {pieces} {self.unit}: {doing}"

    def run(self, settings: S, data: OwnData | None = None) -> Run[Result]:
        places = self.places(settings)
        if not places:
            return (yield from self.excused(settings, data))
        found: list[Result] = []

        def news(step: Step[Result]) -> Step[Result]:
            growing = [] if step.result is None else [step.result]
            so_far = self.gathered(settings, found + growing) if growing else None
            fraction = (len(found) + step.fraction) / len(places)
            return Step(fraction, self.said(len(found), len(places), step.text), so_far)

        for labels, one in places:
            found.append((yield from changed(self.excused(one, data, labels), news)))
            done = len(found)
            text = self.said(done, len(places), "done")
            yield Step(done / len(places), text, self.gathered(settings, found))
        whole = self.gathered(settings, found)
        if whole.refusals and not any(len(table) for table in whole.tables.values()):
            raise InvalidInput(next(iter(whole.refusals.values())))
        return whole

    def excused(
        self, settings: Any, data: OwnData | None, labels: Mapping[str, Value] | None = None
    ) -> Run[Result]:
        """One piece; what refuses it is part of its result where the others shall go on."""
        try:
            return (yield from self.piece(settings, data))
        except InvalidInput as refusal:
            if not self.forgiving:
                raise
            named = ", ".join(f"{name} {value}" for name, value in (labels or {}).items())
            return Result(refusals={named or self.title: str(refusal)})

    def tables(self, result: Result, settings: S) -> dict[str, Any]:
        return dict(result.tables)


class OnePiece(Study[Any, Result]):
    """One piece of a study as a study of its own: what a worker process is given.

    Parameters
    ----------
    whole : Pieces
    """

    def __init__(self, whole: Pieces[Any]) -> None:
        self.whole = whole
        self.key = f"{whole.key}_piece"  # type: ignore[misc]
        self.title, self.settings = whole.title, whole.settings  # type: ignore[misc]

    def cost(self, settings: Settings, data: OwnData | None = None) -> Cost:
        return self.whole.cost(settings, data)

    def run(self, settings: Settings, data: OwnData | None = None) -> Run[Result]:
        return (yield from self.whole.excused(settings, data))

    def tables(self, result: Result, settings: Settings) -> dict[str, Any]:
        return dict(result.tables)


class Sweep(Pieces[S], Generic[S]):
    """The same measured at several values of one setting, perhaps from several seeds.

    Class attributes
    ----------------
    along : tuple of str and values
        The field that varies and its values, unless the settings choose them.
    """

    along: ClassVar[tuple[str, Sequence[Value]]]
    unit: ClassVar[str] = "points"
    forgiving: ClassVar[bool] = True

    def values(self, settings: S) -> Sequence[Value]:
        """The values, in the order in which they are computed."""
        return self.along[1]

    def seeds(self, settings: S) -> Sequence[int]:
        """Seeds over which a band is taken; the settings' own by default."""
        return (getattr(settings, "seed", 0),)

    def places(self, settings: S) -> Sequence[Place]:
        name = self.along[0]
        return [
            ({name: value, "seed": seed}, replace(settings, **{name: value, "seed": seed}))
            for value in self.values(settings)
            for seed in self.seeds(settings)
        ]
