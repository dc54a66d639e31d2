"""The Flower app of the server: one loop for every run, which asks its clients with patience."""

import json
import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from itertools import count
from logging import getLogger
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedpca_core.arrays import Array, Arrays, IntArray, put
from fedpca_core.errors import InvalidInput
from fedpca_core.protocol.algorithm import Inbox, Plan, ServerState, Setting, Uploads
from fedpca_core.protocol.run import Finish, Run, agree, check_agreed
from fedpca_core.protocol.trace import Trace
from fedpca_core.protocol.trace_file import save_trace
from fedpca_core.streams import Streams
from fedpca_flower.declared import COUNT, FLAG, SHOWN, Declared, Shapes, ValueRule, of_one
from fedpca_flower.job import FedJob
from fedpca_flower.journal import Journal
from fedpca_flower.one_of_many import NoneOfMany
from fedpca_flower.records import on_the_wire, whole
from fedpca_flower.roster import Answers, Roster
from fedpca_flower.sums import SecureSums

_LOG = getLogger("fedpca_flower")
#: Seconds between two attempts at a round.
_PAUSE = 0.1

app = ServerApp()


class GridRun(Run):
    """`Run` says what happens in a round; this says how clients hear of it and answer.

    Every message tells its client which of its rounds was the last that counted, and carries the
    feedback (``owed``) that the client has missed.
    """

    def __init__(self, job: FedJob, roster: Roster) -> None:
        channel = replace(job.channel, upload_noise=0.0)  # clients add it themselves
        check_agreed(job.algorithm, channel)
        setting = job.setting([roster.facts[client] for client in range(job.clients)])
        super().__init__(job.algorithm, setting, channel, rounds=job.rounds, seed=job.seed)
        self.job, self.roster, self.products = job, roster, 0
        # Anybody may fall silent, so last uploads stand in at full participation, too.
        self.mailbox.reuse = job.algorithm.reuses_uploads and job.absent == "memory"
        secure = channel.secure_aggregation
        self.sums = SecureSums(roster, self.mailbox, job.secure_bound) if secure else None
        self._facts: dict[str, Array] = {}
        #: A client's state, which the server knows from simulations, and whether it sees it.
        self._states: Shapes = {}
        self._shown = False
        self._started: set[tuple[str, int]] = set()
        self._counted = dict.fromkeys(range(setting.clients), 0)
        self._owed: dict[int, Arrays] = {}

    # ------------------------------------------------------------------ before the first round
    def begin(self) -> ServerState:
        setting = self.setting
        self._facts = agree(self.algorithm, self, self.opening)
        self.roster.bytes_up = self.roster.bytes_down = 0  # counted by ``opening``
        self.public = NoneOfMany.facts_only(
            setting.features, setting.samples, setting.weights, self._facts
        )
        server, everyone = self.algorithm.start(self.public, setting, self.streams)
        self.nobody = {name: array[:0] for name, array in everyone.items()}
        self._states = of_one(everyone)
        answers = self._start()
        self._shown = setting.clients == sum(said["shows"] for said, _ in answers.values())
        self._keep_states = self._shown
        self.clients = everyone if self._shown else self.nobody  # seen in simulations only
        self._heard(answers)
        return server

    def spectral_norms(self) -> Array:
        """||S_i||_2 as each client has told with its size, (clients,)."""
        told = [self.roster.facts[client] for client in range(self.setting.clients)]
        return np.array([one["spectral_norm"] for one in told])

    def apply(self, frames: Array) -> Array:
        """S_i X of every client, all of whom must answer, (clients, features, columns)."""
        everybody: dict[int, Any] = {client: {} for client in range(self.setting.clients)}
        down = on_the_wire({"frame": frames}, self.channel.dtype)
        most = self.job.largest(self.setting) * float(np.linalg.norm(frames, 2))
        one = of_one({"product": frames[None]}, self.channel.dtype)
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

    def _start(self) -> Answers:
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
    def collect(self, plan: Plan, server: ServerState) -> tuple[Plan, Inbox, Finish]:
        nobody = plan.keep(np.zeros(len(plan.participants), dtype=bool))
        none = self.public.only(nobody.participants), self.nobody
        nothing, _ = self.algorithm.client(*none, nobody, self.streams)
        if len(plan.participants):
            plan, inbox, answers = self._round(plan, server, nothing)
            self._heard(answers)
        else:  # nobody is needed, and the server's step still reads messages by name
            inbox = self._inbox(nothing, plan)

        def finish(feedback: Arrays | None) -> None:
            if feedback is not None:
                self._heard(self.settle(plan.participants.tolist(), feedback))

        return plan, inbox, finish

    def _heard(self, answers: Answers) -> None:
        self.products += sum(said["products"] for said, _ in answers.values())
        if self._keep_states and answers:
            shown = [groups.get("simulation_only", {}) for _, groups in answers.values()]
            rows = {name: np.stack([state[name] for state in shown]) for name in self.nobody}
            self.clients = put(self.clients, np.array(list(answers), dtype=np.int64), rows)

    def _round(
        self, plan: Plan, server: ServerState, nothing: Arrays
    ) -> tuple[Plan, Inbox, Answers]:
        """Ask the participants until enough have answered; the plan for those who have.

        ``nothing``: The uploads of nobody, (0, ...), which declare those of everybody.

        Raises InvalidInput: too few answered within the job's patience, or the method cannot do
        without somebody who was left out.
        """
        planned = set(plan.participants.tolist())
        # Who came late to a sum that waits for all would be asked alone, which no sum hides.
        together = self.sums is not None and self.job.waits
        needed = planned if together else planned & set(self.algorithm.indispensable)
        end = time.monotonic() + self.job.patience
        for attempt in count():
            self.roster.refresh()
            self._start()
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
                    return plan, self._inbox(received, plan), answers
            if time.monotonic() >= end:
                break
            time.sleep(_PAUSE)
        raise InvalidInput(
            f"Round {plan.round} got too few answers within {self.job.patience:g} seconds "
            f"(asked: clients {sorted(planned)}, not to be missed: {sorted(needed)}); see "
            "whether their nodes run, or be more patient (patience, timeout). "
            f"{self.roster.refusal()}"
        )

    def _inbox(self, uploads: Arrays, plan: Plan) -> Inbox:
        """What the server receives of a round: single uploads, or the sum that was opened."""
        inbox = (self.mailbox.up if self.sums is None else self.sums.inbox)(uploads, plan)
        self._meter()
        return inbox

    def settle(self, clients: Collection[int], feedback: Arrays | None = None) -> Answers:
        """Say whether the last step counted; who misses feedback gets it with the next message."""
        if feedback is not None:
            down = on_the_wire(feedback, self.channel.dtype)
            self._owed |= dict.fromkeys(clients, down)
        answers = self._told("settle", {client: {} for client in clients}, self._declared())
        self._meter()
        return answers

    # ------------------------------------------------------------------ one question
    def _declared(self, told: Mapping[str, ValueRule] | None = None, **upload: Any) -> Declared:
        plain = {"products": COUNT, "shows": SHOWN if self._shown else FLAG, **(told or {})}
        return Declared(plain, shown=self._states, **upload)

    def _upload(self, nothing: Arrays, plan: Plan) -> Declared:
        """What an answer to this round's question holds, from the uploads of nobody."""
        if self.sums is not None:
            words = sum(math.prod(array.shape[1:]) for array in nothing.values())
            return self._declared(
                {"unread": self.sums.unread}, up={"words": ((words,), "uint64")}, instead="unread"
            )
        up, method = of_one(nothing, self.channel.dtype), self.algorithm
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
                f"Round {plan.round} of {self.algorithm.title} cannot be finished without "
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
        down = on_the_wire(plan.downlink, self.channel.dtype)
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
        again = self.algorithm.plan(server, plan.round, setting, self.streams)
        if np.array_equal(again.participants, arrived):
            return replace(again, downlink=plan.downlink)
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


