"""Methods: one round of local work, one average, one local correction; and what a run leaves.

Each is a frozen dataclass of public parameters with a ``step`` over all clients at once. Wire, each
client and round: x_i up and the average down, 8 d bytes each at float64; the multipliers H_i are
computed from the average and never travel. (Deterministic federated learning as inexact Uzawa,
algorithms 1 and 2.)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.consensus.problems import ConsensusProblem
from fedpca_core.errors import require, require_at_least, require_positive
from fedpca_core.streams import Streams

#: A joint solve ends when the average moves by less than this share of it, or after so many solves.
SETTLED, MOST_SOLVES = 1e-14, 10_000
#: Contraction factors below this share of the first norm are round-off, not convergence.
ROUND_OFF = 1e-10
#: A run whose average has grown beyond this has diverged.
DIVERGED = 1e12


@dataclass(frozen=True)
class State:
    """Clients' points and multipliers H, (clients, features); the last average z, (features,)."""

    points: Array
    average: Array
    multipliers: Array


class ConsensusMethod(ABC):
    #: omega, which is also the weight of the norm its factors are stated in (0: no multipliers,
    #: progress is measured by the average alone).
    dual_step: float
    #: Local gradients of one client in a round; None for an exact solve.
    local_steps: int | None

    @abstractmethod
    def step(self, problem: ConsensusProblem, state: State, coin: float) -> State:
        """One round; ``coin`` is uniform on [0, 1) and drawn by the server."""

    def communicates(self, coin: float) -> bool:
        """Whether this step sends anything."""
        return True

    def gap(self, points: Array, averages: Array, solution: Array) -> Array:
        """Squared distance to the minimiser in the norm of its theorem, (rounds + 1,)."""
        return points.shape[1] * ((averages - solution) ** 2).sum(axis=1)

    @property
    def uzawa(self) -> InexactUzawa | None:
        """Itself where a round on quadratics is a known matrix."""
        return None

    def scaled(self, step: float, dual: float) -> Self:
        """The same with other step sizes, relative to its own; a method without one keeps to it."""
        own: dict[str, Any] = dict(vars(self))
        for name, factor in (("step_size", step), ("dual_step", dual)):
            if own.get(name) is not None:
                own[name] *= factor
        return type(self)(**own)


@dataclass(frozen=True)
class FedAvg(ConsensusMethod):
    """Local gradient steps, then the average; nothing corrects for differences between clients."""

    local_steps: int
    step_size: float
    dual_step: float = 0.0

    def __post_init__(self) -> None:
        _check_steps(self.local_steps, self.step_size)

    def step(self, problem: ConsensusProblem, state: State, coin: float) -> State:
        start = np.broadcast_to(state.average, state.points.shape)
        none = np.zeros_like(state.multipliers)
        points = problem.descend(start, none, 0.0, self.step_size, self.local_steps)
        return State(points, points.mean(axis=0), state.multipliers)


@dataclass(frozen=True)
class InexactUzawa(ConsensusMethod):
    """Inexact Uzawa on the augmented Lagrangian (algorithm 2).

    Each client minimises ``f_i(x) - <H_i, x> + penalty |x - z|^2 / 2``, exactly or by gradient
    steps from z; the server averages; ``H_i <- H_i + dual_step (z - x_i)``.

    With r = 0 and omega = 1/(n gamma) this is deterministic Scaffnew or SCAFFOLD (algorithm 1);
    with the exact solve and omega = r it is ADMM. The printed average ``mean x - mean H / r`` is
    corrected here to ``mean x``: the two agree in exact arithmetic, but the printed one multiplies
    round-off in mean H by |1 - omega/r| a round and is undefined at r = 0.
    """

    #: r, at least 0.
    penalty: float
    dual_step: float
    #: n gradient steps; None solves exactly.
    local_steps: int | None = None
    #: gamma of the gradient steps.
    step_size: float | None = None

    def __post_init__(self) -> None:
        require_at_least("The penalty", self.penalty)
        require(
            np.isfinite(self.dual_step) and self.dual_step > 0,
            f"The dual step must be positive, not {self.dual_step}.",
        )
        if self.local_steps is not None:
            require(
                self.step_size is not None,
                "Gradient steps need a step size; give one or leave the local steps out for an "
                "exact solve.",
            )
            assert self.step_size is not None
            _check_steps(self.local_steps, self.step_size)

    def step(self, problem: ConsensusProblem, state: State, coin: float) -> State:
        right = state.multipliers + self.penalty * state.average
        start = np.broadcast_to(state.average, state.points.shape)
        if self.local_steps is None:
            points = problem.solve(self.penalty, right, start)
        else:
            assert self.step_size is not None
            points = problem.descend(start, right, self.penalty, self.step_size, self.local_steps)
        average = points.mean(axis=0)
        return State(points, average, state.multipliers + self.dual_step * (average - points))

    @property
    def uzawa(self) -> InexactUzawa:
        return self


@dataclass(frozen=True)
class JointUzawa(ConsensusMethod):
    """Augmented-Lagrangian Uzawa (algorithm 5): one joint solve, of many messages, is a round."""

    local_steps: ClassVar[None] = None  # type: ignore[misc]
    #: r, positive.
    penalty: float
    dual_step: float

    def step(self, problem: ConsensusProblem, state: State, coin: float) -> State:
        points, average = state.points, state.average
        for _ in range(MOST_SOLVES):
            points = problem.solve(self.penalty, state.multipliers + self.penalty * average, points)
            before, average = average, points.mean(axis=0)
            if np.abs(average - before).max() <= SETTLED * np.abs(average).max():
                break
        return State(points, average, state.multipliers + self.dual_step * (average - points))

    def gap(self, points: Array, averages: Array, solution: Array) -> Array:
        return np.zeros(len(points))  # its average follows from the multipliers


