"""FAPS beside the convergence theorem of its paper (Theorem 8, with the constants of Appendix B).

The paper's ``A_i A_i^T`` is ``w_i S_i`` here, so that ``A A^T`` is the pooled matrix and a client's
penalty counts as ``w_i beta_i``. Simulation only: it takes all X_i and all S_i.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np

from fedpca_core.algorithms.faps import FAPS
from fedpca_core.arrays import Array
from fedpca_core.linalg.stiefel import remove_span
from fedpca_core.metrics.table import consensus_gap, subspace_errors
from fedpca_core.problems import Problem
from fedpca_core.protocol.trace import Trace

#: Steps of a server that is nearer to a stationary point, relative to the data, are rounding.
ROUNDING = 1e-6


def asked(crowd: float, components: int, decrease: float, curvature: float, exact: float) -> float:
    """omega of Assumption 6: every beta_i is to be at least omega times ``||A||_F^2``.

    ``crowd`` is rho d, clients times the spread of their penalties; then come p, c_1, c_1', and by
    which share delta of (14) is below its bound.
    """
    least, root, wide = 1 - 1 / (2 * crowd), 1 + np.sqrt(2 * crowd), np.sqrt(components)
    solves = max(12 * crowd * wide, 4 * root / crowd) / (decrease * least)
    residual = 4 * np.sqrt(2 / least) * root / exact if exact > 0 else np.inf
    return max(curvature, 16 * crowd * wide, solves, residual)


def constant(
    crowd: float, penalties: Array, norms: Array, decrease: float, step: float, fall: float
) -> float:
    """C of the proof: ``step`` is c_2, ``fall`` how far the augmented Lagrangian can fall."""
    root = 1 + np.sqrt(2 * crowd)
    c_4 = min(decrease * (1 - 1 / (2 * crowd)) * penalties / 4 - root * norms / crowd)
    spread = float((penalties + 4 * norms).sum()) / np.sqrt(2 * crowd * c_4)
    return fall * ((spread + np.sqrt(1 / step)) ** 2 + 1 / c_4)


@dataclass(frozen=True, eq=False)
class BesideTheorem:
    """A run of FAPS and what the theorem says of it."""

    #: omega, and the smallest penalty over ``omega ||A||_F^2``; from 1 on it is large enough.
    omega: float
    share: float
    #: What else the theorem asks for and the run does not do; empty: nothing.
    unmet: str
    #: (rounds,) float64: The least squared violation + mean squared gap of the first N moments, and
    #: C/N, NaN where the theorem says nothing of the run.
    least: Array
    bound: Array
    #: (rounds + 1,) float64: The augmented Lagrangian, equation (9).
    lagrangian: Array


def beside_theorem(trace: Trace, problem: Problem) -> BesideTheorem | None:
    """None for what the theorem is not about: other methods, absent clients, noisy matrices, starts
    of their own; or where the run has not kept its clients' frames."""
    data, x = problem.client_data.metered(), trace.frames
    if trace.algorithm.near != "multipliers" or x is None or data.indefinite or not trace.rounds:
        return None
    method = cast(FAPS, trace.algorithm)
    if trace.setting.participation < 1 or method.private_start:
        return None
    weights, norms = data.weights[:, None, None], data.weights * data.spectral_norms()
    beta, z = weights * trace.state("penalty")[..., None, None], trace.estimates
    crowd = len(norms) * float(beta.max() / max(beta.min(), np.finfo(float).tiny))
    total, decrease = float(problem.eigenvalues.sum()), method.inner_decrease
    exact = 1 - method.inner_residual
    omega = asked(crowd, method.components, decrease, method.inner_curvature, exact)
    share, most = float(beta.min()) / (omega * total), np.nan
    # With penalties that are large enough an iteration brings the residual of a local solve down
    # about omega-fold, so that the limit of iterations ends none before its conditions hold; an
    # exact one falls by half of its squared residual over beta.
    held = method.inner_rule == "conditions" and decrease < 0.5
    unmet = "" if held else "the inner rule is not “Conditions of the theory” with c₁ below 0.5"
    unmet = "penalties grow" if np.ptp(beta, axis=0).any() else unmet
    bounded = share >= 1 and not unmet
    values, fall, gradient = np.zeros((3, len(x)))
    for k, frames in enumerate(x):  # all at once would take several times what the run has kept
        image = weights * data.multiply(frames)
        values[k], _ = _lagrangian(frames, image, beta[k], z[k])
        if k and bounded:
            before, outside = _lagrangian(frames, image, beta[k - 1], z[k - 1])
            fall[k] = before - _lagrangian(frames, image, beta[k - 1], z[k])[0]
            gradient[k] = (outside**2).sum()
    known = gradient > (ROUNDING * total) ** 2
    if known.any():
        step, fallen = float((fall[known] / gradient[known]).min()), float(np.ptp(values))
        most = constant(crowd, beta[0, :, 0, 0], norms, decrease, step, fallen)
    violation = (subspace_errors(trace.estimates, problem)["kkt"] * total) ** 2
    least = np.minimum.accumulate((violation + consensus_gap(trace))[:-1])
    return BesideTheorem(omega, share, unmet, least, most / np.arange(1.0, len(least) + 1), values)


def _lagrangian(x: Array, image: Array, beta: Array, z: Array) -> tuple[float, Array]:
    """Equation (9) with the closed multipliers (8), and what all uploads have outside of Z.

    Axes: client, and those of a matrix.
    """
    w = -remove_span(image, x)
    along, across = x.mT @ z, w.mT @ z
    apart = (remove_span(z, x) ** 2).sum(axis=(1, 2))
    value = (along * across).sum() - (x * image).sum() / 2 + (beta[:, 0, 0] * apart).sum() / 2
    sent = x @ (beta * along - across) - w @ along
    return float(value), remove_span(sent.sum(axis=0), z)
