"""SSI: federated subspace iteration (FAPS paper, the baseline of section 2).

One round: the server broadcasts a frame Z, every client answers with the single product S_i Z, and
the server orthonormalises the weighted sum. With everyone present this is subspace iteration on the
pooled matrix S, so the angle shrinks by lambda_{p+1}/lambda_p a round.
"""

from dataclasses import dataclass
from typing import ClassVar

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Arrays
from fedpca_core.linalg.stiefel import orthonormalise, random_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Algorithm, Inbox, Plan, Reply, ServerState, Setting, Start, Step
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class SSI(Algorithm):
    """Federated subspace iteration.

    Wire, each client and round: ``frame`` down and ``product`` up, features x components each.
    """

    title: ClassVar[str] = "SSI"
    one_product: ClassVar[bool] = True
    near: ClassVar[str] = "power"
    components: int = 5

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        frame = random_frame(streams.generator("start"), setting.features, self.components)
        return {"frame": frame}, {}

    def client(
        self, data: ClientData, clients: Arrays, plan: Plan, downlink: Arrays, streams: Streams
    ) -> Step:
        return {"product": data.apply(downlink["frame"])}, clients

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        return Reply({"frame": orthonormalise(inbox.total("product"))})


METHODS = (
    Method(
        key="ssi",
        title="SSI",
        stands_for="simultaneous subspace iteration",
        algorithm=SSI,
        make=lambda settings: SSI(settings.components),
        look=Look("#2166ac", "#7cb3f5", "longdash", "square"),
        attacked=True,
        accounts="products",
    ),
)
