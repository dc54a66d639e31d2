"""Steep spectra, clients with fewer samples than components, tiny and huge data: nothing breaks."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.protocol.algorithm import Algorithm

FEATURES, COMPONENTS = 20, 6

ALGORITHMS: list[Algorithm] = [
    fp.SSI(COMPONENTS),
    fp.LocalPower(COMPONENTS, 8),
    fp.FAPS(COMPONENTS, 1e-4, inner_rule="fixed", inner_steps=8),
    *[fp.FAPS(COMPONENTS, inner_rule=rule) for rule in ("auto", "fixed", "change", "conditions")],
    fp.VariableSplitting(COMPONENTS),
    fp.BlockKrylov(COMPONENTS),
    fp.OneShot(COMPONENTS),
    fp.OneShot(COMPONENTS, "stacked"),
    fp.Centralized(COMPONENTS),
]


def blocks(scale: float) -> list[np.ndarray]:
    """Singular values falling by a factor of 5 each; client 1 has 3 samples for 6 components."""
    rng = np.random.default_rng(8)
    fall = scale * 5.0 ** -np.arange(FEATURES)[:, None]
    turn = np.linalg.qr(rng.standard_normal((FEATURES, FEATURES)))[0]
    return [turn @ (fall * rng.standard_normal((FEATURES, size))) for size in (90, 3, 200)]


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: f"{a.title}")
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_estimates_stay_orthonormal(algorithm: Algorithm, scale: float) -> None:
    problem = fp.problems.problem.from_blocks(blocks(scale))
    trace = fp.simulate(problem, algorithm, rounds=25)
    gram = np.swapaxes(trace.estimates, 1, 2) @ trace.estimates
    assert np.abs(gram - np.eye(COMPONENTS)).max() < 1e-13
    if trace.frames is not None:
        gram = np.swapaxes(trace.frames, 2, 3) @ trace.frames
        assert np.abs(gram - np.eye(COMPONENTS)).max() < 1e-13
    assert fp.metrics.frame(trace, problem).objective.iloc[-1] > 0.99


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: f"{a.title}")
def test_the_scale_of_the_data_changes_nothing(algorithm: Algorithm) -> None:
    objectives = [
        fp.metrics.frame(
            fp.simulate(fp.problems.problem.from_blocks(blocks(scale)), algorithm, rounds=10),
            fp.problems.problem.from_blocks(blocks(scale)),
        ).objective
        for scale in (1.0, 2.0**20)
    ]
    assert np.allclose(objectives[0], objectives[1], rtol=1e-9)
