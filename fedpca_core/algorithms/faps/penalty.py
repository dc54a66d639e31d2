"""The penalty rule of FAPS: beta_i grows while the client's gap to the consensus does not shrink.

Counted in each client's own rounds: at every fifth one the gap ``d_i = ||X_i X_i^T - Z Z^T||_F`` to
the received Z is compared with the gap of the check before, and beta_i grows by 10% where the gap
fell by less than 1% (FAPS, theta = 0.1 and mu = 0.01).
"""

from __future__ import annotations

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.linalg.stiefel import projector_distance

#: Checks are this many of the client's own rounds apart ...
CHECK_EVERY = 5
#: ... and the first that may raise beta is this one. Corrected here: since X_i = Z in round 1, the
#: check of round 5 compares with a gap of zero and would always fire.
FIRST_CHECK = 10
RAISE, PROGRESS = 0.1, 0.01
#: Below this gap rounding decides. Corrected here: without the floor beta grows for ever.
SETTLED = 1e-9
#: beta_i stops at this multiple of ||S_i||_2 (ours), or where it starts if that is higher.
CEILING = 2.0


def adapt(state: dict[str, Array], frames: Array, received: Array) -> None:
    """Update ``penalty`` and ``gap`` of the clients of a round, whose ``rounds`` it counts.

    Parameters
    ----------
    state : dict of (present,) arrays
        ``penalty`` (beta_i), ``ceiling``, ``gap`` (d_i at the last check), ``rounds`` (the
        client's rounds including this one). Entries are replaced, arrays left alone.
    frames : (present, features, components) float64
    received : (features, components) float64
    """
    rounds = state["rounds"]
    due = rounds % CHECK_EVERY == 0
    if not due.any():
        return
    gap = projector_distance(frames, received)
    slow = state["gap"] <= (1 + PROGRESS) * gap
    raised = due & (rounds >= FIRST_CHECK) & slow & (gap >= SETTLED)
    higher = np.minimum((1 + RAISE) * state["penalty"], state["ceiling"])
    state["penalty"] = np.where(raised, higher, state["penalty"])
    state["gap"] = np.where(due, gap, state["gap"])
