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
from fedpca_core.arrays import Arrays
from fedpca_core.errors import require, require_choice
from fedpca_core.linalg.stiefel import orthonormalise, random_frame, recondition
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Algorithm, Inbox, Plan, Reply, ServerState, Setting, Start, Step
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class LocalPower(Algorithm):
    """Power iteration with local steps.

    Wire, each client and round: ``frame`` down and ``product`` up, features x components each;
    the number of local steps follows from the public schedule and is not sent.

    Partial participation: clients keep nothing between rounds, and the schedule follows the
    server's round, so an absent client misses its steps; the server sums the clients present, or
    reuses the last upload of each absent one.

    Parameters
    ----------
    components : int
        Columns p of the frame.
    local_steps : int
        Products with S_i in the first round (q).
    schedule : {"halving", "decay"}
        How q falls to 1: halved every round (8, 4, 2, 1; FAPS paper) or by one every round
        (8, 7, ..., 1; the schedule of FedPower).
    """

    near: ClassVar[str] = "power"
    components: int = 5
    local_steps: int = 8
    schedule: str = "halving"

    @property
    def title(self) -> str:
        return "LocalPower" if self.schedule == "halving" else "LocalPower (decay)"

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require(
            self.local_steps >= 1,
            f"LocalPower takes at least 1 local step, not {self.local_steps}.",
        )
        require_choice("The schedule of local steps", self.schedule, ("halving", "decay"))

    def steps(self, round_: int) -> int:
        if self.schedule == "decay":
            return max(1, self.local_steps - (round_ - 1))
        return max(1, self.local_steps >> (round_ - 1))

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        frame = random_frame(streams.generator("start"), setting.features, self.components)
        return {"frame": frame}, {}

    def client(
        self, data: ClientData, clients: Arrays, plan: Plan, downlink: Arrays, streams: Streams
    ) -> Step:
        product = data.apply(downlink["frame"])
        for step in range(2, plan.local_steps + 1):
            last = step == plan.local_steps
            product = data.apply(orthonormalise(product) if last else recondition(product))
        return {"product": product}, clients

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        return Reply({"frame": orthonormalise(inbox.total("product"))})


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
        attacks=("linear",),
        refusal=_REFUSAL,
    ),
    Method(
        key="local_power_decay",
        title="LocalPower (decay)",
        algorithm=LocalPower,
        make=lambda settings: LocalPower(settings.components, settings.local_steps, "decay"),
        look=Look("#8f4a1b", "#e0b089", "dash", "diamond"),
        attacks=("linear",),
        refusal=_REFUSAL,
    ),
)
