"""Worker processes: studies run outside the server's interpreter, and can be ended at once.

The server's own process only serves; while a study computes elsewhere, dials and other visitors
never wait for the interpreter lock. A worker takes one study at a time and sends its steps back.
When a visitor stops it, it is asked first and ended if it does not listen; a new one takes its
place. What a worker may use of the memory is limited.
"""

import atexit
import gc
import itertools
import math
import multiprocessing
import os
import pickle
import resource
import signal
import threading
import time
from bisect import insort
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from itertools import takewhile
from multiprocessing import spawn
from multiprocessing.connection import Connection
from typing import Any

from dashboard.shell import limits
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.catalogue import RUNNABLE
from fedpca_core.remembered import forget_everything
from fedpca_core.settings import Settings
from fedpca_core.steps import Run, Step, changed, outcome
from fedpca_core.study import InPieces, OwnData, Study

#: What is said before the work has begun.
WAITING = Step[Any](0.0, "Waiting for a free processor", waits=True)
#: Jobs of more estimated seconds than this are long: they have turns and workers of their own,
#: which give way to everything else.
LONG_SECONDS = 5.0
#: What follows the first piece of a result is done from so many seconds on after its beginning, if
#: others wait: a first picture for everybody. Longer than people leave a dial alone, since a server
#: that makes second pieces first falls behind and stays there.
LATER_SECONDS = 20.0
#: Finished pieces may take this share of what is kept of results; the oldest go first.
PIECES_SHARE = 0.25
#: How far the quick workers, and those for long jobs, give way to the server and to each other:
#: a dial is turned quickly while a study of minutes is under way, whatever the number of cores.
NICE = {False: 3, True: 10}
#: How often somebody who wants to stop is listened to while pieces run.
LOOK_SECONDS = 0.2
#: How often whoever waits for a worker is asked whether to go on waiting.
WAIT_SECONDS = 0.5
#: How long a worker that was asked to stop may take to do so.
GRACE_SECONDS = 0.3
#: Where so many wait for each worker, a first look comes before the first piece.
CROWD = 4
#: How long a study may be silent before whoever waits for it is asked whether to go on.
SILENCE_SECONDS = 0.2


@contextmanager
def _without_main() -> Iterator[None]:
    """Start a process that imports nothing of the program's main module.

    Streamlit puts the page that runs into its place, in another thread and at any time, and a new
    process would begin by running that.
    """
    prepared = spawn.get_preparation_data

    def others(name: str) -> dict[str, Any]:
        found = prepared(name)
        return {key: value for key, value in found.items() if not key.startswith("init_main")}

    spawn.get_preparation_data = others
    try:
        yield
    finally:
        spawn.get_preparation_data = prepared


class Unlucky(InvalidInput):
    """Refused for what the same settings may not meet another time: no memory, a process gone."""


class Gone(Unlucky):
    """The process of a computation ended before it was done."""


#: One process is started at a time: `_without_main` changes what all threads use.
_STARTING = threading.Lock()


