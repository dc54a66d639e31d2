"""Statements of the paper on FedPower, checked on random data."""

import warnings
from collections.abc import Mapping
from functools import partial

import numpy as np
from sklearn.decomposition import FastICA
from sklearn.exceptions import ConvergenceWarning

from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.linalg.stiefel import orthonormalise
from fedpca_core.papers.checks import Check, frame, worst
from fedpca_core.problems import decay_spectrum
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import stream


def without_noise(generator: np.random.Generator) -> float:
    """Sine between Algorithm 2 without noise and without alignment, and LocalPower by hand."""
    seed, components, period = int(generator.integers(1000)), 3, 4
    problem = decay_spectrum(20, [100] * 5, decay=1.2, seed=seed)
    method = FedPower(components, products=24, period=period, decay=False, alignment=False)
    wire = Channel(record="estimates")
    frames = [
        one.estimate
        for one in stream(problem, method, rounds=method.rounds, seed=seed, channel=wire)
    ]
    grams, z = problem.client_data.apply(np.eye(20)), frames[0]
    found = 0.0
    for estimate in frames[1:]:
        products = []
        for gram in grams:
            own = z
            for _ in range(period - 1):
                own = orthonormalise(gram @ own)
            products.append(gram @ own)
        z = orthonormalise(np.mean(products, axis=0))
        found = max(found, float(np.linalg.norm(estimate - z @ (z.T @ estimate), 2)))
    return found


@worst()
def lemma_25(generator: np.random.Generator) -> float:
    """η of uniform samples of the lemma's size over ε, where ρ is the rank and ζ is 0.1.

    Every machine draws its rows with replacement.
    """
    rows, features, machines, epsilon, chance = 4000, 3, 4, 0.5, 0.1
    b = frame(generator, rows, features) @ np.diag([3.0, 2.0, 1.0])
    coherence = rows / features * float((np.linalg.qr(b)[0] ** 2).sum(axis=1).max())
    needed = 3 * coherence * features / epsilon**2 * np.log(features * machines / chance)
    whole = b.T @ b / rows
    found = 0.0
    for _ in range(machines):
        own = b[generator.integers(rows, size=int(np.ceil(needed)))]
        found = max(found, float(np.linalg.norm(own.T @ own / len(own) - whole, 2)))
    return found / float(np.linalg.norm(whole, 2)) / epsilon


@worst()
def fact_1(generator: np.random.Generator) -> float:
    """How far the fact's sines and tangents and those of the largest angle are apart."""
    u, v = frame(generator, 9, 3), frame(generator, 9, 3)
    beside, other = (np.linalg.svd(one)[0][:, 3:] for one in (u, v))
    angle = float(np.arccos(np.linalg.svd(u.T @ v, compute_uv=False).min()))
    turned = v @ generator.standard_normal((3, 3))
    tangents = [np.linalg.norm(beside.T @ w @ np.linalg.pinv(u.T @ w), 2) for w in (v, turned)]
    sines = [np.linalg.norm(u.T @ other, 2), np.linalg.norm(v.T @ beside, 2)]
    off = [*(one - np.sin(angle) for one in sines), *(one / np.tan(angle) - 1 for one in tangents)]
    return float(np.abs(off).max())


def fedsvd(generator: np.random.Generator, both: bool) -> float:
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


CHECKS: Mapping[str, Check] = {
    "local-power": without_noise,
    "lemma-25": lemma_25,
    "fact-1": fact_1,
    "fedsvd-one-mask": partial(fedsvd, both=False),
    "fedsvd-two-masks": partial(fedsvd, both=True),
}
