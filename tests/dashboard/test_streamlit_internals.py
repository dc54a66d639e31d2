"""Streamlit's insides: they are as expected, do what they are for, and are missed by no page."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.NewSession_pb2 import Config, CustomThemeConfig
from streamlit.runtime import app_session
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue
from streamlit.runtime.scriptrunner import script_runner
from streamlit.runtime.scriptrunner_utils import script_run_context
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData, ScriptRequests
from streamlit.runtime.state import SafeSessionState, SessionState
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.local_script_runner import LocalScriptRunner

from dashboard.shell import streamlit_internals as internals
from dashboard.shell.document import rewritten
from dashboard.shell.navigation import ENTRIES

ROOT = Path(__file__).resolve().parents[2]
RUN = script_runner.ScriptRunner, "_run_script"
SCRIPT = script_runner, "exec_func_with_error_handling"


@pytest.fixture
def as_streamlit_has_it(monkeypatch) -> None:
    """Nothing of Streamlit's is replaced before the test, nor after it."""
    written = [(app_session, f"_populate_{part}_msg") for part in ("theme", "config")]
    requests = app_session.AppSession, "request_rerun"
    values = (SafeSessionState, "__init__")
    for owner, name in ((ForwardMsgQueue, "clear"), requests, values, RUN, SCRIPT, *written):
        now = getattr(owner, name)
        monkeypatch.setattr(owner, name, getattr(now, "__wrapped__", now))


@pytest.fixture
def missing(monkeypatch, as_streamlit_has_it, tmp_path) -> None:
    """A Streamlit that has none of it."""
    monkeypatch.setattr(internals, "inside", lambda place: None)
    monkeypatch.setattr(internals, "SCRIPTS", tmp_path / "nowhere")


def replace(*places: internals.Inside) -> None:
    """Put what is ours there."""
    for place in places:
        internals.put(place, internals.OURS[place])


# ---------------------------------------------------------------------- what there is
#: All that is used, by its name.
INSIDES = {name: it for name, it in vars(internals).items() if isinstance(it, internals.Inside)}


@pytest.mark.parametrize("place", INSIDES.values(), ids=INSIDES)
def test_what_is_used_is_there_and_as_expected(place) -> None:
    """Where this fails with a newer Streamlit, pages run on; look at what they lose."""
    assert internals.inside(place) is not None


def test_what_is_gone_or_looks_otherwise_is_not_used(monkeypatch) -> None:
    monkeypatch.setattr(app_session, "_populate_theme_msg", lambda message, options: None)
    nowhere = ("streamlit.no_such_module:name", "streamlit.runtime:NoSuchName.at_all")
    for place in (internals.THEME, *map(internals.Inside, nowhere)):
        assert internals.inside(place) is None
    internals.put(internals.THEME, internals.remembered)
    assert app_session._populate_theme_msg.__name__ == "<lambda>", "left as it is"


# ---------------------------------------------------------------------- without all of it
@pytest.mark.parametrize("page", [entry.name for entry in ENTRIES])
def test_every_page_is_drawn_without_any_of_it(missing, page) -> None:
    app = AppTest.from_file(str(ROOT / "dashboard" / "main.py"), default_timeout=120).run()
    app.switch_page(f"../pages/{page}.py").run()
    assert not app.exception
    assert app.title[0].value


def pieces() -> None:
    import streamlit as st

    from dashboard.shell import streamlit_internals

    @st.fragment(key="dial")
    def dial() -> None:
        st.text(f"drawn {st.session_state.setdefault('runs', 0)}")

    streamlit_internals.within(st.container(), dial)
    st.session_state["runs"] += 1
    if st.session_state["runs"] < 3:
        streamlit_internals.run_again(["dial"])


@pytest.mark.parametrize("there", [True, False])
def test_a_fragment_is_drawn_and_run_again_either_way(request, there) -> None:
    if not there:
        request.getfixturevalue("missing")
    app = AppTest.from_function(pieces).run(timeout=30)
    assert not app.exception
    assert app.session_state["runs"] == (1 if there else 3), "the page runs again without"


def test_nothing_is_prepared_and_nothing_asked_for_early(missing) -> None:
    owned = (ForwardMsgQueue, "clear"), (app_session, "_populate_theme_msg")
    before = [getattr(*one) for one in (*owned, RUN, SCRIPT)]
    internals.prepare(50)
    assert [getattr(*one) for one in (*owned, RUN, SCRIPT)] == before
    assert internals.scripts("") == [] and not internals.overtaken()
    assert rewritten(b"<head></head>") == b"<head></head>"


