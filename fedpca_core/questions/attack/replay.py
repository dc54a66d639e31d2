"""A server that reruns FAPS's public update until it fits, and what each defence does to it."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core import attacks
from fedpca_core.algorithms.registry import METHODS, replayable
from fedpca_core.attacks import scores
from fedpca_core.problems import Problem
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.questions import costs
from fedpca_core.questions.attack.client_trial import RUN
from fedpca_core.settings import plural
from fedpca_core.steps import Part, Run, Step, in_turn, part
from fedpca_core.study import Cost, OwnData, Study, pictures
from fedpca_core.study.build import attacked_run, build_problem
from fedpca_core.study.deployed import held_matrix, private_matrix, stated_trace
from fedpca_core.study.parts import words
from fedpca_core.study.pca_settings import AttackSettings
from fedpca_core.study.pictures import Pictures

#: Seconds between two partial results.
PARTIAL_SECONDS = 2.0
#: What the replay reads of the settings: it is about FAPS and nobody else.
READS = (RUN - {"attacked", "attack", "colluders", "starts", "local_steps"}) | {"seeded", "budget"}


@dataclass(frozen=True, eq=False)
class Replayed:
    """A replay attack and how near it came (errors are relative, and simulation only)."""

    attack: attacks.Replay
    error: float
    #: To what the client answered with; another number only with noise at the source.
    released: float
    #: Of the public guess it started from.
    prior_error: float
    #: Sine of the largest angle that FAPS itself had reached.
    angle: float
    #: The truth beside the prior and the reconstruction.
    pictures: Pictures

    @property
    def fit(self) -> pd.DataFrame:
        """The search: start, evaluation (counted over all starts), rounds fitted, residual."""
        search = enumerate(self.attack.history, 1)
        rows = [(one.start + 1, number, one.rounds, one.residual) for number, one in search]
        return pd.DataFrame(rows, columns=["start", "evaluation", "rounds", "residual"])


class ReplayAttack(Study[AttackSettings, Replayed]):
    """FAPS runs, and the server replays one client."""

    key = "replay"
    title = "FAPS replayed"
    reads = READS
    seconds = 600.0

    @staticmethod
    def obstacle(settings: AttackSettings) -> str:
        """Why there is nothing to replay with these settings; empty if there is."""
        return words("replay-of-sums") if settings.secure_aggregation else ""

    def wanted(self, settings: AttackSettings) -> bool:
        return settings.replay and not self.obstacle(settings)

    def cost(self, settings: AttackSettings, data: OwnData | None = None) -> Cost:
        size = costs.ProblemSize.of(settings, data)
        one = costs.run(size, settings, recorded=True) + costs.replay(size, settings)
        return costs.prepare(size) + one

    def run(self, settings: AttackSettings, data: OwnData | None = None) -> Run[Replayed]:
        yield Step(0.0, "Preparing the problem")
        problem = build_problem(settings, data)
        trace, table = yield from part(attacked_run(problem, "faps", settings), 0.0, 0.05)
        angle = float(table["sin_theta"].iloc[-1])
        found: Replayed = yield from replayed(settings, problem, trace.transcript, angle)
        return found

    def tables(self, result: Replayed, settings: AttackSettings) -> dict[str, pd.DataFrame]:
        search = (
            *("residual", "tolerance", "uncertainty", "succeeded"),
            *("starts", "evaluations", "ended"),
        )
        summary = {
            "error": result.error,
            "error_to_what_was_released": result.released,
            "prior_error": result.prior_error,
            **{name: getattr(result.attack, name) for name in search},
            "method_sine": result.angle,
        }
        return {"summary": pd.DataFrame([summary]), "fit": result.fit}


def replayed(
    settings: AttackSettings, problem: Problem, transcript: Transcript, angle: float
) -> Run[Replayed]:
    """Replay one client of a run of FAPS that ended at this angle."""
    client = settings.client
    truth, held = private_matrix(problem, client), held_matrix(problem, client)
    search = attacks.Replaying(
        transcript,
        METHODS["faps"].make(settings),
        client,
        trace=stated_trace(problem, client),
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


# ---------------------------------------------------------------------- and with each defence
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

    ``linear_error`` is of symmetric completion with the stated trace, or of the attack on sums
    where only these are seen; ``replay_error`` is NaN where there is nothing to replay, because of
    what ``ended`` says: "sums" or "products".
    """

    key = "defences"
    title = "Every defence of FAPS"
    opened_by = ("defences", True)
    reads = READS - set(_CLEAN)
    seconds = 1200.0

    def cost(self, settings: AttackSettings, data: OwnData | None = None) -> Cost:
        size = costs.ProblemSize.of(settings, data)
        one = costs.run(size, settings, recorded=True) + costs.replay(size, settings)
        return costs.prepare(size) + one.times(len(DEFENCES))

    def run(self, settings: AttackSettings, data: OwnData | None = None) -> Run[pd.DataFrame]:
        yield Step(0.0, "Preparing the problem")
        problem, rows = build_problem(settings, data), list[dict[str, object]]()
        for (name, switches), ends in in_turn(DEFENCES.items(), 0.0, 0.9):
            chosen = replace(settings, **{**_CLEAN, **switches})
            row = yield from part(_defended(chosen, problem), *ends)
            rows.append({"defence": name, **row})
            yield Step(ends[1], name, pd.DataFrame(rows))
        # Block Krylov needs fewer rounds, so fewer messages leak; its answers are plain products.
        fewer = _defended(replace(settings, **_CLEAN), problem, "block_krylov")
        row = yield from part(fewer, 0.9, 1.0)
        return pd.DataFrame([*rows, {"defence": "Fewer rounds (block Krylov)", **row}])


def _defended(
    settings: AttackSettings, problem: Problem, method: str = "faps"
) -> Part[dict[str, object]]:
    """Only FAPS is replayed, and no sums; a method that comes to rest is read up to there."""
    client, sums, masked = settings.client, settings.secure_aggregation, replayable(method)
    truth, stated = private_matrix(problem, client), stated_trace(problem, client)
    trace, table = yield from part(attacked_run(problem, method, settings), 0.0, 0.05)
    sines = table["sin_theta"].to_numpy(dtype=float)
    rounds = len(sines) - 1
    if not masked and (sines <= _SETTLED).any():
        rounds = int(np.argmax(sines <= _SETTLED))
    view = trace.transcript.until(rounds)
    read = attacks.pooled(view, client) if sums else attacks.symmetric(view, client, trace=stated)
    row: dict[str, object] = {
        "method_sine": float(sines[rounds]),
        "linear_error": scores.relative_error(read, truth),
        "replay_error": np.nan,
        "evaluations": 0,
        "ended": "sums" if sums else "products",
    }
    if masked and not sums:
        found = yield from part(replayed(settings, problem, view, 0.0), 0.05, 1.0)
        ended, searched = found.attack.ended, found.attack.evaluations
        row |= {"replay_error": found.error, "evaluations": searched, "ended": ended}
    return row