class Worker:
    """One process and the line to it; ``long``: one for long jobs, which gives way to others."""

    def __init__(self, long: bool = False) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["fedpca_core.questions.catalogue"])
        self._line, end = context.Pipe()
        self._ended, self._ending = False, threading.Lock()
        memory = limits.LIMITS.megabytes
        self._process = context.Process(target=serve, args=(end, memory, NICE[long]), daemon=True)
        with _STARTING, _without_main():
            self._process.start()
        end.close()

    @property
    def alive(self) -> bool:
        """Whether it can take a study: one that was killed may take a moment to be gone."""
        return not self._ended and self._process.is_alive()

    @property
    def pid(self) -> int | None:
        return self._process.pid

    def run(
        self, key: str, settings: Settings, data: OwnData | None, which: Sequence[Any] = ()
    ) -> Run[Any]:
        """Run a study there, or one of its pieces, step by step; closing the generator ends it.

        While the study is silent its last step is repeated, at which a visitor may leave.

        Raises InvalidInput: the study's own refusal, that it took too much memory, or that its
        process ended.
        """
        finished = False
        last: Step[Any] = Step(0.0, "Starting")
        try:
            file = None if data is None else (data.name, data.content)
            self._line.send((key, settings, file, which))
            yield last  # the wait is over, however soon the study has something to say
            while True:
                if not self._line.poll(SILENCE_SECONDS):
                    yield last
                    continue
                kind, content = self._line.recv()
                if kind == "step":
                    last = replace(content, result=None)
                    yield content
                    continue
                finished = True
                if kind == "result":
                    return content
                refused = {"refusal": InvalidInput, "short of memory": Unlucky}
                raise refused.get(kind, RuntimeError)(content)
        except (EOFError, OSError) as error:
            finished = True
            self.end()
            raise Gone(self._obituary()) from error
        finally:
            if not finished:
                self._end()

    def _end(self) -> None:
        """Ask the study to stop; end the process where it does not answer in time."""
        with suppress(OSError):
            self._line.send("stop")
            while self._line.poll(GRACE_SECONDS):
                try:
                    kind, _ = self._line.recv()
                except EOFError:
                    break
                if kind != "step":
                    return
        self.end()

    def end(self) -> None:
        """End the process at once; whoever comes second finds it done.

        When the server ends, a thread that hears the process go does this at the same time, and a
        line that is closed twice is a bad file descriptor, or somebody else's.
        """
        with self._ending:
            if self._ended:
                return
            self._ended = True
            self._process.kill()
            self._process.join(1.0)
            self._line.close()

    def _obituary(self) -> str:
        """That the process is gone, and what its exit code says of it; why, nobody knows."""
        code = self._process.exitcode
        if code is not None and code < 0:
            how = f"was ended by the system ({signal.Signals(-code).name})"
        else:
            how = f"ended by itself (code {code})"
        return (
            f"The process of this computation {how} and left no reason; press “Run again”, and "
            f"where it happens again choose smaller sizes, or {limits.ELSEWHERE}."
        )


class Turns:
    """Places for what computes at a time: who came first, and later the rest of a young result."""

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
        """How many go before whoever comes now: the rests of young results do not."""
        now = time.monotonic()
        with self._lock:
            return sum(due <= now for due, *_ in self._waiting)

    def _call(self) -> None:
        if self._free > 0 and self._waiting:
            self._waiting[0][2].set()


