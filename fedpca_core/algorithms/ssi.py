"""SSI, federated subspace iteration (FAPS paper, the baseline of section 2), and its variants.

One round: the server broadcasts a frame Z, every client answers with the single product S_i Z, and
the server orthonormalises the weighted sum. With everyone present this is subspace iteration on the
pooled matrix S, so the angle shrinks by lambda_{p+1}/lambda_p a round.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Arrays
from fedpca_core.errors import require, require_at_least, require_choice
from fedpca_core.linalg.stiefel import orthonormalise, reconditioned, uniform_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Algorithm, Plan, ServerState, Setting, Start, Step
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

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        return {"product": data.apply(plan.downlink["frame"])}, clients


@dataclass(frozen=True)
class DistributedPower(SSI):
    """The power method with one upload a product (FedPower, Algorithm 1); the wire is SSI's.

    The baseline without privacy: SSI from a frame of Gaussian entries, and for a stated number of
    products. Its iterates are those of the centralised power method.

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


@dataclass(frozen=True)
class LocalPower(SSI):
    """SSI with several local power steps between two averagings (FAPS paper, section 2).

    Each client repeats ``W <- orth(S_i W)`` q - 1 times from W = Z and answers with the product
    ``S_i W``, which it does not orthonormalise. While q > 1 different clients pull towards
    different subspaces, so q falls to 1 and the last rounds are those of SSI.

    The iterates depend on the basis of the first frame and not only on its span, because the sum
    adds frames column by column. All methods therefore start from the same frame of the stream
    "start".

    Wire: as SSI; the number of local steps follows from the public schedule and is not sent.

    Partial participation: the schedule follows the server's round, so an absent client misses its
    steps; the server sums the clients present, or reuses the last upload of each absent one.

    ``local_steps``: Products with S_i in the first round (q).
    ``schedule``, {"halving", "decay"}: How q falls to 1: halved every round (8, 4, 2, 1; FAPS
        paper) or by one every round (8, 7, ..., 1; the schedule of FedPower).
    """

    one_product: ClassVar[bool] = False
    local_steps: int = 8
    schedule: str = "halving"

    @property
    def title(self) -> str:  # type: ignore[override]
        return "LocalPower" if self.schedule == "halving" else "LocalPower (decay)"

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require_at_least("LocalPower's number of local steps", self.local_steps, 1)
        require_choice("The schedule of local steps", self.schedule, ("halving", "decay"))

    def steps(self, round_: int) -> int:
        if self.schedule == "decay":
            return max(1, self.local_steps - (round_ - 1))
        return max(1, self.local_steps >> (round_ - 1))

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        product = data.apply(plan.downlink["frame"])
        for step in range(2, plan.local_steps + 1):
            # QR factors are unique, so before the last product a rough one changes only rounding.
            last = step == plan.local_steps
            product = data.apply(orthonormalise(product) if last else reconditioned(product)[0])
        return {"product": product}, clients


_REFUSAL = (
    "between two messages a client makes several products, and noise on the last one does not "
    "cover those before"
)

METHODS = (
    Method(
        key="ssi",
        stands_for="simultaneous subspace iteration",
        algorithm=SSI,
        look=Look("#2166ac", "#7cb3f5", "longdash", "square"),
        attacked=True,
        accounts="products",
    ),
    Method(
        key="local_power",
        algorithm=LocalPower,
        look=Look("#c2410c", "#ff8f5e", "solid", "diamond"),
        attacked=True,
        refusal=_REFUSAL,
    ),
    Method(
        key="local_power_decay",
        algorithm=LocalPower,
        fixed={"schedule": "decay"},
        look=Look("#8f4a1b", "#e0b089", "dash", "diamond"),
        attacked=True,
        refusal=_REFUSAL,
    ),
)
