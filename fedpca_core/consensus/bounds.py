"""Proved and claimed contraction factors, as functions of lambda, L and the parameters.

A factor rho states ``Phi_{k+1} <= rho Phi_k`` in the norm of `ConsensusTrace.norms`; it says
nothing where it is 1 or more (vacuous). Numbers are those of deterministic federated learning as
inexact Uzawa; ``low`` is lambda, ``high`` is L, ``penalty`` r, ``steps`` n. Which factors hold is
not asserted here but recomputed by `fedpca_core.consensus.verdicts`.
"""

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from fedpca_core.arrays import Array
from fedpca_core.consensus.methods import FedAvg, InexactUzawa, ProxSkip


# ---------------------------------------------------------------------- tunings
def dual_step_1(low: float, high: float, penalty: float) -> float:
    """omega*(r) = 2 (r + lambda)(r + L)/(2 r + L + lambda), of Theorems 1 and 3."""
    return 2 * (penalty + low) * (penalty + high) / (2 * penalty + high + low)


def step_3(low: float, high: float, penalty: float) -> float:
    """gamma*(r) = 2/(2 r + L + lambda), of Theorem 3."""
    return 2 / (2 * penalty + high + low)


def slowness(low: float, high: float, penalty: float) -> float:
    """delta_r = 1 - (r + lambda)/(r + L), of Theorems 9 and 10."""
    return 1 - (penalty + low) / (penalty + high)


def fedavg(high: float, steps: int) -> FedAvg:
    return FedAvg(local_steps=steps, step_size=1 / high)


def scaffnew(high: float, steps: int) -> InexactUzawa:
    """Deterministic Scaffnew (SCAFFOLD): r = 0, gamma = 1/L, omega = L/n."""
    return InexactUzawa(0.0, high / steps, steps, 1 / high)


def uzawa_exact(low: float, high: float, penalty: float) -> InexactUzawa:
    return InexactUzawa(penalty, dual_step_1(low, high, penalty))


def uzawa_steps(low: float, high: float, penalty: float, steps: int) -> InexactUzawa:
    return InexactUzawa(penalty, dual_step_1(low, high, penalty), steps, step_3(low, high, penalty))


def uzawa_nine(low: float, high: float, penalty: float, steps: int) -> InexactUzawa:
    """Gradient steps with the tuning of Theorems 9 and 10, whose dual step is omega_9(r, n)."""
    solved = 1 - slowness(low, high, penalty) ** steps
    dual_step = 2 / (solved / (penalty + low) + 1 / (penalty + high))
    return InexactUzawa(penalty, dual_step, steps, 1 / (penalty + high))


def admm(penalty: float) -> InexactUzawa:
    """ADMM (Douglas-Rachford): exact solves with omega = r; good at r = sqrt(lambda L)."""
    return InexactUzawa(penalty, penalty)


def proxskip(low: float, high: float, probability: float = 0.0) -> ProxSkip:
    """ProxSkip with gamma = 1/L and p = 1/sqrt(kappa), unless another p is given."""
    return ProxSkip(1 / high, probability or float(np.sqrt(low / high)))


# ---------------------------------------------------------------------- claimed factors
def theorem_1(low: float, high: float, penalty: float) -> float:
    """Exact solves, omega*: rho_GS."""
    return float(np.hypot((high - low) / (2 * penalty + high + low), penalty / (penalty + low)))


def theorem_3(low: float, high: float, penalty: float, steps: int) -> float:
    """n gradient steps, omega* and gamma*; any strongly convex smooth functions.

    The paper's proof leans on a lemma (11) whose own proof has a slip; both are repaired here. Let
    Y be the exact local solves, M the mean resolvent between them and the solution (symmetric,
    with eigenvalues in [1/(r + L), 1/(r + lambda)]), and B = omega M - I. Then

        omega (Y - K z) = (omega E_Z - E_H) - B E_H - r M omega E_Z,

    where the first part has the norm Phi because E_H and E_Z are orthogonal, and the rest is the
    error after exact solves, at most rho_GS Phi (Theorem 1). So omega |Y - K z| is at most
    (1 + rho_GS) Phi. Gradient steps from K z leave the share ((L - lambda)/(2 r + L + lambda))^n
    of that, and 1 + rho_GS <= 2 wherever the claim says anything.
    """
    return theorem_1(low, high, penalty) + 2 * ((high - low) / (2 * penalty + high + low)) ** steps


def corollary_1(low: float, high: float, steps: int) -> float:
    """r = 0, n gradient steps; printed with omega = lambda/n, corrected here to L/n."""
    return (steps - 1) / steps + 2 * ((high - low) / (high + low)) ** steps


