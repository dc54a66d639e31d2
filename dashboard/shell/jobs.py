"""Long computations as jobs: progress, stop, partial results, and a cache by configuration.

A job follows a study that runs in a worker process (`dashboard.shell.workers`; in a thread of
the server where there are none), never touches Streamlit, survives reruns and page switches, and is
shared by all visitors who ask for the same thing. It ends early when somebody presses Stop, when
the last tab that shows it is closed, when nobody has looked at it for a while, or at its deadline;
what it had computed by then is kept.
"""

from __future__ import annotations

import math
import pickle
import secrets
import threading
import time
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any, TypeGuard, TypeVar

import pandas as pd
import streamlit as st

from dashboard.shell import limits, log, meanwhile, streamlit_internals, workers
from dashboard.shell.controls import plain
from fedpca_core.errors import InvalidInput
from fedpca_core.settings import Settings
from fedpca_core.steps import Run, Step, outcome
from fedpca_core.study import OwnData, Study
from fedpca_core.study.here import MissingData, require_here
from fedpca_core.study.parts import words

S = TypeVar("S", bound=Settings)
R = TypeVar("R")

#: A job that nobody has looked at for this long is abandoned. A tab that is closed or asks for
#: something else says so; one whose looks come late, on a busy machine, is still watching.
ABANDONED_SECONDS = 30.0
#: Finished jobs kept per server process, as far as `limits.CACHE_MB` goes; the oldest go first.
KEPT = 2000
#: A page looks at its unfinished job this often; it hears of the end at once.
LOOK_SECONDS = 0.5
#: For every job that is not done yet pages look this much more seldom, up to the longest pause:
#: where many wait, the processors are for the jobs.
CROWD_SECONDS, LONGEST_PAUSE = 0.1, 4.0
#: A page waits so long for its first result before it shows that it waits, where many do.
MOST_PATIENCE = 2.0
#: So often whoever waits listens whether the visitor asks for something else.
LISTEN_SECONDS = 0.1
#: What runs beside a page begins so late, for a dial that was turned is soon turned once more; the
#: page looks after that, since every look costs the browser as much as a part of a turn.
REST_SECONDS, FIRST_LOOK_SECONDS = 1.5, 2.5
#: What a page may ask for next begins so late, when its picture is drawn, and only where so few
#: jobs are under way to one that computes.
DRAWN_SECONDS, QUIET = 0.2, 2.0
#: So many looks of a tab may be on their way while it hears of a new address.
MOST_OVERTAKEN = 3
#: A page with a partial picture is not drawn anew before, and later where many jobs wait.
PARTIAL_SECONDS = 1.0
#: Where a session keeps what runs beside its page, and what it may ask for next.
_BESIDE, _NEXT = "_beside", "_next"


