"""Secure sums in a run, at both ends: a client masks and opens, the server adds up.

Where last uploads stand in for absent clients, clients send the difference to their last upload
and the server goes on with its total.
"""

from __future__ import annotations

from typing import Any

from fedpca_core.arrays import Arrays
from fedpca_core.errors import InvalidInput, require
from fedpca_core.protocol.algorithm import Inbox, Plan
from fedpca_core.protocol.channel import Mailbox
from fedpca_flower import secure
from fedpca_flower.member import Member
from fedpca_flower.records import Told
from fedpca_flower.roster import Answers, Roster

#: Fewest clients in a sum that a client opens, unless its node says otherwise.
FEWEST = 2


class SecureSums:
    """The server's end: the sums of a run's rounds, which opens those that the clients let it.

    ``mailbox`` says whether last uploads stand in for absent clients; ``bound`` is as in
    `secure.FixedPoint`.
    """

    def __init__(self, roster: Roster, mailbox: Mailbox, bound: float) -> None:
        self.roster, self.mailbox, self.bound = roster, mailbox, bound
        self.point = secure.FixedPoint(bound, roster.job.clients)
        self._occasion = ""
        self._total: secure.Words | None = None

    def terms(self, plan: Plan, attempt: int) -> dict[str, Any]:
        """What the participants of a round are told: with whom, and for which occasion."""
        self._occasion = f"{plan.round}/{attempt}"
        there = [client for client in plan.participants.tolist() if client in self.roster.nodes]
        return {
            "keys": {client: self.roster.facts[client]["public"] for client in there},
            "occasion": self._occasion,
            "bound": self.bound,
            "differences": self.mailbox.reuse,
        }

    def opened(self, answers: Answers) -> Arrays | None:
        """The round's sums; None where somebody fell silent before they were open."""
        told = {"occasion": self._occasion, "arrived": list(answers)}
        replies = self.roster.ask("unmask", dict.fromkeys(answers, told))
        if set(replies) != set(answers):
            return None
        openings = {
            client: (said["own"], {int(other): seed for other, seed in said["lost"].items()})
            for client, (said, _) in replies.items()
        }
        words = {client: groups["up"]["words"] for client, (_, groups) in answers.items()}
        total = secure.open_sum(words, openings)
        if self.mailbox.reuse:
            self._total = total = total if self._total is None else total + self._total
        return self.point.numbers(total, next(iter(answers.values()))[0]["shapes"])

    def inbox(self, totals: Arrays, plan: Plan) -> Inbox:
        """What the server receives of a round."""
        if not len(plan.participants):  # messages of nobody, (0, ...)
            totals = {name: array.sum(axis=0) for name, array in totals.items()}
            if self._total is not None:
                shapes = {name: array.shape for name, array in totals.items()}
                totals = self.point.numbers(self._total, shapes)
        size = sum(8 * array.size for array in totals.values())
        return self.mailbox.summed(totals, size * len(plan.participants), plan)


def masked(me: Member, terms: Told, upload: Arrays, weight: float) -> dict[str, secure.Words]:
    """A client's weighted upload under its masks; what opens them stays in its memory."""
    memory = me.memory
    keys = {int(other): key for other, key in terms["keys"].items()}
    point = secure.FixedPoint(terms["bound"], me.setting.clients)
    words = point.words({name: weight * array for name, array in upload.items()})
    if terms["differences"]:
        memory.arrays["sending"] = {"words": words}
        words = words - memory.arrays["sent"]["words"] if memory.arrays.get("sent") else words
    own = secure.own_seed()
    pairs = secure.pair_seeds(memory.told["key"], keys, me.client, terms["occasion"])
    kept = {"participants": sorted(keys), "own": own, "pairs": pairs}
    memory.told["masks"] = {"occasion": terms["occasion"], **kept}
    return {"words": secure.masked(words, me.client, own, pairs)}


def opening(me: Member, told: Told) -> Told:
    """What opens a client's latest upload for a sum over those who arrived; given once.

    Raises
    ------
    InvalidInput
        A sum that the client is no part of, over strangers, or over too few.
    """
    kept, arrived = me.memory.told.get("masks"), told["arrived"]
    if not kept or kept["occasion"] != told["occasion"]:
        raise InvalidInput("A client opens only the sum of its latest upload, and only once.")
    check_opening(me.client, kept["participants"], arrived, int(me.node.get("fewest", FEWEST)))
    me.memory.told["masks"] = None
    lost = {other: seed for other, seed in kept["pairs"].items() if int(other) not in arrived}
    return {"own": kept["own"], "lost": lost}


def check_opening(client: int, participants: list[int], arrived: list[int], fewest: int) -> None:
    """A client's own terms for opening a sum."""
    if client not in arrived or not set(arrived) <= set(participants):
        raise InvalidInput("A client opens only a sum that it has contributed to; it refuses.")
    require(
        len(arrived) >= fewest,
        f"A sum over {len(arrived)} client{'s' if len(arrived) != 1 else ''} says too much of each "
        f"(at least {fewest} are needed); wait until more are there.",
    )
