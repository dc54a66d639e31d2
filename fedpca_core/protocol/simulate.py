"""Run an algorithm on a problem, round by round."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from fedpca_core.arrays import IntArray, put, take
from fedpca_core.errors import InvalidInput, require, require_whole
from fedpca_core.linalg.threads import one_thread
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_core.protocol.channel import Channel, Mailbox
from fedpca_core.protocol.linear_answers import LinearAnswers, check_channel
from fedpca_core.protocol.trace import STATE_BYTES, Round, Trace
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.streams import Streams

#: A block of this many bytes, freed once, makes glibc keep up to twice as much for the next run.
KEPT_BYTES = 31 * 1024 * 1024


class Simulation:
    """A run in progress: iterate to advance it; `trace` gives what has been computed so far.

    Parameters are those of `simulate`, and ``keep_rounds``: False drops every round once it has
    been yielded, so that long runs of many personal models fit in memory; `trace` is then refused.
    """

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
        require_whole("The number of rounds", rounds)
        require(rounds >= 1, f"A run needs at least 1 round, not {rounds}.")
        _keep_freed_memory()
        self.channel = channel or Channel()
        self.setting = Setting(
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
        )
        algorithm.check(self.setting)
        if algorithm.needs_individual_uploads and self.channel.secure_aggregation:
            raise InvalidInput(
                f"{algorithm.title} needs every client's own upload at the server, which secure "
                "aggregation hides; switch secure aggregation off or choose a method that needs "
                "sums only."
            )
        self.sums_only = problem.source is not None and problem.source.trust is not None
        if self.sums_only or algorithm.shares_noise:
            check_channel(self.channel.secure_aggregation, participation)
        self.algorithm = algorithm
        self.planned = rounds
        self.seed = seed
        self.client_data = problem.client_data.metered()
        self.streams = Streams(seed)
        self.mailbox = Mailbox(
            self.channel, self.setting, self.streams, reuse_uploads=algorithm.reuses_uploads
        )
        self._keep_rounds = keep_rounds
        self._keep_states = keep_rounds
        self._rounds: list[Round] = []

    def __iter__(self) -> Iterator[Round]:
        rounds = self._steps()
        limit = one_thread(self.setting.features)
        while True:
            with limit:  # while a round is computed, not while the caller looks at it
                finished = next(rounds, None)
            if finished is None:
                return
            if self._keep_rounds:
                self._rounds.append(self._kept(finished))
            yield finished

    def finish(self) -> Trace:
        """Run to the end without a look at the rounds; the whole trace."""
        with one_thread(self.setting.features):  # once for all rounds
            self._rounds += map(self._kept, self._steps())
        return self.trace()

    def _steps(self) -> Iterator[Round]:
        algorithm, data = self.algorithm, self.client_data
        began = time.perf_counter()
        asked = LinearAnswers(data).as_data() if self.sums_only else data
        server, clients = algorithm.start(asked, self.setting, self.streams)
        elapsed = time.perf_counter() - began
        products = int(data.products.sum())
        estimate, state = algorithm.estimate(server, clients), algorithm.exposed(clients)
        yield Round(0, estimate, 0, 0, products, elapsed, state)
        for index in range(1, self.planned + 1):
            began = time.perf_counter()
            plan = algorithm.plan(server, index, self.setting, self.streams)
            present = plan.participants
            recipients = len(present) if plan.recipients is None else plan.recipients
            downlink = self.mailbox.down(plan.downlink, recipients)
            members = data if len(present) == data.clients else data.only(present)
            answers = LinearAnswers(members, plan) if self.sums_only else None
            if answers is not None:
                members = answers.as_data()
            uplink, stepped = algorithm.client(
                members, take(clients, present), plan, downlink, self.streams
            )
            if answers is not None:
                answers.check(uplink)
            inbox = self.mailbox.up(uplink, plan)
            reply = algorithm.server(server, inbox, plan)
            server = reply.state
            feedback = None
            if reply.feedback is not None:
                heard = len(present) if reply.recipients is None else reply.recipients
                feedback = self.mailbox.down(reply.feedback, heard)
                stepped = algorithm.finish(members, stepped, plan, feedback)
            clients = put(clients, present, stepped)
            elapsed = time.perf_counter() - began
            exchange = self.mailbox.record(plan, downlink, inbox, feedback)
            spent = int(data.products.sum()) - products
            products += spent
            yield Round(
                index,
                algorithm.estimate(server, clients),
                exchange.bytes_up,
                exchange.bytes_down,
                spent,
                elapsed,
                algorithm.exposed(clients),
            )
            if plan.stop or reply.stop:
                return

    def _kept(self, finished: Round) -> Round:
        """What the trace keeps of a round: all of it, unless the states of a run get too large."""
        if finished.index == 0:
            largest = max((array.nbytes for array in finished.state.values()), default=0)
            self._keep_states = largest * (self.planned + 1) <= STATE_BYTES
        return finished if self._keep_states else replace(finished, state={})

    @property
    def participants(self) -> IntArray:
        """Who took part in the latest round; nobody before the first."""
        exchanges = self.mailbox.exchanges
        return exchanges[-1].participants if exchanges else np.empty(0, dtype=np.int64)

    def trace(self) -> Trace:
        """Everything computed so far as an immutable trace.

        Raises
        ------
        InvalidInput
            Nothing has been computed yet.
        """
        done = self._rounds
        require(
            self._keep_rounds,
            "This run does not keep its rounds; start it with keep_rounds=True to read a trace.",
        )
        require(len(done) > 0, "Nothing has been computed yet; take at least one step first.")
        return Trace(
            algorithm=self.algorithm,
            setting=self.setting,
            seed=self.seed,
            estimates=np.stack([entry.estimate for entry in done]),
            states=tuple(entry.state for entry in done) if self._keep_states else None,
            bytes_up=np.cumsum([entry.bytes_up for entry in done]),
            bytes_down=np.cumsum([entry.bytes_down for entry in done]),
            local_products=np.cumsum([entry.local_products for entry in done]),
            seconds=np.cumsum([entry.seconds for entry in done]),
            transcript=Transcript(
                features=self.setting.features,
                clients=self.setting.clients,
                samples=self.setting.samples,
                weights=self.setting.weights,
                secure_aggregation=self.channel.secure_aggregation,
                dtype=self.channel.dtype,
                exchanges=tuple(self.mailbox.exchanges),
            ),
        )


@cache
def _keep_freed_memory() -> None:
    """Let the messages of one run be written where those of the run before were.

    A run leaves thousands of arrays of some ten kilobytes. glibc hands freed memory back to the
    system above a threshold that starts at 128 kB, and every page fetched again costs more than
    the product written to it (up to a fifth of a run). The threshold rises to twice the largest
    mapped block freed so far, so one that is never touched, hence costs nothing, raises it.
    Other allocators take no notice.
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

    Parameters
    ----------
    problem : Problem
    algorithm : Algorithm
        Frozen parameters, for example ``FAPS(components=10, inner_steps=5)``.
    rounds : int
        Communication rounds; an algorithm may stop earlier (one-shot averaging).
    seed : int
        Seed of all named streams of the run.
    participation : float
        Share of clients present in a round, in (0, 1]: a subset of fixed size drawn each round.
    absent : {"memory", "present"}
        Whether the server reuses the last upload of each absent client or sums those present.
    channel : Channel, optional
        Precision, secure aggregation, noise and recording; float64, none, none and full.

    Raises
    ------
    InvalidInput
        Parameters that do not fit the problem or each other.
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


def stream(
    problem: Problem,
    algorithm: Algorithm,
    *,
    rounds: int,
    seed: int = 0,
    participation: float = 1.0,
    absent: str = "memory",
    channel: Channel | None = None,
) -> Iterator[Round]:
    """Yield the rounds of `simulate` one by one, the start first: what live views use."""
    yield from Simulation(
        problem,
        algorithm,
        rounds=rounds,
        seed=seed,
        participation=participation,
        absent=absent,
        channel=channel,
        keep_rounds=False,
    )
