"""Turns: who computes next. Who came first, and whoever had a turn before somewhat later."""

from __future__ import annotations

import itertools
import threading
import time
from bisect import insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Jobs of more estimated seconds than this are long: they have turns and workers of their own,
#: which give way to everything else.
LONG_SECONDS = 5.0
#: Whoever had a turn before lets those pass who come within so many seconds: a first picture for
#: everybody, without keeping the other pieces from anybody for good.
LATER_SECONDS = 5.0


class Turns:
    """Places for what computes at the same time."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: list[tuple[float, int]] = []
        self._numbers = itertools.count()
        self._changed = threading.Condition()

    @contextmanager
    def asked(self, again: bool = False) -> Iterator[Callable[[float], bool]]:
        """Ask for a place: the function waits so many seconds for it and says whether it is there.

        The place is given back at the end.

        Parameters
        ----------
        again : bool
            Whether whoever asks had a place before for the same result.
        """
        ticket = time.monotonic() + LATER_SECONDS * again, next(self._numbers)
        held = False

        def mine(seconds: float) -> bool:
            nonlocal held
            with self._changed:
                if not held and self._changed.wait_for(first, seconds):
                    held = True
                    self._waiting.remove(ticket)
                    self._free -= 1
                    self._changed.notify_all()
            return held

        def first() -> bool:
            return self._free > 0 and self._waiting[0] == ticket

        with self._changed:
            insort(self._waiting, ticket)
        try:
            yield mine
        finally:
            with self._changed:
                if held:
                    self._free += 1
                else:
                    self._waiting.remove(ticket)
                self._changed.notify_all()
