"""A detector judged at every threshold that the settings offer; a page then only picks one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from fedpca_core.anomaly.detectors import Detector
from fedpca_core.anomaly.evaluation import Curves, Evaluation, area_pair, curves, evaluate
from fedpca_core.anomaly.thresholds import best_for_labels, quantile
from fedpca_core.problems.traffic import DetectionTask
from fedpca_core.questions.anomaly.settings import AnomalySettings

#: The training quantiles that may be chosen.
SHARES = AnomalySettings.parameters()["share"].grid
#: A training quantile, or "oracle": the level that suits the labels best.
Level = float | str


@dataclass(frozen=True, eq=False)
class Judged:
    """A detector without its scores.

    Attributes
    ----------
    name : str
    thresholds : mapping of level to the score above which the alarm is raised
    alarms : mapping of level to the share of tested records that raise it
    evaluations : mapping of level to counts and rates; empty without labels
    areas : (AUC, average precision), or None without labels
    curves : Curves, or None without labels
    """

    name: str
    thresholds: Mapping[Level, float]
    alarms: Mapping[Level, float]
    evaluations: Mapping[Level, Evaluation]
    areas: tuple[float, float] | None
    curves: Curves | None


def judge(on: DetectionTask, found: Detector) -> Judged:
    """Everything about a detector at any threshold."""
    scores, attack = found.scores, on.attack
    thresholds: dict[Level, float] = {s: quantile(found.training_scores, s) for s in SHARES}
    areas = None
    if on.source.labelled:
        thresholds["oracle"] = best_for_labels(attack, scores)
        areas = area_pair(attack, scores)
    return Judged(
        name=found.name,
        thresholds=thresholds,
        alarms={level: float((scores > value).mean()) for level, value in thresholds.items()},
        evaluations={
            level: evaluate(attack, scores, value, areas)
            for level, value in thresholds.items()
            if areas is not None
        },
        areas=areas,
        curves=None if areas is None else curves(attack, scores),
    )


def level(settings: AnomalySettings, labelled: bool = True) -> Level:
    """The level that the settings choose; without labels there is no oracle."""
    return "oracle" if settings.rule == "oracle" and labelled else settings.share
