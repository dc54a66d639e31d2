"""Workers: the same results as here, ended at once, and no worse for what a study does to them."""

from __future__ import annotations

import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from dashboard.shell import jobs, workers
from dashboard.shell.jobs import Job, Registry
from dashboard.shell.limits import LIMITS
from dashboard.shell.workers import Pieces, Pool, Turns, Worker, together
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.catalogue import STUDIES
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.remembered import Remembered
from fedpca_core.steps import Step, outcome
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_core.study.study import InPieces

ROOT = Path(__file__).resolve().parents[2]
STUDY = STUDIES["convergence"]
TINY = ConvergeSettings(features=12, clients=3, components=2, rounds=30, starts=1, decay=1.3)
LONG = ConvergeSettings(features=200, clients=60, rounds=3000, methods=("variable_splitting",))


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(workers, "PIECES", Pieces(50.0))


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    one = Pool(1)
    one.start()
    yield one
    one.close()


def test_a_worker_gives_the_same_numbers(pool):
    here, there = outcome(STUDY.run(TINY)), outcome(pool.run(STUDY, TINY, None))
    pd.testing.assert_frame_equal(
        here.curves().drop(columns="seconds"), there.curves().drop(columns="seconds")
    )


def test_a_worker_ended_by_two_at_once_closes_its_line_once(monkeypatch):
    """As where the server ends and the thread that follows a study hears its process go."""
    worker = Worker()
    closed = []

    class Line:
        def close(self, line=worker._line):
            closed.append(line)
            time.sleep(0.1)  # the other comes meanwhile
            line.close()

    monkeypatch.setattr(worker, "_line", Line())
    others = [threading.Thread(target=worker.end) for _ in range(3)]
    for one in others:
        one.start()
    for one in others:
        one.join()
    assert len(closed) == 1 and not worker.alive


