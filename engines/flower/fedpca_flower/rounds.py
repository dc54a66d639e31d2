"""The rounds of a run, on the server: what `fedpca_core.protocol.simulate` does in one process."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from fedpca_core.arrays import AnyArray, Array, Arrays, IntArray, put
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.threads import one_thread
from fedpca_core.problems.one_of_many import NoneOfMany
from fedpca_core.protocol.algorithm import Inbox, Plan, Setting
from fedpca_core.protocol.channel import Mailbox
from fedpca_core.protocol.trace import Round, Trace
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.streams import Streams
from fedpca_flower.agreed import agree
from fedpca_flower.job import Job
from fedpca_flower.records import on_the_wire, packed
from fedpca_flower.roster import Answers, Roster
from fedpca_flower.secure import Words
from fedpca_flower.sums import SecureSums, nothing

#: Seconds between two attempts at a round.
_PAUSE = 0.1


@dataclass(frozen=True)
class Present(Setting):
    """The setting as an algorithm plans for those who have arrived."""

    arrived: tuple[int, ...] = ()

    def participants(self, round_: int, streams: Streams) -> IntArray:
        return np.array(self.arrived, dtype=np.int64)


class Rounds:
    """A run over a roster of clients; iterate to advance it, `trace` is what it has come to."""

    def __init__(self, roster: Roster, job: Job) -> None:
        self.roster, self.job, self.algorithm = roster, job, job.algorithm
        self.streams = Streams(job.seed)
        facts = [roster.facts[client] for client in range(job.clients)]
        samples = np.array([fact["samples"] for fact in facts], dtype=np.int64)
        features = facts[0]["features"]
        require(
            all(fact["features"] == features for fact in facts),
            f"The clients have {[fact['features'] for fact in facts]} features; they must agree "
            "on the same columns (--run-config 'columns=\"a,b,c\"').",
        )
        self.setting = Setting(
            features=features,
            clients=job.clients,
            samples=samples,
            weights=job.shares(samples),
            participation=job.participation,
            absent=job.absent,
            record_norm=None if job.budget is None else job.budget["clip"],
            guarantee=job.guarantee(samples),
        )
        self.algorithm.check(self.setting)
        # Clients add the channel's noise themselves.
        channel = replace(job.channel, upload_noise=0.0)
        self.mailbox = Mailbox(channel, self.setting, self.streams, reuse_uploads=False)
        self.mailbox.reuse = self.algorithm.reuses_uploads and job.absent == "memory"
        self.sums = SecureSums(roster, self.mailbox, job.secure_bound)
        self.clients: dict[str, Array] = {}
        self.counted = dict.fromkeys(range(job.clients), 0)
        self.owed: dict[int, dict[str, AnyArray]] = {}
        self.revealed = False
        self._done: list[Round] = []

    # ------------------------------------------------------------------ the run
    def __iter__(self) -> Iterator[Round]:
        for finished in self._steps():
            self._done.append(finished)
            yield finished

    def _steps(self) -> Iterator[Round]:
        algorithm, setting = self.algorithm, self.setting
        began = time.perf_counter()
        self.agreed = agree(self.roster, algorithm, setting)
        public = NoneOfMany.facts_only(
            setting.features, setting.samples, setting.weights, self.agreed
        )
        server, everyone = algorithm.start(public, setting, self.streams)
        nobody = {name: array[:0] for name, array in everyone.items()}
        self.clients = nobody
        self.roster.on_arrival(self._start)
        products = self._start(self.roster.nodes)
        yield self._round(0, server, products, time.perf_counter() - began, (0, 0))
        for index in range(1, self.job.rounds + 1):
            began = time.perf_counter()
            before = self.roster.bytes_up, self.roster.bytes_down
            self.roster.refresh()
            with one_thread(setting.features):
                plan = algorithm.plan(server, index, setting, self.streams)
            downlink = self.mailbox.down(plan.downlink, len(plan.participants))
            if len(plan.participants):
                plan, inbox, products = self._collect(plan, server)
            else:
                step = algorithm.client(
                    public.only(plan.participants), nobody, plan, downlink, self.streams
                )
                inbox, products = self._empty(step[0], plan), 0
            with one_thread(setting.features):
                reply = algorithm.server(server, inbox, plan)
            server, feedback = reply.state, None
            if reply.feedback is not None:
                feedback = self.mailbox.down(reply.feedback, len(plan.participants))
                products += self._feed_back(plan, feedback)
            exchange = self.mailbox.record(plan, downlink, inbox, feedback)
            moved = self.roster.bytes_up - before[0], self.roster.bytes_down - before[1]
            self.mailbox.exchanges[-1] = replace(exchange, bytes_up=moved[0], bytes_down=moved[1])
            yield self._round(index, server, products, time.perf_counter() - began, moved)
            if plan.stop or reply.stop:
                break
        self.roster.ask("settle", {c: self._content(c) for c in self.roster.nodes})

    # ------------------------------------------------------------------ questions to the clients
    def _start(self, clients: Collection[int]) -> int:
        """Tell clients of the setting; who knows it already keeps its state."""
        setting = self.setting
        told = {
            "features": setting.features,
            "samples": setting.samples.tolist(),
            "weights": setting.weights.tolist(),
            "participation": setting.participation,
            "absent": setting.absent,
        }
        answers = self.roster.ask(
            "start", {client: packed(told, agreed=self.agreed) for client in clients}
        )
        if len(answers) == self.job.clients and not self.revealed:
            states = [groups.get("simulation_only") for _, (_, groups) in answers.items()]
            # Methods without client state reveal an empty one.
            self.revealed = all(said.get("revealed") for said, _ in answers.values())
            if self.revealed:
                self.clients = {
                    name: np.stack([state[name] for state in states if state])
                    for name in self.clients
                }
        return sum(said["products"] for said, _ in answers.values())

    def _content(self, client: int, told: dict[str, Any] | None = None, **groups: Any) -> Any:
        """A message with what the client must know of its last round."""
        said = {"counted": self.counted[client], **(told or {})}
        return packed(said, owed=self.owed.get(client), **groups)

    def _collect(self, plan: Plan, server: Any) -> tuple[Plan, Inbox, int]:
        """Ask the participants until enough have answered; the plan for those who have."""
        secure, planned = self.job.channel.secure_aggregation, set(plan.participants.tolist())
        # Who came late to a sum that waits for all would be asked alone, which no sum hides.
        whole = secure and self.job.waits
        needed = planned if whole else planned & set(self.algorithm.indispensable)
        end = time.monotonic() + self.job.patience
        for attempt in count():
            terms = self.sums.terms(plan, attempt) if secure else None
            answers = self._ask(plan, terms)
            if answers and needed <= set(answers):
                words = None if terms is None else self.sums.opened(terms, answers)
                if terms is None or words is not None:
                    return self._received(plan, server, answers, words)
            if time.monotonic() >= end:
                break
            time.sleep(_PAUSE)
            self.roster.refresh()
        refused = next(iter(self.roster.refusals.values()), "")
        raise InvalidInput(
            f"Round {plan.round} got too few answers within {self.job.patience:g} seconds "
            f"(asked: clients {sorted(planned)}, not to be missed: {sorted(needed)}); "
            f"see whether their nodes run, or be more patient (patience, timeout). {refused}"
        )

    def _received(
        self, plan: Plan, server: Any, answers: Answers, words: Words | None
    ) -> tuple[Plan, Inbox, int]:
        plan = self._for_those(plan, server, np.array(sorted(answers), dtype=np.int64))
        self.counted |= dict.fromkeys(answers, plan.round)
        self._reveal(answers)
        if words is None:
            inbox = self.mailbox.up(self._uploads(answers), plan)
        else:
            inbox = self.sums.inbox(words, plan)
        return plan, inbox, sum(said["products"] for said, _ in answers.values())

    def _ask(self, plan: Plan, terms: dict[str, Any] | None) -> Answers:
        scalar = bool | int | float | str | None
        told = {
            "round": plan.round,
            "local_steps": plan.local_steps,
            "extra": {k: v for k, v in plan.extra.items() if isinstance(v, scalar)},
        }
        if terms is not None:
            told["secure"] = terms
        down = on_the_wire(plan.downlink, self.job.channel.dtype)
        weights = dict(zip(plan.participants.tolist(), plan.weights.tolist(), strict=True))
        contents = {
            client: self._content(client, {**told, "weight": weight}, down=down)
            for client, weight in weights.items()
        }
        if plan.recipients == self.job.clients:
            # A broadcast for all: who does not take part only hears it.
            others = {c: packed({}, down=down) for c in self.roster.nodes if c not in weights}
            self.roster.tell("hear", others)
        answers = self.roster.ask("round", contents)
        for client in answers:
            self.owed.pop(client, None)
        return answers

    def _for_those(self, plan: Plan, server: Any, arrived: IntArray) -> Plan:
        """The plan by the algorithm's own rule for absent clients."""
        if len(arrived) == len(plan.participants):
            return plan
        setting = Present(**vars(self.setting), arrived=tuple(arrived.tolist()))
        again = self.algorithm.plan(server, plan.round, setting, self.streams)
        if np.array_equal(again.participants, arrived):
            return again
        return plan.keep(np.isin(plan.participants, arrived))

    def _feed_back(self, plan: Plan, feedback: dict[str, AnyArray]) -> int:
        """Send what the server made of the round; who misses it gets it with the next message."""
        down = on_the_wire(feedback, self.job.channel.dtype)
        present = plan.participants.tolist()
        self.owed |= {client: down for client in present}
        told = {client: packed({"counted": plan.round}, down=down) for client in present}
        answers = self.roster.ask("feedback", told)
        for client in answers:
            self.owed.pop(client, None)
        self._reveal(answers)
        return sum(said["products"] for said, _ in answers.values())

    def _uploads(self, answers: Answers) -> dict[str, AnyArray]:
        first = next(iter(answers.values()))[1].get("up", {})
        return {
            name: np.stack([groups["up"][name] for _, (_, groups) in answers.items()]).astype(
                np.float64
            )
            for name in first
        }

    def _empty(self, uploads: Arrays, plan: Plan) -> Inbox:
        """The inbox of a round that nobody needs to take part in."""
        if self.job.channel.secure_aggregation:
            return self.sums.inbox(nothing(uploads), plan)
        return self.mailbox.up(uploads, plan)

    # ------------------------------------------------------------------ what is kept
    def _reveal(self, answers: Answers) -> None:
        if not self.revealed:
            return
        who = np.array(sorted(answers), dtype=np.int64)
        shown = [answers[client][1].get("simulation_only", {}) for client in who.tolist()]
        if len(who) and self.clients:
            rows = {name: np.stack([state[name] for state in shown]) for name in self.clients}
            self.clients = put(self.clients, who, rows)

    def _round(
        self, index: int, server: Any, products: int, seconds: float, moved: tuple[int, int]
    ) -> Round:
        estimate = self.algorithm.estimate(server, self.clients)
        state = self.algorithm.exposed(self.clients) if self.revealed else {}
        return Round(index, estimate, moved[0], moved[1], products, seconds, state)

    def trace(self) -> Trace:
        """The same trace as that of a run in one process."""
        done, setting, channel = self._done, self.setting, self.job.channel
        require(len(done) > 0, "Nothing has been computed yet; take at least one step first.")
        return Trace(
            algorithm=self.algorithm,
            setting=setting,
            seed=self.job.seed,
            estimates=np.stack([entry.estimate for entry in done]),
            states=tuple(entry.state for entry in done) if self.revealed else None,
            bytes_up=np.cumsum([entry.bytes_up for entry in done]),
            bytes_down=np.cumsum([entry.bytes_down for entry in done]),
            local_products=np.cumsum([entry.local_products for entry in done]),
            seconds=np.cumsum([entry.seconds for entry in done]),
            transcript=Transcript(
                features=setting.features,
                clients=setting.clients,
                samples=setting.samples,
                weights=setting.weights,
                secure_aggregation=channel.secure_aggregation,
                dtype=channel.dtype,
                exchanges=tuple(self.mailbox.exchanges),
            ),
        )