@dataclass
class Job:
    """One computation and how far it has come."""

    key: Hashable
    seconds: float = math.inf
    megabytes: float = 0.0
    fraction: float = 0.0
    text: str = workers.WAITING.text
    result: Any = None
    refusal: str | None = None
    stopped: bool = False
    late: bool = False
    unlucky: bool = False
    published: int = 0
    #: Where the result is a first look: what it is of.
    look: str = ""
    #: Seconds of work up to the last report, and when that was; None where nothing is done since.
    _worked: float = 0.0
    _since: float | None = None
    _seen: dict[Hashable, float] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _done: threading.Event = field(default_factory=threading.Event)
    _shows: threading.Event = field(default_factory=threading.Event)

    # ---------------------------------------------------------------- for the page
    @property
    def done(self) -> bool:
        return self._done.is_set()

    def touch(self, visitor: Hashable = None, ahead: float = 0.0) -> None:
        """Tell the job that a visitor is still looking, or will be within ``ahead`` seconds."""
        self._seen[visitor] = time.monotonic() + ahead

    def leave(self, visitor: Hashable = None) -> None:
        """Tell the job that a visitor has left; where nobody else looks, its next step ends it."""
        self._seen.pop(visitor, None)

    def stop(self) -> None:
        """Ask the job to end at its next report, keeping what it has."""
        self._stop.set()

    def refuse(self, sentence: str) -> Job:
        self.refusal = sentence
        self.end()
        return self

    def end(self) -> None:
        self._done.set()
        self._shows.set()

    def wait(self, seconds: float) -> bool:
        """Wait a moment for the end; returns `done`."""
        return self._done.wait(seconds)

    def wait_for_news(self, told: int, seconds: float) -> bool:
        """Wait a moment for the end, or for the first partial result where none was ``told``."""
        return (self._done if told else self._shows).wait(seconds)

    @property
    def took(self) -> float:
        """Seconds of work; a wait for a free processor is none."""
        return self._worked + (0.0 if self._since is None else time.monotonic() - self._since)

    # ---------------------------------------------------------------- for the work
    def report(self, fraction: float, text: str, waits: bool = False) -> bool:
        """Tell how far the work has come, and whether it waits; returns False when it must end."""
        self._worked, self._since = self.took, None if waits else time.monotonic()
        self.fraction, self.text = min(max(fraction, 0.0), 1.0), text
        return self.wanted()

    def publish(self, partial: Any, look: str = "") -> None:
        """Show a partial result, or a first look, while the work goes on."""
        self.result, self.look = partial, look
        if look:  # what comes now is a wait, and no work
            self._worked, self._since, self.text = 0.0, None, workers.WAITING.text
        self.published += 1
        self._shows.set()

    def wanted(self) -> bool:
        now = time.monotonic()
        abandoned = all(now - seen > ABANDONED_SECONDS for seen in list(self._seen.values()))
        late = self.took > self.seconds
        if self._stop.is_set() or abandoned or late:
            self.stopped, self.late = True, late
        return not self.stopped

    def to_repeat(self, followed: bool) -> bool:
        """Whether it ends without a result that somebody who asks now may expect."""
        if not (self.done or self.stopped) or self._stop.is_set():
            return False
        bound = self.late or self.unlucky
        return (self.stopped or bound) and not (bound and followed)


class Registry:
    def __init__(self) -> None:
        # Apart, for pages ask in every run how many are not done, and thousands are kept.
        self._open: dict[Hashable, Job] = {}
        self._kept = workers.Pieces(limits.CACHE_MB, KEPT)
        self._lock = threading.RLock()

    def find(self, key: Hashable) -> Job | None:
        with self._lock:
            return self._open.get(key) or self._kept.find(key)

    def submit(
        self,
        key: Hashable,
        work: Callable[[Job], Any],
        seconds: float,
        *,
        again: bool = False,
        visitor: Hashable = None,
        followed: bool = False,
    ) -> Job:
        """Return the job with this key, starting it if there is none (or ``again`` is set).

        A job that was abandoned is started anew when asked for again, one that ran into its
        deadline or found no memory unless whoever asks has ``followed`` it to there; one that
        somebody stopped stays as it was left.
        """
        with self._lock:
            job = self.find(key)
            if job is not None and not again and not job.to_repeat(followed):
                if not job.done:
                    job.touch(visitor)
                return job
            job = Job(key=key, seconds=seconds)
            job.touch(visitor)
            if len(self._unfinished()) >= limits.AT_ONCE + limits.WAITING:
                return job.refuse(
                    f"{limits.WAITING} computations are waiting for this server already; try again "
                    f"in a minute, or {limits.ELSEWHERE}."
                )
            self._open[key] = job
        threading.Thread(target=self._run, args=(job, work), daemon=True).start()
        return job

    def leave(self, visitor: Hashable) -> None:
        with self._lock:
            for job in self._open.values():
                job.leave(visitor)

    def pause(self) -> float:
        """Seconds between two looks at a job: longer while many are not done."""
        with self._lock:
            return min(LOOK_SECONDS + CROWD_SECONDS * len(self._unfinished()), LONGEST_PAUSE)

    def crowd(self) -> float:
        """How many jobs there are to one that computes; at least 1."""
        with self._lock:
            return max(1.0, len(self._unfinished()) / limits.AT_ONCE)

    def _unfinished(self) -> dict[Hashable, Job]:
        """The jobs that are not done; the others go to what is kept."""
        for key in [key for key, job in self._open.items() if job.done]:
            job = self._open.pop(key)
            self._kept.keep(key, job, job.megabytes)
        return self._open

    def state(self) -> dict[str, float]:
        with self._lock:
            unfinished = len(self._unfinished())
            kept = self._kept
            return {"unfinished": unfinished, "kept": len(kept), "kept_mb": kept.megabytes}

    def _run(self, job: Job, work: Callable[[Job], Any]) -> None:
        try:
            result = work(job)
            if result is not None and result is not job.result:
                job.result, job.look = result, ""
            job.megabytes = len(_written(job.result)) / 2**20
        except workers.Unlucky as refusal:
            job.refusal, job.unlucky = str(refusal), True
        except InvalidInput as refusal:
            job.refusal = str(refusal)
        except Exception as error:
            job.refusal = (
                f"The computation failed ({type(error).__name__}: {error}); "
                "change a setting and try again."
            )
        finally:
            if job.refusal is not None and job.look:
                job.result = None  # outlines of what there will not be
            job.end()
            job._seen.clear()
            ending = "refused" if job.refusal else "stopped" if job.stopped else "done"
            log.job(job.key, job.took, ending, job.megabytes)


