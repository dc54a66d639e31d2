"""What clients tell before the first round, because a start needs it of all of them.

It crosses the wire like every other message: it is counted, it is in the transcript, and whoever
attacks may read it. Each client's answer is seen on its own, under secure aggregation too.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import require
from fedpca_core.linalg.lanczos import largest_eigenvalue
from fedpca_core.protocol.algorithm import Algorithm, Plan
from fedpca_core.protocol.channel import Channel, Mailbox

#: Rounds are counted from 1.
BEFORE = 0


class Asked(Protocol):
    """All clients, as far as they are asked before the first round."""

    def spectral_norms(self) -> Array:
        """||S_i||_2, (clients,)."""

    def apply(self, frames: Array) -> Array:
        """S_i X of every client for one X, (clients, features, columns)."""


def check_agreed(algorithm: Algorithm, channel: Channel) -> None:
    require(
        "pooled_norm" not in algorithm.agreed or not channel.secure_aggregation,
        f"{algorithm.title} needs an eigenvalue of the pooled matrix before the first round, for "
        "which every client answers with products of its own, seen one by one; switch secure "
        "aggregation off or choose a method that starts without it.",
    )


def agree(algorithm: Algorithm, clients: Asked, mailbox: Mailbox) -> dict[str, Array]:
    """The facts that `Algorithm.agreed` names, as they crossed the wire.

    "spectral_norms" is one number up from each client. "pooled_norm" is found by Lanczos
    iteration: each of its products is a vector down to every client and S_i times it up.

    ``clients``: Their data, or the nodes that hold them. ``mailbox``: `Run.opening`, without noise
    on uploads, sums, or anything to stand in.
    """
    facts: dict[str, Array] = {}
    if "spectral_norms" in algorithm.agreed:
        told = _exchanged(mailbox, {}, lambda _: {"spectral_norm": clients.spectral_norms()})
        facts["spectral_norms"] = told["spectral_norm"]
    if "pooled_norm" in algorithm.agreed:

        def product(vector: Array) -> Array:
            probe = {"frame": vector[:, None]}
            answers = _exchanged(
                mailbox, probe, lambda sent: {"product": clients.apply(sent["frame"])}
            )
            return np.tensordot(mailbox.setting.weights, answers["product"][..., 0], axes=1)

        rounding = float(np.finfo(mailbox.channel.dtype).eps)
        largest = largest_eigenvalue(product, mailbox.setting.features, rounding)
        facts["pooled_norm"] = np.array([largest])
    return facts


def _exchanged(mailbox: Mailbox, question: Arrays, answered: Callable[[Arrays], Arrays]) -> Arrays:
    """One question to every client and its answers, (clients, ...), as they arrive."""
    everyone = mailbox.setting.clients
    plan = Plan(
        round=BEFORE,
        participants=np.arange(everyone, dtype=np.int64),
        weights=mailbox.setting.weights,
        downlink=mailbox.down(question, everyone),
        local_steps=len(question),
    )
    inbox = mailbox.up(answered(plan.downlink), plan)
    mailbox.record(plan, inbox, None)
    return {name: inbox.individual(name) for name in inbox.totals}
