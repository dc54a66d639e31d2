"""The immutable result of a run; metrics, attacks and charts are its readers."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedpca_core.arrays import Array, Arrays, IntArray
from fedpca_core.errors import InvalidInput, require
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_core.protocol.transcript import Transcript

#: A named state of the clients is kept while a whole run of it stays below this.
STATE_BYTES = 256 * 1024 * 1024
#: What a round costs, over all clients; of a trace, cumulative.
COSTS = ("bytes_up", "bytes_down", "local_products", "seconds")


@dataclass(frozen=True)
class Round:
    """One finished round, as `stream` yields it (round 0 is the start)."""

    index: int
    #: (features, components) or (clients, features, components) float64.
    estimate: Array
    #: Of this round, over all clients: bytes, products with S_i, time of the steps themselves.
    bytes_up: int
    bytes_down: int
    local_products: int
    seconds: float
    #: mapping of (clients, ...) arrays: What the algorithm exposes of its clients' state
    #: (simulation only).
    state: Arrays


@dataclass(frozen=True)
class Trace:
    """A whole run."""

    algorithm: Algorithm
    setting: Setting
    seed: int
    #: (rounds + 1, features, components) float64: Row 0 is the start. Personal models have a client
    #: axis after the first.
    estimates: Array
    #: tuple of mappings of (clients, ...) arrays: What the algorithm exposes of its clients' state,
    #: the start first; None where that would take too much memory (simulation only).
    states: tuple[Arrays, ...] | None
    #: (rounds + 1,): Cumulative over rounds and clients; row 0 is what the start itself took.
    bytes_up: IntArray
    bytes_down: IntArray
    local_products: IntArray
    seconds: Array
    transcript: Transcript

    @cached_property
    def frames(self) -> Array | None:
        """Local frames as one array, (rounds + 1, clients, features, components), or None."""
        if self.states is None or "frame" not in self.states[0]:
            return None
        return self.state("frame")

    def state(self, name: str) -> Array:
        """One named part of the clients' kept state, (rounds + 1, clients, ...)."""
        states = self.kept_states()
        require(
            name in states[0],
            f"{self.algorithm.title} exposes no client state called “{name}”; "
            f"it has {', '.join(sorted(states[0])) or 'none'}.",
        )
        return np.stack([one[name] for one in states])

    def kept_states(self) -> tuple[Arrays, ...]:
        """The clients' states of every round; refused where none left a client, or were kept."""
        if self.states is None:
            raise InvalidInput(
                "This run holds no clients' states: in a real deployment they never leave the "
                f"clients, and a simulation keeps at most {STATE_BYTES >> 20} MB of them. Simulate "
                "it with fewer rounds, clients, features or components."
            )
        return self.states

    @property
    def rounds(self) -> int:
        return len(self.estimates) - 1

    @property
    def estimate(self) -> Array:
        return self.estimates[-1]