def test_a_server_that_ends_amid_work_says_nothing():
    """Its workers are ended with it, whatever they do, and nobody is left behind."""
    code = (
        "import threading\n"
        "from contextlib import suppress\n"
        "from dashboard.shell import workers\n"
        "from fedpca_core.errors import InvalidInput\n"
        "from fedpca_core.questions.catalogue import STUDIES\n"
        "from fedpca_core.study.pca_settings import ConvergeSettings\n"
        "begun = threading.Barrier(2)\n"
        "def follow(pool):\n"
        "    with suppress(InvalidInput):\n"
        "        run = pool.run(STUDIES['convergence'], ConvergeSettings(rounds=3000), None)\n"
        "        next(run), begun.wait(), list(run)\n"
        "if __name__ == '__main__':\n"
        "    pool = workers.Pool(1)\n"
        "    threading.Thread(target=follow, args=(pool,), daemon=True).start()\n"
        "    begun.wait()\n"
        "    print(*pool.processes())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )
    lines = [line for line in ended.stderr.splitlines() if "ScriptRunContext" not in line]
    assert (ended.returncode, lines) == (0, [])
    processes = ended.stdout.split()
    assert len(processes) == 1
    assert not any(Path("/proc", process, "exe").exists() for process in processes)


def test_a_worker_needs_no_streamlit():
    code = "import dashboard.shell.workers, sys; print({'streamlit', 'plotly'} & {*sys.modules})"
    told = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip() == "set()"


def test_a_pool_that_was_closed_starts_nothing():
    """A thread that finds its worker gone as the server ends would begin another one."""
    one = Pool(1)
    one.close()
    with pytest.raises(InvalidInput, match="The server is ending"):
        outcome(one.run(STUDY, TINY, None))
    assert one.processes() == []


def test_own_files_travel_to_the_worker(pool):
    own = OwnData(
        "own.csv", b"x,y,z\n" + b"".join(b"%d,%d,%d\n" % (i, i * i % 7, i % 5) for i in range(40))
    )
    chosen = ConvergeSettings(problem="table", clients=2, components=1, starts=1, rounds=10)
    assert outcome(pool.run(STUDY, chosen, own)).facts.features == 3


def test_a_computation_has_the_memory_that_the_limit_promises(pool):
    """Libraries that reserve addresses once took two thirds of it."""
    assert outcome(pool.run(STUDY, TINY, None)).complete
    (worker,) = [one for one in pool._all if one.alive]
    process = Path("/proc") / str(worker.pid)
    limit = re.search(r"Max address space +(\d+)", (process / "limits").read_text())
    taken = int((process / "statm").read_text().split()[0]) * resource.getpagesize()
    assert limit is not None
    assert (int(limit[1]) - taken) / 2**20 > 0.75 * LIMITS.megabytes


def test_a_long_job_has_a_worker_that_gives_way():
    pool = Pool(1)
    pool.start()
    run = pool.run(STUDY, LONG, None, long=True)
    while next(run).text == "Starting":
        pass
    assert outcome(pool.run(STUDY, TINY, None)).complete, "the quick worker is free"
    niceness = sorted(os.getpriority(os.PRIO_PROCESS, pid) for pid in pool.processes())
    run.close()
    pool.close()
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert niceness == [min(own + nice, 19) for nice in (workers.NICE[False], workers.NICE[True])]


def test_a_refusal_is_the_same_sentence(pool):
    with pytest.raises(InvalidInput, match="choose a CSV, Parquet or NumPy file"):
        outcome(pool.run(STUDY, ConvergeSettings(problem="table"), None))


def test_stopping_takes_a_moment_and_leaves_a_worker(pool):
    run = pool.run(STUDY, LONG, None)
    while next(run).fraction == 0.0:
        pass
    began = time.monotonic()
    run.close()
    assert time.monotonic() - began < 5.0
    assert outcome(pool.run(STUDY, TINY, None)).complete


def killed(pool: Pool, run: Iterator[Step], how: signal.Signals) -> None:
    """End the process that works on a study, as the system would."""
    next(run)
    (worker,) = pool._all
    before = worker._process.pid
    os.kill(before, how)
    while any(one._process.pid == before for one in pool._all):
        next(run)


def test_what_a_worker_was_at_when_it_died_is_done_by_another(pool):
    run = pool.run(STUDY, LONG, None)
    killed(pool, run, signal.SIGKILL)
    assert next(run).result is None
    run.close()
    assert outcome(pool.run(STUDY, TINY, None)).complete


def test_where_the_second_dies_too_it_says_what_is_known_and_does_not_guess(pool):
    run = pool.run(STUDY, LONG, None)
    killed(pool, run, signal.SIGKILL)
    with pytest.raises(workers.Unlucky, match="SIGTERM") as told:
        killed(pool, run, signal.SIGTERM)
    assert "left no reason" in str(told.value) and "memory" not in str(told.value)
    assert outcome(pool.run(STUDY, TINY, None)).complete


def test_three_starts_at_once_never_hang_and_leave_the_main_module_alone():
    before = sys.modules["__main__"]
    pool = Pool(3)
    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(lambda: outcome(pool.run(STUDY, TINY, None))) for _ in range(3)]
        assert all(one.result(timeout=90).complete for one in asked)
    assert sys.modules["__main__"] is before
    pool.close()


def test_a_page_that_runs_meanwhile_is_not_run_in_a_new_worker(tmp_path):
    """Streamlit puts it into the place of the main module, from a thread of its own."""
    page, before, over = ModuleType("__main__"), sys.modules["__main__"], threading.Event()
    page.__file__ = str(tmp_path / "page.py")
    (tmp_path / "page.py").write_text("raise RuntimeError('a page of ours')")

    def pages() -> None:
        while not over.wait(0.0001):
            sys.modules["__main__"] = page

    runner = threading.Thread(target=pages)
    runner.start()
    try:
        for _ in range(4):
            worker = Worker()
            assert outcome(worker.run(STUDY.key, TINY, None)).complete
            worker.end()
    finally:
        over.set()
        runner.join()
        sys.modules["__main__"] = before


class Crowd:
    """A pool of one worker that computes here, for which many wait."""

    size = 1

    def __init__(self, crowded: bool) -> None:
        self.asked: list[tuple[int, bool]] = []
        self._crowded = crowded

    def crowded(self, long: bool) -> bool:
        return self._crowded

    def run(self, study, settings, data, long=False, begun=None, which=()):
        self.asked.append((getattr(settings, "rounds", 0), begun is not None))
        return study.run_piece(settings, which[0], data) if which else study.run(settings, data)


