"""Metrics of a detector on labelled records. Attacks are the positive class."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from fedpca_core.arrays import Array
from fedpca_core.errors import require


@dataclass(frozen=True)
class Evaluation:
    """Counts and rates at one threshold, and the areas that need none."""

    #: An alarm is a score above it.
    threshold: float
    #: caught, missed, false_alarms, quiet: Attacks above and below the threshold, normal records
    #: above and below it.
    caught: int
    missed: int
    false_alarms: int
    quiet: int
    #: auc, average_precision: Area under the ROC curve; average precision.
    auc: float
    average_precision: float

    @property
    def accuracy(self) -> float:
        """Share of records judged rightly."""
        total = self.caught + self.missed + self.false_alarms + self.quiet
        return (self.caught + self.quiet) / total

    @property
    def precision(self) -> float:
        """Share of alarms that are attacks (0 without any alarm)."""
        alarms = self.caught + self.false_alarms
        return self.caught / alarms if alarms else 0.0

    @property
    def recall(self) -> float:
        """Share of attacks that raise an alarm."""
        return self.caught / (self.caught + self.missed)

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall."""
        return 2 * self.caught / (2 * self.caught + self.false_alarms + self.missed)

    @property
    def false_negative_rate(self) -> float:
        """Share of attacks missed (FNR)."""
        return 1.0 - self.recall

    @property
    def false_positive_rate(self) -> float:
        """Share of normal records that raise an alarm (FPR)."""
        return self.false_alarms / (self.false_alarms + self.quiet)

    def rates(self) -> dict[str, float]:
        """The rates that tables show, by their short names."""
        return {short: getattr(self, long) for short, long in RATES.items()}


#: Short names of the rates of an evaluation.
RATES = {
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "f1": "f1",
    "fnr": "false_negative_rate",
    "fpr": "false_positive_rate",
}


def always_alarm(share: float) -> dict[str, float]:
    """Rates of always raising the alarm where so large a share are attacks."""
    return dict(zip(RATES, (share, share, 1.0, 2 * share / (1 + share), 0.0, 1.0), strict=True))


def evaluate(
    attack: np.ndarray,
    scores: Array,
    threshold: float,
    areas: tuple[float, float] | None = None,
) -> Evaluation:
    """Judge scores against labels at one threshold.

    ``attack``, (records,) bool.
    ``scores``, (records,) float64.
    ``threshold``: Alarm above it; ``-inf`` alarms always.
    ``areas``, (auc, average precision): Where they are known from before: they do not depend on the
        threshold.

    Raises InvalidInput: only one class, lengths that differ, scores that are not finite.
    """
    _check(attack, scores)
    alarm = scores > threshold
    if areas is None:
        areas = area_pair(attack, scores)
    return Evaluation(
        threshold=float(threshold),
        caught=int((alarm & attack).sum()),
        missed=int((~alarm & attack).sum()),
        false_alarms=int((alarm & ~attack).sum()),
        quiet=int((~alarm & ~attack).sum()),
        auc=areas[0],
        average_precision=areas[1],
    )


def area(attack: np.ndarray, scores: Array) -> float:
    """Area under the ROC curve: Pr(attack scores above normal) + half the ties."""
    _check(attack, scores)
    return float(roc_auc_score(attack, scores))


def area_pair(attack: np.ndarray, scores: Array) -> tuple[float, float]:
    """Area under the ROC curve, and average precision."""
    return area(attack, scores), float(average_precision_score(attack, scores))


def caught_at(attack: np.ndarray, scores: Array, share: float) -> float:
    """Share of attacks caught with the lowest threshold that at most ``share`` of the normal
    records are above."""
    _check(attack, scores)
    normal = np.sort(scores[~attack])[::-1]
    threshold = normal[int(share * len(normal) + 1e-9)]
    return float((scores[attack] > threshold).mean())


@dataclass(frozen=True, eq=False)
class Curves:
    """ROC and precision-recall curves, thinned for drawing."""

    #: false_positive_rate, true_positive_rate: (points,) float64.
    false_positive_rate: Array
    true_positive_rate: Array
    #: recall, precision: (points,) float64.
    recall: Array
    precision: Array


def curves(attack: np.ndarray, scores: Array, points: int = 300) -> Curves:
    """Curves over all thresholds, at most about ``points`` points each."""
    _check(attack, scores)
    false_alarms, caught, _ = roc_curve(attack, scores)
    precision, recall, _ = precision_recall_curve(attack, scores)
    first = _thin(false_alarms, caught, points)
    second = _thin(recall[::-1], precision[::-1], points)
    return Curves(
        false_positive_rate=false_alarms[first],
        true_positive_rate=caught[first],
        recall=recall[::-1][second],
        precision=precision[::-1][second],
    )


def caught_by_type(
    attack: np.ndarray, types: np.ndarray, scores: Array, threshold: float
) -> pd.DataFrame:
    """One row for each attack type: records, share caught, and AUC against the normal records."""
    normal = scores[~attack]
    rows = []
    for name in sorted({str(value) for value in types[attack]}):
        chosen = attack & (types == name)
        own = scores[chosen]
        labels = np.repeat([False, True], [len(normal), len(own)])
        rows.append(
            {
                "type": name,
                "records": int(chosen.sum()),
                "caught": float((own > threshold).mean()),
                "auc": float(roc_auc_score(labels, np.concatenate([normal, own]))),
            }
        )
    return pd.DataFrame(rows, columns=["type", "records", "caught", "auc"])


def _thin(x: Array, y: Array, points: int) -> np.ndarray:
    """Indices of points evenly spaced along the curve, both ends included."""
    if len(x) <= points:
        return np.arange(len(x))
    length = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    wanted = np.linspace(0.0, length[-1], points)
    indices = np.searchsorted(length, wanted).clip(0, len(x) - 1)
    return np.unique(np.concatenate([[0], indices, [len(x) - 1]]))


def _check(attack: np.ndarray, scores: Array) -> None:
    require(
        attack.shape == scores.shape,
        f"There are {len(scores)} scores for {len(attack)} labels; give one each.",
    )
    attacks = int(attack.sum())
    require(
        0 < attacks < len(attack),
        f"The {len(attack)} test records hold "
        f"{'no attacks' if attacks == 0 else 'attacks only'}, so detection cannot be measured; "
        "choose records of both kinds.",
    )
    require(
        bool(np.isfinite(scores).all()),
        "Some scores are not finite, so the model has diverged; choose a smaller step.",
    )
