"""Streamlit's insides: all that this program uses of them, and how it does without.

Streamlit promises none of it. Whatever stands here is looked up when it is needed, has to look as
it does in the version that it was written for, and has a way without it: a newer Streamlit may cost
speed, never a page. No other file imports what is not in Streamlit's reference.
"""

from __future__ import annotations

import math
import re
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import reduce, wraps
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException


@dataclass(frozen=True)
class Inside:
    """What stands at ``module:name.name``, the parameters that it has to take, and what has to be
    there as well."""

    place: str
    takes: tuple[str, ...] = ()
    beside: tuple[Inside, ...] = ()


_SESSION, _CONTEXT = "streamlit.runtime.app_session", "streamlit.runtime.scriptrunner_utils"
_QUEUE = "streamlit.runtime.forward_msg_queue:ForwardMsgQueue"
CLEAR = Inside(f"{_QUEUE}.clear", ("self", "retain_lifecycle_msgs", "fragment_ids_this_run"))
THEME = Inside(f"{_SESSION}:_populate_theme_msg", ("msg", "section"))
OPTIONS = Inside(f"{_SESSION}:_populate_config_msg", ("msg",))
REQUEST = Inside(f"{_SESSION}:AppSession.request_rerun", ("self", "client_state"))
_RUNNER = "streamlit.runtime.scriptrunner.script_runner"
RUN = Inside(f"{_RUNNER}:ScriptRunner._run_script", ("self",))
SCRIPT = Inside(f"{_RUNNER}:exec_func_with_error_handling", ("func", "ctx"), (RUN,))
RUN_HERE = Inside(f"{_CONTEXT}.script_run_context:get_script_run_ctx", ("suppress_warning",))
NOTHING_ASKED = Inside(f"{_CONTEXT}.script_requests:ScriptRequestType.CONTINUE")
SCOPED = Inside(f"{_CONTEXT}.script_run_context:ThreadState.scoped", ("overrides",))
CALLBACK = Inside(f"{_CONTEXT}.script_run_context:RunLocation.CALLBACK")
_SAFE = "streamlit.runtime.state.safe_session_state:SafeSessionState"
VALUES = Inside(f"{_SAFE}.__init__", ("self", "state", "yield_callback"))
UNBIND = Inside(
    "streamlit.runtime.state.query_params:QueryParams.unbind_widget", ("self", "widget_id")
)
PLACES = Inside("streamlit.delta_generator_singletons:context_dg_stack")
UPLOADS = Inside("starlette.formparsers:MultiPartParser")
#: Streamlit's document and its scripts, and those that draw the top of our front page.
INDEX = Path(st.__file__).parent / "static" / "index.html"
SCRIPTS = INDEX.parent / "static" / "js"
PARTS = ("Html", "ButtonGroup", "Checkbox", "Selectbox", "Slider", "BidiComponent")
#: Pages and parts of them that run at a time: they share one interpreter with the thread that sends
#: what they draw. Behind one that takes more than these seconds (a large table) none keeps waiting.
RUNS, LONGEST_SECONDS = 2, 1.0
_places, _begun = threading.BoundedSemaphore(RUNS), dict[int, float]()
#: Parts of messages that Streamlit has written, by what wrote them.
_written = dict[Hashable, Any]()
#: Of the values of a session, each as long as somebody who has it keeps them.
_locks = WeakValueDictionary[int, Any]()
_IMPORT = re.compile(r'(?:from|import)\s*"\./([^"/]+\.js)"')


def inside(what: Inside) -> Any:
    """What stands there; None where it is gone, takes other parameters, or is alone."""
    module, _, names = what.place.partition(":")
    try:
        found: Any = reduce(getattr, names.split("."), import_module(module))
        if what.takes and tuple(signature(found).parameters)[: len(what.takes)] != what.takes:
            return None
    except (ImportError, AttributeError, TypeError, ValueError):
        return None
    return None if any(inside(other) is None for other in what.beside) else found