@pytest.mark.parametrize("crowded", [True, False])
def test_where_many_wait_the_outlines_come_first_and_the_whole_is_the_same(crowded):
    chosen = replace(TINY, rounds=50, starts=2, methods=("block_krylov", "ssi"))
    pool, shown, looks = Crowd(crowded), [], []

    def watch(step: Step) -> bool:
        if step.result is not None:
            shown.append(step.result)
        looks.extend([step.look] if step.look else [])
        return True

    whole = outcome(workers.in_turn(pool, STUDY, chosen, None), watch)
    assert pool.asked == [(20, False)] * crowded + [(50, crowded), (50, True)]
    assert looks == ["A first look (rounds: 20, starts: 1)"] * crowded
    if crowded:
        assert not shown[0].complete and shown[0].rounds == 20
        assert set(shown[0].tables) == set(whole.tables)
    alone = outcome(STUDY.run(chosen))
    left_out = "seconds"
    for method, tables in alone.tables.items():
        for here, there in zip(tables, whole.tables[method], strict=True):
            pd.testing.assert_frame_equal(here.drop(columns=left_out), there.drop(columns=left_out))
    assert whole.complete


LOOKED_AT = [study for study in STUDIES.values() if study.look]


@pytest.mark.parametrize("study", LOOKED_AT, ids=lambda one: one.key)
def test_a_first_look_is_smaller_and_gives_way_to_the_whole(study):
    """Of every study that says what its coarse settings are; its job ends without the mark."""
    settings = study.settings()
    look = study.first_look(settings)
    assert study.first_look(look) is None
    assert study.cost(look).seconds < study.cost(settings).seconds
    job, pool = Job("a look"), Crowd(True)
    job.touch(ahead=60)
    found = jobs.follow(job, workers.in_turn(pool, study, look, None))
    assert found is not None and not job.look, "what is small already has no look before it"


def test_a_first_look_without_its_whole_is_said_to_be_one():
    job = Job("a look")
    job.touch()
    job.publish("outlines", "A first look (rounds: 20)")
    assert job.took == 0.0, "the wait for the rest is no work"
    job.stop()
    assert not job.wanted()
    assert jobs.how_stopped(job).endswith("is shown: a first look (rounds: 20).")


def test_a_refusal_after_a_first_look_takes_it_back():
    def refused(job: Job) -> None:
        job.publish("outlines", "A first look (rounds: 20)")
        raise InvalidInput("Too large.")

    job = Registry().submit("one", refused, 10.0)
    assert job.wait(5.0) and job.refusal == "Too large." and job.result is None


class Counted(InPieces):
    """Nine pieces, of which some of the stages may be enough."""

    key, title, settings, most = "counted", "Counted", ConvergeSettings, Cost()

    def pieces(self, settings):
        return range(9)

    def stages(self, settings):
        return 3, 6

    def enough(self, settings, result):
        return len(result) >= settings.clients

    def run_piece(self, settings, which, data):
        yield Step(0.5, "half", which)
        return which

    def piece_identity(self, settings, which, data):
        return which

    def gathered(self, settings, found):
        return list(found)

    def tables(self, result, settings):
        return {}


@pytest.mark.parametrize(("wanted", "done"), [(2, 3), (4, 6), (7, 9)])
def test_a_stage_that_is_enough_ends_a_study_wherever_it_runs(wanted, done):
    asked = replace(TINY, clients=wanted)
    assert outcome(Counted().run(asked)) == list(range(done))
    assert outcome(together(Crowd(False), Counted(), asked, None)) == list(range(done))


class Narrowing(Counted):
    """Pieces that hang on what the stage before them came to."""

    def narrowed(self, settings, which, before):
        return which + 100 * len(before)


def test_a_piece_hangs_on_the_stage_before_it_wherever_it_runs():
    asked, known = replace(TINY, clients=20), [0, 1, 2, *(303, 304, 305), *(606, 607, 608)]
    assert outcome(Narrowing().run(asked)) == known
    crowd = Crowd(False)
    crowd.size = 3
    assert outcome(together(crowd, Narrowing(), asked, None)) == known


class Needless(Counted):
    """Nothing is left to be told after the first stage, and what begins then is refused, while the
    page is still drawing what came before."""

    def __init__(self):
        self.drawing, self.refused = threading.Event(), threading.Event()

    def narrowed(self, settings, which, before):
        if self.refused.is_set():
            time.sleep(0.5)  # the others take a while
        self.refused.set()
        raise InvalidInput("No piece is left.")

    def run_piece(self, settings, which, data):
        assert which < 2 or self.drawing.wait(10.0)
        return (yield from super().run_piece(settings, which, data))

    def gathered(self, settings, found):
        if threading.current_thread() is threading.main_thread() and not self.drawing.is_set():
            self.drawing.set()
            assert self.refused.wait(10.0)
            time.sleep(0.1)  # until its thread has ended
        return list(found)


