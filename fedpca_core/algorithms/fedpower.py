"""FedPower: the power method with several noisy local products between communications.

Every machine repeats ``Y = A_i Z + N``, ``Z = orth(Y)`` on its own data; at the synchronisation
times the server averages the Y of the machines it drew, each rotated onto the reference machine,
orthonormalises and broadcasts (FedPower, Algorithm 2). Noise enters every product, hidden ones too:
``orth`` has no bounded sensitivity, so leaving it out would void the guarantee. In a deployment
each machine draws N from entropy of its own; a simulation draws it from the run's seed.

Where the reference's records are public (Remark 1), machines align: `local_products.onto_public`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms import local_products as local
from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Arrays
from fedpca_core.errors import require_noise
from fedpca_core.linalg.stiefel import orthonormalise, uniform_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol import Algorithm, Inbox, Plan, Reply, ServerState, Setting, Start, Step
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class FedPower(Algorithm):
    """Federated power method with local products, alignment, sampling and noise.

    Wire: ``frame`` down to everybody (features x columns); ``product`` up from the machines drawn
    and the reference, and their own ``frame`` (the matrix that entered the last product) when it
    is not the broadcast and alignment needs it.

    Args:
        components, columns: k, dimension of the subspace sought, and r >= k, columns of the
            iterate; None means k.
        products, period, decay: T, p and the rule of `local_products.synchronisation_times`;
            the paper's experiments have decaying gaps.
        alignment: Rotate every upload onto the reference machine's (orthogonal Procrustes, "OPT").
        noise: nu, standard deviation per entry for a machine with the mean number of samples;
            machine i adds nu (mean m)/m_i, in proportion to its sensitivity. 0 switches the noise
            off.
        draws: K machines drawn with replacement at each communication, with probabilities w_i;
            None: all take part, unless the run's participation is below 1.
        literal: Upload the own frame always, as the paper lists it, even where the server knows it.
        reference: Machine that is aligned to: without it no round ends, but it is averaged only
            when drawn.
        public: The reference's records are public: machines align by themselves and upload no
            frames.
    """

    title: ClassVar[str] = "FedPower"
    reuses_uploads: ClassVar[bool] = False
    plans_products: ClassVar[bool] = True
    adds_noise: ClassVar[bool] = True
    spent: ClassVar[tuple[str, ...]] = ("made",)
    components: int = 4
    columns: int | None = None
    products: int = 10
    period: int = 2
    decay: bool = True
    alignment: bool = True
    noise: float = 0.0
    draws: int | None = None
    literal: bool = False
    reference: int = 0
    public: bool = False

    @property
    def indispensable(self) -> tuple[int, ...]:  # type: ignore[override]
        return () if self.public else (self.reference,)

    @property
    def public_clients(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.reference,) if self.public else ()

    @property
    def idle(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("literal",) if self.public else ()

    @cached_property
    def times(self) -> tuple[int, ...]:
        """Synchronisation times; the run ends with one upload more if T is not among them."""
        return local.synchronisation_times(self.products, self.period, self.decay)

    @property
    def rounds(self) -> int:  # type: ignore[override]
        return len(self.times) + (self.products not in self.times)

    @property
    def width(self) -> int:
        return self.components if self.columns is None else self.columns

    @property
    def needs_individual_uploads(self) -> bool:  # type: ignore[override]
        """Alignment at the server reads every machine's own frame; else sums are enough."""
        return self.alignment and self.period > 1 and not self.public

    def aligns(self, plan: Plan) -> bool:
        """Whether uploads of a round are rotated: all frames of gap 1 are the broadcast."""
        return self.alignment and (plan.extra["output"] or plan.local_steps > 1)

    def drawn(self, setting: Setting) -> int | None:
        """K of this run, or None for full participation."""
        some = self.draws is None and setting.participation < 1
        return setting.participants_per_round if some else self.draws

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        frame = uniform_frame(streams.generator("start"), setting.features, self.width)
        server = {"frame": frame, "time": 0, "weights": setting.weights}
        if self.public:  # everybody has these records: products with them are not metered
            server["known"] = data.only(np.array([self.reference])).metered()
        return server, {"made": np.zeros(setting.clients)}

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        time, weights, known = server["time"], server["weights"], server.get("known")
        until = next((later for later in self.times if later > time), None)
        if until is not None and (draws := self.drawn(setting)) is not None:
            # A machine drawn twice sends one upload that counts twice.
            drawn = streams.generator("sampling", round_).multinomial(draws, setting.weights)
            weights = drawn / draws
        uploads = weights > 0
        uploads[list(self.indispensable)] = True
        participants = np.flatnonzero(uploads).astype(np.int64)
        end = self.products if until is None else until
        return Plan(
            round=round_,
            participants=participants,
            weights=weights[participants],
            downlink={"frame": server["frame"]},
            recipients=setting.clients,
            local_steps=end - time,
            stop=end == self.products,
            extra={"time": time, "output": until is None, "all": weights, "known": known},
        )

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        frame = plan.downlink["frame"]
        clients = {"made": clients["made"] + plan.local_steps}
        if self.noise > 0:
            frame = local.within_budget(frame, clients["made"], self.width, self.products)
        spread = self.noise_of(data.samples)[data.members]
        basis, products = local.end_of_path(data, frame, plan, spread, streams)
        name, upload = ("frame", basis) if plan.extra["output"] else ("product", products)
        if self.public and self.aligns(plan):
            upload = local.onto_public(upload, basis, frame, plan, streams)
        uplink = {name: upload}
        if name == "product" and not self.public and (self.literal or self.aligns(plan)):
            uplink["frame"] = np.array(np.broadcast_to(basis, products.shape))
        return uplink, clients

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        name = "frame" if plan.extra["output"] else "product"
        if self.aligns(plan) and not self.public:
            # By the frames that entered the last product, not by its result.
            turns = local.align(inbox.individual("frame"), inbox.participants, self.reference)
            total = np.tensordot(inbox.weights, inbox.individual(name) @ turns, axes=1)
        else:
            total = inbox.total(name)
        more = {"time": plan.extra["time"] + plan.local_steps, "weights": plan.extra["all"]}
        return Reply({**server, "frame": orthonormalise(total), **more})

    def check(self, setting: Setting) -> None:
        super().check(setting)
        local.check_columns(self.components, self.width, setting.features)
        require_noise(self.noise)
        local.check_machines(self.draws, self.reference, setting.clients)
        local.synchronisation_times(self.products, self.period, self.decay)


METHODS = (
    Method(
        key="fedpower",
        algorithm=FedPower,
        made=lambda settings: FedPower(settings.components),
        make_private=lambda settings: FedPower(
            components=settings.components,
            columns=settings.components + settings.surplus,
            products=settings.products,
            period=settings.local_steps,
            decay=settings.decaying_gaps,
            alignment=settings.alignment,
            public=settings.public_reference,
            literal=settings.literal,
            draws=settings.draws or None,
        ),
        look=Look("#a21d8c", "#f08be0", "solid", "square"),
        compared=False,
        accounts="products",
    ),
)
