"""Scores of records, where to raise the alarm, and how well that does on labelled records.

The score against a subspace is the squared distance
``a(x) = ||x - Z Z^T x||^2 = ||x||^2 - ||Z^T x||^2`` with an orthonormal Z (Nguyen et al.).
Corrected here: the consensus average is orthonormalised before it is used; a shrunken Z would mix
distance with length. Of the thresholds `best_for_labels` is what published tables use; it reads the
labels of the test set and is therefore an oracle that nobody has in the field; `quantile` needs
normal training traffic only. Attacks are the positive class.
"""

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

#: Rows whose products stay in cache.
_ROWS = 4096


def score(records: Array, frame: Array | None) -> Array:
    """Squared distance of every standardised record, (records, features), to the span of a frame.

    Without a frame its squared length: nothing is learnt. Returns (records,) float64, at least 0.
    """
    lengths = np.einsum("ij,ij->i", records, records)
    if frame is None:
        return np.asarray(lengths, dtype=float)
    require(
        records.shape[1] == frame.shape[0],
        f"The records have {records.shape[1]} features but the model {frame.shape[0]}; "
        "score records that were prepared like the training data.",
    )
    for begin in range(0, len(records), _ROWS):
        part = slice(begin, begin + _ROWS)
        inside = records[part] @ frame
        lengths[part] -= np.einsum("ij,ij->i", inside, inside)
    # A record inside the subspace leaves rounding noise of either sign.
    return np.asarray(np.maximum(lengths, 0.0, out=lengths), dtype=float)


def reconstruct(records: Array, frame: Array) -> Array:
    """``Z Z^T x`` of every record, (records, features)."""
    return np.asarray((records @ frame) @ frame.T)


def contributions(record: Array, frame: Array | None) -> Array:
    """What each feature adds to one record's score: squared entries of ``x - Z Z^T x``."""
    residual = record if frame is None else record - frame @ (frame.T @ record)
    return np.asarray(residual**2)


def best_for_labels(attack: np.ndarray, scores: Array) -> float:
    """Oracle: the threshold that maximises TPR - FPR on labelled test records."""
    return for_labels(attack, scores)["largest TPR − FPR"]


def for_labels(attack: np.ndarray, scores: Array, recall: float = 0.0) -> dict[str, float]:
    """Thresholds by rule: the largest TPR - FPR, and what else published words may mean.

    One comes nearest to a ``recall`` in per cent. The alarm is raised *above* a threshold, so each
    lies halfway to the next smaller score.
    """
    alarms, caught, levels = roc_curve(attack, scores, drop_intermediate=False)
    many, few = float(attack.sum()), float(len(attack) - attack.sum())
    hits, false = caught * many, alarms * few
    rules = {
        "largest TPR − FPR": caught - alarms,
        "best accuracy": hits + few - false,
        "best F1": 2 * hits / (hits + false + many),
        "nearest the corner": -np.hypot(1 - caught, alarms),
        "printed recall": -np.abs(caught - recall / 100),
    }
    # The first level, infinity, raises no alarm; below the last one all do.
    least = np.nextafter(levels[-1], -np.inf)
    between = np.concatenate([[levels[1]], 0.5 * (levels[1:-1] + levels[2:]), [least]])
    return {name: float(between[int(np.argmax(value))]) for name, value in rules.items()}


