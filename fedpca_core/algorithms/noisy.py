"""Accounted noise on every product of a method whose only use of the data is ``S_i Q``.

The wrapped method never meets the data: it gets client data that answers noisy products with
orthonormal frames and refuses everything else, so nothing can leave a client unaccounted.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from fedpca_core.algorithms.checked_probes import NoisyAnswers
from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import require, require_noise
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Plan, ServerState, Setting, Start, Step, Wrapper
from fedpca_core.protocol.linear_answers import LinearAnswers
from fedpca_core.streams import Streams

#: Client state of the wrapper, which the wrapped method does not see.
_OWN = ("answers", "answered", "said")


@dataclass(frozen=True)
class Noisy(Wrapper):
    """A method with Gaussian noise on each of a stated number of products, which the wire carries.

    ``method``: Makes one product a round with the data and uses nothing else of them (SSI,
        DistributedPower, block Krylov).
    ``noise``: nu, standard deviation per entry for a client with the mean number of samples; client
        i adds nu (mean m)/m_i, in proportion to its sensitivity.
    ``products``: T, products the noise was calibrated to; the run stops there, and a client that is
        asked for more refuses.
    ``orthogonal``: The noise is calibrated to mutually orthogonal probes, which cost together what
        one costs: each client keeps the probes it has answered and refuses one that overlaps them,
        whatever the method and whoever the server.
    ``summed``: Clients share the noise, which protects sums only: they answer one question for all
        and upload the answers as they are, and the run needs secure aggregation.
    ``remembers``: Each client keeps what it was asked and what it answered. What a probe shares
        with earlier ones is answered from memory, and noise is spent on its new part only: all
        answers together are products with one S_i + G_i, G_i of independent entries, so the whole
        run costs what one release costs, whatever the method asks again.
    """

    spent: ClassVar[tuple[str, ...]] = _OWN
    adds_noise: ClassVar[bool] = True
    noise: float = 0.0
    products: int = 10
    orthogonal: bool = False
    summed: bool = False
    remembers: bool = False

    @property
    def title(self) -> str:
        return f"{self.method.title} with noise"

    @property
    def shares_noise(self) -> bool:  # type: ignore[override]
        return self.summed

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        guarded = NoisyAnswers(data, np.zeros(setting.clients), None).as_data()
        server, clients = super().start(guarded, setting, streams)
        columns = self.products * self.components if self.one_release else 0
        memory = np.zeros((setting.clients, setting.features, columns))
        return server, {
            **clients,
            "answers": np.zeros(setting.clients),
            "answered": memory,
            "said": memory if self.remembers else memory[:, :, :0],
        }

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        plan = super().plan(server, round_, setting, streams)
        return replace(plan, stop=plan.stop or round_ >= self.products)

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        made = clients["answers"]
        require(
            bool((made < self.products).all()),
            f"The noise was calibrated to {self.products} products and a client is asked for one "
            "more; it refuses, because its budget is spent.",
        )
        guarded = NoisyAnswers(
            data,
            self.noise_of(data.samples)[data.members],
            streams.generator("noise", plan.round),
            clients["answered"] if self.one_release else None,
            self.components,
            clients["said"] if self.remembers else None,
        )
        own = {name: array for name, array in clients.items() if name not in _OWN}
        answers = LinearAnswers(guarded.as_data(), plan) if self.summed else None
        seen = guarded.as_data() if answers is None else answers.as_data()
        uplink, stepped = super().client(seen, own, plan, streams)
        if answers is not None:
            answers.check(uplink)
        kept = {"answered": clients["answered"], "said": clients["said"]}
        if self.one_release and guarded.probes is not None and guarded.answer is not None:
            kept["answered"] = _with(kept["answered"], guarded.probes, made, self.components)
            if self.remembers:
                kept["said"] = _with(kept["said"], guarded.answer, made, self.components)
        return uplink, {**stepped, "answers": made + 1, **kept}

    @property
    def rounds(self) -> int:  # type: ignore[override]
        return self.products

    @property
    def one_release(self) -> bool:  # type: ignore[override]
        """Whether all products together cost what one costs, and clients see to that."""
        return self.orthogonal or self.remembers

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require(
            not (self.remembers and self.summed),
            "Answers from memory are each client's own, and shared noise needs one answer that all "
            "give alike; choose one of them.",
        )
        require_noise(self.noise)
        require(self.products >= 1, f"A run makes at least 1 product, not {self.products}.")


def _with(answered: Array, probes: Array, made: Array, columns: int) -> Array:
    """Each client's memory with the probe of this round in its own place."""
    kept = answered.copy()
    for client, count in enumerate(made.astype(int)):
        begin = count * columns
        kept[client, :, begin : begin + probes.shape[2]] = probes[client]
    return kept
