"""Long computations as jobs: progress, stop, partial results, and a cache by configuration.

A job follows a study that runs in a worker process (`dashboard.shell.workers`; in a thread of
the server where there are none), never touches Streamlit, survives reruns and page switches, and is
shared by all visitors who ask for the same thing. It ends early when somebody presses Stop, when
nobody has looked at it for a while (a closed tab), or at its deadline; what it had computed by then
is kept.
"""

from __future__ import annotations

import math
import pickle
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import streamlit as st

from dashboard.shell import limits, log, workers
from dashboard.shell.controls import plain
from dashboard.shell.turns import LONG_SECONDS, Turns
from fedpca_core.errors import InvalidInput
from fedpca_core.settings import Settings
from fedpca_core.studies.own_data import OwnData
from fedpca_core.studies.study import Run, Step, Study, outcome

S = TypeVar("S", bound=Settings)
R = TypeVar("R")

#: A job that nobody has looked at for this long is abandoned.
ABANDONED_SECONDS = 8.0
#: Finished jobs kept per server process, as far as `limits.CACHE_MB` goes; the oldest go first.
KEPT = 96


@dataclass
class Job:
    """One computation and how far it has come."""

    key: Hashable
    deadline: float = math.inf
    megabytes: float = 0.0
    fraction: float = 0.0
    text: str = "Waiting for a free processor"
    result: Any = None
    refusal: str | None = None
    stopped: bool = False
    started: float = field(default_factory=time.monotonic)
    _seen: float = field(default_factory=time.monotonic)
    _stop: threading.Event = field(default_factory=threading.Event)
    _done: threading.Event = field(default_factory=threading.Event)

    # ---------------------------------------------------------------- for the page
    @property
    def done(self) -> bool:
        """Whether nothing more will come."""
        return self._done.is_set()

    def touch(self, ahead: float = 0.0) -> None:
        """Tell the job that somebody is still looking, or will be within ``ahead`` seconds."""
        self._seen = time.monotonic() + ahead

    def leave(self) -> None:
        """Tell the job that this visitor has turned to something else.

        Unless somebody else is looking it ends within a second and frees its turn.
        """
        self._seen = min(self._seen, time.monotonic() - ABANDONED_SECONDS + 1.0)

    def stop(self) -> None:
        """Ask the job to end at its next report, keeping what it has."""
        self._stop.set()

    def refuse(self, sentence: str) -> Job:
        """End the job with a sentence instead of a result."""
        self.refusal = sentence
        self._done.set()
        return self

    def wait(self, seconds: float) -> bool:
        """Wait a moment for the end; returns `done`."""
        return self._done.wait(seconds)

    # ---------------------------------------------------------------- for the work
    def report(self, fraction: float, text: str) -> bool:
        """Tell how far the work has come; returns False when it must end."""
        self.fraction, self.text = min(max(fraction, 0.0), 1.0), text
        return self.wanted()

    def publish(self, partial: Any) -> None:
        """Show a partial result while the work goes on."""
        self.result = partial

    def wanted(self) -> bool:
        """Whether to go on: not stopped, not abandoned, not over time."""
        now = time.monotonic()
        abandoned = now - self._seen > ABANDONED_SECONDS
        if self._stop.is_set() or abandoned or now > self.deadline:
            self.stopped = True
        return not self.stopped


