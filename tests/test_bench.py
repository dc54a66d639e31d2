"""The benchmarks' stopwatch: what it counts, and what it prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.timing import Timing, measure, table

ROOT = Path(__file__).resolve().parent.parent


def test_warm_up_and_repetitions_are_counted():
    calls = []
    timing = measure(lambda: calls.append(None), repeat=5, warmup=3)
    assert len(calls) == 8
    assert timing.repeat == 5
    assert 0 <= timing.minimum <= timing.median <= timing.maximum


def test_no_repetitions_are_refused():
    with pytest.raises(ValueError, match="0 repetitions measure nothing; give at least 1"):
        measure(lambda: None, repeat=0)


def test_the_table_gives_the_ratio_of_medians():
    reference = Timing(0.010, 0.009, 0.011, 9, 1)
    text = table("Title", [("run", Timing(0.025, 0.02, 0.03, 9, 1))], ("bare", reference))
    head, _, bare, run = text.splitlines()
    assert head.startswith("Title (1 of ")
    assert bare.split() == ["bare", "10.00", "9.00", "11.00", "1.0"]
    assert run.split() == ["run", "25.00", "20.00", "30.00", "2.5"]


def test_an_unknown_benchmark_is_named():
    answer = subprocess.run(
        [sys.executable, "-m", "bench", "nothing"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )
    assert answer.returncode == 2
    assert "There is no benchmark nothing; there are:" in answer.stdout
