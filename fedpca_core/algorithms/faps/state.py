"""What a FAPS client remembers between rounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array, Arrays, BoolArray

#: beta_i stops at this multiple of ||S_i||_2 (ours), or where it starts if that is higher.
CEILING = 2.0


@dataclass
class ClientState:
    """State of the clients of a round; a step replaces entries and leaves the arrays alone."""

    #: (clients, features, components) float64: X_i.
    frame: Array
    #: (clients, features, components) float64: S_i X_i, known from the first round on.
    product: Array
    #: (clients, features, components) float64: W_i = -(I - X_i X_i^T) S_i X_i, which stands for
    #: Lambda_i = X_i W_i^T + W_i X_i^T.
    multiplier: Array
    #: penalty, ceiling: (clients,) float64: beta_i and where it stops growing.
    penalty: Array
    ceiling: Array
    #: (clients,) float64: ||S_i||_2.
    norm: Array
    #: (clients,) float64: d_i, distance to the consensus at the last check of the penalty rule.
    gap: Array
    #: (clients,) float64: Participations so far.
    rounds: Array
    #: (clients, features, 1) float64: Estimate of the eigenvector of a_i.
    direction: Array
    #: (clients,) float64: Estimate of a_i, the largest eigenvalue of S_i outside X_i; ||S_i||
    #: bounds it.
    outside: Array
    #: (clients,) float64: Inner iterations of the last round: J_i.
    steps: Array
    #: (clients, most records, components) float64: F_i^T X_i of a client that holds records, ``S_i
    #: = F_i F_i^T``; NaN where it is not known. There are at most as many rows as features.
    pulled: Array

    @classmethod
    def at_start(cls, frames: Array, norms: Array, penalty: Array, records: int = 0) -> ClientState:
        """The state before the first round, from X_i, ||S_i||_2, beta_i and the most records."""
        clients, features, components = frames.shape
        return cls(
            frame=frames,
            product=np.zeros_like(frames),
            multiplier=np.zeros_like(frames),
            penalty=penalty,
            ceiling=np.maximum(CEILING * norms, penalty),
            norm=norms,
            gap=np.zeros(clients),
            rounds=np.zeros(clients),
            direction=np.zeros((clients, features, 1)),
            outside=norms,
            steps=np.zeros(clients),
            pulled=np.full((clients, records, components), np.nan),
        )

    def idle(self, private_start: bool) -> BoolArray:
        """Clients that make no inner step.

        A client whose data are all zero has nothing to pull for, and in a first round that starts
        from the received frame H X spans X already.
        """
        nothing = self.penalty == 0
        return nothing if private_start else nothing | (self.rounds == 0)

    def arrays(self) -> Arrays:
        return dict(vars(self))
