"""What detectors find: rates beside baselines, a stream of alarms, costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fedpca_core.anomaly import detectors, evaluation
from fedpca_core.anomaly.detectors import Detector, SelfLearning
from fedpca_core.arrays import Array
from fedpca_core.problems.traffic import DetectionTask
from fedpca_core.questions.anomaly import trained
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import TaskFacts, noisy_task
from fedpca_core.steps import Run, Step, in_turn, part
from fedpca_core.streams import Streams
from fedpca_core.study import OwnData, stacked


@dataclass(frozen=True, eq=False)
class Findings:
    """What is known so far of the detectors of one experiment."""

    #: Name of the configured method.
    title: str
    #: The configured method first, then its aim and its baseline, then its rivals.
    judged: Mapping[str, trained.JudgedDetector]
    facts: TaskFacts
    #: Clients on their own; None without labels, or as long as they are not judged, or where the
    #: others have noise.
    local: SelfLearning | None = None

    def summary(self, settings: AnomalySettings) -> pd.DataFrame:
        """One row for each detector at the settings' threshold, the baselines included.

        Columns ``detector auc average_precision`` and, in per cent, ``accuracy precision recall f1
        fnr fpr`` and the recall at 0.1 and 1 % false alarms, ``tpr_0.1 tpr_1``; without labels only
        ``detector`` and ``alarms``. Self-learning PCA averages over clients, each with a threshold
        of its own: at the 95% quantile, or the oracle's.
        """
        chosen, share = trained.level(settings, self.facts.labelled), self.facts.attack_share
        if not self.facts.labelled:
            alarms = {name: 100 * judged.alarms[chosen] for name, judged in self.judged.items()}
            return pd.DataFrame(alarms.items(), columns=["detector", "alarms"])
        found = {name: judged.evaluations[chosen] for name, judged in self.judged.items()}
        rows = [
            (name, one.auc, one.average_precision, one.rates() | self.judged[name].few())
            for name, one in found.items()
        ]
        if self.local is not None:
            own = self.local.oracle if chosen == "oracle" else self.local.own_quantile
            rows.append(("Self-learning PCA", self.local.auc, self.local.average_precision, own))
        rows.append(("Always alarm", 0.5, share, evaluation.always_alarm(share)))
        return pd.DataFrame(
            {"detector": name, "auc": auc, "average_precision": precision}
            | {rate: 100 * value for rate, value in rates.items()}
            for name, auc, precision, rates in rows
        )

    def curves(self) -> pd.DataFrame:
        """ROC and precision-recall curves below each other; without labels the alarm rates."""
        tables = []
        for name, judged in self.judged.items():
            raised = {share: judged.alarms[share] for share in trained.SHARES}
            columns: Mapping[str, Any] = {"quantile": raised.keys(), "alarms": raised.values()}
            drawn = columns if judged.curves is None else vars(judged.curves)
            # Curves are of different lengths.
            series = {key: pd.Series(list(column)) for key, column in drawn.items()}
            tables.append({"detector": name, **series})
        return stacked(tables)


class Detection(trained.Topic[Findings]):
    """The configured method with its aim and its baseline first, then its rivals."""

    key = "detection"
    title = "Detection"
    opened_by = ("view", "detection")

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[Findings]:
        yield Step(0.0, "Reading the records")
        on = noisy_task(settings, data)
        noisy = on.problem.guarantee is not None
        facts, title = TaskFacts.of(on), settings.algorithm().title
        judged: dict[str, trained.JudgedDetector] = {}
        for name in trained.ESSENTIALS:
            found = yield from part(trained.detector(name, settings, data), 0.0, 0.3)
            judged[found.name] = trained.judge(on, found)
        for (name, text), share in in_turn(trained.RIVALS.items(), 0.3, 0.9):
            if noisy and name in trained.UNCOVERED:
                continue
            yield Step(share[0], text, Findings(title, dict(judged), facts))
            found = yield from part(trained.detector(name, settings, data), *share)
            judged[found.name] = trained.judge(on, found)
        if not facts.labelled or noisy:
            return Findings(title, judged, facts)
        yield Step(0.9, "Judging ten clients' own models", Findings(title, dict(judged), facts))
        alone = detectors.self_learning(on, settings.components)
        local = yield from part(trained.told(alone, "Judging ten clients' own models"), 0.9, 1.0)
        return Findings(title, judged, facts, local)

    def tables(self, result: Findings, settings: AnomalySettings) -> dict[str, pd.DataFrame]:
        return {"summary": result.summary(settings), "curves": result.curves()}


#: Flows of the stream at most, and a place in it that is always within the first burst.
FLOWS, FIRST_BURST = 400, 100
#: Points of each class in the picture of three dimensions.
_POINTS = 500


@dataclass(frozen=True, eq=False)
class Alarmed:
    facts: TaskFacts
    #: mapping of level to the score above which the alarm is raised.
    thresholds: Mapping[trained.Level, float]
    #: mapping of level to a table with columns ``type records caught auc``: Empty without labels.
    caught: Mapping[trained.Level, pd.DataFrame]
    #: flow (counted from 0), type, attack (bool), score.
    stream: pd.DataFrame
    features: tuple[str, ...]
    #: measured, standardised, parts: (flows, features) float64: The flows as they were measured,
    #: standardised, and what each feature adds to the score.
    measured: Array
    standardised: Array
    parts: Array
    #: Some records of each class: type, first and second (scores on the two leading directions of
    #: the subspace), distance (to it; zero after reconstruction). Empty below two components.
    clouds: Mapping[str, pd.DataFrame]

    def flow(self, settings: AnomalySettings) -> int:
        """The flow that the settings choose; the last of a shorter stream."""
        return min(settings.flow, len(self.stream) - 1)

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


class Alarms(trained.Topic[Alarmed]):
    """The configured detector on a stream of tested flows."""

    key = "alarms"
    title = "Alarms"
    opened_by = ("view", "alarms")
    runs = 2

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[Alarmed]:
        yield Step(0.0, "Reading the records")
        on = noisy_task(settings, data)
        found = yield from part(trained.detector("federated", settings, data), 0.0, 0.9)
        yield Step(0.9, "Judging every attack type")
        judged = trained.judge(on, found)
        rows = stream(on, seed=settings.seed)
        frame = found.frame
        assert frame is not None
        records = on.records[rows]
        caught = {
            at: evaluation.caught_by_type(on.attack, on.types, found.scores, value)
            for at, value in judged.thresholds.items()
            if on.source.labelled
        }
        return Alarmed(
            facts=TaskFacts.of(on),
            thresholds=judged.thresholds,
            caught=caught,
            stream=pd.DataFrame(
                {
                    "flow": np.arange(len(rows)),
                    "type": on.types[rows],
                    "attack": on.attack[rows],
                    "score": found.scores[rows],
                }
            ),
            features=tuple(on.problem.feature_names),
            measured=np.stack([on.raw(int(row)) for row in rows]),
            standardised=records,
            parts=np.stack([evaluation.contributions(record, frame) for record in records]),
            clouds=clouds(on, frame) if frame.shape[1] >= 2 else {},
        )

    def tables(self, result: Alarmed, settings: AnomalySettings) -> dict[str, pd.DataFrame]:
        at = trained.level(settings, result.facts.labelled)
        flows = result.stream.drop(columns="attack")
        flows["alarm"] = flows["score"] > result.thresholds[at]
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


def clouds(on: DetectionTask, frame: Array) -> dict[str, pd.DataFrame]:
    """The records of `Alarmed.clouds`."""
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
        plane = evaluation.reconstruct(records, frame) @ frame @ turn
        found[name] = pd.DataFrame(
            {
                "type": on.types[rows].astype(str),
                "first": plane[:, 0],
                "second": plane[:, 1],
                "distance": np.sqrt(evaluation.score(records, frame)),
            }
        )
    return found


#: Bytes of a number on the wire.
_FLOAT32 = 4


@dataclass(frozen=True, eq=False)
class Spent:
    facts: TaskFacts
    #: Columns ``method bytes_up`` (one client, one round; once where there is one round)
    #: ``megabytes`` (both directions, all clients and rounds) ``training_seconds
    #: microseconds_per_flow`` (measured here): every record, the covariance, the configured method,
    #: its rivals.
    costs: pd.DataFrame


class Costs(trained.Topic[Spent]):
    """The wire and the clock of the configured method and its rivals."""

    key = "detection-costs"
    title = "Costs"
    opened_by = ("view", "costs")

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[Spent]:
        yield Step(0.0, "Reading the records")
        on = noisy_task(settings, data)
        facts, found = TaskFacts.of(on), [detectors.one_shot_covariance(on, settings.components)]
        noisy = on.problem.guarantee is not None
        for name, share in in_turn(("federated", *trained.UNCOVERED)):
            if noisy and name in trained.UNCOVERED:
                continue
            if share[0]:
                yield Step(share[0], "Counting", Spent(facts, _priced(on, found)))
            found.append((yield from part(trained.detector(name, settings, data), *share)))
        return Spent(facts, _priced(on, found))


def _priced(on: DetectionTask, found: list[Detector]) -> pd.DataFrame:
    exact, everything = found[0], len(on.training) * on.problem.features
    noise = "exact" if on.problem.guarantee is None else "with the same noise"
    a_client = round(everything / on.problem.clients)
    sent = [
        ("Every record to the server", a_client, _FLOAT32 * everything, exact),
        (f"One-shot covariance, {noise}", exact.upload_floats, exact.bytes_total, exact),
        *((run.name, run.upload_floats, run.bytes_total, run) for run in found[1:]),
    ]
    return pd.DataFrame(
        {
            "method": name,
            "bytes_up": _FLOAT32 * floats,
            "megabytes": 1e-6 * total,
            "training_seconds": run.training_seconds,
            "microseconds_per_flow": run.microseconds_per_record,
        }
        for name, floats, total, run in sent
    )
