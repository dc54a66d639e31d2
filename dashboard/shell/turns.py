"""Turns: who computes next. Who came first; the rest of a young result somewhat later."""

import itertools
import threading
import time
from bisect import insort
from collections.abc import Callable, Iterator
from contextlib import contextmanager

#: Jobs of more estimated seconds than this are long: they have turns and workers of their own,
#: which give way to everything else.
LONG_SECONDS = 5.0
#: What follows the first piece of a result is done from so many seconds on after its beginning, if
#: others wait: a first picture for everybody. Longer than people leave a dial alone, since a server
#: that makes second pieces first falls behind and stays there.
LATER_SECONDS = 20.0


class Turns:
    """Places for what computes at the same time."""

    def __init__(self, places: int) -> None:
        self._free = places
        # Each with what wakes it: where many wait, none is woken for a turn of somebody else.
        self._waiting: list[tuple[float, int, threading.Event]] = []
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    @contextmanager
    def asked(self, begun: float | None = None) -> Iterator[Callable[[float], bool]]:
        """Ask for a place: the function waits so many seconds for it and says whether it is there.

        The place is given back at the end.

        ``begun``: Seconds of the clock at which the result began, where it had a place before.
        """
        called, now = threading.Event(), time.monotonic()
        due = now if begun is None else max(now, begun + LATER_SECONDS)
        ticket = due, next(self._numbers), called
        held = False

        def mine(seconds: float) -> bool:
            nonlocal held
            if held or not called.wait(seconds):
                return held
            with self._lock:
                if self._free > 0 and self._waiting[0] is ticket:
                    held = True
                    del self._waiting[0]
                    self._free -= 1
                    self._call()
                else:
                    called.clear()  # somebody came before
            return held

        with self._lock:
            insort(self._waiting, ticket)
            self._call()
        try:
            yield mine
        finally:
            with self._lock:
                if held:
                    self._free += 1
                else:
                    self._waiting.remove(ticket)
                self._call()

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def _call(self) -> None:
        if self._free > 0 and self._waiting:
            self._waiting[0][2].set()
