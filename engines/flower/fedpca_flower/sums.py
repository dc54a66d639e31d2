"""The server's end of secure sums: it says who sums, adds up what comes, and asks to open it."""

from collections import Counter
from collections.abc import Collection, Mapping

from fedpca_core.arrays import Array, Arrays
from fedpca_core.protocol.algorithm import Inbox, Plan
from fedpca_core.protocol.channel import Mailbox
from fedpca_flower import secure
from fedpca_flower.declared import Declared, ValueRule, digits, one_for_each, shares
from fedpca_flower.records import Told
from fedpca_flower.roster import Answers, Roster

Shapes = Mapping[str, tuple[int, ...]]


class SecureSums:
    """The server's end: the sums of a run's rounds, which opens those that the clients let it.

    ``mailbox`` says whether last uploads stand in for absent clients; ``bound`` is as in
    `secure.FixedPoint`.

    One attempt at a round: clients deal shares of their masks' seeds (`terms`), upload, and more
    than two thirds of those that were asked open the sum (`opened`). Where fewer are left, who fell
    silent is not asked in the next attempt, unless the round cannot do without.
    """

    def __init__(self, roster: Roster, mailbox: Mailbox, bound: float) -> None:
        self.roster, self.mailbox, self.bound = roster, mailbox, bound
        self.point = secure.FixedPoint(bound, roster.job.clients)
        self._occasion, self._question, self._there = "", "", list[int]()
        self._dealt: dict[int, Told] = {}
        self._silent: set[int] = set()
        self._total: secure.Words | None = None

    def terms(
        self, asked: Collection[int], needed: Collection[int], attempt: str
    ) -> dict[int, Told]:
        """What each participant of a round is told, by client: whose shares it holds, and which.

        ``attempt``: The round and its attempt.
        """
        # Another process may have asked before; shares are dealt once for an occasion.
        self._occasion = f"{attempt}/{self.roster.journal.session}"
        if attempt.endswith("/0"):
            self._silent = set()
        there = [client for client in asked if client not in self._silent or client in needed]
        keys = {client: self.roster.facts[client]["public"] for client in there}
        told = {"keys": keys, "occasion": self._occasion}
        answers = self.roster.ask("deal", dict.fromkeys(there, told), Declared(shares(there)))
        self._there, self._dealt = there, {client: said for client, (said, _) in answers.items()}
        if not self._enough(self._dealt):
            return {}
        common = {
            "occasion": self._occasion,
            "bound": self.bound,
            "differences": self.mailbox.reuse,
        }
        terms = {}
        for client in self._dealt:
            given = {
                dealer: {
                    "public": said["public"],
                    "box": said["boxes"][str(client)],
                    "marks": said["marks"][str(client)],
                }
                for dealer, said in self._dealt.items()
            }
            terms[client] = {**common, "dealt": given}
        return terms

    @property
    def unread(self) -> ValueRule:
        """Whose shares a client says that it cannot read."""
        dealt = set(self._dealt)
        return ValueRule(
            lambda value: (
                isinstance(value, list)
                and all(type(one) is int for one in value)
                and set(value) <= dealt
            ),
            f"some of the clients {sorted(dealt)}",
        )

    def asks(self, weights: Array, told: Told, down: Arrays) -> None:
        """Remember what all participants are asked; their masks belong to it."""
        self._question = secure.question(self._occasion, weights.tolist(), told, down)

    def arrived(self, answers: Answers) -> Answers:
        """Those who have uploaded; whose shares most others could not read is left out."""
        complaints = Counter(dealer for said, _ in answers.values() for dealer in said["unread"])
        for dealer, times in complaints.items():
            if 2 * times > len(answers):
                self._leave_out(dealer, f"{times} others could not read the shares that it dealt")
        return {c: answer for c, answer in answers.items() if not answer[0]["unread"]}

    def opened(self, answers: Answers, shapes: Shapes) -> Arrays | None:
        """The round's sums of those who have uploaded; None where too few open them."""
        if not self._enough(answers):
            return None
        told = {"occasion": self._occasion, "arrived": list(answers)}
        declared = Declared({"shares": one_for_each(self._dealt, digits(32))})
        replies = self.roster.ask("unmask", dict.fromkeys(answers, told), declared)
        given = {client: said["shares"] for client, (said, _) in replies.items()}
        for client in [c for c in given if not self._as_dealt(c, given[c], answers)]:
            self._leave_out(client, "it gave other shares than those that were dealt to it")
            del given[client]
        if not self._enough(given):
            return None
        keys = {client: self._dealt[client]["public"] for client in answers}
        own, lost = dict[int, str](), dict[int, dict[int, str]]()
        for dealer, said in self._dealt.items():
            shares_ = {client: told[str(dealer)] for client, told in given.items()}
            seed = secure.joined(shares_, self._there)
            private, public = secure.key(seed)
            if secure.mark(seed) == said["seal"] and dealer in answers:
                own[dealer] = seed
            elif public == said["public"] and dealer not in answers:
                lost[dealer] = secure.pair_seeds(private, keys, dealer, self._question)
            else:
                self._leave_out(dealer, "the shares that it dealt give another seed than it said")
                return None
        openings = {
            client: (seed, {other: seeds[client] for other, seeds in lost.items()})
            for client, seed in own.items()
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

    def _enough(self, present: Collection[int]) -> bool:
        """Whether these can open the sum; if not, the others are not asked in the next attempt."""
        if len(present) >= secure.threshold(len(self._there)):
            return True
        self._silent |= set(self._there) - set(present) if present else set()
        return False

    def _as_dealt(self, client: int, given: Told, arrived: Collection[int]) -> bool:
        """Whether these are the shares that a client has found in its boxes."""
        marks = {dealer: said["marks"][str(client)] for dealer, said in self._dealt.items()}
        return all(
            secure.mark(given[str(dealer)]) == (both[:64] if dealer in arrived else both[64:])
            for dealer, both in marks.items()
        )

    def _leave_out(self, client: int, why: str) -> None:
        if client in self.roster.nodes:
            self.roster.leave_out(self.roster.nodes[client], why)