def test_a_piece_that_is_refused_after_enough_is_known_refuses_nothing():
    crowd = Crowd(False)
    crowd.size = 2
    study = Needless()
    assert outcome(together(crowd, study, replace(TINY, clients=2), None)) == [0, 1, 2]
    assert study.refused.is_set()


def test_a_pool_is_crowded_where_many_wait_for_each_worker():
    turns, pool = Turns(0), Pool(2)
    pool._turns[False] = turns
    with ExitStack() as hall:
        for _ in range(workers.CROWD * 2 - 1):
            hall.enter_context(turns.asked())
        assert not pool.crowded(False)
        hall.enter_context(turns.asked())
        assert pool.crowded(False) and not pool.crowded(True)
        assert turns.waiting == workers.CROWD * 2
        for _ in range(3):  # the rest of what has a picture goes before nobody
            hall.enter_context(turns.asked(time.monotonic()))
        assert turns.waiting == workers.CROWD * 2
    assert not pool.crowded(False)
    pool.close()


def test_where_no_process_can_be_started_the_next_one_tries_again(monkeypatch):
    pool = Pool(1)
    with monkeypatch.context() as full:
        full.setattr(workers, "Worker", lambda long: (_ for _ in ()).throw(OSError("no room")))
        with pytest.raises(OSError, match="no room"):
            outcome(pool.run(STUDY, TINY, None))
    assert outcome(pool.run(STUDY, TINY, None)).complete
    pool.close()


def test_whoever_waits_is_told_so(pool):
    outcome(pool.run(STUDY, TINY, None))  # from here on it is quicker than anybody asks how far
    quick = list(iter_steps(pool.run(STUDY, TINY, None)))
    assert quick[0].text == "Starting" and not any(step.waits for step in quick)
    first = pool.run(STUDY, LONG, None)
    next(first)
    second = pool.run(STUDY, TINY, None)
    waiting = next(second)
    assert waiting.text == "Waiting for a free processor" and waiting.waits
    second.close()
    first.close()


class InTurns(Counted):
    """Two pieces that get their turns and end when a test says so."""

    def __init__(self):
        self.turns, self.ends = ([threading.Event() for _ in range(2)] for _ in range(2))

    def pieces(self, settings):
        return range(2)

    def stages(self, settings):
        return ()

    def piece_identity(self, settings, which, data):
        return self, which

    def run_piece(self, settings, which, data):
        while not self.turns[which].wait(0.01):
            yield workers.WAITING
        while not self.ends[which].wait(0.01):
            yield Step(0.5, "half")
        return which


def test_a_study_waits_while_none_of_its_pieces_computes():
    """Before, between and beside them: only the time in which one computes is its own."""
    study, crowd = InTurns(), Crowd(False)
    crowd.size = 2
    run = together(crowd, study, TINY, None)

    def soon(waits: bool, fraction: float) -> bool:
        steps = (next(run) for _ in range(20))
        return any(step.waits is waits and step.fraction == fraction for step in steps)

    with closing(run):
        assert next(run).waits
        study.turns[1].set()
        assert soon(False, 0.25), "the other one computes"
        study.ends[1].set()
        assert soon(True, 0.5), "half is done, and nothing computes"
        study.turns[0].set()
        assert soon(False, 0.75)
        study.ends[0].set()
        assert outcome(run) == [0, 1]


PIECES = FrontierSettings(
    features=8, clients=3, samples=50, components=2, rounds=10, seeds=2, searches=False,
    candidates=("ssi", "one_shot"),
)  # fmt: skip


def test_pieces_on_all_workers_give_the_same_table(pool):
    study = STUDIES["frontier"]
    here, there = outcome(study.run(PIECES)), outcome(together(pool, study, PIECES, None))
    pd.testing.assert_frame_equal(
        here.table.drop(columns="seconds"), there.table.drop(columns="seconds")
    )


