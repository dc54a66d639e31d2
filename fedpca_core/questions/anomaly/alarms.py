"""A stream of flows as they might arrive, the attack types caught, and what makes one score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from fedpca_core.anomaly.evaluation import caught_by_type
from fedpca_core.anomaly.scores import contributions, reconstruct, score
from fedpca_core.arrays import Array, BoolArray
from fedpca_core.problems.traffic import DetectionTask
from fedpca_core.questions import costs
from fedpca_core.questions.anomaly.judged import Level, judge, level
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import NOISE, TASK, TaskFacts, noisy_task
from fedpca_core.questions.anomaly.topic import LEARNING, Topic
from fedpca_core.questions.anomaly.trained import detector
from fedpca_core.settings import Value
from fedpca_core.steps import Run, Step, part
from fedpca_core.streams import Streams
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData

#: Flows of the stream at most, and a place in it that is always within the first burst.
FLOWS, FIRST_BURST = 400, 100
#: Points of each class in the picture of three dimensions.
_POINTS = 500


@dataclass(frozen=True, eq=False)
class Cloud:
    """Some records of one class in three dimensions.

    Attributes
    ----------
    types : tuple of str
    plane : (points, 2) float64
        Scores on the two leading directions of the subspace.
    distance : (points,) float64
        To the subspace; after reconstruction it is zero.
    """

    types: tuple[str, ...]
    plane: Array
    distance: Array


@dataclass(frozen=True, eq=False)
class Alarmed:
    """The configured detector at work.

    Attributes
    ----------
    title : str
    facts : TaskFacts
    thresholds : mapping of level to the score above which the alarm is raised
    caught : mapping of level to a table with columns ``type records caught auc``
        Empty without labels.
    types : (flows,) object
        What each flow of the stream is.
    attack : (flows,) bool
    scores : (flows,) float64
    features : tuple of str
    measured, standardised, parts : (flows, features) float64
        The flows as they were measured, standardised, and what each feature adds to the score.
    clouds : mapping of "normal", "attack" or "record" to Cloud
        Empty below two components.
    """

    title: str
    facts: TaskFacts
    thresholds: Mapping[Level, float]
    caught: Mapping[Level, pd.DataFrame]
    types: np.ndarray
    attack: BoolArray
    scores: Array
    features: tuple[str, ...]
    measured: Array
    standardised: Array
    parts: Array
    clouds: Mapping[str, Cloud]

    def flow(self, settings: AnomalySettings) -> int:
        """The flow that the settings choose; the last of a shorter stream."""
        return min(settings.flow, len(self.scores) - 1)

    def explained(self, flow: int) -> pd.DataFrame:
        """What makes one flow's score, largest part first.

        Columns ``feature measured standardised share`` (per cent of the score).
        """
        parts = self.parts[flow]
        table = pd.DataFrame(
            {
                "feature": self.features,
                "measured": self.measured[flow],
                "standardised": self.standardised[flow],
                "share": 100 * parts / max(float(parts.sum()), 1e-300),
            }
        )
        return table.sort_values("share", ascending=False, ignore_index=True)


class Alarms(Topic[Alarmed]):
    """The configured detector on a stream of tested flows."""

    key: ClassVar[str] = "alarms"
    title: ClassVar[str] = "Alarms"
    opened_by: ClassVar[tuple[str, Value] | None] = ("topic", "alarms")
    reads: ClassVar[frozenset[str]] = TASK | LEARNING | NOISE

    def cost(self, settings: AnomalySettings, data: OwnData | None = None) -> Cost:
        return costs.detection(settings, data, runs=2)

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[Alarmed]:
        yield Step(0.0, "Reading the records")
        on = noisy_task(settings, data)
        found = yield from part(detector("federated", settings, data), 0.0, 0.9)
        yield Step(0.9, "Judging every attack type")
        judged = judge(on, found)
        rows = stream(on, seed=settings.seed)
        frame = found.frame
        assert frame is not None
        records = on.records[rows]
        caught = {
            at: caught_by_type(on.attack, on.types, found.scores, value)
            for at, value in judged.thresholds.items()
            if on.source.labelled
        }
        return Alarmed(
            title=found.name,
            facts=TaskFacts.of(on),
            thresholds=judged.thresholds,
            caught=caught,
            types=on.types[rows],
            attack=on.attack[rows],
            scores=found.scores[rows],
            features=tuple(on.problem.feature_names),
            measured=np.stack([on.raw(int(row)) for row in rows]),
            standardised=records,
            parts=np.stack([contributions(record, frame) for record in records]),
            clouds=clouds(on, frame) if frame.shape[1] >= 2 else {},
        )

    def tables(self, result: Alarmed, settings: AnomalySettings) -> dict[str, pd.DataFrame]:
        at = level(settings, result.facts.labelled)
        flows = pd.DataFrame(
            {
                "flow": np.arange(len(result.scores)),
                "type": result.types,
                "score": result.scores,
                "alarm": result.scores > result.thresholds[at],
            }
        )
        found = {"stream": flows, "flow": result.explained(result.flow(settings))}
        return {"types": result.caught[at], **found} if result.caught else found


def stream(on: DetectionTask, seed: int = 0) -> np.ndarray:
    """Indices of tested records as a live detector may meet them: calm, and a burst of each attack.

    About half the records are normal, in their own order; each attack type comes once, all bursts
    of equal length, the first of them around place `FIRST_BURST`. Without labels simply the first
    records.
    """
    if not on.source.labelled:
        return np.arange(min(FLOWS, len(on.attack)))
    generator = Streams(seed).generator("data", 4)
    types = on.source.attack_types
    burst = max(2, min(FLOWS // (2 * len(types)), FIRST_BURST))
    calm = np.flatnonzero(~on.attack)
    lead = FIRST_BURST - burst // 2
    gap = max(2, (FLOWS - len(types) * burst - lead) // len(types))
    at = int(generator.integers(0, max(1, len(calm) - lead - gap * len(types))))
    pieces, length = [], lead
    for name in types:
        pieces.append(calm[at : at + length])
        at, length = at + length, gap
        rows = np.flatnonzero(on.attack & (on.types == name))
        first = int(generator.integers(0, max(1, len(rows) - burst)))
        pieces.append(rows[first : first + burst])
    pieces.append(calm[at : at + length])
    return np.concatenate(pieces)


def clouds(on: DetectionTask, frame: Array) -> dict[str, Cloud]:
    """Some records of each class: in the subspace, and how far outside it."""
    # The leading directions of the subspace itself, most energy first.
    inside = on.training @ frame
    turn = np.linalg.eigh(inside.T @ inside)[1][:, ::-1][:, :2]
    groups = {"normal": ~on.attack, "attack": on.attack}
    if not on.source.labelled:
        groups = {"record": ~on.attack}
    found = {}
    for name, chosen in groups.items():
        rows = np.flatnonzero(chosen)
        rows = rows[np.linspace(0, len(rows) - 1, min(_POINTS, len(rows))).astype(int)]
        records = on.records[rows]
        found[name] = Cloud(
            types=tuple(str(kind) for kind in on.types[rows]),
            plane=reconstruct(records, frame) @ frame @ turn,
            distance=np.sqrt(score(records, frame)),
        )
    return found
