"""The one interface of every algorithm: pure steps over a batch of clients.

A round is: the server plans, the plan's downlink goes out, the participating clients step and
upload, the server aggregates and may send feedback, the clients finish. Client state and uplinks
are dictionaries of arrays with the client axis first, so participation is an index on that axis, a
remote client is a batch of one, and speed comes from batched products.

Names on the wire are shared by all algorithms so that attacks can read any transcript:
``"frame"`` is a features x components matrix that multiplies a client's S_i, and ``"product"`` is
what the client answers to it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, Self

import numpy as np

from fedpca_core.arrays import Array, Arrays, BoolArray, IntArray
from fedpca_core.errors import InvalidInput, require, require_choice, require_whole
from fedpca_core.guarantee import Guarantee, PaidMean
from fedpca_core.linalg.stiefel import orthonormalise, random_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.problem import check_components
from fedpca_core.streams import Streams

#: What a server remembers between rounds; each algorithm defines its own (frozen) content.
ServerState = Mapping[str, Any]
#: What a run starts from: the server's state and that of all clients ({} where they keep nothing).
Start = tuple[ServerState, Arrays]
#: What a client step gives: the uplink and the new client state, the client axis first.
Step = tuple[Arrays, Arrays]


class Uploads(StrEnum):
    """What one upload of a client is; which attacks can read it hangs on nothing else."""

    PRODUCTS = "products with the client's matrix"
    UPDATE = "where a step of a public update arrives"
    FRAMES = "frames after local steps of a public rule"
    CENTRES = "a common frame moved by a local gradient"
    GRADIENTS = "gradients"
    EIGENVECTORS = "leading eigenvectors, with or without their sizes"
    MATRIX = "the client's matrix"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Setting:
    """What everybody knows about a run."""

    features: int
    clients: int
    #: (clients,) int64: Records m_i of each client.
    samples: IntArray
    #: (clients,) float64: w_i of the target S = sum_i w_i S_i.
    weights: Array
    #: Share of the clients that take part in a round, in (0, 1].
    participation: float = 1.0
    #: {"memory", "present"}: What the server does about absent clients: reuse the last upload of
    #: each, or sum the present ones only.
    absent: str = "memory"
    #: Bound on every record's norm that the clients enforce, if any.
    record_norm: float | None = None
    #: Whether records were centred or scaled by moments of their own, which no ε covers.
    own_moments: bool = False
    #: What the clients' noise at the source guarantees, whatever the method (`Problem.private`).
    guarantee: Guarantee | None = None
    #: The noisy mean that the records were centred on, a release of its own (`Problem.bounded`).
    paid_mean: PaidMean | None = None
    #: What the preparation of the records took as public.
    public: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require(
            0 < self.participation <= 1,
            f"Participation must lie in (0, 1], not {self.participation}; "
            "1 lets every client take part.",
        )
        require_choice("The rule for absent clients", self.absent, ("memory", "present"))

    @property
    def participants_per_round(self) -> int:
        return max(1, round(self.participation * self.clients))

    def participants(self, round_: int, streams: Streams) -> IntArray:
        """Clients of a round: a subset of fixed size drawn by the server, in increasing order."""
        size = self.participants_per_round
        if size == self.clients:
            return np.arange(self.clients, dtype=np.int64)
        drawn = streams.generator("sampling", round_).choice(self.clients, size, replace=False)
        return np.sort(drawn).astype(np.int64)

    def in_turn(self, round_: int, streams: Streams) -> IntArray:
        """The same where everybody takes turns along a list that is shuffled at every pass."""
        size = self.participants_per_round
        list_, group = divmod(round_ - 1, -(-self.clients // size))
        order = streams.generator("sampling", list_).permutation(self.clients)
        # The last group of a pass is filled up from the one before it.
        begin = min(group * size, self.clients - size)
        return np.sort(order[begin : begin + size]).astype(np.int64)


@dataclass(frozen=True)
class Plan:
    #: Counted from 1.
    round: int
    #: (present,) int64: Distinct clients that step and upload, in increasing order.
    participants: IntArray
    #: (present,) float64: Weight of each upload in the server's sum (w_i by default; multiplicity
    #: over K for draws with replacement; 0 for a client that uploads only as a reference).
    weights: Array
    #: Broadcast, the same for every recipient, as it arrives; no client axis.
    downlink: Arrays
    #: How many clients the downlink is sent to; None means the participants.
    recipients: int | None = None
    #: Products with S_i before the upload.
    local_steps: int = 1
    #: True when this is the last round the algorithm needs.
    stop: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    def keep(self, chosen: BoolArray) -> Plan:
        """The same plan for some of its participants, (present,) bool."""
        if chosen.all():
            return self
        return replace(self, participants=self.participants[chosen], weights=self.weights[chosen])


@dataclass(frozen=True)
class Inbox:
    #: participants, weights: As in the plan.
    participants: IntArray
    weights: Array
    #: Weighted sum of each message over the participants (over everyone heard so far when last
    #: uploads are reused).
    totals: Arrays
    #: Sum of the weights in ``totals``.
    weight: float
    #: The single messages, client axis first; None under secure aggregation.
    uploads: Arrays | None

    def total(self, name: str) -> Array:
        return self.totals[name]

    def mean(self, name: str) -> Array:
        return self.totals[name] / self.weight

    def individual(self, name: str) -> Array:
        """Each participant's message, (present, ...)."""
        if self.uploads is None:
            raise InvalidInput(
                f"The server's step needs each client's own '{name}', but under secure aggregation "
                "it receives only the sum; switch secure aggregation off or choose a method that "
                "needs sums only (SSI, LocalPower, FAPS, block Krylov)."
            )
        return self.uploads[name]


