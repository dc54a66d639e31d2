"""Ways to spend one epsilon: the table at a size that a test can afford."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.studies.private.comparison import (
    COLUMNS,
    WAYS,
    Measured,
    Spending,
    cells,
    described,
    measure,
    table,
)

SEEDS = range(3)


#: Medians of the sheet for 2,000 records of 40 features; what ends at the source ends alike.
SHEET = {
    "published": 0.985,
    "fedpower": 0.232,
    "fedpower_best": 0.154,
    "krylov": 0.069,
    "covariance": 0.068,
    "source_ssi": 0.068,
    "source_krylov": 0.068,
    "source_local_power": 0.068,
    "source_faps": 0.068,
    "source_one_shot": 0.068,
    "shared_fedpower": 0.053,
    "shared_krylov": 0.016,
    "shared_covariance": 0.015,
    "colluding": 0.021,
}


@pytest.fixture(scope="module")
def found() -> dict[str, Measured]:
    """The column of the sheet with 2,000 records and 40 features."""
    problem = fp.problems.spiked_covariance(40, 2000, 20)
    return {way: measure(problem, way, Spending(), SEEDS) for way in SHEET}


@pytest.mark.parametrize("way", SHEET)
def test_the_sheets_medians(found: dict[str, Measured], way: str) -> None:
    assert found[way].refusal == ""
    assert found[way].median == pytest.approx(SHEET[way], rel=0.15)


def test_every_method_at_the_source_ends_where_the_covariance_ends(
    found: dict[str, Measured],
) -> None:
    for way, one in found.items():
        if way.startswith("source_") and way != "source_one_shot":
            assert one.median == pytest.approx(found["covariance"].median, rel=0.01)


def test_all_ways_state_the_same_budget() -> None:
    problem = fp.problems.spiked_covariance(10, 300, 6, components=2)
    spending = Spending(epsilon=2.0, components=2)
    for way in WAYS.values():
        for trial in way.trials(problem, spending, 0):
            run = fp.Simulation(
                trial.problem, trial.algorithm, rounds=trial.rounds, channel=trial.channel
            )
            trust = {"noise shared": fp.problems.Trust(0)}.get(way.title.split(", ")[-1][:12])
            stated = fp.privacy.account(trial.algorithm, run.setting, delta=1e-6, trust=trust)
            assert isinstance(stated, fp.privacy.Guarantee)
            if "published" in way.title:
                assert stated.epsilon < 2.0
            else:
                assert stated.epsilon == pytest.approx(2.0, rel=1e-6)


def test_a_table_goes_on_where_it_stopped() -> None:
    wanted = cells(("covariance", "krylov"), ((200, 10),))
    spending = Spending(components=2)
    first = next(table(wanted, spending, runs=2))
    assert list(first["way"]) == ["covariance"]
    parts = list(table(wanted, spending, runs=2, known=first))
    assert len(parts) == 1 and list(parts[0]["way"]) == ["covariance", "krylov"]
    whole = list(table(wanted, spending, runs=2))[-1]
    pd.testing.assert_frame_equal(whole, parts[0])
    assert whole["bytes_up"].tolist() == [8 * 55, 8 * 10 * 2 * 5]
    assert len(cells()) == len(WAYS) * len(COLUMNS) == len(set(cells()))


def test_a_way_that_cannot_be_taken_says_why() -> None:
    blocks = [np.random.default_rng(i).standard_normal((8, 50)) for i in range(3)]
    problem = fp.problems.from_blocks(blocks)
    spending = Spending(clip=3.0, components=2)
    for way in ("published", "fedpower", "krylov", "shared_krylov"):
        bare = measure(problem, way, spending, SEEDS)
        assert "clip or normalise" in bare.refusal and np.isnan(bare.median)
    assert described(bare, problem, spending)["refusal"] == bare.refusal
    assert measure(problem, "covariance", spending, SEEDS).refusal == ""
    with pytest.raises(InvalidInput, match="no way called 'magic'"):
        measure(problem, "magic", spending, SEEDS)
