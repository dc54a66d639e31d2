"""Bytes and seconds of each method."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from fedpca_core.anomaly import detectors
from fedpca_core.anomaly.detectors import Detector
from fedpca_core.problems.traffic import DetectionTask
from fedpca_core.questions import costs
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import NOISE, TASK, TaskFacts, noisy_task
from fedpca_core.questions.anomaly.topic import LEARNING, Topic
from fedpca_core.questions.anomaly.trained import UNCOVERED, detector
from fedpca_core.settings import Value
from fedpca_core.steps import Run, Step, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData

#: Bytes of a number on the wire.
_FLOAT32 = 4


@dataclass(frozen=True, eq=False)
class Spent:
    """What each method costs.

    Attributes
    ----------
    title : str
        The configured method.
    facts : TaskFacts
    table : pandas.DataFrame
        Columns ``method bytes_up`` (one client, one round; once where there is one round)
        ``megabytes`` (both directions, all clients and rounds) ``training_seconds
        microseconds_per_flow`` (measured here).
    a_round, once : int
        Bytes up of one client in a round, and for its covariance once.
    break_even, taken : float
        Rounds in which a client may take part before its covariance is cheaper; and does.
    """

    title: str
    facts: TaskFacts
    table: pd.DataFrame
    a_round: int
    once: int
    break_even: float
    taken: float


class Costs(Topic[Spent]):
    """The wire and the clock of the configured method and its rivals."""

    key: ClassVar[str] = "detection-costs"
    title: ClassVar[str] = "Costs"
    opened_by: ClassVar[tuple[str, Value] | None] = ("topic", "costs")
    reads: ClassVar[frozenset[str]] = TASK | LEARNING | NOISE

    def cost(self, settings: AnomalySettings, data: OwnData | None = None) -> Cost:
        return costs.detection(settings, data, runs=3)

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[Spent]:
        yield Step(0.0, "Reading the records")
        on = noisy_task(settings, data)
        exact = detectors.one_shot_covariance(on, settings.components)
        found = [exact]
        noisy = on.problem.guarantee is not None
        for index, name in enumerate(("federated", *UNCOVERED)):
            if noisy and name in UNCOVERED:
                continue
            if index:
                yield Step(index / 3, "Counting", _spent(on, settings, found))
            share = index / 3, (index + 1) / 3
            found.append((yield from part(detector(name, settings, data), *share)))
        return _spent(on, settings, found)

    def tables(self, result: Spent, settings: AnomalySettings) -> dict[str, pd.DataFrame]:
        return {"costs": result.table}


def _spent(on: DetectionTask, settings: AnomalySettings, found: list[Detector]) -> Spent:
    exact, own = found[0], found[1]
    features, k = on.problem.features, settings.components
    return Spent(
        title=own.name,
        facts=TaskFacts.of(on),
        table=pd.DataFrame(_rows(on, found)),
        a_round=_FLOAT32 * own.upload_floats,
        once=_FLOAT32 * exact.upload_floats,
        break_even=(features + 1) / 2 / k,
        taken=settings.participation * settings.rounds,
    )


def _rows(on: DetectionTask, found: list[Detector]) -> Iterator[dict[str, Any]]:
    exact, features = found[0], on.problem.features
    everything = len(on.training) * features
    a_client = round(everything / on.problem.clients)
    yield _row("Every record to the server", a_client, _FLOAT32 * everything, exact)
    noise = "exact" if on.problem.guarantee is None else "with the same noise"
    yield _row(f"One-shot covariance, {noise}", exact.upload_floats, exact.bytes_total, exact)
    for run in found[1:]:
        yield _row(run.name, run.upload_floats, run.bytes_total, run)


def _row(name: str, floats: int, total: int, run: Detector) -> dict[str, Any]:
    return {
        "method": name,
        "bytes_up": _FLOAT32 * floats,
        "megabytes": 1e-6 * total,
        "training_seconds": run.training_seconds,
        "microseconds_per_flow": run.microseconds_per_record,
    }
