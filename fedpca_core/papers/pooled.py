"""Runs of methods whose server sees a sum only, without the products behind the sum."""

from dataclasses import dataclass

import numpy as np

from fedpca_core.arrays import Array, Arrays
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Plan, Step
from fedpca_core.protocol.wrapper import Wrapper
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class Pooled(Wrapper):
    """SSI or LocalPower, where a round of one product a client takes one product altogether.

    All clients multiply the same Z, everybody takes part, and the server uses ``sum_i w_i S_i Z``
    alone, which is ``S Z``. So each answers S Z: rounds, bytes and products are those of the method
    and its errors are, to rounding. Seconds are not, and uploads say nothing of a client.

    ``covariance``, (features, features) float64: S, which only a simulation knows.
    """

    covariance: Array

    def client(
        self, data: ClientData, clients: Arrays, plan: Plan, downlink: Arrays, streams: Streams
    ) -> Step:
        if plan.local_steps > 1:  # bases of their own from the second product on
            return self.method.client(data, clients, plan, downlink, streams)
        data.charge(np.ones(data.clients, dtype=np.int64))
        product = self.covariance @ downlink["frame"]
        return {"product": np.broadcast_to(product, (data.clients, *product.shape))}, clients