def _written(result: Any, times: int = 100) -> bytes:
    """A result as bytes. Visitors see it already: where it grows meanwhile, it is begun anew."""
    try:
        return pickle.dumps(result, protocol=5)
    except RuntimeError:
        if not times:
            raise
        return _written(result, times - 1)


@st.cache_resource(show_spinner=False)
def registry() -> Registry:
    return Registry()


@st.cache_resource(
    show_spinner=False, scope="session", on_release=lambda visitor: registry().leave(visitor)
)
def visitor_here() -> str:
    """A name for this session; it is released as soon as the tab's connection ends."""
    return secrets.token_hex(8)


def study(
    study: Study[S, R],
    settings: S,
    draw: Callable[[R], None],
    *,
    data: OwnData | None = None,
    **how: Any,
) -> Job:
    """Run a study as a job and draw its result while it grows.

    ``data``: The visitor's own file, where the settings ask for one.
    ``how``: ``patience``, ``parts``, ``above``, ``sentences``, see `show`.
    """
    refusal, long, way_out = None, False, None
    try:
        require_here(study.needs(settings))
        long = limits.check(study, settings, data).seconds > workers.LONG_SECONDS
    except MissingData as absent:
        refusal = str(absent)
        way_out = partial(meanwhile.offer, settings, meanwhile.stored(study, settings))
    except InvalidInput as too_large:
        refusal = str(too_large)
    return show(
        study.identity(settings, data),
        lambda job: follow(job, workers.run(study, settings, data, long)),
        draw,
        name=study.key,
        seconds=min(study.seconds, limits.LIMITS.seconds),
        refusal=refusal,
        way_out=way_out,
        poster=None if data is not None else meanwhile.drawing(study, settings),
        **how,
    )


def _asked(
    study: Study[S, R],
    settings: S,
    data: OwnData | None = None,
    long: bool = False,
    rest: float = 0.0,
    **who: Any,
) -> Job:
    """The job of a study that no progress is shown of; ``who`` asks, see `Registry.submit`."""

    def run() -> Run[R]:
        rested = time.monotonic() + rest
        while time.monotonic() < rested:
            yield workers.WAITING
            time.sleep(LISTEN_SECONDS)
        return (yield from workers.run(study, settings, data, long))

    return registry().submit(
        study.identity(settings, data),
        lambda job: follow(job, run()),
        min(study.seconds, limits.LIMITS.seconds),
        **who,
    )


def ahead(study: Study[S, R], settings: S) -> None:
    """Start a study that the first visitor will ask for."""
    _asked(study, settings).touch(ahead=study.seconds)


def foresee(study: Study[S, R], settings: S) -> None:
    """Start a quick study that this page will ask for as soon as its widgets are drawn.

    What it has asked for already goes its way: how that ended is for the page to say.
    """
    if st.session_state.get(f"_job_{study.key}") != study.identity(settings):
        _in_advance(study, settings)


