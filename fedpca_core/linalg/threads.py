"""Where threads help: none within a product of small matrices, and one a client of large ones.

A product of small matrices is over before a second thread has woken up. Where other work keeps the
cores busy, the thread that has to be waited for makes a run several times slower, not faster; so
threads that share the clients among them, and wait for each other once, bear such work better than
threads that share every product. BLAS has the caller's setting back afterwards.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

#: Up to this many features a second thread gains little on idle cores and costs much on busy ones.
SMALL = 256
#: Multiplications worth a thread of their own, about a quarter of a millisecond.
LARGE = 4_000_000


class _Limit(AbstractContextManager[None]):
    """How many runs of this process want one thread, and the setting before the first of them.

    The setting belongs to the whole process and runs may overlap in several threads, so only the
    first one changes it and only the last one brings it back. A class, because it is entered in
    every round: a generator would cost twice as much.
    """

    def __init__(self) -> None:
        self.lock, self.users = Lock(), 0
        self.before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        with self.lock:
            if self.users == 0:
                self.before = _settings()
                for library, threads in self.before:
                    if threads != 1:
                        library.set_num_threads(1)
            self.users += 1

    def allowed(self) -> int:
        """How many threads BLAS may use where nothing limits it."""
        with self.lock:
            settings = self.before if self.users else _settings()
        return max((threads for _, threads in settings), default=1)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.users -= 1
            if self.users == 0:
                for library, threads in self.before:
                    if threads != 1:
                        library.set_num_threads(threads)


def _settings() -> list[tuple[Any, int]]:
    return [(library, library.get_num_threads()) for library in _libraries()]


@cache
def _libraries() -> list[Any]:
    """The linear-algebra libraries of this process; finding them takes milliseconds."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


@cache
def copies_nothing() -> bool:
    """Whether BLAS multiplies small matrices where they lie; OpenBLAS does by AVX-512."""
    able = {"SkylakeX", "Cooperlake", "Sapphirerapids"}
    return any(getattr(each, "architecture", None) in able for each in _libraries())


_LIMIT = _Limit()


def one_thread(features: int = 0) -> AbstractContextManager[None]:
    """Use one BLAS thread inside, if matrices of so many ``features`` are small; may be nested.

    `share_out` takes all threads even so.
    """
    return _LIMIT if features <= SMALL else nullcontext()


def share_out(work: Callable[[int], None], count: int, multiplications: int) -> None:
    """Call ``work(0) ... work(count - 1)``, in threads where a call makes many multiplications.

    There are as many threads as the caller lets BLAS use, and BLAS uses one in each.
    """
    threads = min(count, _LIMIT.allowed())
    if threads <= 1 or multiplications < LARGE:
        for index in range(count):
            work(index)
        return
    with one_thread(), ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(count)))  # raises what a call has raised


def share_rows(work: Callable[[slice], None], count: int, multiplications: int) -> None:
    """Call ``work`` with slices that make up ``count`` rows, each of so many multiplications.

    One slice where they are few, so that a stack of small matrices stays one call.
    """
    if count * multiplications < LARGE:
        return work(slice(0, count))
    parts = min(count, _LIMIT.allowed())
    ends = [count * part // parts for part in range(parts + 1)]
    share_out(lambda part: work(slice(ends[part], ends[part + 1])), parts, LARGE)
