"""Local training: every client fits its own frame to its own data and sends nothing.

The baseline of personalised PCA without collaboration. Its limit is known in closed form: the
leading eigenvectors of S_i (arbitrary beyond the client's number of samples).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Array, Arrays
from fedpca_core.linalg.stiefel import orthonormalise, polar, remove_span
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Algorithm, Inbox, Plan, Reply, ServerState, Setting, Start, Step
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class LocalTraining(Algorithm):
    """Gradient ascent of tr(U_i^T S_i U_i) on the manifold, client by client; the wire is silent.

    ``step``: In units of 1/lambda_1(S_i), which each client computes from its own data.
    """

    title: ClassVar[str] = "LocalTraining"
    uploads: ClassVar[Uploads] = Uploads.NOTHING
    components: int = 10
    step: float = 1.0

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        shape = (setting.clients, setting.features, self.components)
        frames = orthonormalise(streams.generator("private").standard_normal(shape))
        # A client whose data are all zero has nothing to climb; any finite step will do.
        largest = data.spectral_norms()
        return {}, {"frame": frames, "step": self.step / (largest + (largest == 0))}

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        return replace(super().plan(server, round_, setting, streams), recipients=0)

    def broadcast(self, server: ServerState) -> Arrays:
        return {}

    def client(
        self, data: ClientData, clients: Arrays, plan: Plan, downlink: Arrays, streams: Streams
    ) -> Step:
        frames = clients["frame"]
        products = data.apply(frames)
        moved = polar(frames + clients["step"][:, None, None] * remove_span(products, frames))
        return {}, {**clients, "frame": moved}

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        return Reply(server)

    def estimate(self, server: ServerState, clients: Arrays) -> Array:
        return clients["frame"]


METHODS = (
    Method(
        key="local_training",
        title="Training alone",
        algorithm=LocalTraining,
        make=lambda settings: LocalTraining(settings.components),
        look=Look("#7f3b52", "#e3a3b8", "dot", "square"),
        compared=False,
        refusal="it sends nothing that noise could cover",
    ),
)
