"""Public facts: the grid, mean and number that a problem states fit its records."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedpca_core.problems import from_table, images, without_record
from fedpca_core.problems.announced import FINE, area_step, decimal_steps
from fedpca_core.streams import Streams


def check(problem, atol: float = 1e-6) -> None:
    facts = problem.announced
    block = np.hstack(problem.blocks)
    raw = block if facts.mean is None else block + facts.mean[:, None]
    whole = raw / facts.grid[:, None]
    np.testing.assert_allclose(whole, np.rint(whole), atol=atol)
    if facts.mean is not None:
        sums = facts.mean / facts.grid * facts.records_total
        np.testing.assert_allclose(sums, np.rint(sums), atol=0.05)


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("resolution", [None, 4, 6])
def test_images_lie_on_their_grid(centre, resolution):
    check(images("digits", centre=centre, resolution=resolution, max_samples=300), 1e-9)


@pytest.mark.data("olivetti", "cifar10")
def test_stored_images_lie_on_their_grid_up_to_their_rounding(data_folder):
    check(images("olivetti", resolution=16, folder=data_folder), 1e-3)
    check(images("cifar10", folder=data_folder, max_samples=200), 1e-2)


@pytest.mark.parametrize("scaling", ["none", "centre", "standardise"])
def test_tables_lie_on_the_grid_of_their_columns(scaling):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": generator.integers(20, 80, 90),
            "depth": generator.integers(0, 60, 90) / 10,
            "code": generator.integers(0, 2, 90),
        }
    )
    check(from_table(frame, clients=3, scaling=scaling), 1e-8)


def test_steps_are_read_as_decimals():
    records = np.array([[1.0, 0.1, 0.25, 1 / 3], [4.0, 2.5, 1.0, 2.0]])
    np.testing.assert_allclose(decimal_steps(records), [1.0, 0.1, 0.01, 1e-6])


def test_areas_overlap_pixels_by_whole_parts():
    assert area_step(64, 64) == 1.0
    assert area_step(64, 32) == 0.25
    assert area_step(28, 20) == pytest.approx((4 / 28) ** 2)


def test_facts_outlive_a_record_and_take_a_noisy_mean_for_the_own_one():
    problem = images("digits", 4, max_samples=80)
    assert without_record(problem, 0, 0).announced is problem.announced
    private = problem.private(1.0, 1e-6, 4.0, Streams(0), mean_share=0.1)
    np.testing.assert_allclose(private.announced.mean, private.source.mean)
    assert private.announced.records_total == FINE
    plain = images("digits", 4, max_samples=80, centre=False)
    assert plain.private(1.0, 1e-6, 4.0, Streams(0)).announced is plain.announced
