"""Each defence of FAPS alone: does it still converge, and what do two attacks recover?"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedpca_core import attacks
from fedpca_core.attacks import scores
from fedpca_core.problems import Problem
from fedpca_core.questions import costs
from fedpca_core.questions.attack.replay import READS, replayed
from fedpca_core.settings import Value
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.study.build import attacked_run, build_problem
from fedpca_core.study.deployed import private_matrix, stated_trace
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.study import Study

#: Name of each defence and the settings that make it.
DEFENCES: Mapping[str, Mapping[str, Any]] = {
    "None": {},
    "Private start": {"private_start": True},
    "Private penalty": {"private_penalty": True},
    "Random inner steps": {"random_inner_steps": True},
    "float32 messages": {"dtype": "float32"},
    "Noise of 0.1% on uploads": {"upload_noise": 1e-3},
    "Noise of 3% on uploads": {"upload_noise": 0.03},
    "Secure aggregation": {"secure_aggregation": True},
}
#: The same switched off.
_CLEAN: Mapping[str, Any] = {
    name: AttackSettings.parameters()[name].default for made in DEFENCES.values() for name in made
}
#: Block Krylov counts as done at this angle.
_SETTLED = 1e-6


class Defences(Study[AttackSettings, pd.DataFrame]):
    """FAPS under each defence, read by linear equations and by replay.

    Columns of the result: defence; method_sine (angle that the method reaches); linear_error
    (symmetric completion with the stated trace; the attack on sums where only these are seen);
    replay_error (hidden parts fitted; NaN where there is nothing to replay); evaluations; ended
    (why the replay ended, "sums" or "products" where there was none).
    """

    key: ClassVar[str] = "defences"
    title: ClassVar[str] = "Every defence of FAPS"
    opened_by: ClassVar[tuple[str, Value] | None] = ("defences", True)
    reads: ClassVar[frozenset[str]] = READS - set(_CLEAN)
    seconds: ClassVar[float] = 1200.0

    def cost(self, settings: AttackSettings, data: OwnData | None = None) -> Cost:
        size = costs.ProblemSize.of(settings, data)
        one = costs.run(size, settings, recorded=True) + costs.replay(size, settings)
        return costs.prepare(size) + one.times(len(DEFENCES))

    def run(self, settings: AttackSettings, data: OwnData | None = None) -> Run[pd.DataFrame]:
        yield Step(0.0, "Preparing the problem")
        problem = build_problem(settings, data)
        rows: list[dict[str, object]] = []
        for (name, switches), ends in in_turn(DEFENCES.items(), 0.0, 0.9):
            chosen = replace(settings, **{**_CLEAN, **switches})
            row = yield from part(_defended(chosen, problem), *ends)
            rows.append({"defence": name, **row})
            yield Step(ends[1], name, pd.DataFrame(rows))
        row = yield from part(_fewer_rounds(replace(settings, **_CLEAN), problem), 0.9, 1.0)
        return pd.DataFrame([*rows, {"defence": "Fewer rounds (block Krylov)", **row}])


def _defended(settings: AttackSettings, problem: Problem) -> Part[dict[str, object]]:
    truth = private_matrix(problem, settings.client)
    trace, table = yield from part(attacked_run(problem, "faps", settings), 0.0, 0.05)
    row: dict[str, object] = {"method_sine": float(table["sin_theta"].iloc[-1])}
    if settings.secure_aggregation:
        read = attacks.pooled(trace.transcript, settings.client)
        nothing = {"replay_error": np.nan, "evaluations": 0, "ended": "sums"}
        return row | {"linear_error": scores.relative_error(read, truth)} | nothing
    stated = stated_trace(problem, settings.client)
    linear = attacks.symmetric(trace.transcript, settings.client, trace=stated)
    replaying = replayed(settings, problem, trace.transcript, 0.0)
    found = yield from part(replaying, 0.05, 1.0)
    return row | {
        "linear_error": scores.relative_error(linear, truth),
        "replay_error": found.error,
        "evaluations": found.attack.evaluations,
        "ended": found.attack.ended,
    }


def _fewer_rounds(settings: AttackSettings, problem: Problem) -> Part[dict[str, object]]:
    """Block Krylov needs fewer rounds, so fewer messages leak; its answers are plain products."""
    truth = private_matrix(problem, settings.client)
    trace, table = yield from part(attacked_run(problem, "block_krylov", settings), 0.0, 0.9)
    settled = np.flatnonzero(table["sin_theta"].to_numpy() <= _SETTLED)
    rounds = int(settled[0]) if len(settled) else len(table) - 1
    stated = stated_trace(problem, settings.client)
    estimate = attacks.symmetric(trace.transcript.until(rounds), settings.client, trace=stated)
    return {
        "method_sine": float(table["sin_theta"].iloc[rounds]),
        "linear_error": scores.relative_error(estimate, truth),
        "replay_error": np.nan,
        "evaluations": 0,
        "ended": "products",
    }
