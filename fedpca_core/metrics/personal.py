"""Errors of personal models, computed after a run (simulation only: they use the true frames).

The measure is the reconstruction error of a client's own data relative to the noise that no model
can explain, ``mean_i E||y - U U^T y||^2 / ((features - components) noise_variance)``: 1 is perfect.
On fresh data it has a closed form; on training data it falls below 1 when a model overfits.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.personal import PersonalProblem
from fedpca_core.problems.personal_model import objective
from fedpca_core.protocol.trace import Trace

COLUMNS = ("round", "bytes_up", "bytes_down", "fresh_ratio", "training_ratio", "objective")
#: Pairs of clients whose singular values are computed at once.
_PAIRS = 4096


def fresh_ratios(estimates: Array, problem: PersonalProblem) -> Array:
    """Each client's error on fresh data over the noise floor, in closed form.

    Parameters
    ----------
    estimates : (clients, features, components), or (features, components) for one shared model

    Returns
    -------
    (clients,) float64, at least 1
    """
    overlap = estimates.swapaxes(-1, -2) @ problem.frames
    missed = problem.frames.shape[-1] - (overlap**2).sum(axis=(-2, -1))
    result: Array = 1.0 + missed / _floor(problem)
    return result


def training_ratios(estimates: Array, problem: PersonalProblem) -> Array:
    """Each client's error on its own training data over the noise floor, (clients,)."""
    client_data = problem.client_data.metered()
    explained = (estimates * client_data.apply(estimates)).sum(axis=(-2, -1))
    result: Array = (client_data.traces() - explained) / _floor(problem)
    return result


def _floor(problem: PersonalProblem) -> float:
    features, components = problem.centre.shape
    return (features - components) * problem.noise_variance


def frame(trace: Trace, problem: PersonalProblem) -> pd.DataFrame:
    """One row for each round, row 0 being the start.

    Columns
    -------
    round, bytes_up, bytes_down
        Costs, cumulative over rounds and clients.
    fresh_ratio, training_ratio
        Means over clients of `fresh_ratios` and `training_ratios`.
    objective
        Mean over clients of f_i(V_t, U_t) after round t; NaN in the last row (the common frame of
        round t travels in round t + 1) and for methods without a common frame.
    """
    return pd.DataFrame(
        {
            "round": np.arange(len(trace.estimates)),
            "bytes_up": trace.bytes_up,
            "bytes_down": trace.bytes_down,
            "fresh_ratio": [fresh_ratios(e, problem).mean() for e in trace.estimates],
            "training_ratio": [training_ratios(e, problem).mean() for e in trace.estimates],
            "objective": _objectives(trace, problem),
        },
        columns=list(COLUMNS),
    )


def _objectives(trace: Trace, problem: PersonalProblem) -> Array:
    from fedpca_core.algorithms.personalized import PersonalizedPCA

    values = np.full(len(trace.estimates), np.nan)
    algorithm = trace.algorithm
    if not isinstance(algorithm, PersonalizedPCA):
        return values
    client_data = problem.client_data.metered()
    variance = algorithm.variance(problem.features)
    for exchange in trace.transcript.exchanges:
        if not exchange.recorded:
            continue
        row = exchange.round - 1
        frames = trace.estimates[row]
        values[row] = objective(
            frames,
            client_data.apply(frames),
            client_data.traces(),
            exchange.downlink["centre"],
            client_data.samples,
            algorithm.noise_variance,
            variance,
            algorithm.gradient,
        ).mean()
    return values


def oracles(problem: PersonalProblem) -> dict[str, Array]:
    """Closed-form limits of the baselines: ``"local"`` (per client) and ``"global"`` (shared)."""
    components = problem.centre.shape[1]
    return {
        "local": problem.client_data.top_eigenvectors(components)[1],
        "global": problem.target(components),
    }


def angles_between(frames: Array) -> Array:
    """Largest principal angle between every two clients' subspaces, in degrees.

    Parameters
    ----------
    frames : (clients, features, components) float64, orthonormal columns

    Returns
    -------
    (clients, clients) float64
        Symmetric with a zero diagonal; angles below about 1e-6 degrees are not resolved.
    """
    clients = len(frames)
    rows, columns = np.triu_indices(clients, 1)
    angles = np.zeros((clients, clients))
    for begin in range(0, len(rows), _PAIRS):
        first, second = rows[begin : begin + _PAIRS], columns[begin : begin + _PAIRS]
        overlap = frames[first].swapaxes(-1, -2) @ frames[second]
        smallest = np.linalg.svd(overlap, compute_uv=False)[..., -1]
        angles[first, second] = np.degrees(np.arccos(np.clip(smallest, 0.0, 1.0)))
    return angles + angles.T


def crossover(axis: Array, first: Array, second: Array) -> float | None:
    """Where ``first`` overtakes ``second`` along a positive axis; None if they keep their order.

    The sign change of the difference, interpolated on the logarithm of the axis.
    """
    if not len(axis) == len(first) == len(second):
        raise InvalidInput(
            f"Curves to compare must have one value for each of the {len(axis)} positions, "
            f"not {len(first)} and {len(second)}."
        )
    gap = np.asarray(first) - np.asarray(second)
    turns = np.flatnonzero(np.sign(gap[:-1]) * np.sign(gap[1:]) < 0)
    if not len(turns):
        return None
    at = int(turns[0])
    share = gap[at] / (gap[at] - gap[at + 1])
    logs = np.log(np.asarray(axis, dtype=float))
    return float(np.exp(logs[at] + share * (logs[at + 1] - logs[at])))
