"""Measures of a run: what they mean at the start, and for bases that are not orthonormal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import fedpca_core as fp
from tests.algorithms.small_problems import COMPONENTS, mixed


def test_the_start_is_no_arrival() -> None:
    table = pd.DataFrame({"round": range(5), "consensus_gap": [0.0, 0.3, 0.2, 1e-3, 1e-5]})
    rounds, gaps = table["round"].to_numpy(), table["consensus_gap"].to_numpy()
    assert fp.metrics.row_reached(rounds, gaps, 1e-2) == 3
    assert fp.metrics.row_reached(rounds, gaps, 1e-6) is None
    trace = fp.simulate(mixed(), fp.FAPS(COMPONENTS), rounds=60)
    made = fp.metrics.frame(trace, mixed())
    found = fp.metrics.row_reached(made["round"], made["consensus_gap"].to_numpy(), 1e-6)
    assert found is not None and found > 5


@pytest.mark.parametrize("algorithm", [fp.FAPS(COMPONENTS), fp.FedPE(COMPONENTS)])
def test_consensus_gap_is_that_of_the_spans(algorithm) -> None:
    """Against dense projectors, and whatever the bases of the clients and of the estimate are."""
    trace = fp.simulate(mixed(), algorithm, rounds=5, seed=1)
    assert trace.frames is not None
    gap = fp.metrics.frame(trace, mixed())["consensus_gap"].to_numpy()

    def projector(basis):
        return basis @ np.linalg.pinv(basis)

    dense = [
        np.mean([np.sum((projector(x) - projector(z)) ** 2) for x in frames])
        for frames, z in zip(trace.frames, trace.estimates, strict=True)
    ]
    np.testing.assert_allclose(gap, dense, rtol=1e-9, atol=1e-20)
    change = np.random.default_rng(3).uniform(-1, 1, (COMPONENTS, COMPONENTS))
    uneven = replace(trace, states=tuple({"frame": frames @ change} for frames in trace.frames))
    np.testing.assert_allclose(
        fp.metrics.frame(uneven, mixed())["consensus_gap"], gap, rtol=1e-9, atol=1e-20
    )
