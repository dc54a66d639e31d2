"""Work step by step: a generator that says how far it has come and returns what it made.

Whoever runs it may stop at every step and keep what there is.
"""

from collections.abc import Callable, Collection, Generator, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Generic, TypeVar

R = TypeVar("R")
T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class Step(Generic[R]):
    #: Of the work done, between 0 and 1.
    fraction: float
    #: What is being done, for the progress bar.
    text: str
    #: The result so far, where a partial one can be shown; None keeps the one before.
    result: R | None = None
    #: Where the result is a first look, which is no part of the whole: what it is of.
    look: str = ""
    #: Whether nothing is done yet, or just now, for want of a free processor.
    waits: bool = False


#: What a study does when it runs: steps on the way, the whole result at the end.
Run = Generator[Step[R], None, R]
#: A part of the work: progress on the way, something else than the study's result at the end.
Part = Generator[Step[Any], None, T]


def outcome(run: Run[R], watch: Callable[[Step[R]], bool] = lambda step: True) -> R | None:
    """Run a study to its end, or until ``watch`` says no; the last result there was."""
    result: R | None = None
    while True:
        try:
            step = next(run)
        except StopIteration as end:
            return end.value
        if step.result is not None:
            result = step.result
        if not watch(step):
            run.close()
            return result


def changed(steps: Generator[U, None, T], how: Callable[[U], Step[Any]]) -> Part[T]:
    while True:
        try:
            step = next(steps)
        except StopIteration as finished:
            return finished.value
        yield how(step)


def in_turn(
    things: Collection[U], begin: float = 0.0, end: float = 1.0
) -> Iterator[tuple[U, tuple[float, float]]]:
    """Each of some things, with the share of the whole from ``begin`` to ``end`` that it takes."""
    ends = [begin + (end - begin) * index / max(1, len(things)) for index in range(len(things) + 1)]
    yield from zip(things, pairwise(ends), strict=True)


def part(steps: Generator[Step[Any], None, T], begin: float, end: float) -> Part[T]:
    """A piece of a study that takes the share from ``begin`` to ``end`` of the whole.

    Results on the way belong to the piece and are left out.
    """
    share = end - begin
    return changed(
        steps, lambda step: replace(step, fraction=begin + share * step.fraction, result=None)
    )