@dataclass(frozen=True)
class ProxSkip(ConsensusMethod):
    """A gradient step, and with probability p an average (Mishchenko et al.; deterministic f_i)."""

    local_steps: ClassVar[int] = 1  # type: ignore[misc]
    step_size: float
    #: p in (0, 1]; 1/p steps lie between two communications on average.
    probability: float

    def __post_init__(self) -> None:
        _check_steps(1, self.step_size)
        require(
            0 < self.probability <= 1,
            f"The probability to communicate must lie in (0, 1], not {self.probability}.",
        )

    @property
    def dual_step(self) -> float:  # type: ignore[override]
        return self.probability / self.step_size

    def communicates(self, coin: float) -> bool:
        return coin < self.probability

    def step(self, problem: ConsensusProblem, state: State, coin: float) -> State:
        moved = state.points - self.step_size * (problem.gradient(state.points) - state.multipliers)
        if not self.communicates(coin):
            return State(moved, state.average, state.multipliers)
        average = moved.mean(axis=0)
        multipliers = state.multipliers + self.dual_step * (average - moved)
        return State(np.broadcast_to(average, moved.shape), average, multipliers)

    def gap(self, points: Array, averages: Array, solution: Array) -> Array:
        return np.asarray(((points - solution) ** 2).sum(axis=(1, 2)))


def _check_steps(local_steps: int, step_size: float) -> None:
    require(local_steps >= 1, f"A client takes at least 1 local step, not {local_steps}.")
    require_positive("The step size", step_size, "1/L")


@dataclass(frozen=True, eq=False)
class ConsensusTrace:
    """A whole run; row 0 is the start."""

    problem: ConsensusProblem
    method: ConsensusMethod
    #: points, multipliers: (rounds + 1, clients, features) float64.
    points: Array
    multipliers: Array
    #: (rounds + 1, features) float64.
    averages: Array
    #: (rounds + 1,) int64: Averages formed so far (every round except for ProxSkip).
    communications: IntArray
    #: The run stopped early because the average grew without bound.
    diverged: bool

    @property
    def rounds(self) -> int:
        return len(self.averages) - 1

    @property
    def bytes_up(self) -> IntArray:
        """Bytes all clients have sent, cumulative; as many come down."""
        return self.communications * (8 * self.problem.features * self.problem.clients)

    @cached_property
    def distances(self) -> Array:
        """|z_k - x*| / |x*|, (rounds + 1,)."""
        return np.linalg.norm(self.averages - self.problem.solution, axis=1) / max(
            float(np.linalg.norm(self.problem.solution)), np.finfo(float).tiny
        )

    @cached_property
    def norms(self) -> Array:
        """Phi_k = sqrt(|H* - H_k|^2 + omega^2 |K(x* - z_k)|^2), the norm of every factor here.

        For ProxSkip the square root of its Lyapunov function times omega, which uses the clients'
        own points in place of the average.
        """
        dual = ((self.problem.multipliers - self.multipliers) ** 2).sum(axis=(1, 2))
        primal = self.method.gap(self.points, self.averages, self.problem.solution)
        weight = self.method.dual_step
        if weight == 0:  # no multipliers: progress is the average's alone
            return np.sqrt(primal)
        return np.sqrt(dual + weight**2 * primal)

    @cached_property
    def contractions(self) -> Array:
        """c_k = Phi_{k+1}/Phi_k, NaN once Phi is down to round-off; (rounds,)."""
        norms = self.norms
        alive = norms[:-1] > ROUND_OFF * norms[0]
        factors = np.full(len(norms) - 1, np.nan)
        np.divide(norms[1:], norms[:-1], out=factors, where=alive)
        return factors

    def rounds_to(self, accuracy: float = 1e-8) -> int | None:
        """Communications until the average is this close to x* (relative); None if never."""
        reached = np.flatnonzero(self.distances <= accuracy)
        return int(self.communications[reached[0]]) if len(reached) else None


def run(
    problem: ConsensusProblem,
    method: ConsensusMethod,
    rounds: int,
    *,
    start: Array | None = None,
    seed: int = 0,
    accuracy: float = 0.0,
) -> ConsensusTrace:
    """Run ``method`` from H = 0 and z_0 = ``start``, (features,), or 0, until |z - x*| is small.

    That is at most ``accuracy`` times |x*|. ``seed`` is that of the server's coin (ProxSkip only).
    """
    require(rounds >= 1, f"A run needs at least 1 round, not {rounds}.")
    average = np.zeros(problem.features) if start is None else np.asarray(start, dtype=float)
    require(
        average.shape == (problem.features,),
        f"The start has shape {average.shape}, but the problem has {problem.features} features.",
    )
    shape = (problem.clients, problem.features)
    state = State(np.tile(average, (problem.clients, 1)), average, np.zeros(shape))
    coins = Streams(seed).generator("sampling").uniform(size=rounds)
    scale = max(float(np.linalg.norm(problem.solution)), np.finfo(float).tiny)
    states, sent, diverged = [state], [0], False
    for coin in coins:
        state = method.step(problem, state, float(coin))
        states.append(state)
        sent.append(sent[-1] + int(method.communicates(float(coin))))
        diverged = not float(np.abs(state.points).max()) < DIVERGED * scale
        close = accuracy and np.linalg.norm(state.average - problem.solution) <= accuracy * scale
        if diverged or close:
            break
    return ConsensusTrace(
        problem=problem,
        method=method,
        points=np.stack([s.points for s in states]),
        multipliers=np.stack([s.multipliers for s in states]),
        averages=np.stack([s.average for s in states]),
        communications=np.array(sent, dtype=np.int64),
        diverged=diverged,
    )