def perhaps(*asked: tuple[Study[Any, Any], Settings], rest: float = DRAWN_SECONDS) -> None:
    """Start quick studies that this page may ask for next, the likeliest first, unless many wait.

    They begin after some seconds of ``rest``, give way to everything, and end when the page asks
    for something else.
    """
    keys = [study.identity(settings) for study, settings in asked]
    for former in set(st.session_state.get(_NEXT, ())) - set(keys):
        _leave(former)
    st.session_state[_NEXT] = keys
    if registry().crowd() <= QUIET:
        for one in asked:
            _in_advance(*one, long=True, rest=rest)


def _in_advance(study: Study[S, R], settings: S, **how: Any) -> None:
    with suppress(InvalidInput):  # said where the page asks
        require_here(study.needs(settings))
        if limits.check(study, settings, None).seconds <= workers.LONG_SECONDS:
            _asked(study, settings, visitor=visitor_here(), **how)


def beside(
    study: Study[S, R],
    settings: S,
    draw: Callable[[R | None], None],
    *,
    part: str,
    data: OwnData | None = None,
) -> None:
    """Run a study of which nothing is told: it gives way to all others, and what it has is drawn.

    ``draw``: Draws a result, partial or final, or that there is none yet; on one that is too much
        for this server there is none ever.
    ``part``: The fragment of the page, by key, in which this is called.
    """
    visitor, key = visitor_here(), study.identity(settings, data)
    if (before := st.session_state.get(_BESIDE)) != key:
        _leave(before)
    st.session_state[_BESIDE] = key
    try:
        require_here(study.needs(settings))
        limits.check(study, settings, data)
    except InvalidInput:
        draw(None)
        return
    who: dict[str, Any] = {"visitor": visitor, "followed": before == key}
    job = _asked(study, settings, data, long=True, rest=REST_SECONDS, **who)
    pause = None if job.done else max(FIRST_LOOK_SECONDS, 2 * registry().pause())

    @st.fragment(run_every=pause)
    def look() -> None:
        job.touch(visitor, pause or 0.0)
        draw(job.result)
        if pause and job.done:
            streamlit_internals.run_again([part])  # without a further look

    look()


def asked(study: Study[Any, Any]) -> Job | None:
    """The job of a study that this page has asked for last."""
    return registry().find(st.session_state.get(f"_job_{study.key}"))


def forget(study: Study[Any, Any]) -> None:
    """The page does not ask for a study any more: it is left, and Share has nothing of it."""
    _leave(st.session_state.pop(f"_job_{study.key}", None))


def _leave(key: Hashable) -> None:
    if key is not None and (left := registry().find(key)) is not None:
        left.leave(visitor_here())


def follow(job: Job, run: Run[R]) -> R | None:
    """Do the work of a study for a job: report every step, publish what there is, stop if asked."""

    def watch(step: Step[R]) -> bool:
        if step.result is not None:
            job.publish(step.result, step.look)
        # Whoever left while the job waited for its turn does not want it any more.
        return job.report(step.fraction, step.text, step.waits)

    return outcome(run, watch)


