"""Block Krylov at the server: what SSI's messages are worth when the server keeps them all.

One round: the server broadcasts an orthonormal probe Q_k and the clients answer S_i Q_k, exactly as
in SSI. The server keeps the probes Q = [Q_1 .. Q_k] and S Q, takes the leading Ritz vectors of
``T = Q^T S Q`` as its estimate, and orthonormalises S Q_k against all earlier probes for the next
one. With the same traffic as SSI it is the honest floor for the number of rounds (our addition; the
method is the block Lanczos process with full orthogonalisation and a thick restart).
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.algorithms.ssi import SSI
from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import orthonormalise, remove_span, symmetric_part, tall_qr
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Inbox, Plan, Reply, ServerState, Setting, Start
from fedpca_core.streams import Streams

#: Directions of S Q_k that keep less than this share of it after orthogonalisation are rounding.
_BREAKDOWN = 1e-12
#: With more than this share left by each column, plain QR keeps the probe orthogonal to 1e-13.
_DISTINCT = 1e-3


@dataclass(frozen=True)
class BlockKrylov(SSI):
    """Rayleigh-Ritz on everything SSI's server has been sent.

    Wire, each client and round: ``frame`` (the probe) down and ``product`` up, features x
    components each; fewer columns once the probes have exhausted a subspace (breakdown), and the
    run stops when no direction is left. Sums are all the server needs.

    Partial participation, "memory": the server keeps the probe until every client has answered it
    once; a client drawn again before that stays silent, and the estimate stands still. "present":
    the server takes the clients of each round for all, which mixes different matrices and leaves
    an error floor.

    ``blocks``: So many blocks of p columns the basis holds when it restarts from its 2p leading
        Ritz vectors.
    """

    title: ClassVar[str] = "Block Krylov"
    reuses_uploads: ClassVar[bool] = False
    waits: ClassVar[bool] = True
    near: ClassVar[str] = ""
    blocks: int = 8

    @property
    def orthogonal_probes(self) -> int:  # type: ignore[override]
        """Until after the first restart: later ones are orthogonal to the kept Ritz vectors."""
        return self.blocks + 1

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require(
            self.blocks >= 3,
            f"A basis of {self.blocks} blocks leaves no room after a restart, which keeps 2; "
            "choose at least 3.",
        )

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        probe = super().start(data, setting, streams)[0]["frame"]
        nothing = np.zeros((setting.features, 0))
        server = {"basis": nothing, "images": nothing, "probe": probe, "estimate": probe}
        hold = setting.absent == "memory"
        return {**server, "hold": hold, **_no_answers(setting.clients)}, {}

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        plan = super().plan(server, round_, setting, streams)
        return plan.keep(~server["answered"][plan.participants]) if server["hold"] else plan

    def broadcast(self, server: ServerState) -> Arrays:
        return {"frame": server["probe"]}

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        answered = server["answered"].copy()
        answered[inbox.participants] = True
        total = server["total"] + inbox.total("product")
        weight = server["weight"] + inbox.weight
        if server["hold"] and not answered.all():
            return Reply({**server, "answered": answered, "total": total, "weight": weight})
        state = self._extend(server, total / weight)
        return Reply(state, stop=state["probe"].shape[1] == 0)

    def _extend(self, server: ServerState, image: Array) -> dict[str, Any]:
        """Take in S Q_k: new estimate, next probe and, when the basis is full, a restart."""
        basis = np.concatenate([server["basis"], server["probe"]], axis=1)
        images = np.concatenate([server["images"], image], axis=1)
        _, vectors = np.linalg.eigh(symmetric_part(basis.T @ images))
        ritz = vectors[:, ::-1]  # leading first
        estimate = basis @ ritz[:, : self.components]
        # The next probe is orthogonal to the full basis even if that is truncated right after:
        # the other order loses the residual of the kept Ritz vectors and never converges.
        probe = _next_probe(basis, image)
        if basis.shape[1] >= self.blocks * self.components:
            kept = ritz[:, : 2 * self.components]
            basis, images = basis @ kept, images @ kept
        state = {"basis": basis, "images": images, "probe": probe, "estimate": estimate}
        return {**server, **state, **_no_answers(len(server["answered"]))}

    def estimate(self, server: ServerState, clients: Arrays) -> Array:
        return server["estimate"]


@dataclass(frozen=True)
class CentredBlockKrylov(BlockKrylov):
    """Block Krylov on records that are centred by what the messages themselves say of their mean.

    Every record ends with one constant k that is public. Then the last column of the pooled matrix
    is k times the mean, and what is left of the matrix without it (its Schur complement) is the
    covariance about the mean. The first round asks for that column beside the probe; later probes
    carry the coordinate that centres the answers. So the mean needs no release of its own.

    Wire: as `BlockKrylov`, and one column more in the first round.
    """

    title: ClassVar[str] = "Block Krylov (centred)"
    one_product: ClassVar[bool] = False  # its later probes are not orthonormal

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        server, clients = super().start(data, setting, streams)
        probe = server["probe"].copy()
        probe[-1] = 0.0
        probe = orthonormalise(probe)
        column = np.zeros((setting.features, 0))
        return {**server, "probe": probe, "estimate": probe, "column": column}, clients

    def broadcast(self, server: ServerState) -> Arrays:
        probe, column = server["probe"], server["column"]
        last = np.eye(len(probe))[:, -1:]
        if not column.shape[1]:
            return {"frame": np.concatenate([probe, last], axis=1)}
        return {"frame": probe - last @ (column.T @ probe) / column[-1]}

    def _extend(self, server: ServerState, image: Array) -> dict[str, Any]:
        column = server["column"]
        if not column.shape[1]:
            column, image = image[:, -1:], image[:, :-1]
            require(
                float(column[-1, 0]) > 0,
                "The last column of the records is to be one constant above 0, by which they are "
                "centred, and its sum of squares is not; add it to every file, and name it last.",
            )
            image = image - column @ (column.T @ server["probe"]) / column[-1]
        inside = image.copy()
        inside[-1] = 0.0
        return {**super()._extend(server, inside), "column": column}


def _no_answers(clients: int) -> dict[str, Any]:
    return {"answered": np.zeros(clients, dtype=bool), "total": 0.0, "weight": 0.0}


def _next_probe(basis: Array, image: Array) -> Array:
    """Orthonormal directions that S Q_k adds to the basis; possibly fewer columns, or none."""
    scale = float(np.linalg.norm(image))
    residual = remove_span(remove_span(image, basis), basis)
    if image.shape[1] <= basis.shape[0] - basis.shape[1]:
        probe, diagonal = tall_qr(residual)
        if float(np.abs(diagonal).min()) > _DISTINCT * scale:
            return probe
    left, singular, _ = np.linalg.svd(residual, full_matrices=False)
    probe = left[:, singular > _BREAKDOWN * scale]
    # Small singular values magnify what two passes left along the basis, hence a third.
    probe = remove_span(probe, basis)
    return np.linalg.qr(probe)[0] if probe.shape[1] else probe


METHODS = (
    Method(
        key="block_krylov",
        algorithm=BlockKrylov,
        # A basis that never restarts keeps all probes orthogonal: the run costs one product.
        make_private=lambda settings: BlockKrylov(
            settings.components, max(BlockKrylov.blocks, settings.products)
        ),
        look=Look("#b3264a", "#ff86a2", "dot", "triangle-down"),
        attacked=True,
        accounts="orthogonal",
    ),
    Method(
        key="block_krylov_centred",
        algorithm=CentredBlockKrylov,
        look=Look("#7d1a33", "#ffb3c3", "dashdot", "triangle-down"),
        compared=False,  # of records with one more column
        attacked=True,
        refusal="its later probes depend on the mean and are not orthogonal",
    ),
)
