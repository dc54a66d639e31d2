"""The paper's Table I beside our own runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pandas as pd

from fedpca_core.anomaly import detectors
from fedpca_core.anomaly.evaluation import always_alarm, area_pair, evaluate
from fedpca_core.anomaly.thresholds import best_for_labels
from fedpca_core.papers.iot import TABLE_I
from fedpca_core.questions import costs
from fedpca_core.questions.anomaly.settings import AnomalySettings
from fedpca_core.questions.anomaly.task import TASK, TaskFacts, labelled
from fedpca_core.questions.anomaly.topic import LEARNING, Topic, told
from fedpca_core.questions.anomaly.trained import detector
from fedpca_core.settings import Value
from fedpca_core.steps import Run, Step, part
from fedpca_core.study.limits import Cost
from fedpca_core.study.own_data import OwnData

#: Measures that the paper's table has, and all that ours has.
PRINTED = ("accuracy", "precision", "recall", "f1", "fnr")
MEASURES = (*PRINTED, "fpr", "auc", "average_precision")
#: Rows in the paper's order, then what it leaves out: the method, and what trains it.
_ROWS: tuple[tuple[str, dict[str, str]], ...] = (
    ("fedae", {}),
    ("fedae-2", {}),
    ("federated", {"method": "fedpe"}),
    ("federated", {"method": "fedpg"}),
    ("centralised", {}),
    ("random", {}),
    ("norm", {}),
)


@dataclass(frozen=True, eq=False)
class Beside:
    """Table I beside ours.

    Attributes
    ----------
    facts : TaskFacts
    table : pandas.DataFrame
        ``method``, ours under the names of `MEASURES` and the paper's as ``published_*``, in per
        cent except the areas; NaN where there is none.
    """

    facts: TaskFacts
    table: pd.DataFrame


class Published(Topic[Beside]):
    """Table I with the settings' own parameters, at the oracle's threshold; FedBiGAN as printed."""

    key: ClassVar[str] = "published"
    title: ClassVar[str] = "Table I beside ours"
    opened_by: ClassVar[tuple[str, Value] | None] = ("topic", "published")
    reads: ClassVar[frozenset[str]] = TASK | LEARNING

    def cost(self, settings: AnomalySettings, data: OwnData | None = None) -> Cost:
        return costs.detection(settings, data, runs=len(_ROWS))

    def run(self, settings: AnomalySettings, data: OwnData | None = None) -> Run[Beside]:
        yield Step(0.0, "Reading the records")
        settings = replace(settings, epsilon=math.inf)  # as printed: the paper has no noise
        on = labelled(settings, data, "A table of rates")
        facts = TaskFacts.of(on)
        alone = detectors.self_learning(on, settings.components)
        local = yield from part(told(alone, "Judging ten clients' own models"), 0.0, 0.2)
        ours = {
            "Self-learning PCA": _in_per_cent(local.oracle, (local.auc, local.average_precision))
        }
        for index, (name, changes) in enumerate(_ROWS):
            share = 0.2 + 0.8 * index / len(_ROWS), 0.2 + 0.8 * (index + 1) / len(_ROWS)
            chosen: dict[str, Any] = dict(changes)
            one = detector(name, replace(settings, **chosen), data)
            found = yield from part(one, *share)
            level = best_for_labels(on.attack, found.scores)
            areas = area_pair(on.attack, found.scores)
            judged = evaluate(on.attack, found.scores, level, areas)
            ours[found.name] = _in_per_cent(judged.rates(), areas)
            yield Step(share[1], f"Judged {found.name}", Beside(facts, _table(facts, ours)))
        share_ = on.attack_share
        ours["Always alarm"] = _in_per_cent(always_alarm(share_), (0.5, share_))
        return Beside(facts, _table(facts, ours))

    def tables(self, result: Beside, settings: AnomalySettings) -> dict[str, pd.DataFrame]:
        return {"table_1": result.table}


def _table(facts: TaskFacts, ours: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    published = TABLE_I.get(facts.published_as, {})
    order = [*published, *(name for name in ours if name not in published)]
    rows = []
    for name in order:
        row: dict[str, object] = {"method": name, **ours.get(name, {})}
        if name in published:
            row |= {f"published_{key}": value for key, value in vars(published[name]).items()}
        rows.append(row)
    columns = ["method", *MEASURES, *(f"published_{name}" for name in MEASURES if name != "fpr")]
    return pd.DataFrame(rows).reindex(columns=columns)


def _in_per_cent(rates: Mapping[str, float], areas: tuple[float, float]) -> dict[str, float]:
    in_per_cent = {name: 100 * value for name, value in rates.items()}
    return {**in_per_cent, "auc": areas[0], "average_precision": areas[1]}
