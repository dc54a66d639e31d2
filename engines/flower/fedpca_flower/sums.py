"""The server's end of secure sums: it says who sums, adds up what comes, and asks to open it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from fedpca_core.arrays import Arrays
from fedpca_core.protocol.algorithm import Inbox, Plan
from fedpca_core.protocol.channel import Mailbox
from fedpca_flower import secure
from fedpca_flower.declared import KEY, Declared, one_for_each
from fedpca_flower.roster import Answers, Roster

#: How often in a row a client may leave a sum unopened that holds its upload.
_TRIES = 2
Shapes = Mapping[str, tuple[int, ...]]


class SecureSums:
    """The server's end: the sums of a run's rounds, which opens those that the clients let it.

    ``mailbox`` says whether last uploads stand in for absent clients; ``bound`` is as in
    `secure.FixedPoint`.
    """

    def __init__(self, roster: Roster, mailbox: Mailbox, bound: float) -> None:
        self.roster, self.mailbox, self.bound = roster, mailbox, bound
        self.point = secure.FixedPoint(bound, roster.job.clients)
        self._occasion, self._there = "", list[int]()
        self._unopened: Counter[int] = Counter()
        self._total: secure.Words | None = None

    def terms(self, plan: Plan, attempt: int) -> dict[str, Any]:
        """What the participants of a round are told: with whom, and for which occasion."""
        # Another process may have asked before; a mask is used once.
        self._occasion = f"{plan.round}/{attempt}/{self.roster.journal.session}"
        there = [client for client in plan.participants.tolist() if client in self.roster.nodes]
        self._there = there
        return {
            "keys": {client: self.roster.facts[client]["public"] for client in there},
            "occasion": self._occasion,
            "bound": self.bound,
            "differences": self.mailbox.reuse,
        }

    def opened(self, answers: Answers, shapes: Shapes) -> Arrays | None:
        """The round's sums; None where somebody fell silent before they were open."""
        told = {"occasion": self._occasion, "arrived": list(answers)}
        lost = one_for_each(set(self._there) - set(answers), KEY)
        declared = Declared({"own": KEY, "lost": lost})
        replies = self.roster.ask("unmask", dict.fromkeys(answers, told), declared)
        for client in answers:
            self._unopened[client] = 0 if client in replies else self._unopened[client] + 1
            node = self.roster.nodes.get(client)
            if replies and self._unopened[client] == _TRIES and node is not None:
                why = f"it masked its upload {_TRIES} times and did not help to open the sum"
                self.roster.leave_out(node, why)
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
        return self.point.numbers(total, shapes)

    def inbox(self, totals: Arrays, plan: Plan) -> Inbox:
        """What the server receives of a round."""
        if not len(plan.participants):  # messages of nobody, (0, ...)
            totals = {name: array.sum(axis=0) for name, array in totals.items()}
            if self._total is not None:
                shapes = {name: array.shape for name, array in totals.items()}
                totals = self.point.numbers(self._total, shapes)
        size = sum(8 * array.size for array in totals.values())
        return self.mailbox.summed(totals, size * len(plan.participants), plan)
