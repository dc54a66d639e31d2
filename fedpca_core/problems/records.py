"""Bounding every record's norm before second moments are formed.

Blocks are features x samples, so records are columns here (rows in FedPower).
"""

import numpy as np
from numpy.typing import ArrayLike

from fedpca_core.arrays import Array
from fedpca_core.errors import require, require_choice, require_positive

#: Rounding in the norm of a clipped record, relative to it.
NORM_ROUNDING = 1e-9
TREATMENTS = ("normalised", "clipped", "raw")


def norms(block: Array) -> Array:
    """Euclidean norm of every record (column), (samples,)."""
    return np.asarray(np.linalg.norm(block, axis=0), dtype=float)


def normalise(block: Array, norm: float = 1.0) -> Array:
    """Scale every record to the same norm; a zero record stays zero."""
    check_clip_norm(norm)
    length = norms(block)
    return block * (norm / np.where(length > 0, length, norm))


def clip(block: Array, norm: float = 1.0) -> Array:
    """Scale the records longer than ``norm`` down to it; shorter ones are left alone."""
    check_clip_norm(norm)
    return block * (norm / np.maximum(norms(block), norm))


def treat(block: Array, treatment: str, norm: float = 1.0) -> Array:
    """Normalise, clip, or leave the records as they are ("raw": no guarantee can follow)."""
    require_choice("The treatment of records", treatment, TREATMENTS)
    if treatment == "raw":
        return block
    return normalise(block, norm) if treatment == "normalised" else clip(block, norm)


def check_clip_norm(clip_norm: float) -> None:
    """Refuse a clip norm that bounds nothing, or whose square is no number."""
    require_positive("The clip norm", clip_norm, 1)
    require(
        1e-100 <= clip_norm <= 1e100,
        f"The clip norm must be between 1e-100 and 1e+100, not {clip_norm:g}; 1 is customary.",
    )


def second_moment_sensitivity(
    samples: ArrayLike, clip_norm: float, changed: ArrayLike = 1
) -> Array:
    """Largest change of S_i, in Frobenius norm, when some of its records are replaced.

    ``sqrt(2) g C^2/m_i``: for one record ``w w^T - v v^T`` has rank 2 and eigenvalues
    ``+-C^2 sqrt(1 - cos^2)``, and g records may all change in the same way. For all records it is
    ``sqrt(2) C^2``, whatever m_i.

    ``samples``, int or (clients,) array: m_i.
    ``clip_norm``: Largest Euclidean norm C of a record.
    ``changed``, int or (clients,) array: g, records replaced at once.
    """
    check_clip_norm(clip_norm)
    share = np.asarray(changed, dtype=float) / np.asarray(samples, dtype=float)
    return np.asarray(np.sqrt(2.0) * clip_norm**2 * share, dtype=float)
