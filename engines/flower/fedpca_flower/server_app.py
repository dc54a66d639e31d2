"""The Flower app of the server: the loop of every run, with clients that are nodes of a grid."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedpca_core.arrays import Arrays, put
from fedpca_core.errors import InvalidInput
from fedpca_core.protocol.agreed import check_agreed
from fedpca_core.protocol.algorithm import Inbox, Plan, ServerState
from fedpca_core.protocol.run import Finish, Run
from fedpca_core.protocol.trace import Trace
from fedpca_core.protocol.trace_file import save_trace
from fedpca_flower.declared import of_one
from fedpca_flower.job import FedJob
from fedpca_flower.journal import Journal
from fedpca_flower.questions import Questions
from fedpca_flower.records import whole
from fedpca_flower.roster import Answers, Roster

app = ServerApp()


class GridRun(Run):
    """`Run` says what happens in a round; this says how clients hear of it and answer."""

    def __init__(self, job: FedJob, roster: Roster) -> None:
        channel = replace(job.channel, upload_noise=0.0)  # clients add it themselves
        check_agreed(job.algorithm, channel)
        setting = job.setting([roster.facts[client] for client in range(job.clients)])
        super().__init__(job.algorithm, setting, channel, rounds=job.rounds, seed=job.seed)
        self.ask, self.products = Questions(job, roster, setting, self.mailbox), 0

    def begin(self) -> ServerState:
        self.public = self.ask.agree(self.opening)
        self.products += self.ask.products
        server, everyone = self.algorithm.start(self.public, self.setting, self.streams)
        self.nobody = {name: array[:0] for name, array in everyone.items()}
        self.ask.states = of_one(everyone)
        answers = self.ask.start()
        self._keep_states = self.setting.clients == sum(s["shows"] for s, _ in answers.values())
        self.ask.shown = self._keep_states
        self.clients = everyone if self._keep_states else self.nobody  # seen in simulations only
        self._heard(answers)
        return server

    def collect(self, plan: Plan, down: Arrays, server: ServerState) -> tuple[Plan, Inbox, Finish]:
        nobody = plan.keep(np.zeros(len(plan.participants), dtype=bool))
        none = self.public.only(nobody.participants), self.nobody
        nothing, _ = self.algorithm.client(*none, nobody, down, self.streams)
        if len(plan.participants):
            plan, inbox, answers = self.ask.round(plan, server, nothing)
            self._heard(answers)
        else:  # nobody is needed, and the server's step still reads messages by name
            inbox = self.ask.inbox(nothing, plan)

        def finish(feedback: Arrays | None) -> None:
            if feedback is not None:
                self._heard(self.ask.settle(plan.participants.tolist(), feedback))

        return plan, inbox, finish

    def _heard(self, answers: Answers) -> None:
        self.products += sum(said["products"] for said, _ in answers.values())
        if self._keep_states and answers:
            shown = [groups.get("simulation_only", {}) for _, groups in answers.values()]
            rows = {name: np.stack([state[name] for state in shown]) for name in self.nobody}
            self.clients = put(self.clients, np.array(list(answers), dtype=np.int64), rows)


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
    deployment.ask.settle(range(job.clients))
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
        told.update({"rounds": trace.rounds, "left out": deployment.ask.roster.left_out})

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
