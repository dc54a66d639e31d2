"""Where to raise the alarm.

`best_for_labels` is what published tables use; it reads the labels of the test set and is
therefore an oracle that nobody has in the field; `quantile` needs normal training traffic only.
"""

import numpy as np
from sklearn.metrics import roc_curve

from fedpca_core.arrays import Array
from fedpca_core.errors import require


def best_for_labels(attack: np.ndarray, scores: Array) -> float:
    """Oracle: the threshold that maximises TPR - FPR on labelled test records.

    The alarm is raised *above* the threshold, so the value returned lies halfway to the next
    smaller score.
    """
    false_alarms, caught, thresholds = roc_curve(attack, scores, drop_intermediate=False)
    best = int(np.argmax(caught - false_alarms))
    if best == 0:  # raise no alarm at all
        return float(scores.max())
    if best + 1 < len(thresholds):
        return float(0.5 * (thresholds[best] + thresholds[best + 1]))
    return float(np.nextafter(thresholds[best], -np.inf))


def quantile(scores: Array, share: float = 0.95) -> float:
    """The score that a ``share`` of the normal training records stays below."""
    require(0 < share < 1, f"A quantile lies strictly between 0 and 1, not at {share}; try 0.95.")
    return float(np.quantile(scores, share))
