"""The adaptive replay attack on FAPS: how often it recovers a client, and how long it takes.

Targets on two cores: error below 1e-9 for 10 of 10 seeds at 10 features (3 and 5 inner steps), at
least 6 of 10 with a private random start; below 1e-6 for at least 8 of 10 seeds up to 20 features;
30 features and 5 components over 20 rounds in at most 5 s and 50 features in at most 30 s (median
of the successes).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import fedpca_core as fp
from fedpca_core import attacks


@dataclass(frozen=True)
class Case:
    """One row of the table: 5 clients, arithmetic spectrum of condition number 10."""

    name: str
    features: int
    components: int
    rounds: int
    samples: int
    inner_steps: int = 3
    seeds: int = 10
    secrets: Mapping[str, bool] = field(default_factory=dict)
    channel: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


CASES = (
    Case("seeded, J=3", 10, 2, 10, 40),
    Case("seeded, J=5", 10, 2, 10, 40, inner_steps=5),
    Case("unseeded", 10, 2, 10, 40, options={"seeded": False}),
    Case("private start", 10, 2, 10, 40, secrets={"private_start": True}),
    Case("private penalty", 10, 2, 10, 40, secrets={"private_penalty": True}),
    Case(
        "private start and penalty",
        10,
        2,
        10,
        40,
        secrets={"private_start": True, "private_penalty": True},
    ),
    Case("random inner steps", 10, 2, 10, 40, secrets={"random_inner_steps": True}),
    Case("float32 messages", 10, 2, 10, 40, channel={"dtype": "float32"}),
    Case(
        "noise 1e-4",
        10,
        2,
        10,
        40,
        channel={"upload_noise": 1e-4},
        options={"noise": 1e-4, "starts": 5},
    ),
    Case(
        "noise 1e-2",
        10,
        2,
        10,
        40,
        channel={"upload_noise": 1e-2},
        options={"noise": 1e-2, "starts": 5},
    ),
    Case("20 features", 20, 4, 20, 80),
    Case("30 features", 30, 5, 20, 120),
    Case("50 features", 50, 5, 20, 200),
)


def main() -> None:
    """Print one row for each case."""
    print(
        f"{'case':28}{'features':>9}{'rounds':>7}{'< 1e-9':>8}{'< 1e-6':>8}"
        f"{'median error':>14}{'starts':>8}{'median s':>10}"
    )
    for case in CASES:
        results = [attempt(case, seed) for seed in range(case.seeds)]
        errors = np.array([error for error, _, _ in results])
        good = errors < 1e-6
        seconds = np.array([spent for _, _, spent in results])[good]
        starts = np.median([used for _, used, _ in results])
        print(
            f"{case.name:28}{case.features:>9}{case.rounds:>7}"
            f"{f'{(errors < 1e-9).sum()}/{case.seeds}':>8}{f'{good.sum()}/{case.seeds}':>8}"
            f"{np.median(errors):>14.1e}{starts:>8.0f}"
            f"{np.median(seconds) if good.any() else np.nan:>10.2f}",
            flush=True,
        )


def attempt(case: Case, seed: int) -> tuple[float, int, float]:
    """Relative error, starts used and seconds of one attack on client 0."""
    problem = fp.problems.decay_spectrum(
        case.features, [case.samples] * 5, condition=10.0, seed=seed
    )
    algorithm = fp.FAPS(
        case.components,
        inner_rule="fixed",
        inner_steps=case.inner_steps,
        adaptive=False,
        **case.secrets,
    )
    run = fp.simulate(
        problem, algorithm, rounds=case.rounds, seed=seed, channel=fp.Channel(**case.channel)
    )
    private = problem.client_data.dense()[0]
    began = time.perf_counter()
    found = attacks.replay(
        run.transcript, algorithm, trace=float(np.trace(private)), evaluations=5000, **case.options
    )
    error = attacks.scores.relative_error(found.estimate, private)
    return error, found.starts, time.perf_counter() - began