# ---------------------------------------------------------------------- who is waited for
def test_a_dial_that_is_turned_is_heard(monkeypatch) -> None:
    requests = ScriptRequests()  # Streamlit's own: what a turned dial is noted in
    context = SimpleNamespace(script_requests=requests)
    monkeypatch.setattr(
        script_run_context, "get_script_run_ctx", lambda suppress_warning=False: context
    )
    assert not internals.overtaken()
    requests.request_rerun(RerunData(fragment_id="curves", is_auto_rerun=True))
    assert not internals.overtaken(), "a part that looks by itself ended the wait for a picture"
    requests.request_rerun(RerunData(fragment_id="dials"))
    assert internals.overtaken()
    requests.request_rerun(RerunData())
    requests.request_rerun(RerunData(fragment_id="curves", is_auto_rerun=True))
    assert internals.overtaken(), "a page that is asked for is, whatever looks meanwhile"
    requests._state = "something else"  # not what we know: nothing is concluded
    assert not internals.overtaken()


def test_what_a_part_of_a_page_asks_for_after_the_visitor_left_it_is_left_undone(
    monkeypatch, as_streamlit_has_it
) -> None:
    asked: list[tuple[str, str]] = []

    def request_rerun(self, client_state) -> None:
        asked.append((client_state.page_script_hash, client_state.fragment_id))

    monkeypatch.setattr(app_session.AppSession, "request_rerun", request_rerun)
    replace(internals.REQUEST)
    session, other = SimpleNamespace(), SimpleNamespace()

    def ask(page: str, part: str = "", of: SimpleNamespace = session) -> bool:
        before = len(asked)
        state = ClientState(page_script_hash=page, fragment_id=part)
        app_session.AppSession.request_rerun(of, state)
        return asked[before:] == [(page, part)]

    assert ask("") and ask("converge", "look"), "a first page is asked for by its name"
    assert ask("attack") and ask("attack", "look")
    assert not ask("converge", "look") and not ask("converge", "share")
    assert ask("converge") and ask("converge", "share")
    assert ask("attack", of=other) and not ask("converge", "look", of=other)


def test_nobody_is_heard_where_no_page_runs() -> None:
    heard: list[bool] = []
    thread = threading.Thread(target=lambda: heard.append(internals.overtaken()))
    thread.start()
    thread.join()
    assert heard == [False]


