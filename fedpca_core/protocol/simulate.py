"""Run an algorithm on a problem, round by round."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cache

import numpy as np

from fedpca_core.arrays import IntArray, put, take
from fedpca_core.errors import InvalidInput, require
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.algorithm import Algorithm, Setting
from fedpca_core.protocol.channel import Channel, Mailbox
from fedpca_core.protocol.trace import Round, Trace
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.streams import Streams

#: A block of this many bytes, freed once, makes glibc keep up to twice as much for the next run.
KEPT_BYTES = 31 * 1024 * 1024
#: Local frames are kept for consensus gaps while a whole run of them stays below this.
FRAME_BYTES = 256 * 1024 * 1024


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
        )
        algorithm.check(self.setting)
        if algorithm.needs_individual_uploads and self.channel.secure_aggregation:
            raise InvalidInput(
                f"{algorithm.title} needs every client's own upload at the server, which secure "
                "aggregation hides; switch secure aggregation off or choose a method that needs "
                "sums only."
            )
        self.algorithm = algorithm
        self.planned = rounds
        self.seed = seed
        self.client_data = problem.client_data.metered()
        self.streams = Streams(seed)
        self.mailbox = Mailbox(
            self.channel, self.setting, self.streams, reuse_uploads=algorithm.reuses_uploads
        )
        self._keep_rounds = keep_rounds
        self._rounds: list[Round] = []

    def __iter__(self) -> Iterator[Round]:
        algorithm, data = self.algorithm, self.client_data
        began = time.perf_counter()
        server, clients = algorithm.start(data, self.setting, self.streams)
        elapsed = time.perf_counter() - began
        first = algorithm.frames(server, clients)
        keep = first is not None and first.nbytes * (self.planned + 1) <= FRAME_BYTES
        products = int(data.products.sum())
        yield self._add(
            Round(
                0,
                algorithm.estimate(server, clients),
                0,
                0,
                products,
                elapsed,
                first if keep else None,
            )
        )
        for index in range(1, self.planned + 1):
            sent = self.mailbox.bytes_up, self.mailbox.bytes_down
            began = time.perf_counter()
            plan = algorithm.plan(server, index, self.setting, self.streams)
            present = plan.participants
            recipients = len(present) if plan.recipients is None else plan.recipients
            downlink = self.mailbox.down(plan.downlink, recipients)
            members = data if len(present) == data.clients else data.only(present)
            uplink, stepped = algorithm.client(
                members, take(clients, present), plan, downlink, self.streams
            )
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
            self.mailbox.record(plan, downlink, inbox, feedback)
            spent = int(data.products.sum()) - products
            products += spent
            yield self._add(
                Round(
                    index,
                    algorithm.estimate(server, clients),
                    self.mailbox.bytes_up - sent[0],
                    self.mailbox.bytes_down - sent[1],
                    spent,
                    elapsed,
                    algorithm.frames(server, clients) if keep else None,
                )
            )
            if plan.stop or reply.stop:
                return

    def _add(self, finished: Round) -> Round:
        if self._keep_rounds:
            self._rounds.append(finished)
        return finished

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
        frames = [entry.frames for entry in done]
        kept = [frame for frame in frames if frame is not None]
        return Trace(
            algorithm=self.algorithm,
            setting=self.setting,
            seed=self.seed,
            estimates=np.stack([entry.estimate for entry in done]),
            local_frames=tuple(kept) if len(kept) == len(frames) else None,
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
    run = Simulation(
        problem,
        algorithm,
        rounds=rounds,
        seed=seed,
        participation=participation,
        absent=absent,
        channel=channel,
    )
    for _ in run:
        pass
    return run.trace()


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
