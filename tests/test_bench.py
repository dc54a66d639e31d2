"""The benchmarks' stopwatch: what it counts, and what it prints."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bench.timing import measure, table

ROOT = Path(__file__).resolve().parent.parent


def test_warm_up_and_repetitions_are_counted():
    calls = []
    seconds = measure(lambda: calls.append(None), repeat=5, warmup=3)
    assert len(calls) == 8 and len(seconds) == 5 and min(seconds) >= 0


def test_the_table_gives_the_ratio_of_medians():
    text = table("Title", {"bare": [0.009, 0.010, 0.011], "run": [0.02, 0.025, 0.03]})
    head, _, bare, run = text.splitlines()
    assert head.startswith("Title (") and head.endswith("median of 3)")
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
