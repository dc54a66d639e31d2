"""Errors of a run, computed after it from the trace and the problem (simulation only).

Every measure depends on the span of the estimate alone, never on its basis.
"""

import numpy as np
import pandas as pd

from fedpca_core.arrays import AnyArray, Array
from fedpca_core.linalg import stiefel
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.trace import COSTS, Trace

COLUMNS = ("round", *COSTS, "objective", "kkt", "relative_error", "sin_theta", "consensus_gap")
#: Bases whose Gram matrices depart from the identity by more than this are not orthonormal.
ORTHONORMAL = 1e-12


def frame(trace: Trace, problem: Problem) -> pd.DataFrame:
    """One row for each round, row 0 being the start.

    - ``round``, ``bytes_up``, ``bytes_down``, ``local_products``, ``seconds``: costs, cumulative
      over rounds and clients (bytes, products with S_i, seconds of the steps).
    - ``objective``: ``tr(Z^T S Z)/tr S``, the share of variance explained, in [0, 1].
    - ``kkt``: ``||(I - ZZ^T) S Z||_F / tr S`` (FAPS, scaled KKT violation).
    - ``relative_error``: ``||s - s*||_2 / ||s*||_2`` with s the leading singular values seen
      through Z, ``sqrt(eig(Z^T S Z))`` (FAPS).
    - ``sin_theta``: sine of the largest principal angle to the target, ``||(I - ZZ^T) U||_2``.
    - ``consensus_gap``: mean over clients of ``||X_i X_i^T - ZZ^T||_F^2``; NaN where clients keep
      no frame.

    Personal models (one estimate per client) have averages over clients in place of each.
    """
    estimates = trace.estimates
    if estimates.ndim == 4:
        flat = subspace_errors(estimates.reshape(-1, *estimates.shape[2:]), problem)
        apart = {name: value.reshape(len(estimates), -1) for name, value in flat.items()}
        measures = {name: value.mean(axis=1) for name, value in apart.items()}
    else:
        # An iterate wider than the space sought (FedPower with r > k) is measured one-sidedly.
        measures = subspace_errors(estimates, problem, trace.algorithm.components)
    # In the order of `COLUMNS`; to name them again would cost nine times as much.
    return pd.DataFrame(
        {
            "round": np.arange(len(estimates)),
            **{name: getattr(trace, name) for name in COSTS},
            **measures,
            "consensus_gap": consensus_gap(trace),
        }
    )


def subspace_errors(
    estimates: Array, problem: Problem, sought: int | None = None
) -> dict[str, Array]:
    """Objective, KKT violation, relative error and largest angle of a stack of frames.

    ``estimates``, (rows, features, components) float64, orthonormal columns.
    ``sought``: Dimension of the target where the frames are wider; relative error and angle refer
        to it.
    """
    rows, features, components = estimates.shape
    wanted = components if sought is None else min(sought, components)
    flat = estimates.transpose(1, 0, 2).reshape(features, rows * components)
    products = (problem.covariance @ flat).reshape(features, rows, components).transpose(1, 0, 2)
    projected = stiefel.symmetric_part(estimates.mT @ products)
    residual = products - estimates @ projected
    trace_of_s = float(problem.eigenvalues.sum())
    found = np.sqrt(np.clip(np.linalg.eigvalsh(projected)[:, ::-1][:, :wanted], 0.0, None))
    best = np.sqrt(np.clip(problem.eigenvalues[:wanted], 0.0, None))
    return {
        "objective": np.trace(projected, axis1=1, axis2=2) / trace_of_s,
        "kkt": np.linalg.norm(residual, axis=(1, 2)) / trace_of_s,
        "relative_error": np.linalg.norm(found - best, axis=1) / float(np.linalg.norm(best)),
        "sin_theta": stiefel.largest_sine(estimates, problem.target(wanted)),
    }


def consensus_gap(trace: Trace) -> Array:
    """Mean over clients of the squared projector distance to the estimate, (rounds + 1,).

    Of the spans: bases that are not orthonormal, as FedPE's, are orthonormalised first.
    """
    if trace.frames is None or trace.estimates.ndim == 4:
        return np.full(len(trace.estimates), np.nan)
    estimates = _orthonormal(trace.estimates)[:, None]
    return (stiefel.projector_distance(_orthonormal(trace.frames), estimates) ** 2).mean(axis=1)


def _orthonormal(bases: Array) -> Array:
    """The bases themselves where all are orthonormal to rounding, else frames of their spans."""
    departure = np.abs(bases.mT @ bases - np.eye(bases.shape[-1])).max()
    return bases if departure < ORTHONORMAL else stiefel.orthonormalise(bases)


def row_reached(rounds: AnyArray, values: Array, accuracy: float) -> int | None:
    """The first row with a value of at most ``accuracy``, if any, after the start.

    There all clients hold the same frame, and their gap is zero before anything is agreed on.
    """
    hits = (rounds > 0) & (values <= accuracy)
    return int(hits.argmax()) if hits.any() else None
