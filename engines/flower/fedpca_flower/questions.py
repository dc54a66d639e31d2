"""What the server asks its clients, and how long: questions with patience, sums, and feedback."""

import math
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import count
from logging import getLogger
from typing import Any

import numpy as np

from fedpca_core.arrays import Array, Arrays, IntArray
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.one_of_many import NoneOfMany
from fedpca_core.protocol.agreed import agree
from fedpca_core.protocol.algorithm import Inbox, Plan, ServerState, Setting, Uploads
from fedpca_core.protocol.channel import Mailbox
from fedpca_core.streams import Streams
from fedpca_flower.declared import COUNT, FLAG, SHOWN, Declared, ValueRule, of_one
from fedpca_flower.job import FedJob
from fedpca_flower.records import on_the_wire
from fedpca_flower.roster import Answers, Roster
from fedpca_flower.sums import SecureSums

_LOG = getLogger("fedpca_flower")
#: Seconds between two attempts at a round.
_PAUSE = 0.1


class Questions:
    """The questions of one run.

    Every message tells its client which of its rounds was the last that counted, and carries the
    feedback (``owed``) that the client has missed.
    """

    def __init__(self, job: FedJob, roster: Roster, setting: Setting, mailbox: Mailbox) -> None:
        self.job, self.roster, self.setting, self.mailbox = job, roster, setting, mailbox
        # Anybody may fall silent, so last uploads stand in at full participation, too.
        mailbox.reuse = job.algorithm.reuses_uploads and job.absent == "memory"
        secure = job.channel.secure_aggregation
        self.sums = SecureSums(roster, mailbox, job.secure_bound) if secure else None
        self._facts: dict[str, Array] = {}
        self.products = 0  # before the first round
        #: A client's state, which the server knows from simulations, and whether it sees it.
        self.states: dict[str, tuple[tuple[int, ...], str]] = {}
        self.shown = False
        self._started: set[tuple[str, int]] = set()
        self._counted = dict.fromkeys(range(setting.clients), 0)
        self._owed: dict[int, Arrays] = {}

    # ------------------------------------------------------------------ before the first round
    def agree(self, opening: Mailbox) -> NoneOfMany:
        """What is public of all clients' data: their sizes, and what `Algorithm.agreed` names.

        Everybody learns these numbers, as the methods' authors assume.
        """
        setting = self.setting
        self._facts = agree(self.job.algorithm, self, opening)
        self.roster.bytes_up = self.roster.bytes_down = 0  # counted by ``opening``
        return NoneOfMany.facts_only(
            setting.features, setting.samples, setting.weights, self._facts
        )

    def spectral_norms(self) -> Array:
        """||S_i||_2 as each client has told with its size, (clients,)."""
        told = [self.roster.facts[client] for client in range(self.setting.clients)]
        return np.array([one["spectral_norm"] for one in told])

    def apply(self, frames: Array) -> Array:
        """S_i X of every client, all of whom must answer, (clients, features, columns)."""
        everybody: dict[int, Any] = {client: {} for client in range(self.setting.clients)}
        down = on_the_wire({"frame": frames}, self.job.channel.dtype)
        most = self.job.largest(self.setting) * float(np.linalg.norm(frames, 2))
        one = of_one({"product": frames[None]}, self.job.channel.dtype)
        declared = Declared({"products": COUNT}, one, norms={"product": most})
        answers = self.roster.ask("product", everybody, declared, down=down)
        if missing := sorted(set(everybody) - set(answers)):
            raise InvalidInput(
                f"Before the first round every client must answer, and clients {missing} did not; "
                "see whether their nodes run, or give them more time (timeout). "
                f"{self.roster.refusal()}"
            )
        self.products += sum(said["products"] for said, _ in answers.values())
        return np.stack([groups["up"]["product"] for _, groups in answers.values()])

    def start(self) -> Answers:
        """Tell nodes that have come of the setting; who knows it already keeps its state."""
        here = {c: self._here(c) for c in self.roster.nodes}
        self._started &= set(here.values())
        new = {c: node for c, node in here.items() if node not in self._started}
        if not new:
            return {}
        setting = self.setting
        told = {
            "features": setting.features,
            "samples": setting.samples.tolist(),
            "weights": setting.weights.tolist(),
            "participation": setting.participation,
            "absent": setting.absent,
        }
        everybody = dict.fromkeys(new, told)
        answers = self.roster.ask("start", everybody, self._declared(), agreed=self._facts)
        self._started |= {new[client] for client in answers}
        return answers

    # ------------------------------------------------------------------ rounds
    def round(
        self, plan: Plan, server: ServerState, nothing: Arrays
    ) -> tuple[Plan, Inbox, Answers]:
        """Ask the participants until enough have answered; the plan for those who have.

        ``nothing``: The uploads of nobody, (0, ...), which declare those of everybody.

        Raises InvalidInput: too few answered within the job's patience, or the method cannot do
        without somebody who was left out.
        """
        planned = set(plan.participants.tolist())
        # Who came late to a sum that waits for all would be asked alone, which no sum hides.
        whole = self.sums is not None and self.job.waits
        needed = planned if whole else planned & set(self.job.algorithm.indispensable)
        end = time.monotonic() + self.job.patience
        for attempt in count():
            self.roster.refresh()
            self.start()
            self._check_left_out(plan, planned if self.job.waits else needed)
            answers = self._ask(plan, nothing, needed, f"{plan.round}/{attempt}")
            if answers and needed <= set(answers):
                if self.sums is None:
                    received: Arrays | None = _stacked(answers)
                else:
                    shapes = {name: array.shape[1:] for name, array in nothing.items()}
                    received = self.sums.opened(answers, shapes)
                if received is not None:
                    _LOG.info("Round %d: answers from clients %s", plan.round, list(answers))
                    self._counted |= dict.fromkeys(answers, plan.round)
                    plan = self._for_those(plan, server, np.array(list(answers), dtype=np.int64))
                    return plan, self.inbox(received, plan), answers
            if time.monotonic() >= end:
                break
            time.sleep(_PAUSE)
        raise InvalidInput(
            f"Round {plan.round} got too few answers within {self.job.patience:g} seconds "
            f"(asked: clients {sorted(planned)}, not to be missed: {sorted(needed)}); see "
            "whether their nodes run, or be more patient (patience, timeout). "
            f"{self.roster.refusal()}"
        )

    def inbox(self, uploads: Arrays, plan: Plan) -> Inbox:
        """What the server receives of a round: single uploads, or the sum that was opened."""
        inbox = (self.mailbox.up if self.sums is None else self.sums.inbox)(uploads, plan)
        self._meter()
        return inbox

    def settle(self, clients: Collection[int], feedback: Arrays | None = None) -> Answers:
        """Say whether the last step counted; who misses feedback gets it with the next message."""
        if feedback is not None:
            down = on_the_wire(feedback, self.job.channel.dtype)
            self._owed |= dict.fromkeys(clients, down)
        answers = self._told("settle", {client: {} for client in clients}, self._declared())
        self._meter()
        return answers

    # ------------------------------------------------------------------ inside
    def _declared(self, told: Mapping[str, ValueRule] | None = None, **upload: Any) -> Declared:
        plain = {"products": COUNT, "shows": SHOWN if self.shown else FLAG, **(told or {})}
        return Declared(plain, shown=self.states, **upload)

    def _upload(self, nothing: Arrays, plan: Plan) -> Declared:
        """What an answer to this round's question holds, from the uploads of nobody."""
        if self.sums is not None:
            words = sum(math.prod(array.shape[1:]) for array in nothing.values())
            return self._declared(
                {"unread": self.sums.unread}, up={"words": ((words,), "uint64")}, instead="unread"
            )
        up, method = of_one(nothing, self.job.channel.dtype), self.job.algorithm
        noise = self.job.channel.upload_noise > 0 or getattr(method, "noise", 0.0) > 0
        products = method.uploads is Uploads.PRODUCTS and "product" in up and not noise
        if not products or "frame" not in plan.downlink:
            return self._declared(up=up)
        most = self.job.largest(self.setting) * np.linalg.norm(plan.downlink["frame"], 2)
        return self._declared(up=up, norms={"product": float(most)})

    def _check_left_out(self, plan: Plan, needed: Collection[int]) -> None:
        gone, planned = self.roster.left_out, plan.participants.tolist()
        missing = [c for c in planned if c in gone]
        if missing and (set(missing) == set(planned) or set(missing) & set(needed)):
            raise InvalidInput(
                f"Round {plan.round} of {self.job.algorithm.title} cannot be finished without "
                f"client {missing[0]}. {gone[missing[0]]}"
            )

    def _meter(self) -> None:
        """Bytes are counted from the records, repeated questions included."""
        self.mailbox.bytes_up = self.roster.bytes_up
        self.mailbox.bytes_down = self.roster.bytes_down

    def _here(self, client: int) -> tuple[str, int]:
        """A client's node, as one process of the server has met it."""
        return self.roster.journal.session, self.roster.nodes[client]

    def _knows(self, client: int) -> bool:
        """Whether a client is there and knows the setting."""
        return client in self.roster.nodes and self._here(client) in self._started

    def _ask(self, plan: Plan, nothing: Arrays, needed: Collection[int], attempt: str) -> Answers:
        scalar = bool | int | float | str | None
        extra = {key: value for key, value in plan.extra.items() if isinstance(value, scalar)}
        told = {"round": plan.round, "local_steps": plan.local_steps, "extra": extra}
        down = on_the_wire(plan.downlink, self.job.channel.dtype)
        weights = dict(zip(plan.participants.tolist(), plan.weights.tolist(), strict=True))
        if plan.recipients == self.setting.clients:
            # A broadcast for all: who does not take part only hears it.
            others = [client for client in self.roster.nodes if client not in weights]
            self.roster.tell("hear", others, down=down)
        each = {c: {**told, "weight": w} for c, w in weights.items()}
        if self.sums is None:
            return self._told("step", each, self._upload(nothing, plan), down)
        terms = self.sums.terms([c for c in each if self._knows(c)], needed, attempt)
        self.sums.asks(self.setting.weights, told, down)
        each = {c: {**each[c], "secure": one} for c, one in terms.items()}
        return self.sums.arrived(self._told("step", each, self._upload(nothing, plan), down))

    def _told(
        self, action: str, told: dict[int, Any], declared: Declared, down: Arrays | None = None
    ) -> Answers:
        known = {
            c: {**said, "counted": self._counted[c]} for c, said in told.items() if self._knows(c)
        }
        answers = self.roster.ask(action, known, declared, self._owed, down=down)
        for client in answers:
            self._owed.pop(client, None)
        return answers

    def _for_those(self, plan: Plan, server: ServerState, arrived: IntArray) -> Plan:
        """The plan by the algorithm's own rule for absent clients."""
        if len(arrived) == len(plan.participants):
            return plan
        setting = Present(**vars(self.setting), arrived=tuple(arrived.tolist()))
        again = self.job.algorithm.plan(server, plan.round, setting, Streams(self.job.seed))
        if np.array_equal(again.participants, arrived):
            return again
        return plan.keep(np.isin(plan.participants, arrived))


@dataclass(frozen=True)
class Present(Setting):
    """The setting as an algorithm plans for those who have arrived."""

    arrived: tuple[int, ...] = ()

    def participants(self, round_: int, streams: Streams) -> IntArray:
        return np.array(self.arrived, dtype=np.int64)


def _stacked(answers: Answers) -> Arrays:
    ups = [groups.get("up", {}) for _, groups in answers.values()]
    return {name: np.stack([up[name] for up in ups]).astype(np.float64) for name in ups[0]}
