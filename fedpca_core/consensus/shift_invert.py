"""Shift-and-invert: PCA whose inner solves are consensus problems, next to its rivals.

``x <- (shift I - S)^{-1} x`` with ``S = mean S_i`` turns a small gap into a large one, and the
solve is the minimisation of ``sum_i x^T (shift I - S_i) x / 2 - b^T x`` by any method of this
package. The theory needs every client's term convex, shift > max_i lambda_1(S_i), while a useful
shift lies just above lambda_1(S): as soon as clients differ the two part. An exhibit of the bridge,
not an engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.linalg import expm

from fedpca_core.arrays import Array
from fedpca_core.consensus import bounds
from fedpca_core.consensus.methods import InexactUzawa, State
from fedpca_core.consensus.problems import Quadratic
from fedpca_core.errors import require
from fedpca_core.streams import Streams

#: An average beyond this has diverged.
DIVERGED = 1e12
#: Relative residual at which an inner solve is good enough (checks are not charged as rounds).
INNER_ACCURACY = 0.1


@dataclass(frozen=True)
class Course:
    """Squared sine to the leading eigenvector against communication rounds, and divergence."""

    rounds: Array
    sines: Array
    diverged: bool


@dataclass(frozen=True)
class Exhibit:
    """All methods on one set of clients."""

    #: Whether the shift exceeds every client's own largest eigenvalue.
    convex: bool
    #: max_i lambda_1(S_i) / lambda_1(S).
    excess: float
    #: (lambda_1 - lambda_2)/lambda_1 of S.
    gap: float
    courses: Mapping[str, Course]


def clients_matrices(
    *, clients: int, features: int, heterogeneity: float, samples: int, gap: float, seed: int
) -> Array:
    """Second moments of clients whose subspaces are turned against each other.

    Returns
    -------
    (clients, features, features) float64
    """
    require(features >= 3, f"The exhibit needs at least 3 features, not {features}.")
    generator = Streams(seed).generator("data", 1)
    values = np.concatenate([[1.0], (1 - gap) * 0.85 ** np.arange(features - 1)])
    skew = generator.standard_normal((clients, features, features))
    turns = np.stack([expm(0.15 * heterogeneity * (part - part.T)) for part in skew])
    noise = generator.standard_normal((clients, features, samples))
    records = turns @ (np.sqrt(values)[:, None] * noise)
    return np.asarray(records @ records.swapaxes(-1, -2) / samples, dtype=float)


def exhibit(matrices: Array, *, rounds: int = 300, accuracy: float = 1e-10) -> Exhibit:
    """Run power, Lanczos, and shift-and-invert with three inner solvers from one start."""
    mean = matrices.mean(axis=0)
    values, vectors = np.linalg.eigh(mean)
    leading, target = float(values[-1]), vectors[:, -1]
    shift = 2 * leading - float(values[-2])
    start = Streams(0).generator("start").standard_normal(len(mean))
    start /= np.linalg.norm(start)
    excess = float(np.linalg.eigvalsh(matrices)[:, -1].max())
    identity = np.eye(len(mean))
    terms = Quadratic("inner", shift * identity - matrices, np.zeros(matrices.shape[:2]), False)
    low = shift - excess if shift > excess else shift - leading
    high = float(terms.spectrum[0].max())
    scaffnew = bounds.scaffnew(high, bounds.best_local_steps(low, high))
    admm = bounds.admm(float(np.sqrt(low * high)))

    def record(iterate: Callable[[], tuple[int, Array | None]]) -> Course:
        spent, course, sines = 0, [0], [_sine(start, target)]
        while spent < rounds and sines[-1] > accuracy:
            used, vector = iterate()
            spent += used
            if vector is None:
                return Course(np.array(course, dtype=float), np.array(sines), True)
            course.append(spent)
            sines.append(_sine(vector, target))
        return Course(np.array(course, dtype=float), np.array(sines), False)

    matrix = shift * identity - mean
    methods = {
        "Power method": _power(mean, start),
        "Lanczos": _lanczos(mean, start),
        "Shift-and-invert with conjugate gradients": _conjugate(matrix, start, rounds),
        "Shift-and-invert with Scaffnew": _consensus(terms, scaffnew, start, matrix, rounds),
        "Shift-and-invert with ADMM": _consensus(terms, admm, start, matrix, rounds),
    }
    courses = {name: record(iterate) for name, iterate in methods.items()}
    return Exhibit(shift > excess, excess / leading, 1 - float(values[-2]) / leading, courses)


def _sine(vector: Array, target: Array) -> float:
    residual = vector - target * float(target @ vector)
    return max(float(residual @ residual) / float(vector @ vector), 1e-32)


def _power(mean: Array, start: Array) -> Callable[[], tuple[int, Array | None]]:
    state = [start]

    def iterate() -> tuple[int, Array]:
        vector = mean @ state[0]
        state[0] = vector / np.linalg.norm(vector)
        return 1, state[0]

    return iterate


def _lanczos(mean: Array, start: Array) -> Callable[[], tuple[int, Array | None]]:
    basis = [start]

    def iterate() -> tuple[int, Array]:
        vector = mean @ basis[-1]
        columns = np.column_stack(basis)
        for _ in range(2):  # twice is enough to stay orthogonal
            vector = vector - columns @ (columns.T @ vector)
        size = float(np.linalg.norm(vector))
        if size > 1e-12 and len(basis) < len(mean):
            basis.append(vector / size)
        columns = np.column_stack(basis)
        ritz = np.linalg.eigh(columns.T @ mean @ columns)[1][:, -1]
        return 1, columns @ ritz

    return iterate


def _conjugate(matrix: Array, start: Array, budget: int) -> Callable[[], tuple[int, Array | None]]:
    state = [start]

    def iterate() -> tuple[int, Array]:
        x = state[0]
        solution = x / float(x @ matrix @ x)
        residual = x - matrix @ solution
        direction, used = residual, 1
        while np.linalg.norm(residual) > INNER_ACCURACY * _closeness(x, matrix) and used < budget:
            image = matrix @ direction
            step = float(residual @ residual) / float(direction @ image)
            solution = solution + step * direction
            after = residual - step * image
            direction = after + direction * float(after @ after) / float(residual @ residual)
            residual, used = after, used + 1
        state[0] = solution / np.linalg.norm(solution)
        return used, state[0]

    return iterate


def _closeness(x: Array, matrix: Array) -> float:
    """How far x is from an eigenvector: inner solves need only improve on that."""
    image = matrix @ x
    return float(np.linalg.norm(image - x * float(x @ image)) / np.linalg.norm(image))


def _consensus(
    terms: Quadratic, method: InexactUzawa, start: Array, matrix: Array, budget: int
) -> Callable[[], tuple[int, Array | None]]:
    state = [start]

    def iterate() -> tuple[int, Array | None]:
        x = state[0]
        average = x / float(x @ matrix @ x)
        inner = Quadratic("inner", terms.hessians, np.tile(x, (terms.clients, 1)), False)
        inner.__dict__["spectrum"] = terms.spectrum  # the same Hessians: decomposed once
        slopes = inner.gradient(np.tile(average, (terms.clients, 1)))
        now = State(slopes, average, slopes - slopes.mean(axis=0))
        used = 0
        while used < budget:
            now = method.step(inner, now, 0.0)
            used += 1
            if not np.abs(now.average).max() < DIVERGED:
                return used, None
            residual = float(np.linalg.norm(matrix @ now.average - x))
            if residual <= INNER_ACCURACY * _closeness(x, matrix):
                break
        state[0] = now.average / np.linalg.norm(now.average)
        return used, state[0]

    return iterate
