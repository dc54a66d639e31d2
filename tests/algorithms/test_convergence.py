"""Who converges and who has a floor, on the uneven problem of FAPS at live size."""

from __future__ import annotations

from typing import Any

import pytest

import fedpca_core as fp
from fedpca_core.protocol.algorithm import Algorithm
from tests.algorithms.small_problems import rounds_to_angle

COMPONENTS = 10


@pytest.fixture(scope="module")
def many() -> fp.problems.Problem:
    """500 i samples for client i: of the preset's m_i half, as of its 300 features."""
    return fp.problems.decay_spectrum(150, [500 * i for i in range(1, 9)], 1.01)


@pytest.fixture(scope="module")
def few() -> fp.problems.Problem:
    """150 i samples for client i: the preset's m_i / features."""
    return fp.problems.decay_spectrum(150, [150 * i for i in range(1, 9)], 1.01)


CONVERGING: list[tuple[Algorithm, int]] = [
    (fp.SSI(COMPONENTS), 1500),
    (fp.LocalPower(COMPONENTS), 1500),
    (fp.LocalPower(COMPONENTS, schedule="decay"), 1500),
    (fp.FAPS(COMPONENTS), 400),
    (fp.FAPS(COMPONENTS, inner_rule="fixed"), 600),
    (fp.VariableSplitting(COMPONENTS), 600),
    (fp.BlockKrylov(COMPONENTS), 30),
]


@pytest.mark.parametrize(
    ("algorithm", "limit"), CONVERGING, ids=[f"{a.title}-{n}" for a, n in CONVERGING]
)
def test_all_reach_an_angle_of_1e6_with_everyone_present(
    algorithm: Algorithm, limit: int, many: fp.problems.Problem
) -> None:
    assert rounds_to_angle(many, algorithm, 1e-6, limit) is not None


def relative_errors(
    problem: fp.problems.Problem, algorithm: Algorithm, rounds: int = 400, **options: Any
) -> list[float]:
    channel = fp.Channel(record="estimates")
    trace = fp.simulate(problem, algorithm, rounds=rounds, channel=channel, **options)
    return list(fp.metrics.frame(trace, problem).relative_error)


def first(errors: list[float]) -> int:
    return next(index for index, error in enumerate(errors) if error <= 1.07e-7)


def test_faps_with_auto_needs_a_third_of_the_rounds_and_no_more_products(
    few: fp.problems.Problem,
) -> None:
    trace = fp.simulate(
        few, fp.FAPS(COMPONENTS), rounds=100, channel=fp.Channel(record="estimates")
    )
    table = fp.metrics.frame(trace, few)
    row = fp.metrics.row_reached(table["round"], table["relative_error"].to_numpy(), 1.07e-7)
    assert row is not None
    reached = table.iloc[row]
    ssi = first(relative_errors(few, fp.SSI(COMPONENTS)))
    assert reached["round"] <= ssi / 3
    assert reached["local_products"] / few.clients <= 1.1 * ssi


def test_floors(few: fp.problems.Problem) -> None:
    """Errors that more rounds do not remove (measured over the last 100 of 400 rounds)."""
    one_shot = fp.simulate(few, fp.OneShot(COMPONENTS), rounds=1)
    assert fp.metrics.frame(one_shot, few).sin_theta.iloc[-1] > 0.3
    # A small fixed penalty with eight steps: some client leaves the consensus for good.
    small = fp.FAPS(COMPONENTS, 0.05, adaptive=False, inner_rule="fixed", inner_steps=8)
    assert min(relative_errors(few, small, rounds=150)[-50:]) > 1e-5
    for algorithm in (fp.SSI(COMPONENTS), fp.LocalPower(COMPONENTS)):
        half = relative_errors(few, algorithm, participation=0.5, absent="present")
        assert min(half[-100:]) > 1e-4
    half = relative_errors(
        few, fp.FAPS(COMPONENTS), rounds=200, participation=0.5, absent="present"
    )
    assert min(half[-50:]) > 1e-4


def test_memory_removes_the_floor(few: fp.problems.Problem) -> None:
    for algorithm, rounds in ((fp.SSI(COMPONENTS), 1000), (fp.FAPS(COMPONENTS), 300)):
        errors = relative_errors(few, algorithm, rounds=rounds, participation=0.5)
        assert errors[-1] < 1e-8
