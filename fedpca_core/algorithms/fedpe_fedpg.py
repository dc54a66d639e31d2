"""FedPE and FedPG: consensus ADMM with gradient steps in Euclidean space, or on the manifold.

(Nguyen et al., FedPCA for IoT, Alg. 1 and 2.) In FedPE U_i may leave the manifold. A one-sided
surrogate, entrywise on ``M = U^T U - I`` with ``m = max(0, M)``, adds ``<T_i, m o m> + penalty/2
||m o m||_F^2`` with a multiplier T_i of its own; ``f_i`` itself already has only orthonormal
minimisers. FedPG stays there: ``U <- R(U - step grad F_i(U))`` with ``F_i(U) = f_i(U) + <Y_i, U -
Z> + penalty/2 ||U - Z||_F^2``. On the manifold f_i has at most the curvature ``2 ||S_i||_2``, so
the safe step ``1/(2 ||S_i||_2 + penalty)`` is about four times as long as in FedPE.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import require_choice
from fedpca_core.linalg.stiefel import orthonormalise, polar, tangent
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Setting, Start
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class FedPE(ConsensusADMM):
    """Federated PCA in Euclidean space, with duals and client sampling.

    Wire and shared parameters: `ConsensusADMM`; T_i never travels.

    ``surrogate``: Whether the orthonormality surrogate and its multiplier T_i take part.
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
        squared = np.maximum(1.0, np.linalg.eigvalsh(frames.mT @ frames)[:, -1])
        bound = (12.0 * squared - 4.0) * clients["norm"] + clients["penalty"]
        if self.surrogate:
            beyond = excess(frames).max(axis=(1, 2))
            multiplier = clients["multiplier"].max(axis=(1, 2)) * (beyond > 0)
            bound += 12.0 * squared * (multiplier + 3.0 * clients["penalty"] * beyond**2)
        return np.asarray(bound, dtype=float)


def excess(frames: Array) -> Array:
    """m = max(0, U^T U - I) entrywise, (..., components, components)."""
    gram = frames.mT @ frames
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


@dataclass(frozen=True)
class FedPG(ConsensusADMM):
    """Federated PCA on the manifold, with duals and client sampling.

    Wire and shared parameters: `ConsensusADMM`.

    ``projection``, {"stiefel", "printed"}: Tangent projection of the gradient G. Corrected here:
        ``G - U sym(U^T G)``. The printed ``G - U (U^T G)`` (eq. 17) belongs to functions of the
        span alone, but F_i compares matrices; it deletes the only force that can turn U_i back on
        Z, Y_i grows without end and the run drifts away after first coming close.
    ``retraction``, {"qr", "polar"}: R; both return U unchanged at a zero step.
    """

    title: ClassVar[str] = "FedPG"
    projection: str = "stiefel"
    retraction: str = "qr"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("The projection", self.projection, ("stiefel", "printed"))
        require_choice("The retraction", self.retraction, ("qr", "polar"))

    def first_local(self, frame: Array) -> Array:
        return orthonormalise(frame)

    def step(self, frames: Array, slope: Array, clients: Arrays) -> Array:
        length = self.step_factor / (2.0 * clients["norm"] + clients["penalty"])
        retract = polar if self.retraction == "polar" else orthonormalise
        return retract(frames - length[:, None, None] * self.project(frames, slope))

    def project(self, frames: Array, slope: Array) -> Array:
        if self.projection == "printed":
            return slope - frames @ (frames.mT @ slope)
        return tangent(frames, slope)


_REFUSAL = (
    "several local steps multiply Sᵢ without noise, the length of a local step depends on the "
    "client's data, and a dual variable adds all of them up, so noise on the upload meets no "
    "stated sensitivity"
)

# The penalty is theirs alone: at that of FAPS they do not come to rest.
METHODS = (
    Method(
        key="fedpe",
        algorithm=FedPE,
        made=lambda settings: FedPE(settings.components, penalty_factor=settings.rho_factor),
        look=Look("#4d7c0f", "#a3d65c", "solid", "triangle-up"),
        refusal=_REFUSAL,
    ),
    Method(
        key="fedpg",
        algorithm=FedPG,
        made=lambda settings: FedPG(settings.components, penalty_factor=settings.rho_factor),
        look=Look("#0b6f99", "#5ecbf0", "longdashdot", "star"),
        refusal=_REFUSAL,
    ),
)
