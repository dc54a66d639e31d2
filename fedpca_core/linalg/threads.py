"""One BLAS thread while small matrices are multiplied, and the caller's setting back afterwards.

A product of small matrices is over before a second thread has woken up. Where other work keeps the
cores busy, the thread that has to be waited for makes a run several times slower, not faster.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

#: Up to this many features a second thread gains little on idle cores and costs much on busy ones.
SMALL = 256


class _Limit:
    """How many runs of this process want one thread, and the setting before the first of them.

    The setting belongs to the whole process and runs may overlap in several threads, so only the
    first one changes it and only the last one brings it back.
    """

    def __init__(self) -> None:
        self.lock, self.users = Lock(), 0
        self.before: list[tuple[Any, int]] = []

    def enter(self) -> None:
        with self.lock:
            if self.users == 0:
                self.before = [(each, each.get_num_threads()) for each in _libraries()]
                _set((each, 1) for each, threads in self.before if threads != 1)
            self.users += 1

    def leave(self) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                _set((each, threads) for each, threads in self.before if threads != 1)


def _set(wanted: Iterable[tuple[Any, int]]) -> None:
    for library, threads in wanted:
        library.set_num_threads(threads)


@cache
def _libraries() -> list[Any]:
    """The linear-algebra libraries of this process; finding them takes milliseconds."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


_LIMIT = _Limit()


def one_thread(features: int) -> AbstractContextManager[None]:
    """Use one BLAS thread inside, if matrices of so many ``features`` are small; may be nested."""
    return _Limited(features <= SMALL)


class _Limited(AbstractContextManager[None]):
    """A class, because it is entered in every round: a generator would cost twice as much."""

    def __init__(self, small: bool) -> None:
        self.small = small

    def __enter__(self) -> None:
        if self.small:
            _LIMIT.enter()

    def __exit__(self, *_: object) -> None:
        if self.small:
            _LIMIT.leave()
