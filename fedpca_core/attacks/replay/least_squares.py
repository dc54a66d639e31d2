"""Damped least squares for replays: Levenberg-Marquardt with geodesic acceleration.

Replays have long, narrow, curved valleys. A plain trust-region step leaves the valley at once and
shrinks; the second-order correction along the step (Transtrum and Sethna, "Improvements to the
Levenberg-Marquardt algorithm", 2012) follows its bend for the price of one more replay, which is
nothing beside a Jacobian.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from fedpca_core.arrays import Array
from fedpca_core.attacks.replay.client import FapsReplay, ReplayedRound
from fedpca_core.attacks.replay.guess import Candidate, Extra
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


@dataclass(frozen=True)
class Fit:
    """Result of a descent."""

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
        return float(self.residual @ self.residual) + sum(
            float(amounts @ amounts) for amounts, _ in self.extra
        )


def descend(
    model: FapsReplay,
    guess: Candidate,
    rounds: int,
    *,
    extra: Sequence[Extra] = (),
    damping: float = 0.1,
    jacobians: int = 25,
    target: float = 0.0,
    polish: bool = False,
) -> Generator[Fit, None, Fit]:
    """Fit a guess to the client's first ``rounds`` rounds, yielding after every Jacobian.

    Parameters
    ----------
    extra : sequence of Guides or Shrinkage
        Equations beside the messages.
    damping : float
        Start value, relative to the largest diagonal entry of the normal matrix.
    jacobians : int
        Most Jacobians to form.
    target : float
        Relative residual at which to stop.
    polish : bool
        Go on below the target for as long as a step still gains much: into the rounding floor.
    """
    recorded = model.target(rounds)
    size = float(np.linalg.norm(recorded))

    def look(at: Candidate) -> _Point:
        answers, played = model.answers(at, rounds)
        equations = [each.rows(at, model.entries, model.size) for each in extra]
        return _Point(at, answers - recorded, played, equations)

    def summary(point: _Point) -> Fit:
        return Fit(point.guess, float(np.linalg.norm(point.residual)) / size, damping)

    here = look(guess)
    idle = 0
    for _ in range(jacobians):
        jacobian = model.jacobian(here.guess, here.played)
        normal = jacobian.T @ jacobian
        slope = jacobian.T @ here.residual
        for amounts, table in here.extra:
            normal += table.T @ table
            slope += table.T @ amounts
        unit = float(np.diag(normal).max())
        ahead: _Point | None = None
        while ahead is None and damping < _LARGEST:
            ahead = _step(
                model, here, rounds, recorded, jacobian, normal, slope, damping * unit, look
            )
            damping = max(damping * _LOWER, _SMALLEST) if ahead else damping * _RAISE
        if ahead is None:
            fit = summary(here)
            yield fit
            return fit
        gained = 1.0 - ahead.cost / here.cost
        here = ahead
        idle = idle + 1 if gained < _IDLE else 0
        fit = summary(here)
        reached = fit.residual <= target and not (polish and gained > _MUCH)
        yield fit
        if reached or idle == _PATIENCE:
            return fit
    return summary(here)


def _step(
    model: FapsReplay,
    here: _Point,
    rounds: int,
    recorded: Array,
    jacobian: Array,
    normal: Array,
    slope: Array,
    shift: float,
    look: Callable[[Candidate], _Point],
) -> _Point | None:
    """One trial; None unless the cost falls."""
    damped = normal.copy()
    damped[np.diag_indices_from(damped)] += shift
    try:
        factor = cho_factor(damped, lower=True, overwrite_a=True, check_finite=False)
        step = -cho_solve(factor, slope, check_finite=False)
        if not np.isfinite(step).all():
            return None
        probe = model.answers(model.move(here.guess, _PROBE * step), rounds)[0] - recorded
        bend = 2.0 / _PROBE * ((probe - here.residual) / _PROBE - jacobian @ step)
        correction = -0.5 * cho_solve(factor, jacobian.T @ bend, check_finite=False)
        if 2.0 * np.linalg.norm(correction) > _TRUSTED * np.linalg.norm(step):
            return None
        ahead = look(model.move(here.guess, step + correction))
    except (LinAlgError, np.linalg.LinAlgError, InvalidInput):
        return None  # the damping is too small: the trial left the matrices a client can have
    return ahead if ahead.cost < here.cost else None
