"""Statements of the paper on FedPower, checked on random data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import ndtr

from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.arrays import Array
from fedpca_core.linalg.stiefel import orthonormalise
from fedpca_core.papers.checks import Check, worst
from fedpca_core.problems import decay_spectrum
from fedpca_core.protocol.channel import Channel
from fedpca_core.protocol.simulate import stream

#: Orders of Rényi divergences.
ORDERS = (1.1, 1.5, 2.0, 5.0, 20.0, 100.0)


def frame(generator: np.random.Generator, rows: int, columns: int) -> Array:
    """A random orthonormal frame."""
    return np.linalg.qr(generator.standard_normal((rows, columns)))[0]


# ------------------------------------------------------------------ Section 2
def proposition_2(generator: np.random.Generator) -> float:
    """How far the divergence of two Gaussians, by quadrature, and the formula are apart."""
    found = 0.0
    for order in ORDERS[:4]:
        moved, noise = generator.uniform(0.2, 1.5), generator.uniform(0.8, 2.0)
        x = np.linspace(-80.0, 80.0, 400_001)
        logs = -(order * (x - moved) ** 2 + (1 - order) * x**2) / (2 * noise**2)
        mass = np.trapezoid(np.exp(logs), x) / np.sqrt(2 * np.pi * noise**2)
        claimed = order * moved**2 / (2 * noise**2)
        found = max(found, abs(np.log(mass) / (order - 1) / claimed - 1))
    return float(found)


def proposition_3(generator: np.random.Generator) -> float:
    """Divergence of two Gaussian releases, the second chosen by the first, over the sum of both."""
    found = 0.0
    x = np.linspace(-80.0, 80.0, 400_001)
    for order in ORDERS[:4]:
        bent = generator.uniform(0.5, 3.0)
        second = np.sin(bent * x) ** 2  # squared move of the second answer, at most 1
        logs = -(order * (x - 1.0) ** 2 + (1 - order) * x**2) / 2
        mass = np.trapezoid(np.exp(logs + order * (order - 1) / 2 * second), x)
        joint = np.log(mass / np.sqrt(2 * np.pi)) / (order - 1)
        found = max(found, float(joint / order))  # each of the two costs order / 2
    return found


@worst()
def proposition_5(generator: np.random.Generator) -> float:
    """Exact δ of a Gaussian at the converted ε, over the δ that is claimed."""
    ratio, delta = generator.uniform(0.05, 3.0), 10.0 ** -generator.uniform(1.0, 8.0)
    found = 0.0
    for order in ORDERS:
        epsilon = order * ratio**2 / 2 + np.log(1 / delta) / (order - 1)
        left = ndtr(ratio / 2 - epsilon / ratio)
        right = np.exp(epsilon) * ndtr(-ratio / 2 - epsilon / ratio) if epsilon < 700 else 0.0
        found = max(found, float((left - right) / delta))
    return found


# ------------------------------------------------------------------ Section 3
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


# ------------------------------------------------------------------ Appendix
@worst()
def sensitivity(generator: np.random.Generator) -> float:
    """Change of a product by one row of norm 1, over the bound."""
    columns = int(generator.integers(1, 5))
    z, (old, new) = frame(generator, 9, columns), frame(generator, 9, 2).T
    change = np.outer(old, old) - np.outer(new, new)
    return float(np.linalg.norm(change @ z)) / (2 * np.sqrt(columns))


@worst()
def lemma_19(generator: np.random.Generator) -> float:
    """Change of the orthonormal factor over its bound, with positive diagonals."""
    a = generator.standard_normal((9, 3))
    move = generator.standard_normal((9, 3))
    least = np.linalg.svd(a, compute_uv=False)[-1]
    move *= generator.uniform(0.01, 0.9) * least / np.linalg.norm(move, 2)
    factors = []
    for matrix in (a, a + move):
        q, r = np.linalg.qr(matrix)
        factors.append(q * np.sign(np.diag(r)))
    share = np.linalg.norm(move, 2) / least
    change = np.linalg.norm(factors[1] - factors[0], 2)
    return float(change * (1 - share) / (np.sqrt(2 * 3) * share))


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


CHECKS: Mapping[str, Check] = {
    "proposition-2": proposition_2,
    "proposition-3": proposition_3,
    "proposition-5": proposition_5,
    "local-power": without_noise,
    "sensitivity": sensitivity,
    "lemma-19": lemma_19,
    "lemma-25": lemma_25,
    "fact-1": fact_1,
}