# ---------------------------------------------------------------------- whose turn it is
@pytest.fixture
def one_place(monkeypatch, as_streamlit_has_it) -> Callable[..., threading.Thread]:
    """Begins a run of Streamlit's, one script after the other, in a thread of its own.

    One runs at a time.
    """
    monkeypatch.setattr(internals, "_places", threading.BoundedSemaphore(1))
    monkeypatch.setattr(*SCRIPT, lambda func, ctx: func())

    def parts(self: None, *each: Callable[[], None]) -> None:
        for one in each:
            script_runner.exec_func_with_error_handling(one, None)

    monkeypatch.setattr(*RUN, parts)
    replace(internals.SCRIPT, internals.RUN)

    def begin(*scripts: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            with suppress(ZeroDivisionError):
                script_runner.ScriptRunner._run_script(None, *scripts)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    return begin


def test_a_run_waits_for_its_turn_and_gives_it_back_also_where_it_breaks(one_place) -> None:
    began, go_on, order = threading.Event(), threading.Event(), []

    def first() -> None:
        began.set()
        go_on.wait(30)
        order.append("first")
        1 / 0  # noqa: B018

    runs = [one_place(first)]
    assert began.wait(30)
    runs.append(one_place(lambda: order.append("second")))
    assert order == []
    go_on.set()
    for run in runs:
        run.join(30)
    assert order == ["first", "second"]


def test_a_callback_and_the_parts_that_it_asks_for_are_one_turn(one_place) -> None:
    began, go_on, order = threading.Event(), threading.Event(), []

    def callback() -> None:
        began.set()
        go_on.wait(30)

    runs = [one_place(callback, lambda: order.append("parts"))]
    assert began.wait(30)
    runs.append(one_place(lambda: order.append("another")))
    go_on.set()
    for run in runs:
        run.join(30)
    assert order == ["parts", "another"]


def test_a_run_that_waits_for_something_lets_others_run(one_place) -> None:
    began, came, order = threading.Event(), threading.Event(), []

    def first() -> None:
        began.set()
        with internals.aside():
            assert came.wait(30)
        order.append("first")

    def second() -> None:
        came.set()
        order.append("second")

    run = one_place(first)
    assert began.wait(30)
    one_place(second).join(30)
    run.join(30)
    assert order == ["second", "first"], "it takes its turn again when it has what it waited for"


def test_a_page_that_waits_for_its_turn_has_said_that_it_runs(
    monkeypatch, as_streamlit_has_it
) -> None:
    replace(internals.SCRIPT, internals.RUN)
    runners, heard = [], []
    run = LocalScriptRunner.run

    def noted(self, *given, **named):
        runners.append(self)
        return run(self, *given, **named)

    monkeypatch.setattr(LocalScriptRunner, "run", noted)
    monkeypatch.setattr(internals, "_enter", lambda: heard.append([*runners[-1].events]))
    AppTest.from_string("").run(timeout=30)
    assert [script_runner.ScriptRunnerEvent.SCRIPT_STARTED in events for events in heard] == [True]


def test_a_run_that_never_ends_holds_nobody_up_for_ever(monkeypatch, one_place) -> None:
    monkeypatch.setattr(internals, "LONGEST_SECONDS", 0.01)
    began, for_ever, ran = threading.Event(), threading.Event(), threading.Event()
    stuck = one_place(lambda: (began.set(), for_ever.wait()))
    assert began.wait(30)
    for _ in range(2):  # who had no place gives none back
        ran.clear()
        one_place(ran.set).join(30)
        assert ran.is_set() and stuck.is_alive()
    for_ever.set()
    stuck.join(30)


# ---------------------------------------------------------------------- the theme
SECTIONS = ("", "light", "dark", "sidebar", "light.sidebar", "dark.sidebar")


def whole() -> CustomThemeConfig:
    message = CustomThemeConfig()
    for section in SECTIONS:
        part = message
        for name in filter(None, section.split(".")):
            part = getattr(part, name)
        app_session._populate_theme_msg(part, ".".join(filter(None, ("theme", section))))
    return message


def test_the_remembered_theme_is_the_one_that_is_read(as_streamlit_has_it) -> None:
    read = whole()
    replace(internals.THEME)
    assert whole() == read and whole() == read
    assert read.primary_color or read.light.primary_color
    assert not read.HasField("sidebar")


def test_the_remembered_options_are_those_that_are_read(as_streamlit_has_it) -> None:
    read, first, second = Config(), Config(), Config()
    app_session._populate_config_msg(read)
    replace(internals.OPTIONS)
    app_session._populate_config_msg(first)
    app_session._populate_config_msg(second)
    assert first == read and second == read and read.ByteSize()


def test_a_part_of_the_theme_may_be_named_as_well(as_streamlit_has_it, monkeypatch) -> None:
    """Another release may ask by keyword; each part is remembered for itself."""

    def write(msg: CustomThemeConfig, section: str = "none") -> None:
        msg.primary_color = section

    monkeypatch.setattr(app_session, "_populate_theme_msg", write)
    theme = internals.Inside(internals.THEME.place, ("msg",))
    internals.put(theme, internals.remembered)
    for section in ("a", "b", "a"):
        message = CustomThemeConfig()
        app_session._populate_theme_msg(message, section=section)
        assert message.primary_color == section


# ---------------------------------------------------------------------- what waits to be sent
def block(path: list[int], fragment: str) -> ForwardMsg:
    message = ForwardMsg()
    message.delta.add_block.allow_empty = True
    message.delta.fragment_id = fragment
    message.metadata.delta_path.extend(path)
    return message


def waiting() -> ForwardMsgQueue:
    """A run that was cut short: a fragment inside another has drawn, and not all of it is sent."""
    queue = ForwardMsgQueue()
    started = ForwardMsg()
    started.session_status_changed.script_is_running = True
    queue.enqueue(started)
    queue.enqueue(block([0, 3, 0], "outer"))
    queue.enqueue(block([0, 3, 0, 0], "inner"))
    queue.enqueue(block([0, 3, 0, 0, 0], "innermost"))
    queue.enqueue(block([0, 4], ""))
    queue.enqueue(block([0, 4, 0], "other"))
    return queue


def left(queue: ForwardMsgQueue) -> list[list[int]]:
    return [
        list(message.metadata.delta_path)
        for message in queue.flush()
        if message.WhichOneof("type") == "delta"
    ]


@pytest.fixture
def ours(as_streamlit_has_it) -> None:
    replace(internals.CLEAR)


def test_what_is_inside_a_dropped_container_is_dropped(ours) -> None:
    queue = waiting()
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["outer"])
    kinds = [message.WhichOneof("type") for message in queue._queue]
    assert kinds == ["session_status_changed", "delta", "delta", "delta"]
    assert left(queue) == [[0, 3, 0], [0, 4], [0, 4, 0]]


def shown(page: list, messages: list[list[int]]) -> list:
    """What a browser makes of places: each has to be there, or to be the next one."""
    for path in messages:
        *above, last = path
        holder = page
        for at in above:
            holder = holder[at]
        assert last <= len(holder), f"Bad delta path index {last} (of {len(holder)})"
        holder[last : last + 1] = [[]]
    return page


