"""Anomaly scores of records against a subspace (Nguyen et al., FedPCA for IoT).

The score is the squared distance ``a(x) = ||x - Z Z^T x||^2 = ||x||^2 - ||Z^T x||^2`` with an
orthonormal Z. Corrected here: the consensus average is orthonormalised before it is used; a
shrunken Z would mix distance with length.
"""

import numpy as np

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
