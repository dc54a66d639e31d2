"""One-shot averaging: every client sends its own leading space once, and that is all.

``projectors`` averages the projectors U_i U_i^T (Fan, Wang, Wang and Zhu, "Distributed estimation
of principal eigenspaces"); ``stacked`` takes the SVD of the stacked U_i Sigma_i, i.e. it averages
the leading parts of the S_i and so keeps how strong each direction is. Neither goes on, so the
error that differing clients leave is final.
"""

from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Arrays
from fedpca_core.errors import require_choice
from fedpca_core.linalg.stiefel import random_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Algorithm, Inbox, Plan, Reply, ServerState, Setting, Start, Step
from fedpca_core.protocol.algorithm import Uploads
from fedpca_core.streams import Streams

#: Name of the upload of each variant.
_UPLOADS = {"projectors": "eigenvectors", "stacked": "scaled_eigenvectors"}


@dataclass(frozen=True)
class OneShot(Algorithm):
    """One round of averaging local principal subspaces.

    Wire, each client, once: nothing down; up, features x components: ``eigenvectors`` (U_i) or
    ``scaled_eigenvectors`` (U_i Lambda_i^(1/2), Lambda_i the leading eigenvalues of S_i). The
    local eigendecomposition is no product with S_i and is not metered as one. The server
    needs the single uploads: a sum of frames with different bases means nothing.

    Partial participation: the clients drawn for the only round are all that ever count, whatever
    is done about absent ones.

    Args:
        components: Columns p of every local frame and of the estimate.
        variant: {"projectors", "stacked"}.
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

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        frame = random_frame(streams.generator("start"), setting.features, self.components)
        return {"frame": frame}, {}

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        return replace(super().plan(server, round_, setting, streams), local_steps=0, stop=True)

    def broadcast(self, server: ServerState) -> Arrays:
        return {}

    def client(
        self, data: ClientData, clients: Arrays, plan: Plan, downlink: Arrays, streams: Streams
    ) -> Step:
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


_REFUSAL = "it sends eigenvectors, whose sensitivity has no bound without an eigengap"

METHODS = (
    Method(
        key="one_shot",
        title="One-shot",
        algorithm=OneShot,
        make=lambda settings: OneShot(settings.components, "projectors"),
        look=Look("#5b6470", "#aab4c0", "dash", "x"),
        refusal=_REFUSAL,
    ),
    Method(
        key="one_shot_stacked",
        title="One-shot (stacked)",
        algorithm=OneShot,
        make=lambda settings: OneShot(settings.components, "stacked"),
        look=Look("#6f6257", "#c9bcae", "dot", "x"),
        refusal=_REFUSAL,
    ),
)
