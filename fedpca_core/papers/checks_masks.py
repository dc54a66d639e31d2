"""Masks of other methods than FAPS, and what is read through them: on random data."""

import warnings
from functools import partial

import numpy as np
from scipy.optimize import least_squares
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from fedpca_core.arrays import Array
from fedpca_core.linalg.stiefel import orthonormalise, remove_span
from fedpca_core.papers.checks import frame

#: Rounds that the server sees, and starts of its search at most.
ROUNDS, STARTS = 12, 60
#: Squared misfit that counts as explained.
EXPLAINED = 1e-20


def masked_product(matrix: Array, z: Array, penalty: float) -> Array:
    """One step of subspace iteration behind FAPS's mask: (20) with X = orth(S Z)."""
    x = orthonormalise(matrix @ z)
    weight = -remove_span(matrix @ x, x)
    return np.asarray(x @ (penalty * x.T @ z - weight.T @ z) - weight @ (x.T @ z))


def masked_power(generator: np.random.Generator) -> float:
    """Relative error of client 0's matrix, which a server fits to twelve masked uploads.

    It knows Z and what a client does; matrix and penalty it searches, from random starts.
    """
    features, columns, clients = 8, 2, 3
    blocks = generator.standard_normal((clients, features, 2 * features))
    mats = np.einsum("cij,ckj->cik", blocks, blocks) / (2 * features)
    penalties = 0.15 * np.linalg.norm(mats, 2, axis=(1, 2))
    z, seen = frame(generator, features, columns), []
    for _ in range(ROUNDS):
        sent = [masked_product(m, z, own) for m, own in zip(mats, penalties, strict=True)]
        seen.append((z, sent[0]))
        z = orthonormalise(np.sum(sent, axis=0))
    low = np.tril_indices(features)

    def matrix(guess: Array) -> Array:
        half = np.zeros((features, features))
        half[low] = guess[:-1]
        return half + np.tril(half, -1).T

    def misfit(guess: Array) -> Array:
        there = matrix(guess)
        return np.ravel([masked_product(there, z, guess[-1]) - upload for z, upload in seen])

    best = np.inf, np.zeros(0)
    for _ in range(STARTS):
        draw = generator.standard_normal((features, 2 * features))
        start = np.append((draw @ draw.T / (2 * features))[low], 1.0)
        found = least_squares(misfit, start, xtol=1e-15, ftol=1e-15, gtol=1e-15, max_nfev=150)
        best = min(best, (found.cost, found.x), key=lambda one: one[0])
        if best[0] < EXPLAINED:
            break
    return float(np.linalg.norm(matrix(best[1]) - mats[0]) / np.linalg.norm(mats[0]))


def _turned(generator: np.random.Generator, both: bool) -> float:
    """Mean correlation of each feature with its likest component, after FedSVD's masks.

    Eight independent features of 1,000 records, turned by a random orthogonal P, and records by Q.
    """
    records = generator.exponential(size=(8, 1000))
    masked = frame(generator, 8, 8) @ records
    if both:
        masked = masked @ frame(generator, 1000, 1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # nothing to find is an outcome
        model = FastICA(whiten="unit-variance", random_state=0, max_iter=1000)
        parts = model.fit_transform(masked.T).T
    alike = np.abs(np.corrcoef(records, parts)[:8, 8:])
    return float(alike.max(axis=1).mean())


one_mask, two_masks = partial(_turned, both=False), partial(_turned, both=True)
