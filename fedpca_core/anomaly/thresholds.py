"""Where to raise the alarm.

`best_for_labels` is what published tables use; it reads the labels of the test set and is
therefore an oracle that nobody has in the field; `quantile` needs normal training traffic only.
"""

import numpy as np
from sklearn.metrics import roc_curve

from fedpca_core.arrays import Array
from fedpca_core.errors import require


def best_for_labels(attack: np.ndarray, scores: Array) -> float:
    """Oracle: the threshold that maximises TPR - FPR on labelled test records."""
    return for_labels(attack, scores)["largest TPR − FPR"]


def for_labels(attack: np.ndarray, scores: Array, recall: float = 0.0) -> dict[str, float]:
    """Thresholds by rule: the largest TPR - FPR, and what else published words may mean.

    The alarm is raised *above* a threshold, so each lies halfway to the next smaller score.

    ``recall``: In per cent: one of them comes nearest to it.
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
