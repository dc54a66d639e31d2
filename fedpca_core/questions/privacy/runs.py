"""Runs of the method that is set with one kind of noise, from several seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from fedpca_core.algorithms import FedPower
from fedpca_core.privacy import Guarantee
from fedpca_core.problems import Problem
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.repeated import Repeated, gathered, repeat, traced
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.privacy.ways import ROUNDS, SOURCE, Way
from fedpca_core.steps import Part, part
from fedpca_core.study.own_data import OwnData

#: Kinds of runs without an ε.
QUIET, MASKED = "none", "masked"


def spend(
    way: Way,
    settings: PrivacySettings,
    problem: Problem,
    seeds: Sequence[int],
    data: OwnData | None = None,
) -> Part[tuple[Repeated, Guarantee]]:
    """Run one way from several seeds, each with noise of its own."""
    traces = []
    for index, seed in enumerate(seeds):
        trial = way.trial(settings, problem, seed, data)
        steps = traced(
            trial.problem, trial.algorithm, trial.rounds, seed, trial.channel, way.title(settings)
        )
        traces.append((yield from part(steps, index / len(seeds), (index + 1) / len(seeds))))
    return gathered(traces, problem.target(settings.components)), trial.guarantee


def noisy_runs(
    settings: PrivacySettings, kind: str, seeds: Sequence[int], data: OwnData | None
) -> Part[Repeated]:
    """The run that is set with noise of a kind (`build.kinds`), masked, or without any.

    Without noise the records are neither clipped nor centred on a noisy mean.
    """
    c = settings
    if kind == "source":
        return (yield from spend(SOURCE, c, build.records(c, data), seeds, data))[0]
    if kind in (QUIET, MASKED):
        problem, run = build.records(c, data), build.method(c, 0.0)
        open_ = replace(c, trusted="nobody", upload_noise=c.upload_noise * (kind == MASKED))
        wire, text = build.channel(open_), "Masked" if kind == MASKED else "Without noise"
    else:
        problem = build.build_problem(c, data)
        run = build.method(c, build.noise_for(c, kind, data=data))
        wire, text = build.channel(c), f"With {kind} noise"
    rounds = build.rounds(c)
    at_source = c.calibration == "source" and math.isfinite(c.epsilon)
    if at_source and not isinstance(run, FedPower):
        rounds = ROUNDS  # as the run it is compared with
    sought = c.components  # a stand-in for FedPower has its surplus columns as components
    return (yield from repeat(problem, run, rounds, wire, seeds, text, sought))
