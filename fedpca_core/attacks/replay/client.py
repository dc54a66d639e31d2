"""Replaying a FAPS client with a candidate for its private matrix, and how the replay responds.

The update of a FAPS client is public and deterministic, so for any candidate S the server can
compute the uploads that a client holding S would have sent in answer to the recorded broadcasts.
The values come from the algorithm's own client step. The derivatives are analytic: those in all
directions travel through the rounds together, in a handful of matrix products for each inner step,
as stacks (features, directions, columns) that say how a frame moves when the matrix moves in each
direction. Only the span of a frame matters to everything a client sends, so their derivatives are
kept orthogonal to the frame, and normalisations between inner steps count as constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.arrays import Array, IntArray
from fedpca_core.linalg.stiefel import orthonormalise, remove_span
from fedpca_core.problems.client_data import ClientData
from fedpca_core.protocol.algorithm import Plan, Setting
from fedpca_core.protocol.transcript import Transcript
from fedpca_core.streams import Streams

#: Directions whose derivatives travel together: so many stay in the processor's cache.
_TOGETHER = 128


@dataclass(frozen=True)
class Candidate:
    """Everything a candidate client is made of, in the model's coordinates."""

    #: (features, features) float64, symmetric.
    matrix: Array
    #: First beta_i where it is fitted or known; None where it follows from the matrix.
    penalty: float | None = None
    #: (features, components) float64 or None: Hidden start; None: the first broadcast.
    frame: Array | None = None
    #: Inner steps in each of the client's rounds where they are not public.
    steps: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Entries:
    """Unknown entries of a symmetric matrix, as coordinates of unit Frobenius length."""

    #: rows, columns: (count,) int64: Positions, row <= column; the mirrored entry follows.
    rows: IntArray
    columns: IntArray
    #: The entries between so many leading features and the rest are known.
    known: int = 0

    @classmethod
    def of(cls, features: int, known: int = 0) -> Entries:
        """All entries, or all but the block between the first ``known`` features and the rest."""
        rows, columns = np.triu_indices(features)
        free = ~((rows < known) & (columns >= known))
        return cls(rows[free], columns[free], known)

    def __getitem__(self, some: slice) -> Entries:
        return Entries(self.rows[some], self.columns[some], self.known)

    @property
    def count(self) -> int:
        return len(self.rows)

    @property
    def scale(self) -> Array:
        """c with dS = c (e_a e_b^T + e_b e_a^T): 1/2 on the diagonal, 1/sqrt(2) off it."""
        return np.where(self.rows == self.columns, 0.5, np.sqrt(0.5))

    def add(self, matrix: Array, step: Array) -> Array:
        change = np.zeros_like(matrix)
        change[self.rows, self.columns] = self.scale * step
        return matrix + change + change.T

    def coordinates(self, matrix: Array) -> Array:
        return np.asarray(2.0 * self.scale * matrix[self.rows, self.columns])

    def quadratic(self, vector: Array) -> Array:
        """Derivative of ``v^T S v`` in these coordinates."""
        return np.asarray(2.0 * self.scale * vector[self.rows] * vector[self.columns])

    def accumulate(self, into: Array, frame: Array) -> None:
        """Add ``dS V`` of every coordinate to derivatives (features, directions, columns)."""
        each = np.arange(self.count)
        into[self.rows, each] += self.scale[:, None] * frame[self.columns]
        into[self.columns, each] += self.scale[:, None] * frame[self.rows]


@dataclass(frozen=True)
class Message:
    """One round of the attacked client: its number, the frame received, the upload."""

    round: int
    frame: Array
    upload: Array


@dataclass(frozen=True)
class ReplayedRound:
    """A replayed round: state before it, penalty and inner steps in it, answer."""

    frame: Array
    multiplier: Array
    penalty: float
    steps: int
    answer: Array


