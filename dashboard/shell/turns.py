"""Turns: who computes next, so that long jobs never take all places from the short ones."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

#: Jobs of more estimated seconds than this are long.
LONG_SECONDS = 5.0


@dataclass(frozen=True, eq=False)
class _Ticket:
    long: bool


class Turns:
    """Places for jobs, first come, first served; one place is for short jobs only.

    Parameters
    ----------
    places : int
        Jobs at the same time; with a single place, short and long ones share it.
    """

    def __init__(self, places: int) -> None:
        self._free, self._free_for_long = places, max(1, places - 1)
        self._waiting: list[_Ticket] = []
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, long: bool, wanted: Callable[[], bool]) -> Iterator[bool]:
        """Wait for a place and hold it; False, at once, where the job is not wanted any more."""
        ticket = _Ticket(long)
        with self._changed:
            self._waiting.append(ticket)
            while (go := wanted()) and not self._first(ticket):
                self._changed.wait(0.5)
            self._waiting.remove(ticket)
            self._take(ticket, -1 if go else 0)
        try:
            yield go
        finally:
            with self._changed:
                self._take(ticket, 1 if go else 0)

    def _first(self, ticket: _Ticket) -> bool:
        """Whether this one is the first of those for whom there is a place."""
        fits = (one for one in self._waiting if not one.long or self._free_for_long > 0)
        return self._free > 0 and next(fits, None) is ticket

    def _take(self, ticket: _Ticket, change: int) -> None:
        self._free += change
        self._free_for_long += change if ticket.long else 0
        self._changed.notify_all()