def theorem_4_two(high: float, penalty: float) -> float:
    """AL-Uzawa with omega = r."""
    return 1 / (1 + penalty / high)


def theorem_6(low: float, high: float, penalty: float) -> float:
    """Exact solves, printed for omega <= r + lambda; true for equality only."""
    return float(np.hypot(slowness(low, high, penalty), penalty / (penalty + low)))


def theorem_7(low: float, penalty: float) -> float:
    """Exact solves with the matrix step A + r I."""
    return penalty / (penalty + low)


def theorem_9(low: float, high: float, penalty: float, steps: int) -> float:
    """n gradient steps with gamma_1 and omega_9; Theorem 10 is r = 0."""
    left = slowness(low, high, penalty) ** steps
    condition = (penalty + high) / (penalty + low) * (1 - left)
    solved = left + (1 - left) * penalty / (penalty + low)
    return float(np.hypot(solved, (condition - 1) / (condition + 1)))


def corollary_2(low: float, high: float) -> float:
    """n = 1, gamma = 1/L, omega = L: gradient descent."""
    return 1 - low / high


def theorem_11(low: float, high: float, penalty: float) -> float:
    """ADMM, any strongly convex smooth functions; square root of the printed squared factor."""
    return float(1 / np.sqrt(1 + min(0.5, 2 * low / (penalty + 2 * high**2 / penalty))))


def theorem_12(low: float, high: float, step_size: float, probability: float) -> float:
    """ProxSkip, expected squared norm of one step."""
    return 1 - min(step_size * low, probability**2)


# ---------------------------------------------------------------------- sharper, ours
@lru_cache(maxsize=4096)
def spectral(low: float, high: float, method: InexactUzawa) -> float:
    """rho_spec = max over mu in [lambda, L] of sqrt(a(mu)^2 + b(mu)^2).

    On quadratics one round maps the error e to (a Q + b P) e with commuting a and b, and
    ``|(aQ + bP)^T v|^2 <= |a v|^2 + |b v|^2``. For exact solves it also holds beyond quadratics.
    """

    def size(mu: Array | float) -> Array:
        a, b = coefficients(mu, method)
        return np.hypot(a, b)

    grid = low * (high / low) ** np.linspace(0, 1, 801)
    return -_least(lambda mu: -float(size(mu)), grid, -size(grid), 1e-12)[1]


def coefficients(mu: Array | float, method: InexactUzawa) -> tuple[Array, Array]:
    """a = 1 - omega s and b = h + r s, with h the unsolved share and s = (1 - h)/(mu + r)."""
    shifted = np.asarray(mu, dtype=float) + method.penalty
    if method.local_steps is None:
        left = np.zeros_like(shifted)
    else:
        assert method.step_size is not None
        left = (1 - method.step_size * shifted) ** method.local_steps
    solved = (1 - left) / shifted
    return 1 - method.dual_step * solved, left + method.penalty * solved


@lru_cache(maxsize=64)
def vacuous_penalties(low: float, high: float) -> tuple[float, float] | None:
    """The window of r where Theorem 1 says nothing (rho_GS >= 1); None without one."""
    grid = low * np.logspace(-4, 7, 2201)
    beyond = np.array([theorem_1(low, high, float(r)) for r in grid]) >= 1
    if not beyond.any():
        return None
    first, last = int(beyond.argmax()), len(beyond) - 1 - int(beyond[::-1].argmax())

    def excess(penalty: float) -> float:
        return theorem_1(low, high, penalty) - 1

    begin = brentq(excess, grid[first - 1], grid[first]) if first else float(grid[0])
    end = brentq(excess, grid[last], grid[last + 1]) if last + 1 < len(grid) else float("inf")
    return float(begin), float(end)


@lru_cache(maxsize=64)
def best_penalty(low: float, high: float) -> tuple[float, float]:
    """The r in [0, 100 L] with the smallest rho_GS, and that factor."""
    grid = np.concatenate([[0.0], low * np.logspace(-4, np.log10(100 * high / low), 1200)])
    values = np.array([theorem_1(low, high, float(r)) for r in grid])
    return _least(lambda r: theorem_1(low, high, float(r)), grid, values, 1e-10)


def _least(
    function: Callable[[float], float], grid: Array, values: Array, accuracy: float
) -> tuple[float, float]:
    """Where a function is least, and its value: on a grid first, then between its neighbours."""
    at = int(values.argmin())
    ends = grid[max(at - 1, 0)], grid[min(at + 1, len(grid) - 1)]
    refined = minimize_scalar(function, bounds=ends, method="bounded", options={"xatol": accuracy})
    if refined.fun < values[at]:
        return float(refined.x), float(refined.fun)
    return float(grid[at]), float(values[at])
