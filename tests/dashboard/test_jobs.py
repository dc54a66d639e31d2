"""Jobs: cached by key, stopped with what they have, abandoned when nobody looks."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import pandas as pd
import pytest
from streamlit.runtime.caching import clear_session_resource_cache
from streamlit.testing.v1 import AppTest

from dashboard.shell import jobs, workers
from fedpca_core.errors import InvalidInput
from fedpca_core.questions.anomaly.learning import Learnt
from fedpca_core.questions.catalogue import DIAL_CURVES, NEXT_STEPS
from fedpca_core.questions.converge.study import Comparison
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.steps import Run, Step


def patient(job: jobs.Job) -> str:
    """Work that goes on until it is told to end."""
    job.publish("partial")
    while job.report(0.5, "working"):
        time.sleep(0.01)
    return "ended"


def started(registry: jobs.Registry, key: str, seconds: float = 60) -> jobs.Job:
    job = registry.submit(key, patient, seconds)
    deadline = time.monotonic() + 10
    while job.result is None and time.monotonic() < deadline:
        time.sleep(0.005)
    return job


def test_a_finished_job_is_not_run_again() -> None:
    registry, runs = jobs.Registry(), []
    for _ in range(3):
        job = registry.submit("a", lambda job: runs.append(1) or "done", 10)
        assert job.wait(10)
        assert job.result == "done"
    assert len(runs) == 1
    assert registry.submit("a", lambda job: "new", 10, again=True).wait(10)
    assert registry.find("a").result == "new"


def test_stop_keeps_what_there_is() -> None:
    registry = jobs.Registry()
    job = started(registry, "a")
    assert job.result == "partial" and not job.done
    job.stop()
    assert job.wait(10) and job.stopped and job.result == "ended"
    assert registry.submit("a", patient, 60) is job, "a stopped job stays as it was left"


def test_a_stopped_run_says_what_is_shown_and_what_would_finish():
    job = jobs.Job("a", seconds=40.0)
    assert jobs.how_stopped(job) == "Stopped early: nothing had been computed by then."
    job.result, job.late = "half", True
    assert jobs.how_stopped(job) == (
        "Stopped after 40 seconds of work, the most a run may take here: what had been computed by "
        "then is shown. Fewer features, clients, rounds or starts take less."
    )


def test_a_page_hears_of_the_first_picture_and_of_the_end_at_once() -> None:
    job, began = started(jobs.Registry(), "a"), time.monotonic()
    job.wait_for_news(0, 20.0)
    assert not job.done and job.published == 1
    job.stop()
    job.wait_for_news(job.published, 20.0)
    assert job.done and time.monotonic() - began < 15.0


def test_a_job_nobody_looks_at_ends_and_starts_anew_when_asked_for(monkeypatch) -> None:
    monkeypatch.setattr(jobs, "ABANDONED_SECONDS", 0.2)
    registry = jobs.Registry()
    job = started(registry, "a")
    assert job.wait(10) and job.stopped
    assert registry.submit("a", lambda job: "fresh", 60) is not job


def test_who_asks_for_a_job_that_is_ending_gets_one_of_his_own() -> None:
    registry, leave, ending = jobs.Registry(), threading.Event(), threading.Event()

    def ends(job: jobs.Job) -> None:
        while job.wanted():
            time.sleep(0.01)
        ending.set()
        leave.wait(10)  # its step takes a while

    left = registry.submit("a", ends, 60, visitor="first")
    left.leave("first")
    assert ending.wait(10) and not left.done
    own = registry.submit("a", lambda job: "fresh", 60, visitor="second")
    assert own is not left and own.wait(10) and own.result == "fresh"
    leave.set()
    assert left.wait(10) and registry.find("a") is own


def test_a_tab_whose_looks_come_late_is_still_watching() -> None:
    """On a busy server two looks may lie far more apart than the longest pause."""
    assert jobs.ABANDONED_SECONDS > 5 * jobs.LONGEST_PAUSE
    registry, leave = jobs.Registry(), threading.Event()
    job = registry.submit("late", lambda job: leave.wait(10), 60, visitor="busy")
    job._seen["busy"] -= 3 * jobs.LONGEST_PAUSE  # so long ago it looked
    assert job.wanted()
    job.leave("busy")
    assert not job.wanted()
    leave.set()


def test_who_leaves_frees_the_turn_unless_somebody_else_looks() -> None:
    registry = jobs.Registry()
    found = {}
    for name in ("left", "watched"):
        found[name] = started(registry, name)
        assert registry.submit(name, patient, 60, visitor="second") is found[name]
        found[name].leave()
    found["left"].leave("second")
    assert found["left"].wait(10) and found["left"].stopped
    assert not found["watched"].wait(0.2)
    found["watched"].leave("second")
    assert found["watched"].wait(10)


def test_pages_look_less_often_where_many_wait() -> None:
    registry, leave = jobs.Registry(), threading.Event()
    assert registry.pause() == jobs.LOOK_SECONDS
    waiting = [registry.submit(number, lambda job: leave.wait(10), 60) for number in range(20)]
    assert jobs.LOOK_SECONDS < registry.pause() <= jobs.LONGEST_PAUSE
    leave.set()
    assert all(job.wait(20) for job in waiting)


def test_who_waits_hears_at_once_that_the_visitor_asks_for_something_else(monkeypatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(jobs.streamlit_internals, "overtaken", lambda: len(waits) == 3)

    def wait(seconds: float) -> bool:
        waits.append(seconds)
        return len(waits) == 50

    assert not jobs._heard(wait, 3600.0) and len(waits) == 3
    assert max(waits) <= jobs.LISTEN_SECONDS
    assert not jobs._heard(lambda seconds: False, 0.0)
    assert jobs._heard(wait, 3600.0) and len(waits) == 50  # nobody asks: until the end


def test_many_kept_results_cost_no_time_and_one_asked_for_again_replaces_its_own() -> None:
    registry = jobs.Registry()
    for _ in range(3):
        assert registry.submit("a", lambda job: bytes(2**20), 10, again=True).wait(10)
        assert registry.state() == {"unfinished": 0, "kept": 1, "kept_mb": pytest.approx(1, 0.1)}
    looked: list[bool] = []
    kept = registry.find("a")
    kept._done.is_set = lambda: looked.append(True) or True  # type: ignore[method-assign]
    for _ in range(10):
        registry.pause(), registry.crowd(), registry.state()
    assert not looked, "nobody goes through what is kept"


def test_a_partial_result_with_a_part_less_leaves_the_picture_before() -> None:
    curves, table = {"a": 1, "b": 2}, pd.DataFrame({"round": [1, 2]})
    whole = Learnt(None, 1.0, curves, table)
    assert jobs.as_much(replace(whole, gap=2.0), whole) and jobs.as_much(whole, None)
    assert not jobs.as_much(replace(whole, progress=None), whole)
    assert not jobs.as_much(replace(whole, progress=table.head(1)), whole)
    assert not jobs.as_much(replace(whole, approach={"a": 1}), whole)
    assert not jobs.as_much(curves, whole) and not jobs.as_much(None, whole)


def test_what_a_sentence_says_is_missing_keeps_no_picture_of_before() -> None:
    faps, ssi = pd.DataFrame({"round": [0, 1]}), pd.DataFrame({"round": [0, 1, 2]})
    both = {"faps": (faps,), "ssi": (ssi,)}
    reasons = {"block_krylov": "no linear map is known", "ssi": "its rounds end too early"}
    told = Comparison(both, {}, {}, None, both, {"block_krylov": reasons["block_krylov"]}, True)  # type: ignore[arg-type]
    short = replace(told, predictions={"faps": (faps,)}, unpredicted=reasons)
    assert jobs.as_much(short, told) and jobs.as_much(told, short)
    assert not jobs.as_much(replace(short, unpredicted={}), told), "nobody says why"
    assert not jobs.as_much(replace(told, tables={"faps": (faps,)}), told), "not run yet"
    refused = replace(told, tables={"faps": (faps,)}, refusals={"ssi": "too steep"})
    assert jobs.as_much(refused, told)


@pytest.mark.parametrize("crowd", [1.0, 9.0])
def test_where_many_wait_a_picture_does_not_wait_for_its_rest(monkeypatch, crowd) -> None:
    registry, asked = jobs.Registry(), []
    monkeypatch.setattr(registry, "crowd", lambda: crowd)
    monkeypatch.setattr(jobs, "registry", lambda: registry)
    first, rest = threading.Event(), threading.Event()

    def work(job: jobs.Job) -> str:
        job.publish("half")
        first.set()
        rest.wait(20)
        return "whole"

    job = registry.submit("a", work, 60)
    assert first.wait(20)

    def heard(wait, seconds: float) -> bool:
        asked.append(wait(0.0))
        return asked[-1]

    monkeypatch.setattr(jobs, "_heard", heard)
    jobs.until_told(job, 0.8)
    assert asked == ([True] if crowd > jobs.QUIET else [False, True])
    rest.set()
    assert job.wait(20)


def test_a_deadline_ends_a_job_and_the_page_that_followed_it_does_not_begin_anew() -> None:
    registry = jobs.Registry()
    job = started(registry, "a", seconds=0.3)
    assert job.wait(10) and job.stopped
    assert registry.submit("a", patient, 60, followed=True) is job
    assert registry.submit("a", lambda job: "fresh", 60) is not job, "somebody else tries again"


def asked(sentences: bool) -> None:
    """A page whose second question is refused."""
    import streamlit as st

    from dashboard.shell import jobs

    second = st.toggle("second")
    refusal = "It does not fit." if second else None
    jobs.show(second, lambda job: "one", st.text, name="it", refusal=refusal, sentences=sentences)


@pytest.mark.parametrize("sentences", [False, True])
def test_what_stays_beside_a_refusal_is_said_to_be_of_other_settings(sentences: bool) -> None:
    """A picture stays, in grey and said to be old; sentences read as the answer, and go."""
    app = AppTest.from_function(asked, args=(sentences,), default_timeout=60).run()
    assert [text.value for text in app.text] == ["one"] and not app.caption
    app.toggle[0].set_value(True).run()
    assert "It does not fit" in app.warning[0].value
    assert [text.value for text in app.text] == ["one"] * (not sentences)
    old = [caption for caption in app.caption if "of other settings" in caption.value]
    assert len(old) == (not sentences)


def with_curves() -> None:
    """A page with a number, a long study beside its answer, and one that it may ask for next."""
    import streamlit as st

    from dashboard.shell import jobs
    from fedpca_core.questions.catalogue import DIAL_CURVES, NEXT_STEPS
    from fedpca_core.questions.home.settings import SceneSettings

    number = int(st.number_input("number", 0))
    jobs.show(number, lambda job: number, st.text, name="it")
    if number == 0:
        jobs.beside(DIAL_CURVES, SceneSettings(), lambda _: None, part="nowhere")
        jobs.perhaps((NEXT_STEPS, SceneSettings()))


@pytest.mark.parametrize("crowd", [1.0, 3.0])
def test_what_runs_beside_an_answer_ends_when_something_else_is_asked(monkeypatch, crowd) -> None:
    """It gives way to others, and on two cores it would still be in their way."""
    beside, coming = jobs.Job("curves"), jobs.Job("next")
    held = {study: job for study, job in ((DIAL_CURVES, beside), (NEXT_STEPS, coming))}
    monkeypatch.setattr(
        jobs, "_asked", lambda one, *_, visitor, **__: (held[one].touch(visitor), held[one])[1]
    )
    found = jobs.Registry.find
    keys = {one.identity(SceneSettings(), None): job for one, job in held.items()}
    monkeypatch.setattr(
        jobs.Registry, "find", lambda self, asked: keys.get(asked) or found(self, asked)
    )
    monkeypatch.setattr(jobs.Registry, "crowd", lambda self: crowd)
    app = AppTest.from_function(with_curves, default_timeout=60).run()
    assert not app.exception and beside.wanted()
    assert bool(coming._seen) == (crowd <= jobs.QUIET), "where many wait nothing is guessed"
    app.number_input[0].set_value(1).run()
    assert not app.exception and app.text[0].value == "1"
    assert not beside.wanted() and not coming.wanted()


class Drawn:
    """A result that somebody draws, and keeps a figure with, while its size is taken."""

    def __init__(self, times: int) -> None:
        self.figures, self.times = {"first": self, "second": 2}, times

    def __reduce__(self):
        self.times -= 1
        if self.times >= 0:
            self.figures[str(self.times)] = "drawn"
        return str, ()


def test_a_result_that_is_drawn_while_it_is_measured_is_no_failure() -> None:
    registry = jobs.Registry()
    for times in (0, 1, 3):
        drawn = Drawn(times)
        job = registry.submit(times, lambda job, drawn=drawn: drawn.figures, 10)
        assert job.wait(10) and job.refusal is None and job.megabytes > 0
        assert drawn.times <= 0
    always = Drawn(10**6)
    job = registry.submit("always", lambda job: always.figures, 10)
    assert job.wait(10) and "The computation failed (RuntimeError" in job.refusal


def test_refusals_and_failures_are_sentences() -> None:
    def refuse(job: jobs.Job) -> None:
        raise InvalidInput("There are 0 clients; give some.")

    def fail(job: jobs.Job) -> None:
        raise ZeroDivisionError("division by zero")

    registry = jobs.Registry()
    refused, failed = registry.submit("a", refuse, 10), registry.submit("b", fail, 10)
    assert refused.wait(10) and refused.refusal == "There are 0 clients; give some."
    assert failed.wait(10) and failed.refusal.startswith("The computation failed (ZeroDivision")


def test_who_waits_is_not_late_and_does_not_begin_once_gone(monkeypatch) -> None:
    monkeypatch.setattr(jobs, "ABANDONED_SECONDS", 1e6)
    registry, leave, begun = jobs.Registry(), threading.Event(), []

    def run() -> Run[str]:
        while not leave.wait(0.02):
            yield workers.WAITING
        begun.append(True)
        yield Step(0.5, "working")
        return "done"

    def submitted(key: str) -> jobs.Job:
        return registry.submit(key, lambda job: jobs.follow(job, run()), 0.1)

    stays, goes = submitted("stays"), submitted("goes")
    assert not stays.wait(0.3) and stays.took == 0.0
    goes.leave()
    assert goes.wait(10) and goes.stopped and not begun
    leave.set()
    assert stays.wait(10) and stays.result == "done" and not stays.late


def test_a_wait_amid_the_work_is_not_counted_and_ends_where_nobody_looks(monkeypatch) -> None:
    now = 0.0
    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: now))
    job = jobs.Job("a", seconds=10.0)
    for seconds, waits, worked in ((6.0, False, 0.0), (1000.0, True, 6.0), (3.5, False, 6.0)):
        job.touch()
        assert job.report(0.5, "a step", waits) and job.took == worked
        now += seconds
    job.touch()
    assert job.wanted() and job.took == 9.5
    now += 1.0
    assert not job.wanted() and job.late and not job.report(0.5, "a wait", True)
    left = jobs.Job("b", seconds=10.0)
    left.touch()
    assert left.report(0.0, "a wait", True)
    now += jobs.ABANDONED_SECONDS + 1.0
    assert not left.wanted() and not left.late and left.took == 0.0


def test_a_closed_tab_ends_what_only_it_shows(monkeypatch) -> None:
    monkeypatch.setattr(jobs, "ABANDONED_SECONDS", 1e6)
    found = {}

    def page() -> None:
        from dashboard.shell import jobs
        from tests.dashboard.test_jobs import patient

        for name in ("alone", "shared"):
            jobs.show(("closed", name), patient, lambda result: None, name=name, patience=0.0)

    try:
        assert not AppTest.from_function(page).run(timeout=60).exception
        for name in ("alone", "shared"):
            found[name] = jobs.registry().find(("closed", name))
        found["shared"].touch("somebody else")
        clear_session_resource_cache("test session id")  # what Streamlit does at a disconnect
        assert found["alone"].wait(10) and found["alone"].stopped
        assert not found["shared"].wait(0.2)
    finally:
        for job in found.values():
            job.stop()


def test_progress_that_a_browser_keeps_is_not_seen_once_nothing_runs() -> None:
    """On a busy machine it misses that the progress is gone, also where this run never drew any."""

    def page() -> None:
        import streamlit as st

        from dashboard.shell import jobs

        jobs.show("quick", lambda job: "whole", st.write, name="quick")

    app = AppTest.from_function(page).run()
    assert [one.value for one in app.markdown] == ["whole"]
    rules = [one.proto.body for one in app.get("html")]
    assert any(".st-key-quick_busy { display: none; }" in rule for rule in rules)


def test_a_want_of_memory_is_told_to_who_met_it_and_tried_again_for_the_next() -> None:
    registry, tries = jobs.Registry(), []

    def work(job: jobs.Job) -> str:
        tries.append(job)
        if len(tries) == 1:
            raise workers.Unlucky("no room")
        return "done"

    first = registry.submit("key", work, 10)
    assert first.wait(10)
    assert first.refusal == "no room"
    assert registry.submit("key", work, 10, followed=True) is first
    second = registry.submit("key", work, 10)
    assert second.wait(10)
    assert second.result == "done"
    assert registry.submit("key", work, 10) is second


def test_a_lecture_hall_that_asks_at_once_is_not_refused():
    registry, done = jobs.Registry(), threading.Event()
    asked = [registry.submit(key, lambda job: done.wait(30), 60) for key in range(150)]
    assert not any(job.refusal for job in asked)
    done.set()
    assert all(job.wait(30) for job in asked)
