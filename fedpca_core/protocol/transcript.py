"""What an honest-but-curious server has seen: all an attack may read of private data."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.arrays import Array, Arrays, IntArray
from fedpca_core.errors import InvalidInput, check_client, require

#: What a transcript has of the run's setting.
PUBLIC = ("features", "clients", "samples", "weights")


@dataclass(frozen=True)
class Exchange:
    """One round on the wire, as the server sees it."""

    round: int
    #: (present,) int64.
    participants: IntArray
    #: (present,) float64: Weights of the uploads in the server's sum.
    weights: Array
    local_steps: int
    #: downlink, feedback: Broadcasts before and after the clients' step.
    downlink: Arrays
    #: mapping of (present, ...) arrays, or None: Single uploads; None under secure aggregation.
    uploads: Arrays | None
    #: Weighted sums; only under secure aggregation.
    sums: Arrays | None
    feedback: Arrays | None
    #: False when the recording policy or its byte limit left the messages out.
    recorded: bool
    #: (clients,) float64: Weight with which each client's latest upload counts in the sums: zero
    #: for those left out, not zero for absent clients whose last upload the server reuses.
    sum_weights: Array
    #: bytes_up, bytes_down: Bytes on the wire in this round, over all senders and recipients, at
    #: the wire's precision. They are counted whether or not the messages are recorded.
    bytes_up: int
    bytes_down: int
    #: The same of one client's upload.
    upload_bytes: int

    def check_recorded(self) -> None:
        require(
            self.recorded,
            f"The messages of round {self.round} were not recorded; "
            "run again with Channel(record='full') or a larger byte_limit.",
        )


@dataclass(frozen=True)
class Transcript:
    """The server's view of a whole run."""

    features: int
    clients: int
    #: samples, weights: (clients,): Public sizes m_i and weights w_i.
    samples: IntArray
    weights: Array
    #: The server saw sums only.
    secure_aggregation: bool
    #: {"float64", "float32"}: Format of every number on the wire. The arrays of the exchanges are
    #: float64 all the same, so their ``nbytes`` say nothing about the wire.
    dtype: str
    exchanges: tuple[Exchange, ...]
    #: What clients told before the first round (`Algorithm.agreed`), each upload on its own even
    #: under secure aggregation; mostly nothing.
    before: tuple[Exchange, ...] = ()

    def sent(self, client: int) -> int:
        """Bytes a client has uploaded over the whole run."""
        return sum(
            exchange.upload_bytes
            for exchange in (*self.before, *self.exchanges)
            if client in exchange.participants
        )

    def until(self, rounds: int) -> Transcript:
        """The transcript of the first ``rounds`` rounds."""
        require(
            rounds >= 0,
            f"An attack can read the first 0 to {len(self.exchanges)} rounds, not {rounds}.",
        )
        return replace(self, exchanges=self.exchanges[:rounds])

    def seen(self, client: int) -> list[tuple[Exchange, int]]:
        """Exchanges a client took part in, with its row in their uploads."""
        check_client(client, self.clients)
        found: list[tuple[Exchange, int]] = []
        for exchange in self.exchanges:
            rows = np.flatnonzero(exchange.participants == client)
            if not len(rows):
                continue
            exchange.check_recorded()
            if exchange.uploads is None:
                raise InvalidInput(
                    f"This attack needs the uploads of client {client} itself, but under secure "
                    "aggregation the server saw only sums; use an attack on sums, or switch "
                    "secure aggregation off."
                )
            found.append((exchange, int(rows[0])))
        return found

    def pairs(self, client: int) -> list[tuple[Array, Array]]:
        """Pairs (probe, answer) of a client, each (features, components).

        The probe is the frame that multiplied S_i in the last local product: the client's own
        uploaded ``"frame"`` where it sends one, else the broadcast. The answer is its
        ``"product"``.
        """
        result: list[tuple[Array, Array]] = []
        for exchange, row in self.seen(client):
            assert exchange.uploads is not None
            if "product" not in exchange.uploads:
                raise InvalidInput(
                    "This attack reads answers to a broadcast basis (“product”), but round "
                    f"{exchange.round} carried {', '.join(sorted(exchange.uploads))}; choose an "
                    "attack made for this method."
                )
            own = exchange.uploads.get("frame")
            probe = own[row] if own is not None else exchange.downlink["frame"]
            result.append((probe, exchange.uploads["product"][row]))
        return result