def test_what_stands_behind_a_part_that_is_drawn_anew_keeps_its_place(ours) -> None:
    queue = ForwardMsgQueue()
    for path, fragment in (([0, 0], ""), ([0, 1], "part"), ([0, 1, 0], "part"), ([0, 2], "")):
        queue.enqueue(block(path, fragment))
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["part"])
    queue.enqueue(block([0, 1], "part"))
    queue.enqueue(block([0, 1, 0], "part"))
    assert shown([[]], left(queue)) == [[[], [[]], []]]


def test_streamlit_itself_forgets_the_place(as_streamlit_has_it) -> None:
    """Where it does no longer, `without_orphans` can go."""
    queue = ForwardMsgQueue()
    for path, fragment in (([0, 0], ""), ([0, 1], "part"), ([0, 2], "")):
        queue.enqueue(block(path, fragment))
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["part"])
    with pytest.raises(AssertionError, match="Bad delta path index 2"):
        shown([[]], left(queue))


def test_what_has_its_container_is_sent(ours) -> None:
    queue = waiting()
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["innermost"])
    assert left(queue) == [[0, 3, 0], [0, 3, 0, 0], [0, 3, 0, 0, 0], [0, 4], [0, 4, 0]]
    queue = waiting()
    sent = queue._queue.pop(1)  # the outer container is with the browser already
    assert list(sent.metadata.delta_path) == [0, 3, 0]
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["outer"])
    assert left(queue) == [[0, 3, 0, 0], [0, 3, 0, 0, 0], [0, 4], [0, 4, 0]]


def test_the_other_ways_to_clear_are_streamlits(ours) -> None:
    queue = waiting()
    queue.clear(retain_lifecycle_msgs=True)
    assert left(queue) == []
    queue = waiting()
    queue.clear()
    assert queue.is_empty()


def with_a_value(is_set: bool) -> ForwardMsgQueue:
    """A run that has drawn a switch, which it has set or not, and has not sent it yet."""
    queue, switch = ForwardMsgQueue(), ForwardMsg()
    queue.enqueue(block([0, 3], "part"))
    switch.delta.new_element.checkbox.set_value = is_set
    switch.delta.new_element.checkbox.value = True
    switch.delta.fragment_id = "part"
    switch.metadata.delta_path.extend([0, 3, 0])
    queue.enqueue(switch)
    return queue


@pytest.mark.parametrize("fragments", [None, ["part"]], ids=["page", "part"])
def test_a_value_that_a_run_has_set_is_sent(ours, fragments) -> None:
    queue = with_a_value(True)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=fragments)
    queue.enqueue(block([0, 3], "part"))  # and nothing takes its place on the way
    assert left(queue) == [[0, 3], [0, 3, 0], [0, 3]]
    queue = with_a_value(False)
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=fragments)
    assert [0, 3, 0] not in left(queue)


def test_streamlit_itself_forgets_the_value(as_streamlit_has_it) -> None:
    """Where it does no longer, `_sets` can go."""
    queue = with_a_value(True)
    queue.clear(retain_lifecycle_msgs=True)
    assert left(queue) == []


def test_streamlit_itself_keeps_the_orphans(as_streamlit_has_it) -> None:
    """Where it does no longer, `without_orphans` can go."""
    queue = waiting()
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=["outer"])
    assert left(queue) == [[0, 3, 0, 0], [0, 3, 0, 0, 0], [0, 4], [0, 4, 0]]


# ---------------------------------------------------------------------- two runs of one session
def held_up(first: SafeSessionState, second: SafeSessionState) -> bool:
    """Whether a run's write waits while another looks at the session's values."""
    written = threading.Event()

    def write() -> None:
        second["written meanwhile"] = 2
        written.set()

    other = threading.Thread(target=write, daemon=True)
    with first.query_params():
        other.start()
        waited = not written.wait(0.2)
    other.join(30)
    assert written.is_set()
    return waited


def test_a_run_that_was_replaced_does_not_write_into_what_the_next_one_reads(
    as_streamlit_has_it,
) -> None:
    replace(internals.VALUES)
    state = SessionState()
    first, second = (SafeSessionState(state, lambda: None) for _ in range(2))
    assert held_up(first, second)
    assert not held_up(first, SafeSessionState(SessionState(), lambda: None)), "another's session"


def test_streamlit_itself_lets_both_write(as_streamlit_has_it) -> None:
    """Where it does no longer, `with_one_lock` can go."""
    state = SessionState()
    assert not held_up(*(SafeSessionState(state, lambda: None) for _ in range(2)))
