"""Anomaly scores of records against a subspace, and where to raise the alarm (Nguyen et al.).

The score is the squared distance ``a(x) = ||x - Z Z^T x||^2 = ||x||^2 - ||Z^T x||^2`` with an
orthonormal Z. Corrected here: the consensus average is orthonormalised before it is used; a
shrunken Z would mix distance with length. Of the thresholds `best_for_labels` is what published
tables use; it reads the labels of the test set and is therefore an oracle that nobody has in the
field; `quantile` needs normal training traffic only.
"""

import numpy as np
from sklearn.metrics import roc_curve

from fedpca_core.arrays import Array
from fedpca_core.errors import require

#: Rows whose products stay in cache.
_ROWS = 4096


def score(records: Array, frame: Array | None) -> Array:
    """Squared distance of every record to the span of a frame.

    ``records``, (records, features) float64: Standardised records, one a row.
    ``frame``, (features, components) float64 with orthonormal columns, or None: None scores the
        squared length ``||x||^2``: nothing learnt.

    Returns (records,) float64, at least 0.
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
    """What each feature adds to one record's score, (features,); the sum is the score.

    The squared entries of ``x - Z Z^T x``: where the record differs from what the subspace
    expects.
    """
    residual = record if frame is None else record - frame @ (frame.T @ record)
    return np.asarray(residual**2)


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