@pytest.mark.parametrize("here", [False, True])
def test_what_was_finished_before_somebody_left_is_not_computed_again(here, pool, monkeypatch):
    pool = Pool(0) if here else pool
    run = together(pool, STUDIES["frontier"], PIECES, None)
    pieces = STUDIES["frontier"].pieces(PIECES)
    first = STUDIES["frontier"].piece_identity(PIECES, pieces[0], None)
    while workers.PIECES.find(first) is None:  # a result before that is of half a piece
        next(run)
    run.close()
    asked: list[FrontierSettings] = []
    ask = pool.run

    def counted(study, settings, data, long, begun, which):
        assert (begun is None) == (which == [pieces[0]]), "who has nothing yet goes first"
        asked.extend(which)
        return ask(study, settings, data, long, begun, which)

    monkeypatch.setattr(pool, "run", counted)
    outcome(together(pool, STUDIES["frontier"], PIECES, None))
    assert 0 < len(asked) < len(pieces) and asked == list(pieces)[-len(asked) :]
    again = outcome(together(pool, STUDIES["frontier"], replace(PIECES, across="rounds"), None))
    assert len(asked) < len(pieces) and len(again.table)  # another axis computes nothing
    pieces = STUDIES["frontier"].pieces(replace(PIECES, seed=1))
    outcome(together(pool, STUDIES["frontier"], replace(PIECES, seed=1), None))
    assert len(asked) >= len(pieces)  # another seed does


def test_of_many_pieces_the_one_that_nobody_asked_for_is_forgotten():
    large, tiny = bytes(400_000), b"new"
    kept = Pieces(1.0)
    for name in "ab":
        kept.keep(name, large)
    kept.keep("b", large)
    assert kept.find("a") is large
    kept.keep("c", large)
    kept.keep("d", tiny)
    assert [kept.find(name) for name in "abcd"] == [large, None, large, tiny]


def test_a_study_that_grows_shows_its_first_piece_and_then_its_next(pool):
    slow = ConvergeSettings(decay=1.002, rounds=2000, clients=40, methods=("variable_splitting",))
    steps = list(iter_steps(together(pool, STUDY, slow, None)))
    fractions = [step.fraction for step in steps]
    assert fractions == sorted(fractions)
    shown = [step.result for step in steps if step.result is not None]
    assert any(not one.complete and one.unfinished for one in shown), "half a start"
    assert any(not one.complete and not one.unfinished for one in shown), "a start of two"
    assert {step.text for step in steps[1:]} >= {"1 of 2 starts: Variable splitting"}


def iter_steps(run):
    while True:
        try:
            yield next(run)
        except StopIteration:
            return


def test_pieces_that_are_stopped_leave_the_workers_to_others(pool):
    run = together(pool, STUDIES["frontier"], PIECES, None)
    while next(run).result is None:
        pass
    run.close()
    assert outcome(pool.run(STUDY, TINY, None)).complete


def test_a_silent_study_is_asked_and_ended_all_the_same(pool):
    assert outcome(pool.run(STUDY, TINY, None)).complete
    (worker,) = [one for one in pool._all if one.alive]
    os.kill(worker._process.pid, signal.SIGSTOP)
    run = pool.run(STUDY, TINY, None)
    steps = [next(run) for _ in range(3)]
    assert all(step.fraction == 0.0 and step.result is None for step in steps)
    run.close()
    assert not worker.alive
    assert outcome(pool.run(STUDY, TINY, None)).complete


def test_a_worker_that_was_ended_is_never_used_again(pool, monkeypatch):
    run = pool.run(STUDY, LONG, None)
    next(run)
    (worker,) = [one for one in pool._all if one.alive]
    # On a busy machine a killed process may still be there when somebody looks.
    monkeypatch.setattr(worker._process, "is_alive", lambda: True)
    worker.end()
    assert not worker.alive
    run.close()
    assert outcome(pool.run(STUDY, TINY, None)).complete


def test_what_earlier_studies_left_makes_room_for_one_that_lacks_memory(monkeypatch):
    kept: Remembered[int] = Remembered(1)
    tries = []

    class Hungry:
        def run(self, settings, data):
            tries.append(len(kept))
            if len(kept) or settings == LONG:
                kept.get("its own", lambda: 2)
                raise MemoryError
            yield Step(0.5, "half")
            return "fed"

    monkeypatch.setitem(workers.RUNNABLE, "hungry", Hungry())
    here, _there = multiprocessing.Pipe()
    kept.get("earlier", lambda: 1)
    assert workers._answer(here, "hungry", TINY, None, ()) == ("result", "fed")
    assert tries == [1, 0]
    kind, sentence = workers._answer(here, "hungry", LONG, None, ())
    assert kind == "short of memory"
    assert "more memory than this server gives" in sentence
    assert tries == [1, 0, 0, 0]  # a second time, no third
