"""Turns: who computes next, first come, first served."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Jobs of more estimated seconds than this are long: they have turns and workers of their own,
#: which give way to everything else.
LONG_SECONDS = 5.0


class Turns:
    """Places for jobs that compute at the same time."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._waiting: list[object] = []
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, wanted: Callable[[], bool]) -> Iterator[bool]:
        """Wait for a place and hold it; False, at once, where the job is not wanted any more."""
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            while (go := wanted()) and not (self._free > 0 and self._waiting[0] is ticket):
                self._changed.wait(0.5)
            self._waiting.remove(ticket)
            self._take(-1 if go else 0)
        try:
            yield go
        finally:
            with self._changed:
                self._take(1 if go else 0)

    def _take(self, change: int) -> None:
        self._free += change
        self._changed.notify_all()