@dataclass(frozen=True)
class Reply:
    """What the server made of a round: its new state and, if any, feedback to the participants.

    ``stop`` ends the run after this round, as a plan's does, where only the uploads can tell.
    """

    state: ServerState
    feedback: Arrays | None = None
    stop: bool = False


class Algorithm(ABC):
    """Base of all algorithms: a frozen dataclass of parameters plus the steps of one round.

    `client` is what a method must write. The defaults serve a server that keeps one orthonormal
    ``"frame"``, at first a random one, and clients that keep nothing: it is broadcast to the
    participants of the run's setting, the sum of their ``"product"`` with the setting's weights,
    orthonormalised, is the next one, and it is the estimate.

    Raises InvalidInput: a parameter that counts something is not a whole number.
    """

    #: What one upload is.
    uploads: ClassVar[Uploads] = Uploads.PRODUCTS
    #: Whether `fedpca_core.attacks.replay` can rerun its public update on a candidate matrix.
    replayable: ClassVar[bool] = False
    #: Whether clients keep duals that everybody can follow from the messages.
    public_duals: ClassVar[bool] = False
    #: Whether the server's step reads single uploads, which secure aggregation hides.
    needs_individual_uploads: ClassVar[bool] = False
    #: Whether under partial participation the channel may fill in each absent client's last upload;
    #: False when the algorithm has a rule of its own.
    reuses_uploads: ClassVar[bool] = True
    #: Whether each client adds only a share of the noise, so that the run must show sums only.
    shares_noise: ClassVar[bool] = False
    #: Facts of all clients' data, named as in `ClientData`, that are asked for by messages before
    #: the first round ("spectral_norms", "pooled_norm"); see `run.agree`.
    agreed: ClassVar[tuple[str, ...]] = ()
    #: Client state that counts what has left a client. Where an upload is lost on a network the
    #: client forgets the round, but not these.
    spent: ClassVar[tuple[str, ...]] = ()
    #: Clients without whom no round can be finished.
    indispensable: ClassVar[tuple[int, ...]] = ()
    #: Clients whose records everybody knows: no noise hides them, and no finding is about them.
    public_clients: ClassVar[tuple[int, ...]] = ()
    #: Whether the rule "memory" for absent clients is to stand still until each has answered.
    waits: ClassVar[bool] = False
    #: Whether a run ends once every client has been heard.
    one_round: ClassVar[bool] = False
    #: Whether its only use of the data is one product a round with orthonormal frames.
    one_product: ClassVar[bool] = False
    #: Whether a run makes a stated number of products, its communications planned beforehand.
    plans_products: ClassVar[bool] = False
    #: Whether it can add accounted noise to its products.
    adds_noise: ClassVar[bool] = False
    #: What a round is near the solution, to first order (`fedpca_core.metrics.linearised`): "power"
    #: or "multipliers"; empty where that is not known.
    near: ClassVar[str] = ""
    #: Standard deviation of that noise.
    noise: float = 0.0
    #: Most products with S_i before an upload.
    period: int = 1
    #: Communications after which a run ends; None: as many as are asked for.
    rounds: int | None = None
    #: So many of its first probes are orthogonal to each other; 0 where that is not known.
    orthogonal_probes: int = 0
    #: Parameters that make no difference beside the others.
    idle: tuple[str, ...] = ()
    #: one_release, remembers: Whether all noisy products together cost what one costs, and that
    #: because clients answer from memory.
    one_release: bool = False
    remembers: bool = False

    #: Number of columns of the estimate; a dataclass field of every algorithm.
    components: int

    def __post_init__(self) -> None:
        for each in fields(self):  # type: ignore[arg-type]  # every algorithm is a dataclass
            value = getattr(self, each.name)
            # The type itself, or its words where a file puts off what its annotations mean.
            whole = each.type in (int, "int"), each.type in (int | None, "int | None")
            if whole[0] or (whole[1] and value is not None):
                require_whole(f"The parameter “{each.name.replace('_', ' ')}”", value)

    @property
    def unwrapped(self) -> Algorithm:
        return self

    def protected(self, clients: int) -> IntArray:
        """Those of so many clients whose records are not public."""
        return np.setdiff1d(np.arange(clients), self.public_clients)

    def noise_of(self, samples: IntArray) -> Array:
        """Standard deviation of the noise on each client's products, (clients,)."""
        found = np.asarray(self.noise * samples.mean() / samples, dtype=float)
        found[list(self.public_clients)] = 0.0
        return found

    def check_protected(self, client: int) -> None:
        require(
            client not in self.public_clients,
            f"The records of client {client} are public, so that {self.title} has nothing of them "
            "to hide or to give away; choose another client.",
        )

    @property
    def width(self) -> int:
        """Columns of the frames that multiply a client's S_i."""
        return self.components

    @property
    @abstractmethod
    def title(self) -> str:
        """Name in legends and tables; a class attribute unless it depends on the parameters."""

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        """State of the server and of all clients before the first round."""
        frame = random_frame(streams.generator("start"), setting.features, self.components)
        return {"frame": frame}, {}

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        """Who takes part, what is broadcast, how many local steps, and whether to stop."""
        participants = setting.participants(round_, streams)
        return Plan(
            round=round_,
            participants=participants,
            weights=setting.weights[participants],
            downlink=self.broadcast(server),
            local_steps=self.steps(round_),
        )

    def steps(self, round_: int) -> int:
        """Products with S_i before the upload of a round, counted from 1."""
        return 1

    def broadcast(self, server: ServerState) -> Arrays:
        return {"frame": server["frame"]}

    @abstractmethod
    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        """One round on the participating clients; ``data`` and ``clients`` hold no others."""

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        """Aggregate a round's uploads."""
        return Reply({"frame": orthonormalise(inbox.total("product"))})

    def finish(self, data: ClientData, clients: Arrays, plan: Plan, feedback: Arrays) -> Arrays:
        """Participants' step after the server's feedback of the same round; nothing by default."""
        return clients

    def estimate(self, server: ServerState, clients: Arrays) -> Array:
        """Orthonormal estimate, (features, components), or one per client for personal models."""
        return server["frame"]

    def exposed(self, clients: Arrays) -> Arrays:
        """Client state by name that readers of a run may see (simulation only); none by default.

        ``"frame"``: Local frames, (clients, features, components), for consensus gaps.
        """
        return {}

    def effective(self) -> Self:
        usual = {each.name: each.default for each in fields(self)}  # type: ignore[arg-type]
        return replace(self, **{name: usual[name] for name in self.idle})  # type: ignore[type-var]

    def notes(self, setting: Setting) -> tuple[str, ...]:
        """Sentences a visitor should read beside a run with these parameters; mostly none."""
        return ()

    def check(self, setting: Setting) -> None:
        check_components(self.components, setting.features)


def _of_the_method(name: str) -> Any:
    """What the wrapped method has under this name: what it can do, or one of its steps."""
    return property(lambda wrapper: getattr(wrapper.method, name))


@dataclass(frozen=True)
class Wrapper(Algorithm):
    """A method that changes part of another one and leaves every other step to ``method``."""

    method: Algorithm
    components: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "components", self.method.components)
        super().__post_init__()

    unwrapped = _of_the_method("unwrapped")
    title = _of_the_method("title")
    width = _of_the_method("width")
    uploads = _of_the_method("uploads")
    replayable = _of_the_method("replayable")
    needs_individual_uploads = _of_the_method("needs_individual_uploads")
    reuses_uploads = _of_the_method("reuses_uploads")
    agreed = _of_the_method("agreed")
    waits = _of_the_method("waits")
    indispensable = _of_the_method("indispensable")
    public_clients = _of_the_method("public_clients")

    start = _of_the_method("start")
    plan = _of_the_method("plan")
    client = _of_the_method("client")
    server = _of_the_method("server")
    finish = _of_the_method("finish")
    estimate = _of_the_method("estimate")
    exposed = _of_the_method("exposed")
    notes = _of_the_method("notes")
    check = _of_the_method("check")
