"""LocalPower: several local power steps between two averagings (FAPS paper, section 2).

One round: the server broadcasts a frame Z and says how many local steps q to take. Each client
repeats ``W <- orth(S_i W)`` q - 1 times from W = Z and answers with the product ``S_i W``, which it
does not orthonormalise; the server orthonormalises the weighted sum. While q > 1 different clients
pull towards different subspaces, so q falls to 1 and the last rounds are those of SSI.

The iterates depend on the basis of the first frame and not only on its span, because the sum adds
frames column by column. All methods therefore start from the same frame of the stream "start".
"""

from dataclasses import dataclass
from typing import ClassVar

from fedpca_core.algorithms.method import Look, Method
from fedpca_core.algorithms.ssi import SSI
from fedpca_core.arrays import Arrays
from fedpca_core.errors import require_at_least, require_choice
from fedpca_core.linalg.stiefel import orthonormalise, recondition
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Plan, Setting, Step
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class LocalPower(SSI):
    """SSI with local steps.

    Wire: as SSI; the number of local steps follows from the public schedule and is not sent.

    Partial participation: clients keep nothing between rounds, and the schedule follows the
    server's round, so an absent client misses its steps; the server sums the clients present, or
    reuses the last upload of each absent one.

    Args:
        components: Columns p of the frame.
        local_steps: Products with S_i in the first round (q).
        schedule: {"halving", "decay"}: How q falls to 1: halved every round (8, 4, 2, 1; FAPS
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

    def client(
        self, data: ClientData, clients: Arrays, plan: Plan, downlink: Arrays, streams: Streams
    ) -> Step:
        product = data.apply(downlink["frame"])
        for step in range(2, plan.local_steps + 1):
            last = step == plan.local_steps
            product = data.apply(orthonormalise(product) if last else recondition(product))
        return {"product": product}, clients


_REFUSAL = (
    "between two messages a client makes several products, and noise on the last one does not "
    "cover those before"
)

METHODS = (
    Method(
        key="local_power",
        title="LocalPower",
        algorithm=LocalPower,
        make=lambda settings: LocalPower(settings.components, settings.local_steps, "halving"),
        look=Look("#c2410c", "#ff8f5e", "solid", "diamond"),
        attacked=True,
        refusal=_REFUSAL,
    ),
    Method(
        key="local_power_decay",
        title="LocalPower (decay)",
        algorithm=LocalPower,
        make=lambda settings: LocalPower(settings.components, settings.local_steps, "decay"),
        look=Look("#8f4a1b", "#e0b089", "dash", "diamond"),
        attacked=True,
        refusal=_REFUSAL,
    ),
)
