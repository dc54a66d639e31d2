"""Where to raise the alarm.

`best_for_labels` is what published tables use; it reads the labels of the test set and is
therefore an oracle that nobody has in the field. The others need normal training traffic only.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    _check(share)
    return float(np.quantile(scores, share))


def client_quantiles(scores: Sequence[Array], share: float = 0.95) -> Array:
    """One quantile for each client, from its own normal records (host-based alarms)."""
    _check(share)
    return np.array([np.quantile(part, share) for part in scores])


def histogram_quantile(scores: Sequence[Array], share: float = 0.95, bins: int = 400) -> float:
    """One quantile for all from summed histograms: only counts leave the clients.

    Every client sends its smallest and largest log score first (two numbers; a secure maximum is
    enough) and then ``bins`` counts over the common range. The answer lies in the right bin, so its
    relative error is at most one bin's width.
    """
    _check(share)
    require(bins >= 10, f"A histogram of {bins} bins is too coarse; use at least 10.")
    logs = [np.log(np.maximum(part, 1e-12)) for part in scores]
    low = min(float(part.min()) for part in logs)
    high = max(float(part.max()) for part in logs)
    if high <= low:
        return float(np.exp(low))
    edges = np.linspace(low, high, bins + 1)
    counts = np.sum([np.histogram(part, edges)[0] for part in logs], axis=0)
    below = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
    return float(np.exp(np.interp(share, below, edges)))


def _check(share: float) -> None:
    require(0 < share < 1, f"A quantile lies strictly between 0 and 1, not at {share}; try 0.95.")
