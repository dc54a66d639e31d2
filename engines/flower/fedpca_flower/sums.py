"""Secure sums in a run, at both ends: a client masks and opens, the server adds up.

Where last uploads stand in for absent clients, clients send the difference to their last upload
and the server goes on with its total.
"""

from __future__ import annotations

from typing import Any

from fedpca_core.arrays import Array, Arrays
from fedpca_core.errors import InvalidInput
from fedpca_core.protocol.algorithm import Inbox, Plan
from fedpca_core.protocol.channel import Mailbox
from fedpca_flower import secure
from fedpca_flower.member import Member
from fedpca_flower.records import Told
from fedpca_flower.roster import Answers, Roster


class SecureSums:
    """The server's end: the sums of a run's rounds.

    Parameters
    ----------
    roster : Roster
    mailbox : Mailbox
        Says whether last uploads stand in for absent clients.
    bound : float
        As in `secure.FixedPoint`.
    """

    def __init__(self, roster: Roster, mailbox: Mailbox, bound: float) -> None:
        self.roster, self.mailbox, self.bound = roster, mailbox, bound
        self.point = secure.FixedPoint(bound, roster.job.clients)
        self._occasion = ""
        self._total: secure.Words = {}

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

    def opened(self, answers: Answers) -> secure.Words | None:
        """The round's sum; None where somebody fell silent before it was open."""
        told = {"occasion": self._occasion, "arrived": list(answers)}
        replies = self.roster.ask("unmask", dict.fromkeys(answers, told))
        if set(replies) != set(answers):
            return None
        openings = {
            client: secure.Opening(said["own"], {int(c): s for c, s in said["lost"].items()})
            for client, (said, _) in replies.items()
        }
        return secure.open_sum({c: groups["up"] for c, (_, groups) in answers.items()}, openings)

    def inbox(self, words: secure.Words, plan: Plan) -> Inbox:
        """What the server receives of a round from its sum."""
        if not len(plan.participants):  # messages of nobody, which have names and shapes
            words = self.point.words({name: array.sum(axis=0) for name, array in words.items()})
        size = sum(8 * word.size for word in words.values())
        if self.mailbox.reuse:
            self._total = words = secure.add(words, self._total) if self._total else words
        totals: dict[str, Array] = self.point.numbers(words)
        return self.mailbox.summed(totals, size * len(plan.participants), plan)


def masked(me: Member, told: Told, upload: Arrays) -> secure.Words:
    """A client's weighted upload under its masks; what opens them stays in its memory."""
    terms, memory = told["secure"], me.memory
    keys = {int(other): key for other, key in terms["keys"].items()}
    point = secure.FixedPoint(terms["bound"], me.setting.clients)
    words = point.words({name: told["weight"] * array for name, array in upload.items()})
    if terms["differences"]:
        memory.arrays["sending"] = words
        last = memory.arrays.get("sent")
        words = secure.add(words, secure.negative(last)) if last else words
    own = secure.own_seed()
    pairs = secure.pair_seeds(memory.told["key"], keys, me.client, terms["occasion"])
    memory.told["masks"] = {
        "occasion": terms["occasion"],
        "participants": sorted(keys),
        "own": own,
        "pairs": {str(other): seed for other, seed in pairs.items()},
    }
    return secure.masked(words, me.client, own, pairs)


def opening(me: Member, told: Told) -> Told:
    """What opens a client's latest upload for a sum over those who arrived; given once."""
    kept, arrived = me.memory.told.get("masks"), told["arrived"]
    if not kept or kept["occasion"] != told["occasion"]:
        raise InvalidInput("A client opens only the sum of its latest upload, and only once.")
    fewest = int(me.node.get("fewest", secure.FEWEST))
    secure.check_opening(me.client, kept["participants"], arrived, fewest)
    me.memory.told["masks"] = None
    lost = {other: seed for other, seed in kept["pairs"].items() if int(other) not in arrived}
    return {"own": kept["own"], "lost": lost}