class Registry:
    """All jobs of the server process."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[Hashable, Job] = OrderedDict()
        self._lock = threading.Lock()
        self._turns = Turns(limits.AT_ONCE)

    def find(self, key: Hashable) -> Job | None:
        """The job with this key, if any."""
        with self._lock:
            return self._jobs.get(key)

    def submit(
        self,
        key: Hashable,
        work: Callable[[Job], Any],
        seconds: float,
        *,
        again: bool = False,
        long: bool = False,
    ) -> Job:
        """Return the job with this key, starting it if there is none (or ``again`` is set).

        A job that was abandoned or ran into its deadline is started anew when asked for again; one
        that somebody stopped stays as it was left.
        """
        with self._lock:
            job = self._jobs.get(key)
            abandoned = job is not None and job.stopped and not job._stop.is_set()
            if job is not None and not again and not (job.done and abandoned):
                self._jobs.move_to_end(key)
                job.touch()
                return job
            job = Job(key=key)
            if self._unfinished() >= limits.AT_ONCE + limits.WAITING:
                return job.refuse(
                    f"{limits.WAITING} computations are waiting for this server already; try again "
                    f"in a minute, or {limits.ELSEWHERE}."
                )
            self._jobs[key] = job
            self._forget()
        run = threading.Thread(target=self._run, args=(job, work, seconds, long), daemon=True)
        run.start()
        return job

    def _unfinished(self) -> int:
        return sum(not entry.done for entry in self._jobs.values())

    def _forget(self) -> None:
        """Drop the oldest results beyond what is kept."""
        finished = [name for name, entry in self._jobs.items() if entry.done]
        held = sum(self._jobs[name].megabytes for name in finished)
        for name in finished:
            if len(self._jobs) <= KEPT and held <= limits.CACHE_MB:
                return
            held -= self._jobs.pop(name).megabytes

    def state(self) -> dict[str, float]:
        """How many jobs there are and what is kept, for the operator."""
        with self._lock:
            held = sum(entry.megabytes for entry in self._jobs.values())
            waiting = self._unfinished()
            return {"unfinished": waiting, "kept": len(self._jobs) - waiting, "kept_mb": held}

    def _run(self, job: Job, work: Callable[[Job], Any], seconds: float, long: bool) -> None:
        began = time.monotonic()
        try:
            # Whoever left while the job waited for its turn does not want it any more.
            with self._turns.turn(long, job.wanted) as wanted:
                began = time.monotonic()
                job.deadline = began + seconds
                result = work(job) if wanted else None
                if result is not None:
                    job.result = result
            job.megabytes = len(pickle.dumps(job.result, protocol=5)) / 2**20
        except InvalidInput as refusal:
            job.refusal = str(refusal)
        except Exception as error:
            job.refusal = (
                f"The computation failed ({type(error).__name__}: {error}); "
                "change a setting and try again."
            )
        finally:
            job._done.set()
            log.job(job.key, time.monotonic() - began, _ending(job), job.megabytes)


def _ending(job: Job) -> str:
    return "refused" if job.refusal else "stopped" if job.stopped else "done"


@st.cache_resource(show_spinner=False)
def registry() -> Registry:
    """The registry of this server process."""
    return Registry()


def study(
    study: Study[S, R],
    settings: S,
    draw: Callable[[R], None],
    *,
    data: OwnData | None = None,
    name: str = "",
    patience: float = 0.8,
) -> Job:
    """Run a study as a job and draw its result while it grows; see `show`.

    Parameters
    ----------
    study : Study
    settings : Settings
        Of the study's class.
    draw : callable
        Draws a result, partial or final, in place.
    data : OwnData, optional
        The visitor's own file, where the settings ask for one.
    name : str
        Unique on the page; the study's key by default.
    """
    refusal, long = None, False
    try:
        long = limits.check(study, settings, data).seconds > LONG_SECONDS
    except InvalidInput as too_large:
        refusal = str(too_large)
    return show(
        study.identity(settings, data),
        lambda job: follow(job, workers.run(study, settings, data)),
        draw,
        name=name or study.key,
        seconds=min(study.seconds, limits.LIMITS.seconds),
        long=long,
        refusal=refusal,
        patience=patience,
    )


def ahead(study: Study[S, R], settings: S) -> Job:
    """Start a study that the first visitor will ask for."""
    job = registry().submit(
        study.identity(settings),
        lambda job: follow(job, workers.run(study, settings, None)),
        study.seconds,
    )
    job.touch(study.seconds)
    return job


def follow(job: Job, run: Run[R]) -> R | None:
    """Do the work of a study for a job: report every step, publish what there is, stop if asked."""

    def watch(step: Step[R]) -> bool:
        if step.result is not None:
            job.publish(step.result)
        return job.report(step.fraction, step.text)

    return outcome(run, watch)


def show(
    key: Hashable,
    work: Callable[[Job], Any],
    draw: Callable[[Any], None],
    *,
    name: str,
    seconds: float = 120.0,
    long: bool = False,
    refusal: str | None = None,
    patience: float = 0.8,
) -> Job:
    """Run a job and draw its result, with progress and a Stop button while it lasts.

    Jobs that end within ``patience`` seconds are drawn at once and never show progress.

    Parameters
    ----------
    key : hashable
        Identifies the computation (a frozen configuration).
    work : callable
        Gets the job, reports through it, returns the result.
    draw : callable
        Draws a result, partial or final, in place.
    name : str
        Unique on the page; names the widgets.
    seconds : float
        Deadline.
    long : bool
        Whether it is expected to take long; such jobs leave a place to the others.
    refusal : str, optional
        Why it is not run at all.
    """
    before = st.session_state.get(f"_job_{name}")
    if before is not None and before != key:
        left = registry().find(before)
        if left is not None:
            left.leave()
    st.session_state[f"_job_{name}"] = key

    def start(again: bool = False) -> Job:
        if refusal is not None:
            return Job(key).refuse(refusal)
        return registry().submit(key, work, seconds, again=again, long=long)

    job = start()
    job.wait(patience)
    running = not job.done
    picture = f"_drawn_{name}"

    @st.fragment(run_every=0.3 if running else None)
    def live() -> None:
        job.touch()
        if running and job.done:
            st.rerun()
        _status(job, name, lambda: start(again=True))
        old = st.session_state.get(picture)
        if job.result is not None:
            st.session_state[picture] = draw, job.result
            with st.container(key=f"{name}_picture"):
                draw(job.result)
        elif old is not None:
            # The picture before stays, dimmed, until there is something new to show: while it is
            # computed, and beside the sentence that refuses it.
            with st.container(key=f"{name}_picture"):
                st.html(f"<style>.st-key-{name}_picture {{ opacity: 0.45; }}</style>")
                former, result = old
                former(result)
        elif not job.done:
            st.skeleton(height=420)

    live()
    return job


def _status(job: Job, name: str, again: Callable[[], object]) -> None:
    """Progress and Stop while a job lasts (floating, so that nothing moves), and how it ended.

    Both places are always there: what was in one never shows up for a moment in the other.
    """
    with st.container(key=f"{name}_busy"):
        if not job.done:
            bar, button = st.columns([6, 1], vertical_alignment="center")
            bar.progress(job.fraction, text=job.text)
            button.button("Stop", key=f"{name}_stop", on_click=job.stop, width="stretch")
    with st.container(key=f"{name}_status"):
        if not job.done:
            return
        if job.refusal is not None:
            st.warning(plain(job.refusal))
        elif job.stopped:
            line, button = st.columns([6, 1], vertical_alignment="center")
            line.caption("Stopped early: what had been computed by then is shown.")
            if button.button("Run again", key=f"{name}_again", width="stretch"):
                again()
                st.rerun()