def run(
    grid: Grid,
    job: FedJob,
    journal: Journal | None = None,
    heard: Callable[[GridRun], None] = lambda _: None,
) -> Trace:
    """Run a job on the clients of a grid; ``heard`` is called after every round.

    Raises InvalidInput: the run cannot be finished.
    """
    deployment = GridRun(job, Roster.gathered(grid, job, journal or Journal(job)))
    for _ in deployment:
        heard(deployment)
    deployment.settle(range(job.clients))
    return deployment.trace()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run what the run configuration asks for; what came of it is in files (``out``).

    A run that cannot be finished ends with a sentence, not with an exception: it is in
    ``….result.json`` with who was left out and why, and the rounds so far are in ``….so-far.npz``.
    With ``resume`` a run that was stopped goes on from ``….journal``.
    """
    out = Path(str(context.run_config.get("out", "trace.npz")))
    so_far = out.with_suffix(".so-far.npz")
    told: dict[str, Any] = {"finished": False, "rounds": 0, "left out": {}}

    def heard(deployment: GridRun) -> None:
        trace = deployment.trace()
        with whole(so_far, private=False) as file:
            save_trace(trace, file)
        told.update({"rounds": trace.rounds, "left out": deployment.roster.left_out})

    try:
        job, resume = FedJob.of(context.run_config), bool(context.run_config.get("resume"))
        journal = Journal(job, out.with_suffix(".journal"), resume=resume)
        guarantee = run(grid, job, journal, heard).setting.guarantee
        told["guarantee"] = guarantee and guarantee.sentence()
        so_far.replace(out)
        journal.close()
        told |= {"finished": True, "said": f"All rounds are done; the trace is {out}."}
    except InvalidInput as refusal:
        told["said"] = str(refusal)
    with whole(out.with_suffix(".result.json"), private=False) as file:
        file.write(json.dumps(told, ensure_ascii=False, indent=1).encode())
    print(told["said"], told.get("guarantee") or "", flush=True)
