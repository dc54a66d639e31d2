"""Errors of personal models, computed after a run (simulation only: they use the true frames).

The measure is the reconstruction error of a client's own data relative to the noise that no model
can explain, ``mean_i E||y - U U^T y||^2 / ((features - components) noise_variance)``: 1 is perfect.
On fresh data it has a closed form; on training data it falls below 1 when a model overfits. Of a
visitor's own records nobody knows the noise: there it is the share of their energy,
``||Y - U U^T Y||^2 / ||Y||^2``, and fresh are those that were kept from training.
"""

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import InvalidInput
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.personal_model import PersonalProblem

#: Pairs of clients whose singular values are computed at once.
_PAIRS = 4096


def fresh_ratios(estimates: Array, problem: PersonalProblem) -> Array:
    """Each client's error on fresh data, (clients,), in closed form where the noise is known.

    ``estimates``, (clients, features, components), or (features, components) for one shared model.
    """
    if problem.fresh is not None:
        return _missed_share(estimates, problem.fresh)
    overlap = estimates.swapaxes(-1, -2) @ problem.frames
    missed = problem.frames.shape[-1] - (overlap**2).sum(axis=(-2, -1))
    return 1.0 + missed / _floor(problem)


def training_ratios(estimates: Array, problem: PersonalProblem) -> Array:
    """Each client's error on its own training data over the noise floor, (clients,)."""
    client_data = problem.unperturbed.client_data
    if problem.fresh is not None:
        return _missed_share(estimates, client_data)
    return (client_data.traces() - _explained(estimates, client_data)) / _floor(problem)


def _missed_share(estimates: Array, client_data: ClientData) -> Array:
    share = _explained(estimates, client_data)
    return 1.0 - share / np.maximum(client_data.traces(), np.finfo(float).tiny)


def _explained(estimates: Array, client_data: ClientData) -> Array:
    return (estimates * client_data.multiply(estimates)).sum(axis=(-2, -1))


def _floor(problem: PersonalProblem) -> float:
    features, components = problem.frames.shape[1:]
    return (features - components) * problem.noise_variance


def oracles(problem: PersonalProblem) -> dict[str, Array]:
    """Closed-form limits of the baselines: ``"local"`` (per client) and ``"global"`` (shared).

    Under noise at the source the shared model converges to what the noisy matrices say. Training
    alone sends nothing, so it has no need of noise.
    """
    components = problem.frames.shape[-1]
    return {
        "local": problem.unperturbed.client_data.top_eigenvectors(components)[1],
        "global": problem.met.target(components),
    }


def angles_between(frames: Array) -> Array:
    """Largest principal angle between every two clients' frames, (clients, clients), in degrees.

    Angles below about 1e-6 degrees are not resolved.
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
    """Where ``first`` overtakes ``second`` along a positive axis; None if they keep their order."""
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