class FapsReplay:
    """Replay of one client from its messages, in the coordinates of the guesses."""

    def __init__(
        self,
        algorithm: FAPS,
        transcript: Transcript,
        client: int,
        messages: Sequence[Message],
        entries: Entries,
        *,
        fit_penalty: bool = False,
        fit_frame: bool = False,
    ) -> None:
        self.algorithm = algorithm
        self.messages = messages
        self.fit_penalty, self.fit_frame = fit_penalty, fit_frame
        self.entries = entries
        self.features, self.components = messages[0].frame.shape
        self.size = entries.count + fit_penalty
        self.size += fit_frame * self.components * (self.features - self.components)
        # Where the first answer gave its block of the matrix away, no unknown moves that answer.
        quiet = entries.known > 0 and not (fit_penalty or fit_frame)
        #: Numbers of the first answers that no unknown moves.
        self.still = messages[0].upload.size if quiet else 0
        self.weights, self.samples, self.client = transcript.weights, transcript.samples, client
        self._grams = np.zeros((transcript.clients, self.features, self.features))

    # ------------------------------------------------------------------ values
    def target(self, rounds: int) -> Array:
        """Recorded uploads of the client's first rounds, flat."""
        return np.concatenate([message.upload.ravel() for message in self.messages[:rounds]])

    def answers(self, guess: Candidate, rounds: int) -> tuple[Array, list[ReplayedRound]]:
        """What this guess would have uploaded, flat, and the replay itself."""
        self._grams[self.client] = guess.matrix
        whole = ClientData.from_grams(self._grams, self.samples, self.weights)
        client_data = whole.only(np.array([self.client]))
        setting = Setting(self.features, 1, client_data.samples[:1], np.ones(1))
        streams = Streams(0)  # nothing random is left: every secret is part of the guess
        algorithm = replace(self.algorithm, private_penalty=False)
        state = dict(algorithm.start(client_data, setting, streams)[1])
        if guess.penalty is not None:
            state["penalty"] = np.array([guess.penalty])
            state["ceiling"] = np.maximum(state["ceiling"], state["penalty"])
        if guess.frame is not None:
            state["frame"] = guess.frame[None]
        frame = self.messages[0].frame if guess.frame is None else guess.frame
        multiplier = -remove_span(guess.matrix @ frame, frame)
        played: list[ReplayedRound] = []
        for index, message in enumerate(self.messages[:rounds]):
            if guess.steps is not None:
                algorithm = replace(
                    algorithm,
                    inner_rule="fixed",
                    inner_steps=guess.steps[index],
                    random_inner_steps=False,
                )
            downlink = {"frame": message.frame}
            plan = Plan(message.round, np.array([self.client]), np.ones(1), downlink)
            penalty = float(state["penalty"][0])
            uplink, after = algorithm.client(client_data, state, plan, streams)
            state = dict(after)
            steps, answer = int(state["steps"][0]), uplink["product"][0]
            played.append(ReplayedRound(frame, multiplier, penalty, steps, answer))
            frame, multiplier = state["frame"][0], state["multiplier"][0]
        return np.concatenate([mine.answer.ravel() for mine in played]), played

    # ------------------------------------------------------------------ derivatives
    def jacobian(self, guess: Candidate, played: list[ReplayedRound]) -> Array:
        """Derivative of the answers but the `still` first, (answers, size).

        Decisions (inner steps of the rule "auto", raises of the penalty) are those of the replay
        and count as constant.
        """
        rows = self.features * self.components
        result = np.empty((len(played) * rows - self.still, self.size))
        start = self._start_derivative(played[0].frame)
        d_penalty = self._penalty_derivative(guess, played[0].penalty)
        for first in range(0, self.size, _TOGETHER):
            some = slice(first, first + _TOGETHER)
            answers = self._answer_derivatives(
                guess.matrix, played, self.entries[some], start[:, some], d_penalty[some]
            )
            for index, answer in enumerate(answers):
                begin = index * rows - self.still
                if begin >= 0:
                    flat = answer.transpose(0, 2, 1).reshape(rows, -1)
                    result[begin : begin + rows, some] = flat
        return result

    def _answer_derivatives(
        self,
        matrix: Array,
        played: list[ReplayedRound],
        entries: Entries,
        change: Array,
        d_penalty: Array,
    ) -> Iterator[Array]:
        """How every answer moves in some directions, (features, directions, components) each."""
        frame = played[0].frame
        product = matrix @ frame
        d_weight = _multiplier_derivative(entries, matrix, frame, product, change)
        for mine, message in zip(played, self.messages, strict=False):
            received, pull = message.frame, mine.penalty / played[0].penalty * d_penalty
            if mine.steps > 0:
                frame, change = _inner_derivative(
                    entries, matrix, mine, received, change, d_weight, pull
                )
                product = matrix @ frame
                d_weight = _multiplier_derivative(entries, matrix, frame, product, change)
            # Of Q Z with Q = beta X X^T - X W^T - W X^T.
            weight = -remove_span(product, frame)
            along, across = frame.T @ received, weight.T @ received
            d_along, d_across = cross(change, received), cross(d_weight, received)
            answer = times(change, mine.penalty * along - across) - times(d_weight, along)
            answer += times(frame, mine.penalty * d_along - d_across) - times(weight, d_along)
            if pull.any():
                answer += (frame @ along)[:, None, :] * pull[:, None]
            yield answer

    def _start_derivative(self, frame: Array) -> Array:
        change = np.zeros((self.features, self.size, self.components))
        if self.fit_frame:
            outside = complement(frame)
            first, width = self.entries.count, outside.shape[1]
            for column in range(self.components):
                change[:, first : first + width, column] = outside
                first += width
        return change

    def _penalty_derivative(self, guess: Candidate, penalty: float) -> Array:
        derivative = np.zeros(self.size)
        if self.fit_penalty:
            derivative[-1] = penalty  # the unknown is its logarithm
        elif guess.penalty is None:
            top = np.linalg.eigh(guess.matrix)[1][:, -1]
            rule = self.algorithm.penalty_factor
            derivative[: self.entries.count] = rule * self.entries.quadratic(top)
        return derivative

    # ------------------------------------------------------------------ steps
    def move(self, guess: Candidate, step: Array) -> Candidate:
        """The guess after a step in the fitted directions."""
        count = self.entries.count
        matrix = self.entries.add(guess.matrix, step[:count])
        frame, penalty = guess.frame, guess.penalty
        if self.fit_frame and frame is not None:
            outside = complement(frame)
            turn = step[count : count + outside.shape[1] * self.components]
            frame = orthonormalise(frame + outside @ turn.reshape(self.components, -1).T)
        if self.fit_penalty and penalty is not None:
            penalty = penalty * float(np.exp(np.clip(step[-1], -2.0, 2.0)))
        return replace(guess, matrix=matrix, frame=frame, penalty=penalty)


