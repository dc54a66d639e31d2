"""What a method sees of the data where clients answer for themselves: sizes, and what is covered.

`GuardedData` refuses everything but public sizes. Clients that share their noise give linear
answers to one question for all: with a share of the noise each, only ``sum_i w_i M_i`` is covered.
So a client answers the same question as all others, uploads that answer as it is, and refuses
everything else; the server's view is then a function of the covered sum alone, whatever the method.
"""

from typing import NoReturn, cast

import numpy as np

from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Plan

_REFUSAL = (
    "The clients share their noise, so only the sum over all of them is covered, and this method "
    "{asked}; no ε follows. Choose SSI, block Krylov, DistributedPower, FedPower (p = 1, without "
    "noise of its own) or the one-round covariance, or let each client add its noise in full: one "
    "release at the source covers every method."
)


def check_channel(secure_aggregation: bool, participation: float) -> None:
    """Refuse a run in which the server would see more than the one covered sum."""
    require(
        secure_aggregation,
        "The clients share their noise, which protects sums only, and without secure aggregation "
        "the server sees single uploads; switch secure aggregation on, or let each client add its "
        "noise in full.",
    )
    require(
        participation == 1,
        f"The clients share their noise, and at participation {participation:g} the server could "
        "subtract the sums of two rounds; let every client take part, or let each add its noise in "
        "full.",
    )


class GuardedData:
    """Client data of which only public sizes are seen; subclasses add what is answered.

    ``refusal``: Of a method that ``{asked}`` something else.
    """

    def __init__(self, data: ClientData, refusal: str) -> None:
        self._data, self._refusal = data, refusal
        self.features, self.clients = data.features, data.clients
        self.samples, self.weights, self.members = data.samples, data.weights, data.members

    def as_data(self) -> ClientData:
        return cast(ClientData, self)

    def refuse(self, asked: str) -> NoReturn:
        raise InvalidInput(self._refusal.format(asked=asked))

    def __getattr__(self, name: str) -> NoReturn:
        self.refuse(f"asks for “{name}” of the data")


class LinearAnswers(GuardedData):
    """The data of one round as clients that share their noise let a method see them.

    ``data``: All clients.
    ``plan``: Of the round; without one (before the first round) nothing is answered.
    ``alone``: Data and plan are one client's, which sees to it elsewhere that all take part.
    """

    def __init__(self, data: ClientData, plan: Plan | None = None, *, alone: bool = False) -> None:
        super().__init__(data, _REFUSAL)
        self._plan = plan
        self._asked = data.members if alone else slice(None)
        self._complete = alone or data.clients == len(data.samples)
        self._answers: list[Array] = []

    def apply(self, frames: Array, active: Array | None = None) -> Array:
        """Products ``M_i Q`` with one Q for all clients."""
        if frames.ndim != 2 or active is not None:
            self.refuse("asks clients for products of their own")
        return self._answered(self._data.apply(frames))

    def upper_triangles(self) -> Array:
        """M_i itself, on and above the diagonal."""
        return self._answered(self._data.upper_triangles())

    def _answered(self, answer: Array) -> Array:
        plan, weights = self._plan, self._data.weights[self._asked]
        if plan is None or not self._complete or not np.array_equal(plan.weights, weights):
            self.refuse("weighs or leaves out clients")
        self._answers.append(answer)
        return answer

    def check(self, uplink: Arrays) -> None:
        """Refuse uploads that are not the answers themselves."""
        for name, upload in uplink.items():
            if not any(upload is answer for answer in self._answers):
                self.refuse(f"uploads “{name}”, made from answers")
