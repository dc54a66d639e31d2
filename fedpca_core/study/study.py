"""A study: settings in, results out, step by step.

Everything that a page computes is a study, and a study serves everything: the page draws its
result while it grows, the command line prints its tables, the download writes them, the cache
knows it by what it reads. A study is a generator, so whoever runs it may stop at every step and
keep what there is.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, Generic, TypeVar, get_args

import pandas as pd

from fedpca_core.settings import Settings, Value
from fedpca_core.steps import Run
from fedpca_core.study.here import named
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData

S = TypeVar("S", bound=Settings)
R = TypeVar("R")


class Study(ABC, Generic[S, R]):
    """One computation of the laboratory.

    ``key``: Unique among all studies; names files and cache entries.
    ``settings``: What it runs from, as ``Study[...]`` says; several studies of a page share one
        class.
    ``opened_by``: The field of the settings that opens it on its page, and the value that does;
        None: it is always shown.
    ``seconds``: When a page gives up on it.
    ``most``: What it takes at the most, where its settings make no great difference; others
        override `cost`.
    ``look``: The most that each may be in a first look, where many wait; empty: there is none.
    """

    key: ClassVar[str]
    title: ClassVar[str]
    settings: ClassVar[type[Settings]]
    #: Fields that the run reads; None stands for all that are not of the view.
    reads: ClassVar[frozenset[str] | None] = None
    opened_by: ClassVar[tuple[str, Value] | None] = None
    seconds: ClassVar[float] = 120.0
    most: ClassVar[Cost]
    look: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for one in chain(*map(get_args, cls.__dict__.get("__orig_bases__", ()))):
            if hasattr(one, "parameters"):  # settings, not a result
                cls.settings = one

    def wanted(self, settings: S) -> bool:
        """Whether the page shows this study with these settings."""
        if self.opened_by is None:
            return True
        name, value = self.opened_by
        return bool(getattr(settings, name) == value)

    def cost(self, settings: S, data: OwnData | None = None) -> Cost:
        """What a run from these settings will take, estimated without running anything."""
        return self.most

    def first_look(self, settings: S) -> S | None:
        """Settings whose result shows the outlines of the picture sooner; None where none would.

        Who asks while many others do gets it before the rest. It is no part of the result.
        """
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
        """Itself where its work falls into pieces (`fedpca_core.study.pieces`); None elsewhere."""
        return None

    def outlined(self, outlines: R) -> R:
        """A first look's result as it is shown before the rest."""
        return outlines

    def needs(self, settings: S) -> tuple[str, ...]:
        """Keys of the public data sets that a run reads: it is refused before it begins where one
        is not on this machine."""
        return named(settings) if self.reads is None or "problem" in self.reads else ()

    @abstractmethod
    def run(self, settings: S, data: OwnData | None = None) -> Run[R]:
        """Compute, yielding a `Step` now and then and returning the result.

        Raises InvalidInput: settings or data that do not fit; the sentence names the remedy.
        """

    def tables(self, result: R, settings: S) -> dict[str, pd.DataFrame]:
        """The result as tidy tables by name: what the page offers as CSV, the command line
        prints and writes, and a test compares.

        By default the result itself, or what is a table of its fields or entries.
        """
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
