"""Methods of one round: clients send their leading spaces, or their whole S_i, and that is all."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Arrays
from fedpca_core.errors import require_choice
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Algorithm, Inbox, Plan, Reply, ServerState, Setting, Start, Step
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.streams import Streams

#: Name of the upload of each variant.
_UPLOADS = {"projectors": "eigenvectors", "stacked": "scaled_eigenvectors"}


@dataclass(frozen=True)
class OneShot(Algorithm):
    """One-shot averaging: every client sends its own leading space once.

    ``projectors`` averages the projectors U_i U_i^T (Fan, Wang, Wang and Zhu, "Distributed
    estimation of principal eigenspaces"); ``stacked`` takes the SVD of the stacked U_i Sigma_i,
    i.e. it averages the leading parts of the S_i and so keeps how strong each direction is. Neither
    goes on, so the error that differing clients leave is final.

    Wire, each client, once: nothing down; up, features x components: ``eigenvectors`` (U_i) or
    ``scaled_eigenvectors`` (U_i Lambda_i^(1/2), Lambda_i the leading eigenvalues of S_i). The
    local eigendecomposition is no product with S_i and is not metered as one. The server
    needs the single uploads: a sum of frames with different bases means nothing.

    Partial participation: the clients drawn for the only round are all that ever count, whatever
    is done about absent ones.
    """

    uploads = Uploads.EIGENVECTORS
    needs_individual_uploads = True
    reuses_uploads = False
    one_round = True
    components: int = 5
    variant: str = "projectors"

    @property
    def title(self) -> str:
        return "One-shot" + (" (stacked)" if self.variant == "stacked" else "")

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require_choice("The variant of one-shot averaging", self.variant, _UPLOADS)

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        return replace(super().plan(server, round_, setting, streams), local_steps=0, stop=True)

    def broadcast(self, server: ServerState) -> Arrays:
        return {}

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        values, vectors = data.top_eigenvectors(self.components)
        if self.variant == "stacked":
            vectors = vectors * np.sqrt(np.clip(values, 0.0, None))[:, None, :]
        return {_UPLOADS[self.variant]: vectors}, clients

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        uploads = inbox.individual(_UPLOADS[self.variant])
        scaled = uploads * np.sqrt(inbox.weights)[:, None, None]
        stacked = scaled.transpose(1, 0, 2).reshape(uploads.shape[1], -1)
        left = np.linalg.svd(stacked, full_matrices=False)[0]
        return Reply({"frame": left[:, : self.components]})


@dataclass(frozen=True)
class Centralized(Algorithm):
    """The centralised reference: eigenvectors of the pooled matrix.

    Exact in one round, and the baseline for bytes: the symmetric S_i costs features (features +
    1)/2 numbers. It also hands the server everything an attack could recover.

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
        server, clients = super().start(data, setting, streams)
        return {**server, "total": 0.0, "heard": np.zeros(setting.clients, dtype=bool)}, clients

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        plan = super().plan(server, round_, setting, streams)
        plan = plan.keep(~server["heard"][plan.participants])
        complete = len(plan.participants) + int(server["heard"].sum()) == setting.clients
        return replace(plan, local_steps=0, stop=complete or setting.absent == "present")

    def broadcast(self, server: ServerState) -> Arrays:
        return {}

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
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


_REFUSAL = "it sends eigenvectors, whose sensitivity has no bound without an eigengap"

METHODS = (
    Method(
        key="one_shot",
        algorithm=OneShot,
        look=Look("#5b6470", "#aab4c0", "dash", "x"),
        refusal=_REFUSAL,
    ),
    Method(
        key="one_shot_stacked",
        algorithm=OneShot,
        fixed={"variant": "stacked"},
        look=Look("#6f6257", "#c9bcae", "dot", "x"),
        refusal=_REFUSAL,
    ),
    Method(
        key="centralized",
        algorithm=Centralized,
        look=Look("#1f2a2e", "#f3f5f2", "dot", "cross"),
        refusal="it hands over Sᵢ itself; noise on that is noise at the source",
    ),
)