# ---------------------------------------------------------------------- in Streamlit's place
def remembered(write: Any, msg: Any, *section: str, **named: str) -> None:
    """Copy a part of a message that was written before instead of writing it anew.

    Streamlit reads a hundred options each time a page or a fragment runs, and every look at a job
    is such a run. They stay as they are while the server runs; who changes the theme starts it
    again.
    """
    if not hasattr(msg, "MergeFrom"):
        return write(msg, *section, **named)
    part = write, section, tuple(named.items())
    if part not in _written:
        write(fresh := type(msg)(), *section, **named)
        _written[part] = fresh
    if _written[part].ByteSize():  # an empty section is not in the message at all
        msg.MergeFrom(_written[part])
    return None


def without_orphans(
    clear: Any,
    self: Any,
    retain_lifecycle_msgs: bool = False,
    fragment_ids_this_run: list[str] | None = None,
) -> None:
    """Drop with a container in Streamlit's queue what is inside it, when a fragment runs again.

    Streamlit drops what the fragment has drawn and not yet sent, and keeps what fragments inside it
    have, which hangs in containers that are dropped, and what stands behind it, which is counted
    from it. A browser that is told to draw into a container or behind a place that it never heard
    of shows an empty page until it is loaded again. It takes a server that is busy for a moment and
    a part that looks by itself, or a visitor who turns two dials, within that moment.

    Where a run has set a widget, all is sent that it has drawn, as if that had left a moment
    earlier: a browser that never hears of the value sends the former one again, and the press that
    has set it was for nothing.
    """
    before = getattr(self, "_queue", None)
    clear(self, retain_lifecycle_msgs, fragment_ids_this_run)
    if not (retain_lifecycle_msgs and isinstance(before, list)):
        return
    if any(map(_sets, before)):
        self._queue = before
    elif fragment_ids_this_run:
        self._queue = _in_their_places(before, self._queue)


def _sets(message: Any) -> bool:
    """Whether a message gives a widget a value that the visitor has not given it."""
    element = message.delta.new_element
    widget = getattr(element, element.WhichOneof("type") or "", None)
    return bool(getattr(widget, "set_value", False))


def _in_their_places(before: Sequence[Any], kept: Sequence[Any]) -> list[Any]:
    """What of the messages ``before`` is sent: the ``kept`` ones, and of the others the outermost.

    These keep the places, and what is inside them is drawn anew.
    """
    stays = {id(message) for message in kept}
    anew: set[tuple[int, ...]] = set()
    found = []
    for message in before:
        path = tuple(message.metadata.delta_path)
        if any(path[:depth] in anew for depth in range(1, len(path))):
            continue
        found.append(message)
        if id(message) in stays:
            anew.discard(path)
        else:
            anew.add(path)
    return found


def of_this_page(request: Any, self: Any, client_state: Any) -> None:
    """Leave undone what a part of a page asks for once the visitor has left it.

    A part that looks by itself, or a menu that closes because something else was pressed, asks a
    moment after the press that leads to another page. Streamlit would open the former page in the
    place of the new one, with nothing on it.
    """
    page, former = getattr(client_state, "page_script_hash", ""), vars(self).get("_page_of_run")
    if not getattr(client_state, "fragment_id", ""):
        self._page_of_run = page
    elif page and former and page != former:
        return
    request(self, client_state)


def with_one_lock(begin: Any, self: Any, state: Any, yield_callback: Callable[[], None]) -> None:
    """Let the runs of a session share the lock on its values.

    A run that was replaced goes on until its next message beside the one in its place, each with a
    lock of its own: where one lists what the other adds, a visitor sees an error in a page's place.
    """
    begin(self, state, yield_callback)
    if lock := vars(self).get("_lock"):
        object.__setattr__(self, "_lock", _locks.setdefault(id(state), lock))


def in_turn(script: Any, *given: Any) -> Any:
    """Run `RUNS` pages and parts of pages at a time, and the others after them.

    Of 300 at once each would end as late as the last. A page that waits has said that it runs.
    """
    if threading.get_ident() not in _begun:  # one that follows a callback's has it already
        _enter()
    return script(*given)


def whole_turn(run: Any, *given: Any) -> None:
    """All scripts of a run are one turn."""
    try:
        run(*given)
    finally:
        _leave()


def _enter() -> None:
    while not _places.acquire(timeout=LONGEST_SECONDS):
        if min([*_begun.values()], default=math.inf) < time.monotonic() - LONGEST_SECONDS:
            return  # without a place
    _begun[threading.get_ident()] = time.monotonic()


