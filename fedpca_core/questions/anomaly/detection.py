"""How well attacks are told from normal traffic, beside what needs no learning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from fedpca_core.anomaly import detectors
from fedpca_core.anomaly.detectors import SelfLearning
from fedpca_core.anomaly.evaluation import always_alarm
from fedpca_core.questions import costs
from fedpca_core.questions.anomaly.judged import SHARES, Judged, judge, level
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import NOISE, TASK, TaskFacts, noisy_task
from fedpca_core.questions.anomaly.topic import LEARNING, Topic, told
from fedpca_core.questions.anomaly.trained import ESSENTIALS, RIVALS, UNCOVERED, detector
from fedpca_core.settings import Value
from fedpca_core.steps import Run, Step, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData


@dataclass(frozen=True, eq=False)
class Findings:
    """What is known so far of the detectors of one experiment.

    Attributes
    ----------
    title : str
        Name of the configured method.
    judged : mapping of name to Judged
        The configured method first, then its aim and its baseline, then its rivals.
    facts : TaskFacts
    local : SelfLearning or None
        Clients on their own; None without labels, or as long as they are not judged, or where
        the others have noise.
    """

    title: str
    judged: Mapping[str, Judged]
    facts: TaskFacts
    local: SelfLearning | None = None

    def summary(self, settings: AnomalySettings) -> pd.DataFrame:
        """One row for each detector at the settings' threshold, the baselines included.

        Columns ``detector auc average_precision`` and, in per cent, ``accuracy precision recall f1
        fnr fpr``; without labels only ``detector`` and ``alarms``. Self-learning PCA averages over
        clients, each with a threshold of its own: at the 95% quantile, or the oracle's.
        """
        chosen = level(settings, self.facts.labelled)
        if not self.facts.labelled:
            rows = [(name, 100 * judged.alarms[chosen]) for name, judged in self.judged.items()]
            return pd.DataFrame(rows, columns=["detector", "alarms"])
        rows_: list[dict[str, Any]] = [
            _row(name, judged.areas, judged.evaluations[chosen].rates())
            for name, judged in self.judged.items()
        ]
        if self.local is not None:
            own = self.local.oracle if chosen == "oracle" else self.local.own_quantile
            areas = self.local.auc, self.local.average_precision
            rows_.append(_row("Self-learning PCA", areas, own))
        share = self.facts.attack_share
        rows_.append(_row("Always alarm", (0.5, share), always_alarm(share)))
        return pd.DataFrame(rows_)

    def curves(self) -> pd.DataFrame:
        """ROC and precision-recall curves below each other; without labels the alarm rates."""
        tables = []
        for name, judged in self.judged.items():
            if judged.curves is None:
                alarms = [judged.alarms[share] for share in SHARES]
                tables.append(pd.DataFrame({"quantile": SHARES, "alarms": alarms}))
            else:
                roc, exact = judged.curves, judged.curves.precision
                columns = (roc.false_positive_rate, roc.true_positive_rate, roc.recall, exact)
                names = ("false_positive_rate", "true_positive_rate", "recall", "precision")
                tables.append(
                    pd.DataFrame(
                        {key: pd.Series(column) for key, column in zip(names, columns, strict=True)}
                    )
                )
            tables[-1].insert(0, "detector", name)
        return pd.concat(tables, ignore_index=True)

    @property
    def lowest_precision(self) -> float:
        """The least precision of any detector, where it rests on more than a handful of flows."""
        drawn = [
            judged.curves.precision[judged.curves.recall > 0.03]
            for judged in self.judged.values()
            if judged.curves is not None
        ]
        return min((float(values.min()) for values in drawn if len(values)), default=0.0)

    @property
    def own_false_alarms(self) -> tuple[float, float]:
        """Least and largest share of false alarms of the clients on their own."""
        assert self.local is not None
        return float(np.min(self.local.false_alarms)), float(np.max(self.local.false_alarms))


class Detection(Topic[Findings]):
    """The configured method with its aim and its baseline first, then its rivals."""

    key: ClassVar[str] = "detection"
    title: ClassVar[str] = "Detection"
    opened_by: ClassVar[tuple[str, Value] | None] = ("topic", "detection")
    reads: ClassVar[frozenset[str]] = TASK | LEARNING | NOISE

    def cost(self, settings: AnomalySettings, data: OwnData | None = None) -> Cost:
        return costs.detection(settings, data, runs=3)

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[Findings]:
        yield Step(0.0, "Reading the records")
        on = noisy_task(settings, data)
        noisy = on.problem.guarantee is not None
        facts, title = TaskFacts.of(on), settings.algorithm().title
        judged: dict[str, Judged] = {}
        for name in ESSENTIALS:
            found = yield from part(detector(name, settings, data), 0.0, 0.3)
            judged[found.name] = judge(on, found)
        for index, (name, text) in enumerate(RIVALS.items()):
            if noisy and name in UNCOVERED:
                continue
            begin = 0.3 + 0.2 * index
            yield Step(begin, text, Findings(title, dict(judged), facts))
            found = yield from part(detector(name, settings, data), begin, begin + 0.2)
            judged[found.name] = judge(on, found)
        if not facts.labelled or noisy:
            return Findings(title, judged, facts)
        yield Step(0.9, "Judging ten clients' own models", Findings(title, dict(judged), facts))
        alone = detectors.self_learning(on, settings.components)
        local = yield from part(told(alone, "Judging ten clients' own models"), 0.9, 1.0)
        return Findings(title, judged, facts, local)

    def tables(self, result: Findings, settings: AnomalySettings) -> dict[str, pd.DataFrame]:
        return {"summary": result.summary(settings), "curves": result.curves()}


def _row(
    name: str, areas: tuple[float, float] | None, rates: Mapping[str, float]
) -> dict[str, Any]:
    assert areas is not None
    in_per_cent = {short: 100 * value for short, value in rates.items()}
    return {"detector": name, "auc": areas[0], "average_precision": areas[1], **in_per_cent}
