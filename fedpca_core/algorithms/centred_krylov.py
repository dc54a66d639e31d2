"""Block Krylov on records about their mean, which a constant column of theirs tells."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from fedpca_core.algorithms.block_krylov import BlockKrylov
from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import orthonormalise
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import ServerState, Setting, Start
from fedpca_core.streams import Streams


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


METHODS = (
    Method(
        key="block_krylov_centred",
        title=CentredBlockKrylov.title,
        algorithm=CentredBlockKrylov,
        make=lambda settings: CentredBlockKrylov(settings.components),
        look=Look("#7d1a33", "#ffb3c3", "dashdot", "triangle-down"),
        compared=False,  # of records with one more column
        attacked=True,
        refusal="its later probes depend on the mean and are not orthogonal",
    ),
)
