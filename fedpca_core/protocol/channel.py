"""The channel is the threat model: everything that crosses the wire passes through here.

It counts bytes from the arrays it carries, may round them to float32, may add noise to uploads,
may sum uploads under secure aggregation, fills in the last upload of absent clients where the run
asks for it, and writes the transcript an honest-but-curious server would hold.
"""

import math
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from fedpca_core.arrays import Array, Arrays, read_only
from fedpca_core.errors import require_at_least, require_choice
from fedpca_core.protocol.algorithm import Inbox, Plan, Setting
from fedpca_core.protocol.transcript import Exchange
from fedpca_core.streams import Streams


@dataclass(frozen=True)
class Channel:
    """How messages travel."""

    #: {"float64", "float32"}: Precision on the wire; float32 halves the bytes and rounds.
    dtype: str = "float64"
    #: The server receives only the weighted sum over the participants.
    secure_aggregation: bool = False
    #: Gaussian noise each client adds to its uploads, as a factor on the root mean square of the
    #: message itself. Heuristic: without a bound on their sensitivity no privacy guarantee follows.
    upload_noise: float = 0.0
    #: {"full", "estimates"}: Whether the transcript keeps messages or only who took part and bytes.
    record: str = "full"
    #: Above so many bytes of messages the transcript keeps no further ones and says so.
    byte_limit: int = 512 * 1024 * 1024

    def __post_init__(self) -> None:
        require_choice("The format of messages", self.dtype, ("float64", "float32"))
        require_choice("What the transcript records", self.record, ("full", "estimates"))
        require_at_least("The noise on uploads", self.upload_noise, 0, "0 switches it off")


class Mailbox:
    """The channel of one run: memory of last uploads, byte meters and the transcript so far."""

    def __init__(
        self, channel: Channel, setting: Setting, streams: Streams, *, reuse_uploads: bool = False
    ) -> None:
        self.channel = channel
        self.setting = setting
        self.streams = streams
        self.reuse = reuse_uploads and setting.absent == "memory" and setting.participation < 1
        self.bytes_up = 0
        self.bytes_down = 0
        self.exchanges: list[Exchange] = []
        self._format = np.dtype(channel.dtype)
        self._recorded = (0, 0)  # bytes up and down by then
        self._recorded_bytes = 0
        self._last: dict[str, Array] = {}
        self._known = np.zeros(setting.clients, dtype=bool)

    # ------------------------------------------------------------------ down and up
    def down(self, messages: Arrays, recipients: int) -> Arrays:
        received, size = self._travelled(messages)
        self.bytes_down += recipients * size
        return received

    def up(self, messages: Arrays, plan: Plan) -> Inbox:
        if self.channel.upload_noise > 0:
            messages = {
                name: array + self._noise(array, plan, position)
                for position, (name, array) in enumerate(messages.items())
            }
        received, size = self._travelled(messages)
        counted, weights = received, plan.weights
        if self.reuse:
            # Each client's last upload stands in while it is absent. Under secure aggregation
            # clients send the difference to their last upload: the server gets the same total.
            for name, array in received.items():
                everyone = np.zeros((self.setting.clients, *array.shape[1:]))
                self._last.setdefault(name, everyone)[plan.participants] = array
            self._known[plan.participants] = True
            counted, weights = self._last, self._sum_weights(plan)
        totals = {name: _weighted_sum(weights, counted[name]) for name in received}
        self.bytes_up += size
        single = None if self.channel.secure_aggregation else received
        return Inbox(plan.participants, plan.weights, totals, float(weights.sum()), single)

    def summed(self, totals: Arrays, size: int, plan: Plan) -> Inbox:
        """What the server receives where masked uploads, ``size`` bytes, were summed on their way.

        ``totals``: Weighted sums of these, or of everyone's last ones under reuse.
        """
        self.bytes_up += size
        self._known[plan.participants] = True
        weights = self._sum_weights(plan)
        return Inbox(plan.participants, plan.weights, totals, float(weights.sum()), None)

    def _noise(self, array: Array, plan: Plan, position: int) -> Array:
        # Drawn for all clients and indexed, so participation never shifts the stream.
        generator = self.streams.generator("upload noise", plan.round, position)
        noise = generator.standard_normal((self.setting.clients, *array.shape[1:]))
        size = np.sqrt((array**2).mean(axis=tuple(range(1, array.ndim)), keepdims=True))
        return self.channel.upload_noise * size * noise[plan.participants]

    def _travelled(self, messages: Arrays) -> tuple[Arrays, int]:
        """Messages as they arrive, float64 at the wire's precision, and their bytes on it."""
        size = self._format.itemsize * sum(array.size for array in messages.values())
        if all(array.dtype == self._format == np.float64 for array in messages.values()):
            return messages, size
        arrived = {name: array.astype(self._format) for name, array in messages.items()}
        return {name: array.astype(np.float64) for name, array in arrived.items()}, size

    # ------------------------------------------------------------------ transcript
    def record(self, plan: Plan, inbox: Inbox, feedback: Arrays | None) -> Exchange:
        sums = None if inbox.uploads is not None else inbox.totals
        messages: dict[str, Any] = {"downlink": plan.downlink, "uploads": inbox.uploads}
        messages |= {"sums": sums, "feedback": feedback}
        keep = self.channel.record == "full"
        if keep:
            parts = [part.values() for part in messages.values() if part]
            size = sum(array.nbytes for array in chain(*parts))
            keep = self._recorded_bytes + size <= self.channel.byte_limit
            self._recorded_bytes += size
        if not keep:
            messages = dict.fromkeys(messages) | {"downlink": {}}
        up, down = self.bytes_up - self._recorded[0], self.bytes_down - self._recorded[1]
        exchange = Exchange(
            round=plan.round,
            participants=plan.participants,
            weights=plan.weights,
            local_steps=plan.local_steps,
            recorded=keep,
            sum_weights=self._sum_weights(plan),
            bytes_up=up,
            bytes_down=down,
            upload_bytes=up // max(1, len(plan.participants)),
            # A transcript cannot be edited by its readers.
            **{
                name: part and {key: read_only(one) for key, one in part.items()}
                for name, part in messages.items()
            },
        )
        self._recorded = self.bytes_up, self.bytes_down
        self.exchanges.append(exchange)
        return exchange

    def _sum_weights(self, plan: Plan) -> Array:
        """Weight of every client's latest upload in this round's sums, (clients,)."""
        if self.reuse:
            return np.where(self._known, self.setting.weights, 0.0)
        if len(plan.participants) == self.setting.clients:
            return plan.weights
        weights = np.zeros(self.setting.clients)
        weights[plan.participants] = plan.weights
        return weights


def _weighted_sum(weights: Array, messages: Array) -> Array:
    # `np.tensordot` without its bookkeeping.
    flat = messages.reshape(len(messages), math.prod(messages.shape[1:]))
    return (weights @ flat).reshape(messages.shape[1:])
