"""Replaying a client of any deterministic method, with numerical derivatives.

A client step is a pure function over a batch of clients, so a batch of candidate matrices is simply
client data of imagined clients: one stacked replay answers for hundreds of them. Methods with a
replay of their own (FAPS) are faster and start from more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks.replay_model import Entries, Guess
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Algorithm, Plan, Setting
from fedpca_core.protocol.transcript import Exchange, Transcript
from fedpca_core.streams import Streams

#: Candidates replayed together.
_BATCH = 256
#: Step of the central differences, relative to the size of the matrix.
_DIFFERENCE = 1e-6


class AnyReplay:
    """Replay of one client through its algorithm's own steps.

    Parameters
    ----------
    algorithm : Algorithm
        Public parameters; the client step must draw nothing at random.
    transcript : Transcript
    client : int
    """

    def __init__(self, algorithm: Algorithm, transcript: Transcript, client: int) -> None:
        self.algorithm = algorithm
        self.seen = transcript.seen(client)
        self.entries = Entries.of(transcript.features)
        self.size = self.entries.count
        self.samples = int(transcript.samples[client])
        self.features = transcript.features

    def target(self, rounds: int) -> Array:
        """Recorded uploads of the client's first rounds, flat."""
        recorded = [
            exchange.uploads[name][row].ravel()
            for exchange, row in self.seen[:rounds]
            if exchange.uploads is not None
            for name in sorted(exchange.uploads)
        ]
        return np.concatenate(recorded)

    def answers(self, guess: Guess, rounds: int) -> tuple[Array, int]:
        """Uploads this guess would have sent, flat, and the number of rounds replayed."""
        return self._batch(guess.matrix[None], rounds)[0], rounds

    def jacobian(self, guess: Guess, played: int) -> Array:
        """Derivative of the answers by central differences, (equations, size)."""
        length = _DIFFERENCE * max(float(np.linalg.norm(guess.matrix)), np.finfo(float).tiny)
        columns = np.empty((len(self.target(played)), self.size))
        for begin in range(0, self.size, _BATCH // 2):
            block = np.arange(begin, min(begin + _BATCH // 2, self.size))
            steps = np.zeros((len(block), self.size))
            steps[np.arange(len(block)), block] = length
            forward = [self.entries.add(guess.matrix, step) for step in steps]
            backward = [self.entries.add(guess.matrix, -step) for step in steps]
            both = self._batch(np.stack(forward + backward), played)
            columns[:, block] = ((both[: len(block)] - both[len(block) :]) / (2 * length)).T
        return columns

    def move(self, guess: Guess, step: Array) -> Guess:
        """The guess after a step in the fitted directions."""
        return replace(guess, matrix=self.entries.add(guess.matrix, step))

    def _batch(self, matrices: Array, rounds: int) -> Array:
        """Answers of many candidates, (candidates, equations)."""
        count = len(matrices)
        samples = np.full(count, self.samples, dtype=np.int64)
        client_data = ClientData.from_grams(matrices, samples, np.ones(count))
        setting = Setting(self.features, count, samples, np.full(count, 1.0 / count))
        streams = Streams(0)
        _, clients = self.algorithm.start(client_data, setting, streams)
        everyone = np.arange(count, dtype=np.int64)
        answers: list[Array] = []
        for exchange, _ in self.seen[:rounds]:
            plan = _plan(exchange, everyone)
            uplink, clients = self.algorithm.client(
                client_data, clients, plan, exchange.downlink, streams
            )
            answers += [uplink[name].reshape(count, -1) for name in sorted(uplink)]
            if exchange.feedback is not None:
                clients = self.algorithm.finish(client_data, clients, plan, exchange.feedback)
        return np.concatenate(answers, axis=1)


def _plan(exchange: Exchange, candidates: IntArray) -> Plan:
    return Plan(
        round=exchange.round,
        participants=candidates,
        weights=np.ones(len(candidates)),
        downlink=exchange.downlink,
        local_steps=exchange.local_steps,
    )
