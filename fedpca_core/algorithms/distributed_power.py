"""DistributedPower: the power method with one upload a product (FedPower, Algorithm 1).

The baseline without privacy: SSI from a frame of Gaussian entries, and for a stated number of
products. Its iterates are those of the centralised power method.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from fedpca_core.algorithms.ssi import SSI
from fedpca_core.errors import require
from fedpca_core.linalg.stiefel import uniform_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Plan, ServerState, Setting, Start
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class DistributedPower(SSI):
    """Distributed power method; the wire is that of SSI.

    ``components``: Columns k of the frame.
    ``products``: T, products (and rounds) after which the run stops. The error shrinks by
        sigma_{k+1}/sigma_k a product, so about sigma_k/(sigma_k - sigma_{k+1}) log(d/error) are
        needed (corrected here: the source prints the ratio sigma_k/sigma_{k+1}).
    """

    title: ClassVar[str] = "DistributedPower"
    products: int = 10

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        frame = uniform_frame(streams.generator("start"), setting.features, self.components)
        return {"frame": frame}, {}

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        return replace(super().plan(server, round_, setting, streams), stop=round_ >= self.products)

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require(self.products >= 1, f"A run makes at least 1 product, not {self.products}.")
