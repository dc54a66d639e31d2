"""Malicious clients that want one type of attack to pass unseen.

The attacker is a generous one: it knows the direction that hides its kind of attack and the other
uploads of the round, and sends whatever makes the plain average equal to its target. The honest
clients' duals absorb the lie, so ``sum_i Y_i`` no longer vanishes and the limit stays biased after
the attacker has left, until the duals are reset or the server's average forgets by itself.
"""

from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array, Arrays
from fedpca_core.linalg.stiefel import polar
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Plan, Step, Wrapper
from fedpca_core.streams import Streams


@dataclass(frozen=True, eq=False)
class PoisonedData(Wrapper):
    """FedPE, FedPG or what else uploads one matrix, with some clients that lie for a while."""

    malicious: tuple[int, ...]
    #: (features,): Unit vector that shall enter the model in place of its weakest direction.
    direction: Array
    #: first, last: Rounds between which they lie, whenever they are drawn.
    first: int
    last: int

    @property
    def title(self) -> str:
        return f"{self.method.title} with malicious clients"

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        uplink, state = super().client(data, clients, plan, streams)
        lying = np.isin(plan.participants, self.malicious)
        if not lying.any() or not self.first <= plan.round <= self.last:
            return uplink, state
        name, uploads = next(iter(uplink.items()))
        target = self.target(data.only(np.flatnonzero(lying)), polar(plan.downlink["frame"]))
        forged = uploads.copy()
        forged[lying] = (len(uploads) * target - uploads[~lying].sum(axis=0)) / int(lying.sum())
        return {name: forged}, state

    def target(self, data: ClientData, frame: Array) -> Array:
        """The frame with its direction of least energy, for the liars, replaced."""
        weakest = np.linalg.eigh(np.mean(frame.T @ data.apply(frame), axis=0))[1][:, 0]
        outside = self.direction - frame @ (frame.T @ self.direction)
        length = float(np.linalg.norm(outside))
        if length < 1e-3:  # it is in the model already
            return frame
        kept = frame - np.outer(frame @ weakest, weakest)
        return np.asarray(kept + np.outer(outside / length, weakest))


def hiding_direction(records: Array, frame: Array) -> Array:
    """The unit vector that explains most of what some records have outside a subspace."""
    residual = records - (records @ frame) @ frame.T
    _, vectors = np.linalg.eigh(residual.T @ residual)
    return np.asarray(vectors[:, -1])
