"""Accounted noise on every product of a method whose only use of the data is ``S_i Q``.

The wrapped method never meets the data: it gets client data that answers noisy products with
orthonormal frames and refuses everything else, so nothing can leave a client unaccounted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NoReturn, cast

import numpy as np

from fedpca_core.arrays import Array, Arrays, IntArray
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.stiefel import transpose
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Plan, ServerState, Setting, Start, Step
from fedpca_core.protocol.wrapper import Wrapper
from fedpca_core.streams import Streams

#: Departure from orthonormal columns that is rounding, not a larger sensitivity.
_ORTHONORMAL = 1e-8


@dataclass(frozen=True)
class Noisy(Wrapper):
    """A method with Gaussian noise on each of a stated number of products.

    Wire: that of the method; its products carry noise.

    Parameters
    ----------
    method : Algorithm
        Makes one product a round with the data and uses nothing else of them (SSI,
        DistributedPower, block Krylov).
    noise : float
        nu, standard deviation per entry for a client with the mean number of samples; client i
        adds nu (mean m)/m_i, in proportion to its sensitivity.
    products : int
        T, products the noise was calibrated to; the run stops there.
    """

    noise: float = 0.0
    products: int = 10

    @property
    def title(self) -> str:
        """Name of the method, said to be noisy."""
        return f"{self.method.title} with noise"

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        return super().start(_noisy(data, np.zeros(setting.clients), None), setting, streams)

    def plan(self, server: ServerState, round_: int, setting: Setting, streams: Streams) -> Plan:
        plan = super().plan(server, round_, setting, streams)
        return replace(plan, stop=plan.stop or round_ >= self.products)

    def client(
        self, data: ClientData, clients: Arrays, plan: Plan, downlink: Arrays, streams: Streams
    ) -> Step:
        scale = (self.noise * data.samples.mean() / data.samples)[data.members]
        noisy = _noisy(data, scale, streams.generator("noise", plan.round))
        return super().client(noisy, clients, plan, downlink, streams)

    def check(self, setting: Setting) -> None:
        super().check(setting)
        require(
            bool(np.isfinite(self.noise)) and self.noise >= 0,
            f"Noise is a standard deviation of at least 0, not {self.noise}; 0 switches it off.",
        )
        require(self.products >= 1, f"A run makes at least 1 product, not {self.products}.")


class NoisyClientData:
    """What a wrapped method sees of the data: public sizes and one noisy product a round."""

    def __init__(
        self, data: ClientData, noise: Array, generator: np.random.Generator | None
    ) -> None:
        self._client_data, self._noise, self._generator = data, noise, generator
        self.features: int = data.features
        self.clients: int = data.clients
        self.samples: IntArray = data.samples
        self.weights: Array = data.weights
        self.members: IntArray = data.members

    def apply(self, frames: Array, active: Array | None = None) -> Array:
        """Noisy products ``S_i Q + N_i``, (clients, features, columns); once a round.

        Raises
        ------
        InvalidInput
            A second product in the round, frames without orthonormal columns, or clients left
            out: all three would release more than was accounted.
        """
        if self._generator is None or active is not None:
            raise InvalidInput(_REFUSAL.format(asked="a product outside the one of its round"))
        gram = transpose(frames) @ frames
        if np.abs(gram - np.eye(gram.shape[-1])).max() > _ORTHONORMAL:
            raise InvalidInput(_REFUSAL.format(asked="a product with a frame not orthonormal"))
        products = self._client_data.apply(frames)
        # Drawn for all clients and indexed, so that participation never shifts the stream.
        draws = self._generator.standard_normal((len(self.samples), *products.shape[1:]))
        self._generator = None
        return products + self._noise[:, None, None] * draws[self.members]

    def __getattr__(self, name: str) -> NoReturn:
        raise InvalidInput(_REFUSAL.format(asked=f"“{name}” of the data"))


_REFUSAL = (
    "This method asks for {asked}, which the noise does not cover, so no ε can be stated; "
    "choose SSI, block Krylov or FedPower."
)


def _noisy(data: Any, noise: Array, generator: np.random.Generator | None) -> ClientData:
    return cast(ClientData, NoisyClientData(data, noise, generator))
