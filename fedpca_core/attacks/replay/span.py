"""Reading off the messages where a client's matrix lives, so that a replay fits little else.

Whatever a FAPS client computes is made of the frames that it received and of products with S_i.
Once as many columns were answered as S_i has rank, ``span(Z_1..Z_K, Y_1..Y_K)`` holds the range of
S_i; with few records that is a small part of all features, and the rest of S_i is zero. The next
message tells whether it is so: its answer must lie in that span and the new frame.
"""

from collections.abc import Sequence

import numpy as np

from fedpca_core.arrays import Array

#: Directions below this share of a message are rounding.
_ROUNDING = 1e-12


def read_span(frames: Sequence[Array], uploads: Sequence[Array]) -> tuple[Array, int, int] | None:
    """Orthonormal basis of all that a client's rounds take place in, and where S_i lives in it.

    ``frames``, ``uploads``, sequence of (features, components) float64: What the client received
        and answered, round by round; exact but for rounding, and its start is the first frame.

    Returns tuple or None: the basis (features, dimensions); the number of its leading columns that
    span frames, the first one first; and the number of those that hold the range of S_i, its
    directions outside these frames last. None where that is not known to be less than everything:
    S_i may have as many dimensions as there are features.
    """
    features = len(frames[0])
    asked = held = frames[0]
    for k in range(len(frames) - 1):
        asked = extended(asked, frames[k])
        held = extended(asked, np.concatenate(uploads[: k + 1], axis=1))
        ahead = extended(held, frames[k + 1])
        if ahead.shape[1] >= features:
            return None
        if extended(ahead, uploads[k + 1]).shape == ahead.shape:
            basis = extended(held, np.concatenate(frames[k + 1 :], axis=1))
            return basis, asked.shape[1], held.shape[1]
    return None


def extended(basis: Array, columns: Array) -> Array:
    """The basis and, orthonormal to it, what else the columns span."""
    outside = columns
    for _ in range(2):
        outside = outside - basis @ (basis.T @ outside)
    directions, sizes, _ = np.linalg.svd(outside, full_matrices=False)
    new = directions[:, sizes > _ROUNDING * np.linalg.norm(columns)]
    return np.concatenate([basis, new], axis=1)
