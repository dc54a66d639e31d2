"""A server that reruns FAPS's public update until it fits, and what each defence does to it."""

import time
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core import attacks
from fedpca_core.attacks import scores
from fedpca_core.problems import Problem
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.questions import costs
from fedpca_core.questions.attack.client_trial import RUN
from fedpca_core.settings import plural
from fedpca_core.steps import Run, Step, part
from fedpca_core.study import pictures
from fedpca_core.study.build import attacked_run, build_algorithm, build_problem
from fedpca_core.study.deployed import held_matrix, private_matrix, stated_trace
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.pictures import Pictures
from fedpca_core.study.study import Study

#: Seconds between two partial results.
PARTIAL_SECONDS = 2.0
#: What the replay reads of the settings: it is about FAPS and nobody else.
READS = (RUN - {"attacked", "attack", "colluders", "starts", "local_steps"}) | {"seeded", "budget"}


@dataclass(frozen=True, eq=False)
class Replayed:
    """A replay attack and how near it came."""

    attack: attacks.Replay
    #: Relative error of the reconstruction (simulation only).
    error: float
    #: That to what the client answered with; another number only with noise at the source.
    released: float
    #: That of the public guess it started from.
    prior_error: float
    #: Sine of the largest angle that FAPS itself had reached.
    angle: float
    #: The truth beside the prior and the reconstruction.
    pictures: Pictures

    @property
    def fit(self) -> pd.DataFrame:
        """The search: start, evaluation (counted over all starts), rounds fitted, residual."""
        history = self.attack.history
        return pd.DataFrame(
            {
                "start": [stage.start + 1 for stage in history],
                "evaluation": np.arange(1, len(history) + 1),
                "rounds": [stage.rounds for stage in history],
                "residual": [stage.residual for stage in history],
            }
        )


class ReplayAttack(Study[AttackSettings, Replayed]):
    """FAPS runs, and the server replays one client."""

    key: ClassVar[str] = "replay"
    title: ClassVar[str] = "FAPS replayed"
    reads: ClassVar[frozenset[str]] = READS
    seconds: ClassVar[float] = 600.0

    @staticmethod
    def obstacle(settings: AttackSettings) -> str:
        """Why there is nothing to replay with these settings; empty if there is."""
        if settings.secure_aggregation:
            return (
                "Under secure aggregation there is no single upload to replay; switch it off, or "
                "compare two runs below."
            )
        return ""

    def wanted(self, settings: AttackSettings) -> bool:
        return settings.replay and not self.obstacle(settings)

    def cost(self, settings: AttackSettings, data: OwnData | None = None) -> Cost:
        size = costs.ProblemSize.of(settings, data)
        return (
            costs.prepare(size)
            + costs.run(size, settings, recorded=True)
            + costs.replay(size, settings)
        )

    def run(self, settings: AttackSettings, data: OwnData | None = None) -> Run[Replayed]:
        yield Step(0.0, "Preparing the problem")
        problem = build_problem(settings, data)
        trace, table = yield from part(attacked_run(problem, "faps", settings), 0.0, 0.05)
        angle = float(table["sin_theta"].iloc[-1])
        found: Replayed = yield from replayed(settings, problem, trace.transcript, angle)
        return found

    def tables(self, result: Replayed, settings: AttackSettings) -> dict[str, pd.DataFrame]:
        attack = result.attack
        summary = {
            "error": result.error,
            "error_to_what_was_released": result.released,
            "prior_error": result.prior_error,
            "residual": attack.residual,
            "tolerance": attack.tolerance,
            "uncertainty": attack.uncertainty,
            "succeeded": attack.succeeded,
            "starts": attack.starts,
            "evaluations": attack.evaluations,
            "ended": attack.ended,
            "method_sine": result.angle,
        }
        return {"summary": pd.DataFrame([summary]), "fit": result.fit}


def replayed(
    settings: AttackSettings, problem: Problem, transcript: Transcript, angle: float
) -> Run[Replayed]:
    """Replay one client of a run of FAPS that ended at this angle."""
    truth = private_matrix(problem, settings.client)
    held = held_matrix(problem, settings.client)
    search = attacks.Replaying(
        transcript,
        build_algorithm("faps", settings),
        settings.client,
        trace=stated_trace(problem, settings.client),
        seeded=settings.seeded,
        noise=settings.upload_noise,
        evaluations=settings.budget,
    )

    def result() -> Replayed:
        found = search.result
        estimates = {"prior": found.prior[None], "replay": found.estimate[None]}
        return Replayed(
            found,
            scores.relative_error(found.estimate, truth),
            scores.relative_error(found.estimate, held),
            scores.relative_error(found.prior, truth),
            angle,
            pictures.covariances(estimates, truth, problem),
        )

    shown = time.monotonic()
    for count, stage in enumerate(search, start=1):
        late = time.monotonic() - shown > PARTIAL_SECONDS
        yield Step(
            0.05 + 0.95 * count / settings.budget,
            f"start {stage.start + 1}, {plural(stage.rounds, 'round')}: residual "
            f"{stage.residual:.1e}",
            result() if late else None,
        )
        shown = time.monotonic() if late else shown
    return result()
