"""The centralised reference: every client hands over its whole S_i, once.

Exact in one round, and the baseline for bytes: the symmetric S_i costs features (features + 1)/2
numbers. It also hands the server everything an attack could recover.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Arrays
from fedpca_core.linalg.stiefel import random_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Algorithm, Inbox, Plan, Reply, ServerState, Setting, Start, Step
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class Centralized(Algorithm):
    """Eigenvectors of the pooled matrix.

    Wire, each client, once: nothing down; ``covariance`` up, the upper triangle of S_i by rows. The
    sum is all the server needs.

    Partial participation, "memory": a client uploads in the first round it is drawn for and never
    again; the run stops when all have been heard, and until then the estimate is that of the
    clients heard so far. "present": the clients of the first round are taken for all.
    """

    title: ClassVar[str] = "Centralised"
    uploads: ClassVar[Uploads] = Uploads.MATRIX
    reuses_uploads: ClassVar[bool] = False
    waits: ClassVar[bool] = True
    one_round: ClassVar[bool] = True
    components: int = 5

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        frame = random_frame(streams.generator("start"), setting.features, self.components)
        return {"frame": frame, "total": 0.0, "heard": np.zeros(setting.clients, dtype=bool)}, {}

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        plan = super().plan(server, round_, setting, streams)
        plan = plan.keep(~server["heard"][plan.participants])
        complete = len(plan.participants) + int(server["heard"].sum()) == setting.clients
        return replace(plan, local_steps=0, stop=complete or setting.absent == "present")

    def broadcast(self, server: ServerState) -> Arrays:
        return {}

    def client(
        self, data: ClientData, clients: Arrays, plan: Plan, downlink: Arrays, streams: Streams
    ) -> Step:
        return {"covariance": data.upper_triangles()}, clients

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        heard = server["heard"].copy()
        heard[inbox.participants] = True
        total = server["total"] + inbox.total("covariance")
        features, components = server["frame"].shape
        upper = np.zeros((features, features))
        upper[np.triu_indices(features)] = total
        frame = np.ascontiguousarray(np.linalg.eigh(upper, UPLO="U")[1][:, ::-1][:, :components])
        return Reply({"frame": frame, "total": total, "heard": heard})


METHODS = (
    Method(
        key="centralized",
        title="Centralised",
        algorithm=Centralized,
        make=lambda settings: Centralized(settings.components),
        look=Look("#1f2a2e", "#f3f5f2", "dot", "cross"),
        refusal="it hands over Sᵢ itself; noise on that is noise at the source",
    ),
)
