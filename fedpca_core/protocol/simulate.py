"""Run an algorithm on a problem, round by round."""

from dataclasses import replace
from functools import cache, partial

import numpy as np

from fedpca_core.arrays import Arrays, put, take
from fedpca_core.linalg.threads import one_thread
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.algorithm import Algorithm, Inbox, Plan, ServerState, Setting
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.linear_answers import LinearAnswers, check_channel
from fedpca_core.protocol.run import Finish, Run, agree, check_agreed
from fedpca_core.protocol.trace import Trace

#: A block of this many bytes, freed once, makes glibc keep up to twice as much for the next run.
KEPT_BYTES = 31 * 1024 * 1024


def setting_of(problem: Problem, participation: float = 1.0, absent: str = "memory") -> Setting:
    """What everybody knows of a run on a problem."""
    return Setting(
        features=problem.features,
        clients=problem.clients,
        samples=problem.client_data.samples,
        weights=problem.client_data.weights,
        participation=participation,
        absent=absent,
        record_norm=problem.record_norm,
        own_moments=problem.own_moments,
        guarantee=problem.guarantee,
        paid_mean=problem.paid_mean,
        public=problem.public,
    )


class Simulation(Run):
    """A run whose clients are in this process; parameters are as for `simulate` and `Run`."""

    def __init__(
        self,
        problem: Problem,
        algorithm: Algorithm,
        *,
        rounds: int,
        seed: int = 0,
        participation: float = 1.0,
        absent: str = "memory",
        channel: Channel | None = None,
        keep_rounds: bool = True,
    ) -> None:
        _keep_freed_memory()
        setting = setting_of(problem, participation, absent)
        channel = channel or Channel()
        super().__init__(
            algorithm, setting, channel, rounds=rounds, seed=seed, keep_rounds=keep_rounds
        )
        self.sums_only = problem.source is not None and problem.source.trust is not None
        if self.sums_only or algorithm.shares_noise:
            check_channel(channel.secure_aggregation, participation)
        else:
            check_agreed(algorithm, channel)
        self.client_data = problem.client_data.metered()

    @property
    def products(self) -> int:  # type: ignore[override]
        return int(self.client_data.products.sum())

    def begin(self) -> ServerState:
        data = self.client_data
        asked = LinearAnswers(data).as_data() if self.sums_only else data
        if agreed := agree(self.algorithm, asked, self.opening):
            asked = replace(asked, facts=asked.facts | agreed)
        server, self.clients = self.algorithm.start(asked, self.setting, self.streams)
        return server

    def collect(self, plan: Plan, server: ServerState) -> tuple[Plan, Inbox, Finish]:
        data, present = self.client_data, plan.participants
        members = data if len(present) == data.clients else data.only(present)
        answers = LinearAnswers(members, plan) if self.sums_only else None
        if answers is not None:
            members = answers.as_data()
        with one_thread():  # the clients of a round share the threads among them
            uplink, stepped = self.algorithm.client(
                members, take(self.clients, present), plan, self.streams
            )
        if answers is not None:
            answers.check(uplink)

        def finish(feedback: Arrays | None) -> None:
            heard = stepped
            if feedback is not None:
                heard = self.algorithm.finish(members, stepped, plan, feedback)
            self.clients = put(self.clients, present, heard)

        return plan, self.mailbox.up(uplink, plan), finish


@cache
def _keep_freed_memory() -> None:
    """Let the messages of one run be written where those of the run before were.

    A run leaves thousands of arrays of some ten kilobytes. glibc hands freed memory back to the
    system above a threshold that starts at 128 kB, and every page fetched again costs more than the
    product written to it (up to a fifth of a run). The threshold rises to twice the largest mapped
    block freed so far, so one that is never touched, hence costs nothing, raises it. Other
    allocators take no notice.
    """
    np.empty(KEPT_BYTES, dtype=np.uint8)


def simulate(
    problem: Problem,
    algorithm: Algorithm,
    *,
    rounds: int,
    seed: int = 0,
    participation: float = 1.0,
    absent: str = "memory",
    channel: Channel | None = None,
) -> Trace:
    """Run ``algorithm`` for up to ``rounds`` rounds and return the whole trace.

    Args:
        algorithm: Frozen parameters, for example ``FAPS(components=10, inner_steps=5)``.
        rounds: Communication rounds; an algorithm may stop earlier (one-shot averaging).
        participation: Share of clients present in a round, in (0, 1]: a subset of fixed size drawn
            each round.
        absent: {"memory", "present"}: Whether the server reuses the last upload of each absent
            client or sums those present.
        channel: Precision, secure aggregation, noise and recording; float64, none, none and full.

    Raises InvalidInput: parameters that do not fit the problem or each other.
    """
    return Simulation(
        problem,
        algorithm,
        rounds=rounds,
        seed=seed,
        participation=participation,
        absent=absent,
        channel=channel,
    ).finish()


#: The rounds of a run one by one, the start first, of which nothing is kept: what live views use.
stream = partial(Simulation, keep_rounds=False)
