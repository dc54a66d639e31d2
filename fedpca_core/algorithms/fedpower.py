"""FedPower: the power method with several noisy local products between communications.

Every machine repeats ``Y = A_i Z + N``, ``Z = orth(Y)`` on its own data; at the synchronisation
times the server averages the Y of the machines it drew, each rotated onto the reference machine,
orthonormalises and broadcasts (FedPower, Algorithm 2). Noise enters every product, hidden ones too:
``orth`` has no bounded sensitivity, so leaving it out would void the guarantee. In a deployment
each machine draws N from entropy of its own; a simulation draws it from the run's seed.
"""

from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.local_products import (
    aligned_total,
    check_machines,
    drawn_weights,
    local_path,
    synchronisation_times,
    uploading,
    within_budget,
)
from fedpca_core.algorithms.method import Look, Method
from fedpca_core.arrays import Arrays
from fedpca_core.errors import require, require_noise
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

    Parameters
    ----------
    components : int
        k, dimension of the subspace sought.
    columns : int or None
        r >= k, columns of the iterate; None means k.
    products : int
        T, local products of the whole run. Communications follow from the schedule.
    period : int
        p, products before the first communication.
    decay : bool
        Gaps p, p-1, ..., 1, 1, ... (the paper's experiments) instead of p, p, p, ...
    alignment : bool
        Rotate every upload onto the reference machine's (orthogonal Procrustes, "OPT").
    noise : float
        nu, standard deviation per entry for a machine with the mean number of samples; machine i
        adds nu (mean m)/m_i, in proportion to its sensitivity. 0 switches the noise off.
    draws : int or None
        K machines drawn with replacement at each communication, with probabilities w_i; None: all
        take part, unless the run's participation is below 1.
    literal : bool
        Upload the own frame always, as the paper's listing does, even where the server knows it.
    reference : int
        Machine that is aligned to: without it no round ends, but it is averaged only when drawn.
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

    @property
    def indispensable(self) -> tuple[int, ...]:  # type: ignore[override]
        return (self.reference,)

    @cached_property
    def times(self) -> tuple[int, ...]:
        """Synchronisation times; the run ends with one upload more if T is not among them."""
        return synchronisation_times(self.products, self.period, self.decay)

    @property
    def rounds(self) -> int:  # type: ignore[override]
        """Communications of a whole run."""
        return len(self.times) + (self.products not in self.times)

    @property
    def width(self) -> int:
        """r, columns of every frame."""
        return self.components if self.columns is None else self.columns

    @property
    def needs_individual_uploads(self) -> bool:  # type: ignore[override]
        """Alignment reads every machine's own frame; sums are enough without it."""
        return self.alignment and self.period > 1

    def drawn(self, setting: Setting) -> int | None:
        """K of this run, or None for full participation."""
        some = self.draws is None and setting.participation < 1
        return setting.participants_per_round if some else self.draws

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        frame = uniform_frame(streams.generator("start"), setting.features, self.width)
        server = {"frame": frame, "time": 0, "weights": setting.weights}
        return server, {"made": np.zeros(setting.clients)}

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        time, weights = server["time"], server["weights"]
        until = next((later for later in self.times if later > time), None)
        if until is not None and (draws := self.drawn(setting)) is not None:
            weights = drawn_weights(draws, setting.weights, streams.generator("sampling", round_))
        participants = uploading(weights, self.reference)
        end = self.products if until is None else until
        return Plan(
            round=round_,
            participants=participants,
            weights=weights[participants],
            downlink={"frame": server["frame"]},
            recipients=setting.clients,
            local_steps=end - time,
            stop=end == self.products,
            extra={"time": time, "output": until is None, "all weights": weights},
        )

    def client(
        self, data: ClientData, clients: Arrays, plan: Plan, downlink: Arrays, streams: Streams
    ) -> Step:
        frame, time = downlink["frame"], int(plan.extra["time"])
        clients = {"made": clients["made"] + plan.local_steps}
        if self.noise > 0:
            frame = within_budget(frame, clients["made"], self.width, self.products)
        noise = (self.noise * data.samples.mean() / data.samples)[data.members]
        frames, products, _ = deque(local_path(data, frame, time, plan, noise, streams), 1).pop()
        if plan.extra["output"]:
            return {"frame": orthonormalise(products)}, clients
        uplink = {"product": products}
        if self.literal or (plan.local_steps > 1 and self.alignment):
            uplink["frame"] = np.array(np.broadcast_to(frames, products.shape))
        return uplink, clients

    def server(self, server: ServerState, inbox: Inbox, plan: Plan) -> Reply:
        name = "frame" if plan.extra["output"] else "product"
        aligned = self.alignment and (name == "frame" or plan.local_steps > 1)
        total = aligned_total(inbox, name, self.reference) if aligned else inbox.total(name)
        more = {"time": plan.extra["time"] + plan.local_steps, "weights": plan.extra["all weights"]}
        return Reply({"frame": orthonormalise(total), **more})

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require(
            self.components <= self.width < setting.features,
            f"An iterate of {self.width} columns cannot hold {self.components} components of "
            f"{setting.features} features; choose between {self.components} and "
            f"{setting.features - 1} columns.",
        )
        require_noise(self.noise)
        check_machines(self.draws, self.reference, setting.clients)
        synchronisation_times(self.products, self.period, self.decay)


METHODS = (
    Method(
        key="fedpower",
        title="FedPower",
        algorithm=FedPower,
        make=lambda settings: FedPower(settings.components),
        make_private=lambda settings: FedPower(
            components=settings.components,
            columns=settings.components + settings.surplus,
            products=settings.products,
            period=settings.local_steps,
            decay=settings.decaying_gaps,
            alignment=settings.alignment,
            literal=settings.literal,
            draws=settings.draws or None,
        ),
        look=Look("#a21d8c", "#f08be0", "solid", "square"),
        compared=False,
        accounts="products",
    ),
)
