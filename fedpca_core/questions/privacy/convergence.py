"""How close does a private run come: with its noise, with noise of other kinds, without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pandas as pd

from fedpca_core.algorithms import FedPower
from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import InvalidInput
from fedpca_core.privacy import releases_made, spent
from fedpca_core.protocol.channel import Channel
from fedpca_core.questions import costs
from fedpca_core.questions.privacy import build
from fedpca_core.questions.privacy.repeated import Repeated, run_seeds, traced
from fedpca_core.questions.privacy.runs import MASKED, QUIET, noisy_runs
from fedpca_core.questions.privacy.settings import PrivacySettings
from fedpca_core.questions.privacy.theory_terms import predicted_sine
from fedpca_core.settings import Value
from fedpca_core.steps import Run, Step, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.study import Study


@dataclass(frozen=True, eq=False)
class Spending:
    """What each client has released and spent in one run.

    Attributes
    ----------
    releases : (clients,) int64
    epsilon : (clients,) float64
    clip_norm : float
    clients : tuple of str
        Their names, or their numbers counted from 0.
    """

    releases: IntArray
    epsilon: Array
    clip_norm: float
    clients: tuple[str, ...]

    @property
    def range(self) -> tuple[int, int]:
        """Fewest and most releases of any client."""
        return int(self.releases.min()), int(self.releases.max())


@dataclass(frozen=True, eq=False)
class PrivateRuns:
    """Repeated runs that differ in their noise.

    Attributes
    ----------
    runs : mapping of str to Repeated
        By noise: "exact", "published", "source", "masked" or "none"; as it is set comes first.
    floor : float or None
        Predicted sine of the final angle, where noise on FedPower's products is taken apart
        (simulation only).
    spending : Spending or None
        Of the first repetition, where clients are drawn.
    """

    runs: Mapping[str, Repeated]
    floor: float | None = None
    spending: Spending | None = None

    @property
    def rounds(self) -> int:
        """Communications of the longest run."""
        return max(run.sines.shape[1] for run in self.runs.values()) - 1


class PrivateRun(Study[PrivacySettings, PrivateRuns]):
    """The run as it is set, the same with other kinds of noise, and without noise."""

    key: ClassVar[str] = "private_run"
    title: ClassVar[str] = "Convergence under a budget"
    opened_by: ClassVar[tuple[str, Value] | None] = ("view", "run")
    settings: ClassVar[type[PrivacySettings]] = PrivacySettings
    seconds: ClassVar[float] = 300.0

    def cost(self, settings: PrivacySettings, data: OwnData | None = None) -> Cost:
        return costs.private(settings, data, 2 * settings.repetitions)

    def run(self, settings: PrivacySettings, data: OwnData | None = None) -> Run[PrivateRuns]:
        c = settings
        yield Step(0.0, "Drawing the data")
        problem = build.build_problem(c, data)
        seeds = run_seeds(c.seed, c.repetitions)
        kinds = _kinds(c)
        runs: dict[str, Repeated] = {}
        for position, kind in enumerate(kinds):
            share = position / len(kinds), (position + 1) / len(kinds)
            try:
                runs[kind] = yield from part(noisy_runs(c, kind, seeds, data), *share)
            except InvalidInput:
                if not runs:  # the run that is set, not one it is compared with
                    raise
                continue
            yield Step(share[1], "Running the next", PrivateRuns(dict(runs)))
        run = build.method(c, build.current_noise(c, data))
        if not (isinstance(run, FedPower) and run.noise > 0):
            return PrivateRuns(runs)
        floor = predicted_sine(problem, run, build.public_setting(c, data))
        if not c.draws:
            return PrivateRuns(runs, floor)
        quiet = Channel(record="estimates")
        trace = yield from part(
            traced(problem, run, run.rounds, c.seed, quiet, "Adding up what was spent"), 0.99, 1.0
        )
        norm = build.treatment(c)[1]
        true = spent(trace, run, delta=c.delta, clip_norm=norm)
        who = problem.client_names or tuple(map(str, range(problem.clients)))
        return PrivateRuns(runs, floor, Spending(releases_made(trace), true, norm, who))

    def tables(self, result: PrivateRuns, settings: PrivacySettings) -> dict[str, pd.DataFrame]:
        curves = [run.table("noise", kind) for kind, run in result.runs.items()]
        ends = [run.table("noise", kind).iloc[[-1]] for kind, run in result.runs.items()]
        tables = {
            "summary": pd.concat(ends, ignore_index=True),
            "curves": pd.concat(curves, ignore_index=True),
        }
        if result.spending is not None:
            tables["spending"] = pd.DataFrame(
                {
                    "client": result.spending.clients,
                    "releases": result.spending.releases,
                    "epsilon": result.spending.epsilon,
                }
            )
        return tables


def _kinds(c: PrivacySettings) -> list[str]:
    """Kinds of noise to compare, the run as it is set first."""
    found = list(build.kinds(c))
    if not build.accountable(c) and c.upload_noise and c.calibration != "source":
        found.insert(0, MASKED)
    return [*found, QUIET]
