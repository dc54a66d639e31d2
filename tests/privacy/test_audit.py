"""The accounting, audited from outside: the privacy loss of many runs, read off their messages.

Two data sets differ in one record of client 0. Given everything before, its answer to a probe Q is
Gaussian around S Q or S' Q, so the server's log-likelihood ratio of the two is known exactly, and
over many runs its distribution may be no worse than the guarantee on screen says.
"""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.gaussian_privacy import delta_of
from fedpca_core.problems import from_blocks

FEATURES, COMPONENTS, RECORDS, RUNS = 6, 2, 8, 1500
NOISE = 0.1


def neighbours() -> tuple[fp.problems.Problem, fp.problems.Problem]:
    rng = np.random.default_rng(0)
    blocks = [rng.standard_normal((FEATURES, RECORDS)) for _ in range(2)]
    blocks = [block / np.linalg.norm(block, axis=0) for block in blocks]
    other = [block.copy() for block in blocks]
    # Orthogonal records of norm 1 are the pair that is furthest apart.
    other[0][:, 0] = np.linalg.svd(blocks[0][:, :1])[0][:, -1]
    return from_blocks(blocks), from_blocks(other)


def losses(algorithm: fp.Algorithm, products: int) -> np.ndarray:
    """Log-likelihood ratios of runs on the first data set, (runs,)."""
    first, second = neighbours()
    here, there = (of.client_data.dense()[0] for of in (first, second))
    found = []
    for seed in range(RUNS):
        noisy = Noisy(algorithm, NOISE, products)
        run = fp.simulate(first, noisy, rounds=products, seed=seed).transcript
        loss = 0.0
        for probe, answer in run.pairs(0):
            apart = np.linalg.norm(answer - there @ probe) ** 2
            loss += (apart - np.linalg.norm(answer - here @ probe) ** 2) / (2 * NOISE**2)
        found.append(loss)
    return np.array(found)


def single_release() -> float:
    """mu of one exact release of S: the Frobenius distance over the noise."""
    first, second = (of.client_data.dense()[0] for of in neighbours())
    return float(np.linalg.norm(first - second) / NOISE)


def hockey_stick(loss: np.ndarray, epsilon: float) -> tuple[float, float]:
    """Measured delta at epsilon, and its standard error."""
    values = np.clip(1.0 - np.exp(epsilon - loss), 0.0, None)
    return float(values.mean()), float(values.std() / np.sqrt(len(values)))


def test_orthogonal_probes_cost_together_what_one_release_costs() -> None:
    """Three probes of two columns span all six features: the bound is met with equality."""
    products = FEATURES // COMPONENTS
    loss, mu = losses(fp.BlockKrylov(COMPONENTS, blocks=4), products), single_release()
    error = mu / np.sqrt(RUNS)
    assert loss.mean() == pytest.approx(mu**2 / 2, abs=4 * error)
    assert loss.std() == pytest.approx(mu, rel=0.1)
    assert loss.mean() < 0.6 * products * mu**2 / 2  # counted one by one they would cost thrice
    for epsilon in (0.0, 0.5, 1.0, 2.0):
        measured, uncertain = hockey_stick(loss, epsilon)
        assert measured <= float(delta_of(epsilon, mu)) + 4 * uncertain


def test_the_same_probe_again_costs_again() -> None:
    """SSI asks nearly the same every round, so its rounds add up: the audit would notice."""
    products = 6
    loss, mu = losses(fp.SSI(COMPONENTS), products), single_release()
    assert loss.mean() > 1.2 * mu**2 / 2
    measured, uncertain = hockey_stick(loss, 1.0)
    assert measured > float(delta_of(1.0, mu)) + 4 * uncertain
    assert measured <= float(delta_of(1.0, np.sqrt(products) * mu)) + 4 * uncertain