def quantile(scores: Array, share: float = 0.95) -> float:
    """The score that a ``share`` of the normal training records stays below."""
    require(0 < share < 1, f"A quantile lies strictly between 0 and 1, not at {share}; try 0.95.")
    return float(np.quantile(scores, share))


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
        total = self.caught + self.missed + self.false_alarms + self.quiet
        return (self.caught + self.quiet) / total

    @property
    def precision(self) -> float:
        alarms = self.caught + self.false_alarms
        return self.caught / alarms if alarms else 0.0

    @property
    def recall(self) -> float:
        return self.caught / (self.caught + self.missed)

    @property
    def f1(self) -> float:
        return 2 * self.caught / (2 * self.caught + self.false_alarms + self.missed)

    @property
    def fnr(self) -> float:
        """Share of attacks missed (false negative rate)."""
        return 1.0 - self.recall

    @property
    def fpr(self) -> float:
        """Share of normal records that raise an alarm (false positive rate)."""
        return self.false_alarms / (self.false_alarms + self.quiet)

    @property
    def auc_margin(self) -> float:
        """Half a 95% interval of the area, were records independent (Hanley and McNeil, 1982)."""
        attacks, normal = self.caught + self.missed, self.false_alarms + self.quiet
        edge = 0.5 / min(attacks, normal)  # no number of records shows a perfect one
        area = float(np.clip(self.auc, edge, 1 - edge))
        spread = area * (1 - area)
        spread += (attacks - 1) * (area / (2 - area) - area**2)
        spread += (normal - 1) * (2 * area**2 / (1 + area) - area**2)
        return 1.96 * float(np.sqrt(spread / (attacks * normal)))

    def rates(self) -> dict[str, float]:
        return {name: getattr(self, name) for name in RATES}


#: Short names of the rates of an evaluation.
RATES = ("accuracy", "precision", "recall", "f1", "fnr", "fpr")


def always_alarm(share: float) -> dict[str, float]:
    """Rates of always raising the alarm where so large a share are attacks."""
    return dict(zip(RATES, (share, share, 1.0, 2 * share / (1 + share), 0.0, 1.0), strict=True))


def evaluate(
    attack: np.ndarray, scores: Array, threshold: float, areas: tuple[float, float] | None = None
) -> Evaluation:
    """Judge scores against labels, (records,), at one threshold; ``-inf`` alarms always.

    ``areas`` are those of `area_pair`, where they are known from before.

    Raises InvalidInput: only one class, lengths that differ, scores that are not finite.
    """
    _check(attack, scores)
    alarm = scores > threshold
    counts = (int(one.sum()) for one in (alarm & attack, attack & ~alarm, alarm & ~attack))
    caught, missed, false_alarms = counts
    quiet = len(attack) - caught - missed - false_alarms
    auc, precision = areas or area_pair(attack, scores)
    return Evaluation(float(threshold), caught, missed, false_alarms, quiet, auc, precision)


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
    return float((scores[attack] > normal[int(share * len(normal) + 1e-9)]).mean())


@dataclass(frozen=True, eq=False)
class Curves:
    """ROC and precision-recall curves, thinned for drawing."""

    #: (points,) float64: The first two are of the ROC curve.
    false_positive_rate: Array
    true_positive_rate: Array
    recall: Array
    precision: Array


def curves(attack: np.ndarray, scores: Array, points: int = 300) -> Curves:
    _check(attack, scores)
    false_alarms, caught, _ = roc_curve(attack, scores)
    precision, recall, _ = precision_recall_curve(attack, scores)
    first = _thin(false_alarms, caught, points)
    second = _thin(recall[::-1], precision[::-1], points)
    roc = false_alarms[first], caught[first]
    return Curves(*roc, recall[::-1][second], precision[::-1][second])


def caught_by_type(
    attack: np.ndarray, types: np.ndarray, scores: Array, threshold: float
) -> pd.DataFrame:
    """One row for each attack type: records, share caught, and AUC against the normal records."""
    rows = []
    for name in sorted({str(value) for value in types[attack]}):
        own = attack & (types == name)
        beside = own | ~attack
        caught = float((scores[own] > threshold).mean())
        auc = float(roc_auc_score(own[beside], scores[beside]))
        rows.append((name, int(own.sum()), caught, auc))
    return pd.DataFrame(rows, columns=["type", "records", "caught", "auc"])


def _thin(x: Array, y: Array, points: int) -> np.ndarray:
    """Indices of points evenly spaced along the curve, both ends included."""
    if len(x) <= points:
        return np.arange(len(x))
    length = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    indices = np.searchsorted(length, np.linspace(0.0, length[-1], points)).clip(0, len(x) - 1)
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
