"""Records that joined between two runs: their sum is what the difference leaves."""

from __future__ import annotations

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core import attacks
from fedpca_core.attacks.scores import recovered_records
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import images
from fedpca_core.problems.problem import from_blocks
from tests.attacks.runs import transcript

SECURE = fp.Channel(secure_aggregation=True)
DIGITS = images("digits", 4, max_samples=600)
FACTS = DIGITS.announced


def before(count: int):
    """The run before so many records of client 1 joined; centring stays as agreed."""
    blocks = list(DIGITS.blocks)
    blocks[1] = blocks[1][:, count:]
    return from_blocks(blocks)


def found(factor) -> int:
    result = attacks.records(factor, FACTS.grid, FACTS.mean, FACTS.records_total)
    raw = DIGITS.blocks[1][:, : factor.samples] + FACTS.mean[:, None]
    return recovered_records(result.values, raw, FACTS.grid)


@pytest.mark.parametrize("channel", [None, SECURE], ids=["single uploads", "sums"])
@pytest.mark.parametrize("count", [1, 4, 16, 24])
def test_everybody_who_joined_is_read_from_one_message_of_each_run(count, channel):
    options = {} if channel is None else {"channel": channel}
    runs = [transcript(problem, fp.SSI(24), 1, **options) for problem in (before(count), DIGITS)]
    factor = attacks.joined(*runs, client=1)
    assert factor.samples == factor.rank == count
    assert found(factor) == count


def test_records_that_left_are_read_alike():
    runs = [transcript(problem, fp.SSI(10), 1) for problem in (DIGITS, before(5))]
    assert found(attacks.joined(*runs, client=1)) == 5


def test_runs_with_starts_of_their_own_meet_in_the_directions_both_were_asked():
    runs = [
        transcript(problem, fp.BlockKrylov(16), 4, seed)
        for seed, problem in enumerate((before(6), DIGITS))
    ]
    assert found(attacks.joined(*runs, client=1)) == 6
    with pytest.raises(InvalidInput, match="no direction in common"):
        attacks.joined(*(run.until(1) for run in runs), client=1)


def test_means_of_their_own_are_added_back():
    raw = images("digits", 4, max_samples=600, centre=False)
    old = [*raw.blocks[:1], raw.blocks[1][:, 7:], *raw.blocks[2:]]
    means, runs = [], []
    for blocks in (old, raw.blocks):
        means.append(np.hstack(blocks).mean(axis=1))
        problem = from_blocks([block - means[-1][:, None] for block in blocks])
        runs.append(transcript(problem, fp.SSI(12), 1, channel=SECURE))
    factor = attacks.joined(*runs, means=(means[0], means[1]))
    result = attacks.records(factor, raw.announced.grid)
    assert recovered_records(result.values, raw.blocks[1][:, :7], raw.announced.grid) == 7


def test_runs_of_as_many_records_are_refused():
    runs = [transcript(DIGITS, fp.SSI(4), 1)] * 2
    with pytest.raises(InvalidInput, match="Both runs stand for 150 records"):
        attacks.joined(*runs, client=1)
