"""FedPG: consensus ADMM with Riemannian gradient steps (Nguyen et al., FedPCA for IoT, Alg. 2).

Local steps stay on the manifold: ``U <- R(U - step grad F_i(U))`` with
``F_i(U) = f_i(U) + <Y_i, U - Z> + penalty/2 ||U - Z||_F^2``. On the manifold f_i has at most the
curvature ``2 ||S_i||_2``, so the safe step ``1/(2 ||S_i||_2 + penalty)`` is about four times as
long as in FedPE.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedpca_core.algorithms.admm import ConsensusADMM
from fedpca_core.algorithms.consensus_tools import REFUSAL
from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import require_choice
from fedpca_core.linalg.stiefel import orthonormalise, polar, tangent, transpose


@dataclass(frozen=True)
class FedPG(ConsensusADMM):
    """Federated PCA on the manifold, with duals and client sampling.

    Wire and shared parameters: `ConsensusADMM`.

    Args:
        projection: {"stiefel", "printed"}: Tangent projection of the gradient G. Corrected here:
            ``G - U sym(U^T G)``. The printed ``G - U (U^T G)`` (eq. 17) belongs to functions of the
            span alone, but F_i compares matrices; it deletes the only force that can turn U_i back
            on Z, Y_i grows without end and the run drifts away after first coming close.
        retraction: {"qr", "polar"}: R; both return U unchanged at a zero step (QR with a positive
            diagonal).
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
            return slope - frames @ (transpose(frames) @ slope)
        return tangent(frames, slope)


# The penalty is theirs alone: at that of FAPS they do not come to rest.
METHODS = (
    Method(
        key="fedpg",
        title="FedPG",
        algorithm=FedPG,
        make=lambda settings: FedPG(settings.components, penalty_factor=settings.rho_factor),
        look=Look("#0b6f99", "#5ecbf0", "longdashdot", "star"),
        refusal=REFUSAL,
    ),
)
