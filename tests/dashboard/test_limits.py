"""Limits: told before a run, named in a sentence, the same for links, files and uploads."""

from __future__ import annotations

import math
import re
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from dashboard.shell import jobs, limits
from dashboard.shell import workers as turns_module
from dashboard.shell.workers import Turns
from fedpca_core.errors import InvalidInput
from fedpca_core.findings import Figure
from fedpca_core.questions.catalogue import PRESETS, STUDIES, studies_of
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.questions.papers.page import PapersSettings
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.settings import Settings, plural, rough
from fedpca_core.study.limits import Cost, Limits, amount
from fedpca_core.study.pca_settings import AttackSettings, ConvergeSettings
from fedpca_core.study.study import Study

ROOT = Path(__file__).resolve().parents[2]


def largest(page: type[Settings]) -> Settings:
    """Every parameter of the page that makes a run longer at its largest value."""
    values: dict[str, object] = {}
    for name, parameter in page.parameters().items():
        if parameter.choices:
            values[name] = tuple(parameter.choices) if parameter.many else parameter.default
        elif isinstance(parameter.default, bool):
            values[name] = name != "secure_aggregation"
        elif not parameter.free and name not in ("client", "epsilon", "seed"):
            values[name] = parameter.grid[-1] if parameter.grid else parameter.high
    return page(**values)


@pytest.mark.parametrize("study", STUDIES.values(), ids=list(STUDIES))
def test_the_largest_link_is_within_the_limits_or_refused(study):
    page = study.settings
    for settings in (page(), largest(page)):
        cost = study.cost(settings)
        within = cost.megabytes <= 1600 and cost.seconds <= 600
        assert cost.megabytes > 0 and cost.seconds > 0
        if within:
            limits.check(study, settings, None)
            continue
        assert settings != page(), "what a page opens with must run"
        with pytest.raises(InvalidInput, match="this server gives one computation"):
            limits.check(study, settings, None)


def test_the_page_that_took_fourteen_gigabytes_is_refused_before_it_starts():
    with pytest.raises(InvalidInput, match=r"FAPS replayed.* MB of memory.*python -m fedpca_core"):
        limits.check(STUDIES["replay"], AttackSettings(features=300, replay=True), None)
    limits.check(STUDIES["replay"], AttackSettings(features=60, replay=True), None)


def test_a_refusal_names_the_switch_that_would_do():
    asked = AttackSettings(features=300, replay=True)
    with pytest.raises(InvalidInput, match="or switch “Replay FAPS's update” off, or run it on"):
        limits.check(STUDIES["replay"], asked, None)
    with pytest.raises(InvalidInput) as refused:  # none would
        limits.check(STUDIES["reconstruction"], replace(asked, features=300, rounds=3000), None)
    assert "switch “" not in str(refused.value)


def test_a_refusal_for_what_searches_keep_in_memory_names_their_switch(monkeypatch):
    asked = FrontierSettings(features=32, candidates=("faps",), needed_epsilon=math.inf)
    monkeypatch.setattr(limits, "LIMITS", Limits(megabytes=40))
    with pytest.raises(InvalidInput, match=r"MB of memory.*switch “Attacks that search” off"):
        limits.check(STUDIES["recommendation"], asked, None)
    limits.check(STUDIES["recommendation"], replace(asked, searches=False), None)


#: What a process that has run something small keeps more of at the peak of a run, in MB.
_RISE = """import re, sys
from pathlib import Path
from fedpca_core.questions.which.frontier import Frontier
from fedpca_core.questions.which.settings import FrontierSettings
from fedpca_core.steps import outcome
small = dict(vary="none", seeds=1, candidates=("faps",), epsilon=float("inf"))
def peak(**more):
    outcome(Frontier().run(FrontierSettings(**small, **more)))
    return int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024
before = peak(features=4, clients=4, searches=False)
print(peak(features=int(sys.argv[1]), problem="decay_geometric") - before)"""


