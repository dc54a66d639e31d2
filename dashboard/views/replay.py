"""The Attack page's replay: a server that reruns FAPS' public update until it fits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from dashboard.player import Baseline, Curve, Images, Panel
from dashboard.shell.jobs import Job
from dashboard.views.reconstruction import heat_row
from fedpca_core import attacks
from fedpca_core.arrays import Array
from fedpca_core.attacks import scores
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import Problem
from fedpca_core.studies.build import attacked_run, build_algorithm
from fedpca_core.studies.pca_settings import AttackSettings


@dataclass(frozen=True)
class Replayed:
    """A replay attack and how near it came.

    Attributes
    ----------
    result : attacks.Replay
    error : float
        Relative error of the reconstruction (simulation only).
    prior_error : float
        That of the public guess it started from.
    angle : float
        Sine of the largest angle that FAPS itself had reached.
    """

    result: attacks.Replay
    error: float
    prior_error: float
    angle: float


def run(configuration: AttackSettings, problem: Problem, truth: Array, job: Job) -> Replayed:
    """Run FAPS and replay its transcript within the budget; stopping keeps the best fit."""
    return _replayed(configuration, problem, truth, configuration.budget, job.report)


def _replayed(
    configuration: AttackSettings,
    problem: Problem,
    truth: Array,
    seconds: float,
    progress: Callable[[float, str], bool],
) -> Replayed:
    trace, table = attacked_run(problem, "faps", configuration)
    result = attacks.replay(
        trace.transcript,
        build_algorithm("faps", configuration),
        configuration.client,
        trace=float(np.trace(truth)),
        seeded=configuration.seeded,
        noise=configuration.upload_noise,
        seconds=seconds,
        progress=progress,
    )
    return Replayed(
        result,
        scores.relative_error(result.estimate, truth),
        scores.relative_error(result.prior, truth),
        float(table["sin_theta"].iloc[-1]),
    )


def sentence(replayed: Replayed) -> str:
    """What came of it, and how the server itself would know."""
    result = replayed.result
    how = (
        f"after {result.seconds:.1f} s and {result.starts} "
        f"{'start' if result.starts == 1 else 'starts'}"
    )
    judged = (
        "and the residual tells it so"
        if result.succeeded
        else f"and a residual of {result.residual:.1e} tells it that the fit is not exact"
    )
    fitted = []
    if result.frame is not None:
        fitted.append("the client's private start")
    if result.inner_steps is not None:
        fitted.append("its numbers of inner steps")
    if result.penalty is not None:
        fitted.append(f"its penalty β = {result.penalty:.3g}")
    also = f" It also knows {' and '.join(fitted)}." if fitted else ""
    return (
        f"The server has the client's covariance to **{replayed.error:.1e}** {how}, {judged}. "
        f"The prior cI it started from, with the stated trace, was off by "
        f"{replayed.prior_error:.2g}.{also}"
    )


def pictures(replayed: Replayed, truth: Array, problem: Problem) -> list[list[Images]]:
    """The truth, the prior and the reconstruction side by side."""
    named = {
        "True covariance of the client": truth,
        "The prior it starts from": replayed.result.prior,
        "Reconstruction by replay": replayed.result.estimate,
    }
    return [heat_row(named, truth, problem)]


def panel(replayed: Replayed) -> Panel:
    """Residual of the fit against the attack's own time, a curve for each start."""
    history = replayed.result.history
    shown = sorted({stage.start for stage in history})[-6:]
    curves = tuple(
        Curve(
            name=f"start {start + 1}",
            x=[stage.seconds for stage in history if stage.start == start],
            y=[max(stage.residual, 1e-17) for stage in history if stage.start == start],
            colour=f"series {position}",
            marker=True,
        )
        for position, start in enumerate(shown)
    )
    return Panel(
        key="replay_residual",
        title="The fit",
        x_title="seconds of the attack",
        y_title="relative residual over the rounds fitted",
        curves=curves,
        baselines=(Baseline("explained", replayed.result.tolerance),),
        follows=False,
        description="Relative residual of the replay against seconds; each start is a curve.",
    )


#: Name of each defence and the settings that make it.
DEFENCES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("None", {}),
    ("Private start", {"private_start": True}),
    ("Private penalty", {"private_penalty": True}),
    ("Random inner steps", {"random_inner_steps": True}),
    ("float32 messages", {"dtype": "float32"}),
    ("Noise of 0.1% on uploads", {"upload_noise": 1e-3}),
    ("Noise of 3% on uploads", {"upload_noise": 0.03}),
    ("Secure aggregation", {"secure_aggregation": True}),
)
_CLEAN: dict[str, Any] = {
    "private_start": False,
    "private_penalty": False,
    "random_inner_steps": False,
    "dtype": "float64",
    "upload_noise": 0.0,
    "secure_aggregation": False,
}


def study(configuration: AttackSettings, problem: Problem, truth: Array, job: Job) -> pd.DataFrame:
    """Each defence alone: does FAPS still converge, and what do two attacks recover?"""
    rows: list[dict[str, object]] = []
    for position, (name, switches) in enumerate(DEFENCES):
        if not job.report(position / len(DEFENCES), f"Defence: {name.lower()}"):
            break
        chosen = replace(configuration, **{**_CLEAN, **switches})

        def report(fraction: float, text: str, at: int = position, of: str = name) -> bool:
            return job.report((at + fraction) / len(DEFENCES), f"{of}: {text}")

        rows.append(_defended(name, chosen, problem, truth, report))
        job.publish(pd.DataFrame(rows))
    rows.append(_fewer_rounds(configuration, problem, truth))
    return pd.DataFrame(rows)


def _defended(
    name: str,
    configuration: AttackSettings,
    problem: Problem,
    truth: Array,
    report: Callable[[float, str], bool],
) -> dict[str, object]:
    trace, table = attacked_run(problem, "faps", configuration)
    row: dict[str, object] = {
        "Defence": name,
        "Angle reached": f"{float(table['sin_theta'].iloc[-1]):.1e}",
    }
    stated = float(np.trace(truth))
    try:
        linear = attacks.symmetric(trace.transcript, configuration.client, trace=stated)
        row["Linear attack"] = f"{scores.relative_error(linear, truth):.1e}"
        found = _replayed(configuration, problem, truth, configuration.budget, report)
        row["Replay, hidden part fitted"] = f"{found.error:.1e}"
        row["Ended"] = found.result.ended
    except InvalidInput:
        pooled = attacks.pooled(trace.transcript, configuration.client)
        row["Linear attack"] = f"{scores.relative_error(pooled, truth):.1e}"
        row["Replay, hidden part fitted"] = "no single upload to replay"
        row["Ended"] = "sums only"
    return row


def _fewer_rounds(
    configuration: AttackSettings, problem: Problem, truth: Array
) -> dict[str, object]:
    """Block Krylov needs fewer rounds, so fewer messages leak; its answers are plain products."""
    plain = replace(configuration, **_CLEAN)
    trace, table = attacked_run(problem, "block_krylov", plain)
    settled = np.flatnonzero(table["sin_theta"].to_numpy() <= 1e-6)
    rounds = int(settled[0]) if len(settled) else len(table) - 1
    estimate = attacks.symmetric(
        trace.transcript, plain.client, rounds, trace=float(np.trace(truth))
    )
    return {
        "Defence": "Fewer rounds (block Krylov)",
        "Angle reached": f"{float(table['sin_theta'].iloc[rounds]):.1e}",
        "Linear attack": f"{scores.relative_error(estimate, truth):.1e}",
        "Replay, hidden part fitted": "answers are plain products",
        "Ended": f"round {rounds}",
    }