def _multiplier_derivative(
    entries: Entries, matrix: Array, frame: Array, product: Array, change: Array
) -> Array:
    """Derivative of ``W = -(I - X X^T) S X``."""
    image = times(matrix, change)
    entries.accumulate(image, frame)
    inside = frame.T @ product
    return (
        times(frame, times(frame.T, image) + cross(change, product)) + times(change, inside) - image
    )


def _inner_derivative(
    entries: Entries,
    matrix: Array,
    mine: ReplayedRound,
    received: Array,
    change: Array,
    d_weight: Array,
    d_penalty: Array,
) -> tuple[Array, Array]:
    """Frame after the loop of `inner.iterate`, and its derivative, orthogonal to the frame."""
    frame, weight = mine.frame, mine.multiplier
    low = frame @ weight.T
    operator = matrix + low + low.T + mine.penalty * (received @ received.T)
    both = np.concatenate([change, d_weight], axis=2)
    swapped = np.concatenate([weight, frame], axis=1)
    tall = np.concatenate([frame, weight], axis=1)
    pulls = bool(d_penalty.any())
    current, moving = frame, change
    for _ in range(mine.steps):
        image = times(operator, moving)
        entries.accumulate(image, current)
        image += times(both, swapped.T @ current)
        crossed = cross(both, current)
        half = frame.shape[1]
        image += times(tall, np.concatenate([crossed[half:], crossed[:half]]))
        if pulls:
            image += (received @ (received.T @ current))[:, None, :] * d_penalty[:, None]
        pushed = operator @ current
        current = orthonormalise(pushed)
        triangle = np.asarray(np.linalg.inv(current.T @ pushed), dtype=float)
        moving = times(image, triangle)
    return current, moving - times(current, times(current.T, moving))


def complement(frame: Array) -> Array:
    """Orthonormal basis of what is orthogonal to a frame, (features, features - components)."""
    full = np.linalg.qr(frame, mode="complete")[0]
    return np.ascontiguousarray(full[:, frame.shape[1] :])


def times(first: Array, second: Array) -> Array:
    """``matrix @ T``, or ``T @ matrix``, for every direction."""
    return np.asarray(np.tensordot(first, second, axes=1))


def cross(derivatives: Array, frame: Array) -> Array:
    """``T^T frame`` for every direction, (columns of T, directions, columns of the frame)."""
    return times(frame.T, derivatives).transpose(2, 1, 0)
