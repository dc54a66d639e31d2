"""FedPE: consensus ADMM with Euclidean gradient steps (Nguyen et al., FedPCA for IoT, Alg. 1).

U_i may leave the manifold. A one-sided surrogate, entrywise on ``M = U^T U - I`` with
``m = max(0, M)``, adds ``<T_i, m o m> + penalty/2 ||m o m||_F^2`` with a multiplier T_i of its own;
``f_i`` itself already has only orthonormal minimisers.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.algorithms.consensus_tools import REFUSAL
from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Array, Arrays
from fedpca_core.linalg.stiefel import transpose
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Setting, Start
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class FedPE(ConsensusADMM):
    """Federated PCA in Euclidean space, with duals and client sampling.

    Wire and shared parameters: `ConsensusADMM`; T_i never travels.

    Args:
        surrogate: Whether the orthonormality surrogate and its multiplier T_i take part.
    """

    title: ClassVar[str] = "FedPE"
    surrogate: bool = True

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        server, clients = super().start(data, setting, streams)
        multiplier = np.zeros((setting.clients, self.components, self.components))
        return server, {**clients, "multiplier": multiplier}

    def exposed(self, clients: Arrays) -> Arrays:
        return {**super().exposed(clients), "multiplier": clients["multiplier"]}

    def seen(self, data: ClientData) -> ClientData:
        # Off the manifold f_i has no lower bound along a negative eigenvalue (noise makes them).
        return data.positive()

    def constraint(self, clients: Arrays, penalty: float) -> tuple[Array, Array]:
        if not self.surrogate:
            return super().constraint(clients, penalty)
        frames, multipliers, each = clients["frame"], clients["multiplier"], np.array(penalty)
        value = surrogate_value(frames, multipliers, each)
        return value, surrogate_gradient(frames, multipliers, each)

    def step(self, frames: Array, slope: Array, clients: Arrays) -> Array:
        if self.surrogate:
            penalty = clients["penalty"][:, None, None]
            slope = slope + surrogate_gradient(frames, clients["multiplier"], penalty)
        return frames - self.step_factor / self.curvature(frames, clients)[:, None, None] * slope

    def dual_step(self, clients: Arrays, consensus: Array) -> Arrays:
        state = super().dual_step(clients, consensus)
        if not self.surrogate:
            return state
        penalty = clients["penalty"][:, None, None]
        multiplier = clients["multiplier"] + penalty * excess(clients["frame"]) ** 2
        return {**state, "multiplier": multiplier}

    def curvature(self, frames: Array, clients: Arrays) -> Array:
        """Upper bound on the curvature near U, recomputed at every step, (clients,).

        ``(12 b^2 - 4) ||S_i||_2 + penalty + L_h`` with ``b = max(1, ||U||_2)`` and
        ``L_h = 12 b^2 (max T_i [max m > 0] + 3 penalty max m^2)``: off the manifold f_i bends in
        the normal direction too, by ``8 ||S_i||_2`` at an orthonormal U.
        """
        squared = np.maximum(1.0, np.linalg.eigvalsh(transpose(frames) @ frames)[:, -1])
        bound = (12.0 * squared - 4.0) * clients["norm"] + clients["penalty"]
        if self.surrogate:
            beyond = excess(frames).max(axis=(1, 2))
            multiplier = clients["multiplier"].max(axis=(1, 2)) * (beyond > 0)
            bound += 12.0 * squared * (multiplier + 3.0 * clients["penalty"] * beyond**2)
        return np.asarray(bound, dtype=float)


def excess(frames: Array) -> Array:
    """m = max(0, U^T U - I) entrywise, (..., components, components)."""
    gram = transpose(frames) @ frames
    return np.maximum(0.0, gram - np.eye(gram.shape[-1]))


def surrogate_gradient(frames: Array, multipliers: Array, penalty: Array) -> Array:
    """Gradient of ``<T, m o m> + penalty/2 ||m o m||_F^2``: ``4 U [m o (T + penalty m o m)]``."""
    m = excess(frames)
    return 4.0 * frames @ (m * (multipliers + penalty * m**2))


def surrogate_value(frames: Array, multipliers: Array, penalty: Array) -> Array:
    """``<T, m o m> + penalty/2 ||m o m||_F^2``, one value for each client."""
    squared = excess(frames) ** 2
    return np.asarray(
        (multipliers * squared).sum(axis=(-2, -1))
        + 0.5 * np.squeeze(penalty) * (squared**2).sum(axis=(-2, -1))
    )


# The penalty is theirs alone: at that of FAPS they do not come to rest.
METHODS = (
    Method(
        key="fedpe",
        title="FedPE",
        algorithm=FedPE,
        make=lambda settings: FedPE(settings.components, penalty_factor=settings.rho_factor),
        look=Look("#4d7c0f", "#a3d65c", "solid", "triangle-up"),
        refusal=REFUSAL,
    ),
)