def show(
    key: Hashable,
    work: Callable[[Job], Any],
    draw: Callable[[Any], None],
    *,
    name: str,
    seconds: float = 120.0,
    refusal: str | None = None,
    way_out: Callable[[], object] | None = None,
    patience: float = 0.8,
    parts: Sequence[str] = (),
    above: Job | None = None,
    sentences: bool = False,
    poster: Callable[[], None] | None = None,
) -> Job:
    """Run a job and draw its result, with progress and a Stop button while it lasts.

    Jobs that end within ``patience`` seconds are drawn at once and never show progress.

    ``key``: Identifies the computation (a frozen configuration).
    ``work``: Gets the job, reports through it, returns the result, which ``draw`` draws in place,
        partial or final.
    ``name``: Unique on the page; names the widgets.
    ``refusal``: Why it is not run at all; ``way_out`` draws what helps then, below it.
    ``parts``: The fragments of the page, by key, that depend on the job: when it has news, they and
        the picture run again. Without them the whole page does, which costs a server several times
        as much.
    ``above``: One further up on the page: where it was refused for the same reason, that is not
        repeated.
    ``sentences``: Whether what grows begins with sentences: its progress has room above and covers
        nothing, and none of an earlier answer stays beside a refusal.
    ``poster``: Draws what was computed earlier, until the first result of the page is whole.
    """
    asked, picture = f"_job_{name}", f"_drawn_{name}"
    visitor = visitor_here()
    before = st.session_state.get(asked)
    if before != key:
        _leave(before)
        # Of settings that were: it would be in the way.
        for former in {st.session_state.get(_BESIDE), *st.session_state.get(_NEXT, ())} - {key}:
            _leave(former)
    st.session_state[asked] = key

    def start(again: bool = False) -> Job:
        if refusal is not None:
            return Job(key).refuse(refusal)
        return registry().submit(
            key, work, seconds, again=again, visitor=visitor, followed=before == key
        )

    # A tab's look may have left before it heard of the address that this run has set.
    address, former_address = st.query_params.to_dict(), st.session_state.get(f"_address_{name}")
    st.session_state[f"_address_{name}"] = address
    overtaken = 0

    job = start()
    if before != key:
        until_told(job, patience)
    busy = not job.done
    told, drawn = 0, time.monotonic()
    bar, view = f"{name}_bar", f"{name}_view"

    def once_more() -> None:
        start(again=True)
        st.session_state[asked] = None  # as patient as with a new one
        st.rerun()

    def tell() -> None:
        """Have drawn what is not drawn yet, if it is time to."""
        nonlocal overtaken
        here = st.query_params.to_dict()
        if here != address and here == former_address and overtaken < MOST_OVERTAKEN:
            overtaken += 1  # what is drawn now would take that address back; the next look knows it
            return
        due = told == 0 or time.monotonic() - drawn > PARTIAL_SECONDS * registry().crowd()
        if not job.done and not (job.published > told and due):
            return
        if not parts:
            st.rerun()
        # The picture first: until it stands the progress does.
        streamlit_internals.run_again([view, bar, *parts] if job.done or told == 0 else [view])

    # It looks seldom, but every look waits for the first picture and for the end. The Stop button
    # stands outside: whatever is pressed inside would wait for the look to end.
    @st.fragment(key=bar)
    def progress() -> None:
        if job.done:
            st.empty()  # in its place: what a fragment inside has drawn may stay on a busy machine
            return
        posed = poster is not None and st.session_state.get(picture) is None
        pause, looks = registry().pause(), 0

        @st.fragment(run_every=pause)
        def look() -> None:
            nonlocal looks
            job.touch(visitor, pause)
            if looks:
                _heard(lambda seconds: job.wait_for_news(told, seconds), pause)
            looks += 1
            # Before the rest: here a run ends that a turned dial has replaced meanwhile.
            outlines = f"{job.look}; the rest follows. " * bool(job.look)
            st.progress(job.fraction, text=(meanwhile.MARK if posed else outlines) + job.text)
            if looks > 1:
                tell()

        with st.container():
            look()

    # Widgets inside a picture run the picture again, not the page.
    @st.fragment(key=view)
    def shown() -> None:
        nonlocal told, drawn
        running, told = not job.done, job.published  # before the result, which may grow meanwhile
        drawn = time.monotonic()
        former, result = st.session_state.get(picture, (draw, None))
        # The picture before stays, dimmed, until the new one has as much to show: while that is
        # computed, and beside the sentence that refuses it, but for sentences: beside a refusal
        # they read as the answer to what was asked.
        waits = running or (job.refusal is not None and not sentences)
        enough = bool(running and job.look) or as_much(job.result, result)
        dimmed = waits and result is not None and not enough
        posed = poster if running and result is None else None
        if not dimmed and posed is None:
            former, result = draw, job.result
        if result is not None:
            st.session_state[picture] = former, result
        # What stays for good keeps the contrast of its texts.
        look = "opacity: 0.45" if running else "filter: grayscale(1)"
        rules = [f".st-key-{name}_picture {{ {look}; }}"] if dimmed else []
        # Progress and Stop button stand outside of what has run again, and on a busy machine a
        # browser keeps them after they are gone.
        rules += [] if running else [f".st-key-{name}_busy {{ display: none; }}"]
        with st.container(gap=None):
            with st.container(key=f"{name}_status"):
                if not running:
                    _ending_told(job, name, once_more, above, way_out)
                    if dimmed:
                        st.caption(words("earlier-answer"))
            if result is not None:
                with st.container(key=f"{name}_picture"):
                    former(result)
            elif posed is not None:
                with st.container(key=f"{name}_picture"):
                    posed()
            elif running:
                st.skeleton(height=420)
            if rules:
                # With the span the rules stand here, and go when this runs again without them.
                st.html(f"<span></span><style>{' '.join(rules)}</style>")

    place = st.container(key=f"{name}_job{'_of_sentences' * sentences}", gap=None)
    with place.container(key=f"{name}_busy"):
        if busy:
            line, button = st.columns([6, 1], vertical_alignment="center")
            streamlit_internals.within(line, progress)
            button.button("Stop", key=f"{name}_stop", on_click=job.stop, width="stretch")
    streamlit_internals.within(place, shown)
    return job


