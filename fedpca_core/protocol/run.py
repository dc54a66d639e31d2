"""The one loop of every run, wherever its clients are: in this process or behind a network.

Who runs it says how clients begin, step and hear of the result; the rest is the same everywhere:
plan, broadcast, collect, aggregate, feedback, record, estimate.
"""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Protocol

import numpy as np

from fedpca_core.arrays import Array, Arrays, IntArray
from fedpca_core.errors import require, require_whole
from fedpca_core.linalg.lanczos import largest_eigenvalue
from fedpca_core.linalg.threads import one_thread
from fedpca_core.protocol.algorithm import Algorithm, Inbox, Plan, ServerState, Setting
from fedpca_core.protocol.channel import Channel, Mailbox
from fedpca_core.protocol.trace import COSTS, STATE_BYTES, Round, Trace
from fedpca_core.protocol.transcript import PUBLIC, Transcript
from fedpca_core.streams import Streams

#: What the clients of a round do with the server's feedback (None where there is none).
Finish = Callable[[Arrays | None], None]


class Run(ABC):
    """A run in progress: iterate to advance it; `trace` gives what has been computed so far.

    ``keep_rounds``: False drops every round once it has been yielded, so that long runs of many
        personal models fit in memory; `trace` is then refused.
    """

    #: Products with S_i so far, over all clients.
    products: int
    #: mapping of (clients, ...) arrays: The clients' state as far as it is known here, for
    #: estimates of personal models.
    clients: Arrays

    def __init__(
        self,
        algorithm: Algorithm,
        setting: Setting,
        channel: Channel,
        *,
        rounds: int,
        seed: int = 0,
        keep_rounds: bool = True,
    ) -> None:
        require_whole("The number of rounds", rounds)
        require(rounds >= 1, f"A run needs at least 1 round, not {rounds}.")
        algorithm.check(setting)
        check_sums(algorithm, channel)
        self.algorithm, self.setting, self.channel = algorithm, setting, channel
        self.planned, self.seed, self.streams = rounds, seed, Streams(seed)
        self.mailbox = Mailbox(
            channel, setting, self.streams, reuse_uploads=algorithm.reuses_uploads
        )
        plain = replace(channel, upload_noise=0.0, secure_aggregation=False)
        #: Carries what clients tell before the first round (`agree`).
        self.opening = Mailbox(plain, setting, self.streams, reuse_uploads=False)
        self._keep_rounds = self._keep_states = keep_rounds
        self._rounds: list[Round] = []

    # ------------------------------------------------------------------ what differs
    @abstractmethod
    def begin(self) -> ServerState:
        """The server's state before the first round; the clients know theirs.

        What the algorithm needs of all clients (`Algorithm.agreed`) is asked by way of `opening`.
        """

    @abstractmethod
    def collect(self, plan: Plan, server: ServerState) -> tuple[Plan, Inbox, Finish]:
        """What the server receives of a round, the plan for those who sent it, and their end."""

    # ------------------------------------------------------------------ the loop
    def __iter__(self) -> Iterator[Round]:
        rounds = self._steps()
        limit = one_thread(self.setting.features)
        while True:
            with limit:  # while a round is computed, not while the caller looks at it
                finished = next(rounds, None)
            if finished is None:
                return
            if self._keep_rounds:
                self._rounds.append(self._kept(finished))
            yield finished

    def finish(self) -> Trace:
        with one_thread(self.setting.features):  # once for all rounds
            self._rounds += map(self._kept, self._steps())
        return self.trace()

    def _steps(self) -> Iterator[Round]:
        algorithm = self.algorithm
        began = time.perf_counter()
        server = self.begin()
        elapsed = time.perf_counter() - began
        products = self.products
        estimate, state = algorithm.estimate(server, self.clients), algorithm.exposed(self.clients)
        told, asked = self.opening.bytes_up, self.opening.bytes_down
        yield Round(0, estimate, told, asked, products, elapsed, state)
        for index in range(1, self.planned + 1):
            began = time.perf_counter()
            plan = algorithm.plan(server, index, self.setting, self.streams)
            recipients = len(plan.participants) if plan.recipients is None else plan.recipients
            heard = self.mailbox.down(plan.downlink, recipients)
            if heard is not plan.downlink:
                plan = replace(plan, downlink=heard)
            plan, inbox, finish = self.collect(plan, server)
            reply = algorithm.server(server, inbox, plan)
            server, feedback = reply.state, None
            if reply.feedback is not None:
                feedback = self.mailbox.down(reply.feedback, len(plan.participants))
            finish(feedback)
            elapsed = time.perf_counter() - began
            exchange = self.mailbox.record(plan, inbox, feedback)
            spent = self.products - products
            products += spent
            yield Round(
                index,
                algorithm.estimate(server, self.clients),
                exchange.bytes_up,
                exchange.bytes_down,
                spent,
                elapsed,
                algorithm.exposed(self.clients),
            )
            if plan.stop or reply.stop:
                return

    # ------------------------------------------------------------------ what is kept
    def _kept(self, finished: Round) -> Round:
        """What the trace keeps of a round: all of it, unless the states of a run get too large."""
        if finished.index == 0:
            largest = max((array.nbytes for array in finished.state.values()), default=0)
            self._keep_states &= largest * (self.planned + 1) <= STATE_BYTES
        return finished if self._keep_states else replace(finished, state={})

    @property
    def participants(self) -> IntArray:
        """Who took part in the latest round; nobody before the first."""
        exchanges = self.mailbox.exchanges
        return exchanges[-1].participants if exchanges else np.empty(0, dtype=np.int64)

    def trace(self) -> Trace:
        """Everything computed so far as an immutable trace; refused where nothing is or is kept."""
        done, setting = self._rounds, self.setting
        require(
            self._keep_rounds,
            "This run does not keep its rounds; start it with keep_rounds=True to read a trace.",
        )
        require(len(done) > 0, "Nothing has been computed yet; take at least one step first.")
        return Trace(
            algorithm=self.algorithm,
            setting=setting,
            seed=self.seed,
            estimates=np.stack([entry.estimate for entry in done]),
            states=tuple(entry.state for entry in done) if self._keep_states else None,
            transcript=Transcript(
                **{name: getattr(setting, name) for name in PUBLIC},
                secure_aggregation=self.channel.secure_aggregation,
                dtype=self.channel.dtype,
                exchanges=tuple(self.mailbox.exchanges),
                before=tuple(self.opening.exchanges),
            ),
            **{name: np.cumsum([getattr(entry, name) for entry in done]) for name in COSTS},
        )


def check_sums(algorithm: Algorithm, channel: Channel) -> None:
    """Refuse secure aggregation where the server's step reads single uploads."""
    require(
        not (algorithm.needs_individual_uploads and channel.secure_aggregation),
        f"{algorithm.title} needs every client's own upload at the server, which secure "
        "aggregation hides; switch secure aggregation off or choose a method that needs "
        "sums only.",
    )


# ---------------------------------------------------------------------- before the first round
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
    """What clients tell before the first round, because a start needs it of all of them.

    The facts that `Algorithm.agreed` names cross the wire like every other message: they are
    counted, in the transcript, and for attacks to read, each client's answer on its own, under
    secure aggregation too. "spectral_norms" is one number up from each client. "pooled_norm" is
    found by Lanczos iteration: a vector down to every client and S_i times it up for each product.

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
        round=0,  # rounds are counted from 1
        participants=np.arange(everyone, dtype=np.int64),
        weights=mailbox.setting.weights,
        downlink=mailbox.down(question, everyone),
        local_steps=len(question),
    )
    inbox = mailbox.up(answered(plan.downlink), plan)
    mailbox.record(plan, inbox, None)
    return {name: inbox.individual(name) for name in inbox.totals}