@pytest.mark.parametrize("features", [16, 32])
def test_memory_of_a_run_whose_attacks_search_is_told_within_a_factor_of_two(features):
    command = [sys.executable, "-c", _RISE, str(features)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    small = {"vary": "none", "seeds": 1, "candidates": ("faps",), "problem": "decay_geometric"}
    asked = FrontierSettings(features=features, **small)
    cost, without = (
        STUDIES["frontier"].cost(replace(asked, searches=on), None).megabytes
        for on in (True, False)
    )
    assert cost > without
    assert cost / 2 < float(told) < 2 * cost


@pytest.mark.parametrize("rounds", [20, 50])
def test_a_replay_on_the_front_page_runs_where_it_takes_half_a_minute(rounds):
    chosen = SceneSettings(method="faps", unmask=True, rounds=rounds)
    limits.check(STUDIES["scene"], chosen, None)


def test_all_workers_at_their_limit_fit_into_a_container():
    compose = (ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8")
    workers, each, whole = (
        int(re.search(rf'{name}: "?(\d+)', compose)[1])
        for name in ("FEDPCA_WORKERS", "FEDPCA_MAX_MB", "memory")
    )
    assert each == Limits().megabytes
    assert 1536 + 2 * workers * each <= 1024 * whole  # quick ones, and as many for long jobs


def test_a_page_says_so_and_starts_nothing(monkeypatch):
    def never(*_: object) -> None:
        raise AssertionError("a refused run was started")

    monkeypatch.setattr(jobs.workers, "run", never)
    drawn: list[object] = []
    too_large = AttackSettings(features=300, replay=True)
    monkeypatch.setattr(jobs.st, "fragment", lambda **_: lambda shown: shown)
    monkeypatch.setattr(jobs.st, "session_state", {})
    monkeypatch.setattr(jobs, "visitor_here", lambda: "somebody")
    job = jobs.study(STUDIES["replay"], too_large, drawn.append)
    assert job.done and job.refusal and "run it on your own machine" in job.refusal and not drawn


@pytest.mark.parametrize("name", ["features", "clients", "rounds"])
def test_an_operator_may_ask_for_less(name):
    few = replace(Limits(), **{name: 5})
    with pytest.raises(InvalidInput, match=rf"{name} are more than the 5 that this server takes"):
        few.check("Any", Cost(), ConvergeSettings(), "wait")


def test_more_of_anything_never_costs_less():
    study, small = STUDIES["reconstruction"], AttackSettings()
    for change in ({"features": 100}, {"clients": 20}, {"rounds": 100}, {"components": 10}):
        more = study.cost(replace(small, **change))
        least = study.cost(small)
        assert more.seconds > least.seconds and more.megabytes > least.megabytes


def test_costs_add_up():
    one = Cost(100, 2)
    assert one + Cost(1, 1) == Cost(101, 3)
    assert one.times(3) == Cost(100, 6) and one.kept(3) == Cost(300, 6)
    assert [amount(number) for number in (0.123, 9.96, 14_321, 99_900)] == [
        "0.12", "10", "14,000", "100,000",
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["many", "-1", "0", "9" * 12])
def test_an_environment_that_makes_no_sense_stops_the_server(monkeypatch, text):
    monkeypatch.setenv("FEDPCA_MAX_MB", text)
    with pytest.raises(InvalidInput, match="give a whole number from 1"):
        limits.number("FEDPCA_MAX_MB", 1600)


def test_turns_are_in_order_but_for_young_results_that_had_one_and_not_of_who_has_left():
    turns, entered, leave = Turns(1), [], threading.Event()

    def work(name: str, begun: float | None) -> None:
        with turns.asked(begun) as mine:
            if mine(10):
                entered.append(name)
                leave.wait(10)

    threads, now = [], time.monotonic()
    long_ago = now - 3 * turns_module.LATER_SECONDS
    for name, begun in (("first", None), ("young", now), ("new", None), ("old", long_ago)):
        threads.append(threading.Thread(target=work, args=(name, begun)))
        threads[-1].start()
        time.sleep(0.05)
    with turns.asked() as left:
        assert not left(0.01)
        threads.append(threading.Thread(target=work, args=("newest", None)))
        threads[-1].start()
        time.sleep(0.05)
    assert entered == ["first"]
    leave.set()
    for thread in threads:
        thread.join(10)
    assert entered == ["first", "new", "old", "newest", "young"]


def test_nobody_lets_others_pass_for_good(monkeypatch):
    monkeypatch.setattr(turns_module, "LATER_SECONDS", 0.05)
    turns = Turns(1)
    with turns.asked(time.monotonic()) as second:
        time.sleep(0.1)
        with turns.asked() as late:
            assert not late(0.01), "it came after those that the second piece lets pass"
            assert second(10)


def test_results_are_forgotten_by_their_size(monkeypatch):
    monkeypatch.setattr(limits, "CACHE_MB", 2)
    registry = jobs.Registry()
    for number in range(5):
        job = registry.submit(number, lambda job: bytes(2**20), 10)
        assert job.wait(10)
        until = time.monotonic() + 5
        while not job.megabytes and time.monotonic() < until:
            time.sleep(0.01)
    state = registry.state()
    assert state["kept_mb"] <= 3.1 and state["unfinished"] == 0
    assert registry.find(0) is None and registry.find(4) is not None


def test_every_study_declares_what_it_costs():
    for study in STUDIES.values():
        declared = hasattr(type(study), "most") or type(study).cost is not Study.cost
        assert declared, f"{study.key} says nothing of its cost"


@pytest.mark.parametrize("name", list(PRESETS))
def test_every_preset_is_within_the_limits(name):
    settings = PRESETS[name].settings
    for study in studies_of(settings):
        limits.check(study, settings, None)


def test_a_worker_spends_none_of_its_memory_on_arrow_s_addresses():
    asked = "import pyarrow; print(pyarrow.default_memory_pool().backend_name)"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "system"  # in every process that the server starts


@pytest.mark.parametrize(
    ("settings", "fewer"),
    [
        (SceneSettings(), "choose fewer clients or rounds, or"),  # digits have their 64 features
        (SceneSettings(problem="decay_geometric"), "choose fewer features, clients or rounds, or"),
        (PapersSettings(), "choose a smaller problem, or"),
    ],
)
def test_a_refusal_names_what_the_page_has(settings, fewer):
    for cost in (Cost(1, 1e9), Cost(1e9, 1)):
        with pytest.raises(InvalidInput, match=fewer):
            limits.LIMITS.check("Something large", cost, settings, "buy a larger server")


def test_a_number_on_a_sheet_is_written_as_a_reader_counts():
    numbers = (7570.4, 123_456.0, 2.52e7, 0.03125, 1e-7, 2.5e9, math.inf)
    assert [rough(one) for one in numbers] == [
        *("7,570", "123,000", "25,200,000", "0.0312", "1e-7", "2.5e9", "∞")
    ]
    figure = Figure(2.52e7, "relative error", low=1.0, high=2.6e7)
    assert str(figure) == "relative error 25,200,000 (1–26,000,000)"
    assert str(Figure(1000, "records", of=1797)) == "1,000 of 1,797 records"


def test_a_counted_noun_is_one_or_many():
    said = [plural(count, "round") for count in (0, 1, 1.0, 2, 1797)]
    assert said == ["0 rounds", "1 round", "1 round", "2 rounds", "1,797 rounds"]
