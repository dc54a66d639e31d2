"""The penalty rule of FAPS: beta_i grows while the client's gap to the consensus does not shrink.

Counted in each client's own rounds: at every fifth one the gap ``d_i = ||X_i X_i^T - Z Z^T||_F`` to
the received Z is compared with the gap of the check before, and beta_i grows by 10% where the gap
fell by less than 1% (FAPS, theta = 0.1 and mu = 0.01).
"""

from __future__ import annotations

import numpy as np

from fedpca_core.algorithms.faps.state import ClientState
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


def adapt(state: ClientState, received: Array) -> None:
    """Update beta_i and d_i of the clients of a round, which their ``rounds`` include.

    Parameters
    ----------
    state : ClientState
    received : (features, components) float64
        Z as the clients received it.
    """
    due = state.rounds % CHECK_EVERY == 0
    if not due.any():
        return
    gap = projector_distance(state.frame, received)
    slow = state.gap <= (1 + PROGRESS) * gap
    raised = due & (state.rounds >= FIRST_CHECK) & slow & (gap >= SETTLED)
    higher = np.minimum((1 + RAISE) * state.penalty, state.ceiling)
    state.penalty = np.where(raised, higher, state.penalty)
    state.gap = np.where(due, gap, state.gap)
