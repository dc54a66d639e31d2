"""Damped least squares for replays: Levenberg-Marquardt with geodesic acceleration.

Replays have long, narrow, curved valleys. A plain trust-region step leaves the valley at once and
shrinks; the second-order correction along the step (Transtrum and Sethna, "Improvements to the
Levenberg-Marquardt algorithm", 2012) follows its bend for the price of one more replay, which is
nothing beside a Jacobian. For the same reason a Jacobian serves for further steps as long as they
halve the residual: near the solution one is enough (Shamanskii, 1967).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fedpca_core.arrays import Array
from fedpca_core.attacks.replay.client import Candidate, Entries, FapsReplay, ReplayedRound
from fedpca_core.errors import InvalidInput

#: Damping after a success and after a failure: lowered fast, raised slowly, so that it is rarely
#: too large for a valley.
_LOWER, _RAISE = 0.1, 3.0
#: Share of the step that probes the curvature along it.
_PROBE = 0.1
#: Largest correction, relative to the step, that is trusted.
_TRUSTED = 0.75
_SMALLEST, _LARGEST = 1e-17, 1e8
#: So many steps in a row that lower the cost by less than this share end the descent.
_IDLE, _PATIENCE = 0.01, 3
#: A step gains much when it lowers the cost by more than this share: it halves the residual.
_MUCH = 0.75
#: Below this relative residual, and with no other equations, the same derivatives serve again: far
#: away, and where the messages leave much open, they lead astray.
_NEAR = 1e-4

#: Equations beside the messages, of a guess: by how much it misses them, (equations,), and the
#: derivatives of that, (equations, size).
Extra = Callable[[Candidate, Entries, int], tuple[Array, Array]]


def guides(
    norm: float | None, trace: float | None, guess: Candidate, entries: Entries, size: int
) -> tuple[Array, Array]:
    """What a server knows about any second-moment matrix, as extra equations for a first fit.

    A covariance has no negative eigenvalue; none exceeds ``norm`` and the largest equals it where
    the norm is known (FAPS's round 1 gives beta_i and so the norm away); the trace may be public.
    Without these the first rounds, which leave most of S open, lead the fit into matrices that no
    data could have.
    """
    values, vectors = np.linalg.eigh(guess.matrix)
    violations = np.minimum(values, 0.0)
    active = values < 0
    if norm is not None:
        violations = np.where(values > norm, values - norm, violations)
        violations[-1] = values[-1] - norm
        active = active | (values > norm)
        active[-1] = True
    derivatives = [entries.quadratic(vectors[:, k]) for k in np.flatnonzero(active)]
    amounts = list(violations[active])
    if trace is not None:
        derivatives.append(np.where(entries.rows == entries.columns, 1.0, 0.0))
        amounts.append(float(np.trace(guess.matrix)) - trace)
    table = np.zeros((len(amounts), size))
    if derivatives:
        table[:, : entries.count] = derivatives
    return np.array(amounts), table


def shrinkage(
    prior: Array, strength: float, guess: Candidate, entries: Entries, size: int
) -> tuple[Array, Array]:
    """Pull towards a prior, for noisy uploads: ``strength * ||S - prior||_F^2`` is added."""
    weight = float(np.sqrt(strength))
    table = weight * np.eye(entries.count, size)
    return weight * entries.coordinates(guess.matrix - prior), table


@dataclass(frozen=True)
class Fit:
    guess: Candidate
    #: Norm of replayed minus recorded uploads over that of the recorded ones.
    residual: float
    #: To go on with.
    damping: float


@dataclass
class _Point:
    guess: Candidate
    residual: Array
    played: list[ReplayedRound]
    extra: list[tuple[Array, Array]]

    @property
    def cost(self) -> float:
        return float(self.residual @ self.residual + sum(each @ each for each, _ in self.extra))


class _Linear:
    """The equations at a point, linearised: a row of ``A`` for each."""

    _factor: tuple[Array, bool]

    def __init__(self, model: FapsReplay, here: _Point) -> None:
        self._still, jacobian = model.still, model.jacobian(here.guess, here.played)
        self._rows = np.concatenate([jacobian, *(table for _, table in here.extra)])
        self._jacobian = self._rows[: len(jacobian)]
        # With fewer equations than unknowns A A^T is the smaller matrix.
        self._wide = self._rows.shape[0] < self._rows.shape[1]
        self._normal = self._rows @ self._rows.T if self._wide else self._rows.T @ self._rows
        #: The largest diagonal entry of A^T A.
        self.unit = float(np.einsum("ij,ij->j", self._rows, self._rows).max())

    def damp(self, shift: float) -> None:
        """Solve with ``A^T A + shift I``; LinAlgError where the shift is lost in rounding."""
        damped = self._normal.copy()
        damped[np.diag_indices_from(damped)] += shift
        self._factor = cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)

    def step(self, point: _Point) -> Array:
        extra = (amounts for amounts, _ in point.extra)
        return self._solve(np.concatenate([point.residual[self._still :], *extra]))

    def bend(self, residual: Array, probe: Array, step: Array) -> Array:
        """The correction of a step along which `_PROBE` leads from one residual to another."""
        moved = (probe - residual)[self._still :]
        bend = 2.0 / _PROBE * (moved / _PROBE - self._jacobian @ step)
        return 0.5 * self._solve(np.pad(bend, (0, len(self._rows) - len(bend))))

    def _solve(self, amounts: Array) -> Array:
        """``-(A^T A + shift I)^-1 A^T amounts``."""
        if self._wide:
            return -self._rows.T @ cho_solve(self._factor, amounts, check_finite=False)
        return -cho_solve(self._factor, self._rows.T @ amounts, check_finite=False)


def descend(
    model: FapsReplay,
    guess: Candidate,
    rounds: int,
    *,
    extra: Sequence[Extra] = (),
    damping: float = 0.1,
    jacobians: int = 25,
    target: float = 0.0,
) -> Iterator[Fit]:
    """Fit a guess to the client's first ``rounds`` rounds, yielding after every Jacobian.

    ``extra`` are equations beside the messages; ``damping`` is relative to the largest diagonal
    entry of the normal matrix; at the relative residual ``target`` no other Jacobian is formed.
    """
    recorded = model.target(rounds)
    size = float(np.linalg.norm(recorded))

    def look(at: Candidate) -> _Point:
        answers, played = model.answers(at, rounds)
        equations = [each(at, model.entries, model.size) for each in extra]
        return _Point(at, answers - recorded, played, equations)

    def tried(linear: _Linear, shift: float | None = None) -> _Point | None:
        """Where a step ends, None unless the cost falls.

        With fresh derivatives it is damped and bent along the valley; those of an earlier point
        serve as they are.
        """
        try:
            if shift is not None:
                linear.damp(shift)
            step = linear.step(here)
            if not np.isfinite(step).all():
                return None
            if shift is not None:
                probe = model.answers(model.move(here.guess, _PROBE * step), rounds)[0] - recorded
                correction = linear.bend(here.residual, probe, step)
                if 2.0 * np.linalg.norm(correction) > _TRUSTED * np.linalg.norm(step):
                    return None
                step = step + correction
            ahead = look(model.move(here.guess, step))
        except (LinAlgError, np.linalg.LinAlgError, InvalidInput):
            return None  # the step is too long: it left the matrices that a client can have
        return ahead if ahead.cost < here.cost else None

    here = look(guess)
    idle = 0
    for _ in range(jacobians):
        linear, before, ahead = _Linear(model, here), here.cost, None
        while ahead is None and damping < _LARGEST:
            ahead = tried(linear, damping * linear.unit)
            damping = max(damping * _LOWER, _SMALLEST) if ahead else damping * _RAISE
        gained = 0.0 if ahead is None else 1.0 - ahead.cost / before
        idle = _PATIENCE if ahead is None else idle + 1 if gained < _IDLE else 0
        while ahead is not None:
            before, here = here.cost, ahead
            near = not extra and float(np.linalg.norm(here.residual)) < _NEAR * size
            serves = near and 1.0 - here.cost / before > _MUCH
            ahead = tried(linear) if serves else None
        fit = Fit(here.guess, float(np.linalg.norm(here.residual)) / size, damping)
        yield fit
        if fit.residual <= target or idle == _PATIENCE:
            break
