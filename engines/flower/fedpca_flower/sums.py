"""The server's end of secure sums: ask, open, and add to what is known of absent clients."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedpca_core.arrays import Array, Arrays
from fedpca_core.protocol.algorithm import Inbox, Plan
from fedpca_core.protocol.channel import Mailbox
from fedpca_flower import secure
from fedpca_flower.records import Told, packed
from fedpca_flower.roster import Answers, Roster


class SecureSums:
    """Sums of the uploads of a run.

    Parameters
    ----------
    roster : Roster
    mailbox : Mailbox
        Says whether sums go on with the last uploads of absent clients: clients then send the
        difference to their last upload.
    bound : float
        As in `secure.FixedPoint`.
    """

    def __init__(self, roster: Roster, mailbox: Mailbox, bound: float) -> None:
        self.roster, self.mailbox, self.bound = roster, mailbox, bound
        self.point = secure.FixedPoint(bound, roster.clients)
        self._total: secure.Words = {}

    def terms(self, plan: Plan, attempt: int) -> dict[str, Any]:
        """What the participants of a round are told: with whom, and for which occasion."""
        there = [int(client) for client in plan.participants if int(client) in self.roster.nodes]
        return {
            "keys": {client: self.roster.facts[client]["public"] for client in there},
            "occasion": f"{plan.round}/{attempt}",
            "bound": self.bound,
            "differences": self.mailbox.reuse,
        }

    def opened(self, terms: Told, answers: Answers) -> secure.Words | None:
        """The round's sum; None where somebody fell silent before it was open."""
        told = {"occasion": terms["occasion"], "arrived": sorted(answers)}
        replies = self.roster.ask("unmask", {client: packed(told) for client in answers})
        if set(replies) != set(answers):
            return None
        openings = {
            client: secure.Opening(said["own"], {int(c): s for c, s in said["lost"].items()})
            for client, (said, _) in replies.items()
        }
        return secure.open_sum({c: groups["up"] for c, (_, groups) in answers.items()}, openings)

    def inbox(self, words: secure.Words, plan: Plan) -> Inbox:
        """What the server receives of a round."""
        if self.mailbox.reuse:
            self._total = secure.add(words, self._total) if self._total else words
            words = self._total
        totals: dict[str, Array] = self.point.numbers(words)
        size = sum(8 * word.size for word in words.values())
        return self.mailbox.summed(totals, size * len(plan.participants), plan)


def nothing(shapes: Arrays) -> secure.Words:
    """The sum of no uploads."""
    return {name: np.zeros(array.shape[1:], dtype=np.uint64) for name, array in shapes.items()}