class Pool:
    """A few workers, used in turn, and as many for long jobs; whoever asks waits for one.

    Of the size 0 it computes in the server's own process, where long jobs leave a place to others.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        most = min(size or limits.AT_ONCE, limits.AT_ONCE)
        self._turns = {False: Turns(most), True: Turns(most if size else max(1, most - 1))}
        # Those that are free, in the order in which they became so; None is one to be started.
        self._free: dict[bool, deque[Worker | None]] = {
            long: deque([None] * size) for long in (False, True)
        }
        self._all: set[Worker] = set()
        self._lock, self._closed = threading.Lock(), False
        atexit.register(self.close)

    def start(self) -> None:
        """Start the quick workers before somebody needs them; the others come with a long job."""
        with self._lock:
            started = [Worker() for _ in range(self.size)]
            self._all.update(started)
            self._free[False] = deque(started)

    def run(
        self,
        study: Study[Any, Any],
        settings: Settings,
        data: OwnData | None,
        long: bool = False,
        begun: float | None = None,
        which: Sequence[Any] = (),
    ) -> Run[Any]:
        """Run a study on the next free worker; while there is none, steps say so.

        ``which`` holds the piece of it, if it is for one. ``begun`` says when the result began, if
        pieces of it came before: those who have none go first. Where a process ends amid its work,
        another one does it; where that ends too, nobody tries a third time.
        """
        asked = study.key, settings, data, which
        with self._turns[long].asked(begun) as mine:
            while not mine(WAIT_SECONDS):
                yield WAITING
            if not self.size:
                return (yield from _work(study, settings, data, which))
            with suppress(Gone):
                return (yield from self._once(long, *asked))
            return (yield from self._once(long, *asked))

    def _once(self, long: bool, *asked: Any) -> Run[Any]:
        worker = None  # its place is free again, too, where no process can be started
        try:
            with self._lock:
                worker = self._free[long].popleft()
                if worker is None or not worker.alive:
                    if self._closed:
                        raise Unlucky("The server is ending; open the page again when it is back.")
                    worker = Worker(long)
                    self._all.add(worker)
            return (yield from worker.run(*asked))
        finally:
            with self._lock:
                if worker is not None and not worker.alive:
                    self._all.discard(worker)
                    worker = None
                self._free[long].append(worker)

    def crowded(self, long: bool) -> bool:
        """Whether so many wait that outlines for all go before whole pictures for some."""
        return self._turns[long].waiting >= CROWD * max(1, self.size)

    def processes(self) -> list[int]:
        with self._lock:
            return [pid for worker in self._all if worker.alive and (pid := worker.pid)]

    def close(self) -> None:
        """End all workers and start none: one begun while the server ends hears half of it."""
        with self._lock:
            self._closed = True
            for worker in self._all:
                worker.end()
            self._all.clear()


class Pieces:
    """What was computed by what it depends on, for whoever needs it again, so many megabytes.

    Of jobs: one that was left begins anew when somebody comes back; what it had finished is here.
    """

    def __init__(self, megabytes: float, most: float = math.inf) -> None:
        self.megabytes, self._room, self._most = 0.0, megabytes, most
        self._lock, self._kept = threading.Lock(), OrderedDict[Hashable, tuple[Any, float]]()

    def find(self, key: Hashable) -> Any:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
            return None

    def keep(self, key: Hashable, piece: Any, megabytes: float | None = None) -> None:
        """Keep a piece; of those before, the ones that nobody asked for longest make room."""
        if megabytes is None:
            megabytes = len(pickle.dumps(piece, protocol=5)) / 2**20
        with self._lock:
            self.megabytes += megabytes - self._kept.pop(key, (None, 0.0))[1]
            self._kept[key] = piece, megabytes
            while len(self) > 1 and (self.megabytes > self._room or len(self) > self._most):
                self.megabytes -= self._kept.popitem(last=False)[1][1]

    def __len__(self) -> int:
        return len(self._kept)


PIECES = Pieces(PIECES_SHARE * limits.CACHE_MB)


@cache
def pool() -> Pool:
    """The workers of this server: as many as FEDPCA_WORKERS says."""
    return Pool(limits.WORKERS)


def run(
    study: Study[Any, Any], settings: Settings, data: OwnData | None, long: bool = False
) -> Run[Any]:
    return in_turn(pool(), study, settings, data, long)


def in_turn(
    workers: Pool,
    study: Study[Any, Any],
    settings: Settings,
    data: OwnData | None,
    long: bool = False,
) -> Run[Any]:
    """Run a study on workers: where many wait, a first look before the rest, which then gives way.

    A look that is refused says nothing of the whole.
    """
    began, looked = time.monotonic(), False
    divided = study.in_pieces(settings)
    if divided is not None:
        first = divided.piece_identity(settings, divided.pieces(settings)[0], data)
        looked = PIECES.find(first) is not None
    if workers.crowded(long) and not looked:
        with suppress(InvalidInput):
            if (look := study.first_look(settings)) is not None:
                quick = study.cost(look, data).seconds <= LONG_SECONDS
                run = workers.run(study, look, data, long and not quick)
                outlines = yield from changed(run, lambda step: replace(step, result=None))
                looked = True
                yield replace(WAITING, result=study.outlined(outlines), look=study.look_said(look))
    if divided is not None:
        return (yield from together(workers, divided, settings, data, long, looked))
    return (yield from workers.run(study, settings, data, long, began if looked else None))


def together(
    workers: Pool,
    study: InPieces[Any, Any],
    settings: Settings,
    data: OwnData | None,
    long: bool = False,
    looked: bool = False,
) -> Run[Any]:
    """Run the pieces of a study on all workers at once; those that are done are kept.

    A worker is given back after every piece, so that what somebody else asks for waits no longer
    than for one of them; and who has nothing to show yet goes before the second piece of others,
    and before all pieces of who has ``looked`` already.
    """
    pieces, stages, began = study.pieces(settings), study.stages(settings), time.monotonic()
    heard: list[Step[Any]] = [WAITING for _ in pieces]
    running: list[Future[Any]] = []
    left = threading.Event()

    @cache
    def at(stage: int) -> Any:
        return study.gathered(settings, [task.result() for task in running[:stage]])

    def one(number: int) -> Any:
        def watch(step: Step[Any]) -> bool:
            if step is not WAITING:
                last = heard[number].result
                heard[number] = step if step.result is not None else replace(step, result=last)
            return not left.is_set()

        which = pieces[number]
        if before := max((stage for stage in stages if stage <= number), default=0):
            which = study.narrowed(settings, which, at(before))
        key = study.piece_identity(settings, which, data)
        found = PIECES.find(key)
        if found is None:
            begun = began if looked or number > 0 else None
            found = outcome(workers.run(study, settings, data, long, begun, [which]), watch)
            if not left.is_set():  # what was left halfway is not kept
                PIECES.keep(key, found)
        return found

    with ThreadPoolExecutor(max(1, workers.size)) as threads:
        for number in range(len(pieces)):
            running.append(threads.submit(one, number))
        try:
            told: tuple[int, Any] = 0, None
            while (ready := len(list(takewhile(Future.done, running)))) < len(pieces):
                now, news = heard[ready], None
                if told[0] < ready or told[1] is not now.result:
                    for stage in stages:
                        if told[0] < stage <= ready and study.enough(settings, at(stage)):
                            return at(stage)
                    found = [task.result() for task in running[:ready]]  # one may be refused
                    told = ready, now.result
                    growing = [] if now.result is None else [now.result]
                    news = study.gathered(settings, found + growing)
                rest = [step for task, step in zip(running, heard, strict=True) if not task.done()]
                done, waits = len(pieces) - len(rest), all(step is WAITING for step in rest)
                begun = done > 0 or not waits
                fraction = (done + sum(step.fraction for step in rest)) / len(pieces)
                text = study.said(done, len(pieces), now.text)
                yield Step(fraction, text, news, waits=waits) if begun else WAITING
                wait(running[ready : ready + 1], LOOK_SECONDS if begun else WAIT_SECONDS)
            passed = (stage for stage in stages if study.enough(settings, at(stage)))
            return at(next(passed, len(pieces)))
        finally:
            left.set()
            for task in running:
                task.cancel()


def serve(line: Connection, memory_mb: int, nice: int) -> None:
    """What a worker does: take a study, send its steps, until the line is closed."""
    from threadpoolctl import threadpool_limits

    os.nice(nice)
    threadpool_limits(limits=1)
    # Let allocations beyond the limit fail inside this process, before the machine suffers.
    with open("/proc/self/statm", encoding="ascii") as statistics:
        used = int(statistics.read().split()[0]) * resource.getpagesize()
    limit = used + memory_mb * 2**20
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    gc.freeze()  # what was imported stays: to look through it takes some 70 ms every few pictures
    while True:
        try:
            task = line.recv()
        except (EOFError, OSError):
            return
        if task == "stop":
            continue  # it came after the study had ended
        key, settings, file, which = task
        data = None if file is None else OwnData(*file)
        try:
            line.send(_answer(line, key, settings, data, which))
        except (BrokenPipeError, OSError):
            return


def _answer(
    line: Connection, key: str, settings: Settings, data: OwnData | None, which: Sequence[Any]
) -> tuple[str, Any]:
    told = time.monotonic()

    def watch(step: Step[Any]) -> bool:
        nonlocal told
        if line.poll() and line.recv() == "stop":
            return False
        # How far it is may be told seldom: every step costs the server time as well.
        if step.result is not None or time.monotonic() - told > SILENCE_SECONDS:
            line.send(("step", step))
            told = time.monotonic()
        return True

    for _ in range(2):
        try:
            return "result", outcome(_work(RUNNABLE[key], settings, data, which), watch)
        except InvalidInput as refusal:
            return "refusal", str(refusal)
        except MemoryError:
            pass  # after this clause nothing holds what the run had made
        except Exception as error:
            return "failure", f"{type(error).__name__}: {error}"
        # What earlier studies left may be what it lacks.
        if not forget_everything():
            break
        gc.collect()
    return "short of memory", (
        "The computation took more memory than this server gives one "
        f"({limits.LIMITS.megabytes:,} MB, FEDPCA_MAX_MB); choose smaller sizes, or "
        f"{limits.ELSEWHERE}."
    )


def _work(study: Any, settings: Settings, data: OwnData | None, which: Sequence[Any]) -> Run[Any]:
    return study.run_piece(settings, *which, data) if which else study.run(settings, data)
