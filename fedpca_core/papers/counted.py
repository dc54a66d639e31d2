"""Runs at the papers' sizes that are counted and not timed: what is known beforehand is not run."""

from dataclasses import dataclass

import numpy as np

from fedpca_core.algorithms.local_products import align
from fedpca_core.algorithms.ssi import LocalPower
from fedpca_core.arrays import Array, Arrays
from fedpca_core.linalg.stiefel import orthonormalise, random_frame
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Plan, Setting, Start, Step, Wrapper
from fedpca_core.streams import Streams

#: What servers and clients call the frame that a run starts from.
_STARTS = ("frame", "probe", "estimate")


@dataclass(frozen=True)
class Leading(Wrapper):
    """A method from the start that it has on all features, on the leading ones.

    Where features hold no data a method only carries its start on, and every method commutes with
    rotations of the features: one that turns the start's rows there into as many rows as it has
    columns leaves the rest without anything. So the last rows here stand for all of them.
    """

    #: All of them.
    features: int

    def start(self, data: ClientData, setting: Setting, streams: Streams) -> Start:
        server, clients = self.method.start(data, setting, streams)
        whole = random_frame(streams.generator("start"), self.features, self.components)
        frame = turned(whole, setting.features)
        frames = np.tile(frame, (setting.clients, 1, 1))
        return (
            {name: frame if name in _STARTS else value for name, value in server.items()},
            {name: frames if name in _STARTS else value for name, value in clients.items()},
        )


def turned(frame: Array, features: int) -> Array:
    """A frame with its last rows turned into so few that ``features`` are left in all."""
    columns = frame.shape[1]
    head, tail = np.split(frame, [features - columns])
    return np.vstack([head, np.linalg.qr(tail, mode="r")])


@dataclass(frozen=True)
class Pooled(Wrapper):
    """SSI or LocalPower, where a round of one product a client takes one product altogether.

    All clients multiply the same Z, everybody takes part, and the server uses ``sum_i w_i S_i Z``
    alone, which is ``S Z``. So each answers S Z: rounds, bytes and products are those of the method
    and its errors are, to rounding. Seconds are not, and uploads say nothing of a client.
    """

    #: (features, features) float64: S, which only a simulation knows.
    covariance: Array

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        if plan.local_steps > 1:  # bases of their own from the second product on
            return self.method.client(data, clients, plan, streams)
        data.charge(np.ones(data.clients, dtype=np.int64))
        product = self.covariance @ plan.downlink["frame"]
        return {"product": np.broadcast_to(product, (data.clients, *product.shape))}, clients


@dataclass(frozen=True)
class Aligned(LocalPower):
    """LocalPower whose products are turned before they are summed, as FedPower's are.

    Each by the frame that entered it, onto the first client's; bytes are those without.
    """

    def client(self, data: ClientData, clients: Arrays, plan: Plan, streams: Streams) -> Step:
        frames = np.tile(plan.downlink["frame"], (data.clients, 1, 1))
        for _ in range(plan.local_steps - 1):
            frames = orthonormalise(data.apply(frames))
        return {"product": data.apply(frames) @ align(frames, plan.participants)}, clients