def until_told(job: Job, patience: float) -> None:
    """Wait for the end so long, then for a first result; where many wait, for that at once."""
    news = partial(job.wait_for_news, 0)
    crowded = registry().crowd() > QUIET  # the rest comes late
    if not (job.done or _heard(news if crowded else job.wait, patience)):
        _heard(news, min(registry().pause(), MOST_PATIENCE) - patience)


def below(job: Job, name: str, draw: Callable[[Any], None]) -> None:
    """Draw more of a job's result elsewhere on the page; while it lasts, what was there before."""
    place = f"_below_{name}"
    if job.done:
        st.session_state[place] = draw, job.result
    former, result = st.session_state.get(place, (draw, job.result))
    if result is not None:
        former(result)


def as_much(new: Any, old: Any, told: Collection[Hashable] = ()) -> bool:
    """Whether a partial result has every part of the one before: all fields, as many entries.

    Of a part that is missing it may be ``told`` why, in a mapping from its key to a sentence.
    """
    if old is None or new is None:
        return old is None
    if is_dataclass(old):
        if type(new) is not type(old):
            return False
        pairs = [(getattr(new, one.name), getattr(old, one.name)) for one in fields(old)]
        told = {key for one, _ in pairs if _sentences(one) for key in one}
        return all(as_much(*pair, told) for pair in pairs if not _sentences(pair[1]))
    if not isinstance(old, (Mapping, pd.DataFrame)) or len(new) >= len(old):
        return True
    return isinstance(old, Mapping) and all(key in new or key in told for key in old)


def _sentences(found: Any) -> TypeGuard[Mapping[Hashable, str]]:
    return isinstance(found, Mapping) and all(isinstance(said, str) for said in found.values())


def _heard(wait: Callable[[float], bool], seconds: float) -> bool:
    """Wait for something, but no longer than until the visitor asks for something else.

    A run of Streamlit's that waits would keep the dial that was turned meanwhile waiting as well.
    """
    end = time.monotonic() + seconds
    with streamlit_internals.aside():
        while not (heard := wait(max(0.0, min(LISTEN_SECONDS, end - time.monotonic())))):
            if streamlit_internals.overtaken() or time.monotonic() >= end:
                break
    return heard


def how_stopped(job: Job) -> str:
    """Why a job has no whole result, what is shown of it, and what would finish."""
    shown = "what" if job.result is not None else "nothing"
    told = f"{shown} had been computed by then{' is shown' * (job.result is not None)}"
    told += f": {job.look[0].lower()}{job.look[1:]}." if job.look else "."
    if not job.late:
        return f"Stopped early: {told}"
    return (
        f"Stopped after {job.seconds:g} seconds of work, the most a run may take here: {told} "
        "Fewer features, clients, rounds or starts take less."
    )


def _ending_told(
    job: Job,
    name: str,
    again: Callable[[], None],
    above: Job | None,
    way_out: Callable[[], object] | None,
) -> None:
    if job.refusal is not None and above is not None and above.refusal == job.refusal:
        st.caption("Not computed, for the reason given above.")
    elif job.refusal is not None:
        st.warning(plain(job.refusal))
        if way_out is not None:
            way_out()
    elif job.stopped:
        line, button = st.columns([6, 1], vertical_alignment="center")
        line.caption(how_stopped(job))
        button.button("Run again", key=f"{name}_again", on_click=again, width="stretch")
