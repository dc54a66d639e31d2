"""Decoupled PCA: some components are shared by all clients, the others are each client's own.

A rival of personalised PCA without a prior (Shi and Kontar, "Personalized PCA: Decoupling Shared
and Unique Features", 2022). Client i explains its records by U and V_i together, V_i orthogonal to
U, and all maximise ``sum_i w_i (tr(U^T S_i U) + tr(V_i^T S_i V_i))``. One round: the server
broadcasts U; every client takes what lies along U out of its V_i, moves [U, V_i] along its
gradient, retracts, and uploads its copy of U; the server averages and retracts. The V_i stay where
they are.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import require, require_positive
from fedpca_core.linalg.stiefel import orthonormalise, polar, remove_span, tangent, uniform_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Algorithm, Inbox, Plan, Reply, ServerState, Setting, Start, Step
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class DecoupledPCA(Algorithm):
    """Shared and unique components.

    Wire, each client and round: ``frame`` (U) down, and up the client's moved copy of it, features
    x shared components each; the server needs only their mean.

    ``components``: Columns of [U, V_i] together.
    ``shared``: Columns of U; None: half of them, rounded up.
    ``step``: In units of 1/lambda_1(S_i), which each client computes from its own data.
    """

    title: ClassVar[str] = "DecoupledPCA"
    uploads: ClassVar[Uploads] = Uploads.FRAMES
    reuses_uploads: ClassVar[bool] = False  # an old copy moves from an old frame
    components: int = 10
    shared: int | None = None
    step: float = 1.0

    @property
    def common(self) -> int:
        return (self.components + 1) // 2 if self.shared is None else self.shared

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require(
            1 <= self.common <= self.components,
            f"{self.common} shared components of {self.components} cannot be; choose between 1 and "
            f"{self.components}.",
        )
        require_positive("The step", self.step, 1.0)

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        frame = uniform_frame(streams.generator("start"), setting.features, self.common)
        shape = (setting.clients, setting.features, self.components - self.common)
        own = streams.generator("private").standard_normal(shape)
        # A client whose data are all zero has nothing to climb; any finite step will do.
        largest = data.spectral_norms()
        steps = self.step / (largest + (largest == 0))
        return {"frame": frame}, {"own": _beside(own, frame), "step": steps}

    def client(
        self, data: ClientData, clients: Arrays, plan: Plan, downlink: Arrays, streams: Streams
    ) -> Step:
        whole = _together(downlink["frame"], clients["own"])
        moved = polar(whole + clients["step"][:, None, None] * tangent(whole, data.apply(whole)))
        mine, own = moved[..., : self.common], moved[..., self.common :]
        return {"frame": mine}, {**clients, "own": own}

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        return Reply({"frame": polar(inbox.mean("frame"))})

    def estimate(self, server: ServerState, clients: Arrays) -> Array:
        return _together(server["frame"], clients["own"])


def _together(frame: Array, own: Array) -> Array:
    """[U, V_i] of every client, (clients, features, components)."""
    return np.concatenate([np.tile(frame, (len(own), 1, 1)), _beside(own, frame)], axis=-1)


def _beside(own: Array, frame: Array) -> Array:
    """The clients' own directions without what lies along the shared ones, orthonormal."""
    return orthonormalise(remove_span(own, frame)) if own.shape[-1] else own


METHODS = (
    Method(
        key="decoupled",
        title="Shared and unique (Shi and Kontar)",
        algorithm=DecoupledPCA,
        make=lambda settings: DecoupledPCA(settings.components),
        look=Look("#3d5a80", "#98c1d9", "dashdot", "x"),
        compared=False,
        refusal="an upload is made of a frame that remembers all earlier products, which carry no "
        "noise, and orthonormalising it has no bounded sensitivity",
    ),
)
