"""Run a method on a consensus problem and read the norm its theorems speak of."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.consensus.methods import ConsensusMethod, State
from fedpca_core.consensus.problems import ConsensusProblem
from fedpca_core.errors import require
from fedpca_core.streams import Streams

#: Contraction factors below this share of the first norm are round-off, not convergence.
ROUND_OFF = 1e-10
#: A run whose average has grown beyond this has diverged.
DIVERGED = 1e12


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
        """Rounds that were run."""
        return len(self.averages) - 1

    @cached_property
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
    """Run ``method`` from H = 0.

    ``start``, (features,) or None: z_0; zero by default.
    ``seed``: Seed of the server's coin (ProxSkip only).
    ``accuracy``: Stop once |z - x*| <= accuracy |x*|.

    Raises InvalidInput: no round, or a method that does not fit the problem.
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
        size = float(np.abs(state.points).max())
        if not size < DIVERGED * scale:
            diverged = True
            break
        if accuracy and np.linalg.norm(state.average - problem.solution) <= accuracy * scale:
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
