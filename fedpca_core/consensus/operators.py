"""One round on quadratics as a matrix, and its exact norm and spectral radius.

With ``e = E^H - omega E^Z`` (orthogonal parts, so that |e| is Phi) one round of inexact Uzawa is
``e <- (a Q + b P) e``: a and b are functions of the clients' Hessians, P averages over clients and
Q = I - P. Trajectories show less than the worst case; this shows it.
"""

from collections.abc import Sequence

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.consensus.bounds import coefficients
from fedpca_core.consensus.methods import InexactUzawa, ProxSkip
from fedpca_core.consensus.problems import Quadratic
from fedpca_core.errors import require

#: Above this many unknowns (clients x features) exact norms take too long for a page.
LARGEST = 400


def round_matrices(problem: Quadratic, methods: Sequence[InexactUzawa]) -> Array:
    """a Q + b P of every method, (methods, clients * features, clients * features)."""
    _check(problem)
    values, vectors = problem.spectrum
    pairs = [coefficients(values, method) for method in methods]
    a, b = (np.stack([pair[part] for pair in pairs]) for part in (0, 1))
    return _mixed(*((vectors * one[..., None, :]) @ vectors.swapaxes(-1, -2) for one in (a, b)))


def _mixed(a: Array, b: Array) -> Array:
    """The matrix a Q + b P of two block diagonal matrices, (..., clients, features, features)."""
    *batch, clients, features, _ = a.shape
    matrix = np.zeros((*batch, clients, features, clients, features))
    matrix[:] = ((b - a) / clients)[..., :, :, None, :]
    for client in range(clients):
        matrix[..., client, :, client, :] += a[..., client, :, :]
    return matrix.reshape(*batch, clients * features, clients * features)


def one_step_norms(problem: Quadratic, methods: Sequence[InexactUzawa]) -> Array:
    """Largest Phi_{k+1}/Phi_k over all errors, for each method; (methods,)."""
    singular = np.linalg.svd(round_matrices(problem, methods), compute_uv=False)
    return np.asarray(singular[:, 0], dtype=float)


def spectral_radii(problem: Quadratic, methods: Sequence[InexactUzawa]) -> Array:
    """Asymptotic factor of the slowest error, for each method; (methods,)."""
    values = np.linalg.eigvals(round_matrices(problem, methods))
    return np.asarray(np.abs(values).max(axis=1), dtype=float)


def augmented_norm(problem: Quadratic, penalty: float, dual_step: float) -> float:
    """One-step norm of AL-Uzawa's multipliers, ``|Q - omega Q (A + r Q)^{-1} Q|_2``."""
    _check(problem)
    average, inverse = _augmented(problem, penalty)
    centring = np.eye(len(average)) - average
    return float(np.linalg.norm(centring - dual_step * centring @ inverse @ centring, 2))


def augmented_errors(
    problem: Quadratic, penalty: float, dual_step: float, error: Array, rounds: int
) -> tuple[Array, float]:
    """|X* - X_k|_A for k = 1..rounds and |E^H_0| of AL-Uzawa from a multiplier error."""
    average, inverse = _augmented(problem, penalty)
    block = _mixed(problem.hessians, problem.hessians)
    centring = np.eye(len(average)) - average
    error = centring @ error
    first = float(np.linalg.norm(error))
    sizes = []
    for _ in range(rounds):
        primal = inverse @ error
        sizes.append(float(np.sqrt(primal @ block @ primal)))
        error = error - dual_step * (centring @ primal)
    return np.array(sizes), first


def _average(problem: Quadratic) -> Array:
    """P, (clients * features, clients * features)."""
    zeros = np.zeros_like(problem.hessians)
    return _mixed(zeros, zeros + np.eye(problem.features))


def _augmented(problem: Quadratic, penalty: float) -> tuple[Array, Array]:
    average = _average(problem)
    system = _mixed(problem.hessians, problem.hessians) + penalty * (np.eye(len(average)) - average)
    return average, np.asarray(np.linalg.inv(system), dtype=float)


def matrix_step_norm(problem: Quadratic, penalty: float) -> float:
    """One-step norm of exact Uzawa with the matrix step A + r I (Theorem 7).

    In the norm of Theorem 7, ``|E^H|^2 + |(A + r) E^Z|^2``, from multipliers that sum to zero.
    """
    _check(problem)
    clients, features = problem.clients, problem.features
    weight = problem.hessians + penalty * np.eye(features)
    inverse = np.linalg.inv(weight)
    # Multipliers with zero sum, as an orthonormal basis over clients.
    basis = np.linalg.svd(np.full((1, clients), 1.0))[2][1:]
    free = (clients - 1) * features
    states = np.zeros((free + features, clients, features))
    gaps = np.zeros((free + features, features))
    states[:free] = np.einsum("kc,fg->kfcg", basis, np.eye(features)).reshape(free, clients, -1)
    gaps[free:] = np.eye(features)
    averages = np.einsum("cfg,kcg->kcf", inverse, states + penalty * gaps[:, None, :]).mean(axis=1)
    after = np.einsum("cfg,kg->kcf", weight, averages)
    multipliers = after - penalty * gaps[:, None, :]
    out = np.concatenate([multipliers, after], axis=1).reshape(len(states), -1)
    into = np.concatenate([states, np.einsum("cfg,kg->kcf", weight, gaps)], axis=1)
    lower = np.linalg.cholesky(into.reshape(len(states), -1) @ into.reshape(len(states), -1).T)
    return float(np.linalg.norm(np.linalg.solve(lower, out), 2))


def proxskip_norm(problem: Quadratic, method: ProxSkip) -> float:
    """Largest expected Psi_{k+1}/Psi_k (squared norm) of one ProxSkip step, over all states."""
    _check(problem)
    average = _average(problem)
    size = len(average)
    centring = np.eye(size) - average
    step, p = method.step_size, method.probability
    descent = np.eye(size) - step * _mixed(problem.hessians, problem.hessians)
    # In coordinates (E^Z, (gamma/p) E^H): the moved point is descent E^Z + p (gamma/p) E^H.
    moved = np.hstack([descent, p * centring])
    kept = np.hstack([np.zeros((size, size)), centring])
    skip = np.vstack([moved, kept])
    talk = np.vstack([average @ moved, kept - centring @ moved])
    return float(np.linalg.eigvalsh(p * talk.T @ talk + (1 - p) * skip.T @ skip)[-1])


def _check(problem: Quadratic) -> None:
    size = problem.clients * problem.features
    require(
        size <= LARGEST,
        f"Exact norms are computed up to {LARGEST} unknowns (clients x features), not {size}; "
        "choose fewer clients or features.",
    )