def _leave() -> bool:
    """Give the place back; whether there was one."""
    if held := _begun.pop(threading.get_ident(), None) is not None:
        _places.release()
    return held


#: What is ours in the place of Streamlit's.
OURS: Mapping[Inside, Callable[..., Any]] = {
    THEME: remembered,
    OPTIONS: remembered,
    CLEAR: without_orphans,
    REQUEST: of_this_page,
    VALUES: with_one_lock,
    SCRIPT: in_turn,
    RUN: whole_turn,
}


def prepare(upload_mb: int) -> None:
    """All that is done once for a process, before the first visitor.

    ``upload_mb``: Largest upload: it is held in memory whole, and need not pass through a file on
        disk.
    """
    for place, ours in OURS.items():
        put(place, ours)
    if hasattr(parser := inside(UPLOADS), "spool_max_size"):
        parser.spool_max_size = upload_mb * 2**20


def put(what: Inside, ours: Callable[..., Any]) -> None:
    """Put a function of ours, which gets Streamlit's first, in the place of that if it is there."""
    if (theirs := inside(what)) is None:
        return

    @wraps(theirs)
    def replaced(*given: Any, **named: Any) -> Any:
        return ours(theirs, *given, **named)

    module, _, names = what.place.partition(":")
    *holders, name = names.split(".")
    setattr(reduce(getattr, holders, import_module(module)), name, replaced)


# ---------------------------------------------------------------------- while a page runs
def _context() -> Any:
    return None if (here := inside(RUN_HERE)) is None else here(suppress_warning=True)


def overtaken() -> bool:
    """Whether the visitor asks for something else than the run under way; never, if unknown.

    A part of the page that looks again by itself asks for nothing.
    """
    nothing, requests = inside(NOTHING_ASKED), getattr(_context(), "script_requests", None)
    asked, what = getattr(requests, "_state", nothing), getattr(requests, "_rerun_data", None)
    by_itself = getattr(what, "is_auto_rerun", False) and getattr(what, "fragment_id_queue", [])
    return isinstance(asked, type(nothing)) and asked is not nothing and not by_itself


@contextmanager
def aside() -> Iterator[None]:
    """Let others run while this run waits for something."""
    held = _leave()
    yield
    if held:
        _enter()


def unbind(parameter: str) -> None:
    """Let the page write a parameter of the address until its widget is drawn again."""
    context, forget = _context(), inside(UNBIND)
    if context is None or forget is None:
        return
    with suppress(AttributeError, TypeError), context.session_state.query_params() as parameters:
        if bound := parameters.get_binding_for_param(parameter):
            forget(parameters, bound.widget_id)


def within(place: DeltaGenerator, fragment: Callable[[], None]) -> None:
    """Call a fragment inside a container.

    As ``with place: fragment()``, but Streamlit, which copies all that is entered and each with
    everything around it whenever a fragment runs, finds one container instead of half a dozen.
    """
    entered = inside(PLACES)
    around = entered.get() if hasattr(entered, "set") and hasattr(entered, "reset") else ()
    if not (isinstance(around, tuple) and around):
        with place:
            fragment()
        return
    before = entered.set((around[0], place))
    try:
        fragment()
    finally:
        entered.reset(before)


def run_again(parts: Sequence[str]) -> None:
    """Run fragments of the page again, by their keys; the page where one is not there.

    Streamlit takes their names from callbacks only. What it fears elsewhere, that the run under way
    ends there, is wanted here.
    """
    scoped, callback = inside(SCOPED), inside(CALLBACK)
    if scoped is not None and callback is not None:
        with (
            suppress(StreamlitAPIException, TypeError, RuntimeError),
            scoped(run_location=callback),
        ):
            st.rerun(list(parts))
    st.rerun()


# ---------------------------------------------------------------------- what is sent before
def scripts(known: str) -> list[str]:
    """Scripts for the top of the front page, and those that they need, but the ``known`` ones."""
    found = [path.name for part in PARTS for path in sorted(SCRIPTS.glob(f"{part}.*.js"))]
    for name in found:  # which grows meanwhile
        needed = _IMPORT.findall((SCRIPTS / name).read_text(encoding="utf-8"))
        there = [each for each in dict.fromkeys(needed) if (SCRIPTS / each).is_file()]
        found += [each for each in there if each not in found and each not in known]
    return found
