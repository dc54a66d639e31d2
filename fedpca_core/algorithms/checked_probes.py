"""The client's own check of what it is asked: sensitivity rests on the probe, not on the server.

The change of ``S_i Q`` when a record is replaced is bounded for orthonormal Q, and that of many
answers together by the same number where all probes are orthogonal to each other: together they
are one product with [Q_1 ... Q_T]. A client that checks both needs to trust nobody.
"""

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput
from fedpca_core.linalg.stiefel import orthonormalise, remove_span, transpose

#: Departure that is left as it is: rounding of the sensitivity itself.
_ROUNDING = 1e-12
#: Length of a new direction below which rounding may turn it into an old one.
_NEW = 1e-7
#: Departure that the client mends (a larger one is refused), by the precision of the message.
_TOLERANCE = {np.float64: 1e-8, np.float32: 1e-6}


def checked_probe(frames: Array, answered: Array | None = None) -> Array:
    """The probe a client answers: as received where it is sound, mended where rounding broke it.

    Mending makes the probe orthonormal, and orthogonal to the answered ones, to float64 precision,
    so that no tolerance enters the sensitivity: messages in float32 cost nothing.

    ``frames``, (features, columns) or (present, features, columns); ``answered``, (present,
    features, width): what each client has answered before, orthonormal or zero columns.

    Raises InvalidInput: columns that are not orthonormal, or not orthogonal to earlier probes.
    """
    departure = _largest(transpose(frames) @ frames - np.eye(frames.shape[-1]))
    overlap = 0.0 if answered is None else _largest(transpose(answered) @ frames)
    if max(departure, overlap) <= _ROUNDING:
        return frames
    sent_as = np.float32 if np.array_equal(frames, frames.astype(np.float32)) else np.float64
    allowed = _TOLERANCE[sent_as]
    if departure > allowed:
        raise InvalidInput(
            "A client refuses a product with a frame not orthonormal "
            f"(departure {departure:.2g}, allowed {allowed:g}), which the noise does not cover; "
            "the server must orthonormalise what it sends."
        )
    if overlap > allowed:
        raise InvalidInput(
            "A client refuses a probe that overlaps one it has answered "
            f"(by {overlap:.2g}, allowed {allowed:g}), which the noise does not cover: it was "
            "calibrated to orthogonal probes. Ask for new directions, or count every product in "
            "full."
        )
    mended = frames
    if answered is not None:
        mended = remove_span(remove_span(mended, answered), answered)
    return orthonormalise(mended)


def new_part(frames: Array, answered: Array) -> tuple[Array, Array, Array]:
    """A checked probe taken apart: what the client has answered before, and what it has not.

    ``Q = P C + U D`` with P the answered directions and U orthonormal and orthogonal to them; new
    directions too short to be told from rounding are left out, as columns of zeros.

    Returns C (present, width, columns), U (present, features, columns) and D (present, columns,
    columns); the arguments are those of `checked_probe`.
    """
    known = transpose(answered) @ frames
    rest = remove_span(frames - answered @ known, answered)
    directions, lengths, turn = np.linalg.svd(rest, full_matrices=False)
    new = lengths > _NEW
    return known, directions * new[:, None, :], (lengths * new)[:, :, None] * turn


def _largest(matrix: Array) -> float:
    return float(np.abs(matrix).max(initial=0.0))
