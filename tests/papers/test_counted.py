"""Large runs that are counted: what is left out changes neither counts nor errors."""

import numpy as np
import pytest

from fedpca_core.algorithms.block_krylov import BlockKrylov
from fedpca_core.algorithms.faps.faps import FAPS
from fedpca_core.algorithms.fedpower import FedPower
from fedpca_core.algorithms.ssi import SSI, LocalPower
from fedpca_core.linalg.stiefel import uniform_frame
from fedpca_core.papers import faps_runs
from fedpca_core.papers.counted import Aligned, Leading, Pooled, turned
from fedpca_core.papers.experiment import Cell
from fedpca_core.papers.faps_runs import FapsConvergence, measure_run
from fedpca_core.papers.registry import EXPERIMENTS
from fedpca_core.problems import decay_spectrum
from fedpca_core.protocol.simulate import simulate
from fedpca_core.steps import outcome

FEATURES, DECAY, COMPONENTS = 120, 1.3, 4
SAMPLES = (60,) * 20


def measured(problem, algorithm, **how):
    run = measure_run(problem, algorithm, Cell("", "any", 1), 1e-6, **how)
    return {one.measure: one.result for one in outcome(run)}


@pytest.fixture(scope="module")
def whole():
    return decay_spectrum(FEATURES, SAMPLES, DECAY)


@pytest.fixture(scope="module")
def part():
    count = int((DECAY ** -np.arange(FEATURES) > FapsConvergence.negligible).sum())
    return decay_spectrum(FEATURES, SAMPLES, DECAY, leading=count + COMPONENTS)


def same(found, expected):
    assert "seconds" in expected and "time_ratio" in expected
    assert set(found) == set(expected) - {"seconds", "time_ratio"}
    for name, value in found.items():
        exact = name in ("rounds", "bytes", "products", "stop_rounds")
        # Errors below 1e-9 are differences of numbers of size 1.
        assert value == (expected[name] if exact else pytest.approx(expected[name], 1e-6, 1e-15))


@pytest.mark.parametrize(
    "method",
    [SSI, LocalPower, lambda p: LocalPower(p, schedule="decay"), Aligned],
    ids=["SSI", "LocalPower", "LocalPower, decaying", "LocalPower, aligned"],
)
def test_a_sum_that_is_known_gives_the_same_run(method, whole):
    algorithm = method(COMPONENTS)
    pooled = Pooled(algorithm, whole.covariance)
    same(measured(whole, pooled, timed=False), measured(whole, algorithm))


@pytest.mark.parametrize(
    "method",
    [SSI, LocalPower, Aligned, BlockKrylov, lambda p: FAPS(p, inner_rule="fixed")],
    ids=["SSI", "LocalPower", "LocalPower, aligned", "block Krylov", "FAPS"],
)
def test_features_below_rounding_may_be_left_out(method, whole, part):
    algorithm = method(COMPONENTS)
    leading = Leading(algorithm, FEATURES)
    assert part.features < FEATURES
    same(
        measured(part, leading, timed=False, features=FEATURES),
        measured(whole, algorithm),
    )


def test_what_no_rule_ends_is_read_at_the_most_rounds(monkeypatch):
    """So the paper says; without it the slowest start of a flat spectrum had no number."""
    monkeypatch.setattr(faps_runs, "LONGEST", 40)
    table = faps_runs.Stopped("vary-decay")
    cell = next(c for c in table.cells("live", 1) if (c.part, c.series) == ("1.1", "LocalPower"))
    found = {one.measure: one.result for one in outcome(table.run(cell, "live"))}
    assert len(found) == 3 * len(faps_runs.RULES)
    rounds = [found[f"rounds, {rule}"] for rule in faps_runs.RULES]
    assert max(rounds) == 40 > min(rounds)


def test_a_turned_frame_is_a_frame():
    frame = uniform_frame(np.random.default_rng(0), 30, 3)
    found = turned(frame, 12)
    assert found.shape == (12, 3)
    np.testing.assert_array_equal(found[:9], frame[:9])
    np.testing.assert_allclose(found.T @ found, np.eye(3), atol=1e-14)


def test_only_large_features_are_left_out_and_it_is_said():
    features, samples = EXPERIMENTS["vary-features"], EXPERIMENTS["vary-samples"]
    kept = [features._leading("paper", value) for value in (2000, 3000, 5000)]
    assert kept == [None, 2103, 2103]
    assert features._leading("live", 90) is None and samples._leading("paper", 1250) is None
    assert features.described("paper").endswith("below 1e-09 of the largest count as 0")
    assert "count as 0" not in features.described("live") + samples.described("paper")


def test_aligned_products_are_those_of_fedpower(whole):
    """From the same frame, with the same numbers of local products."""

    class Halved(FedPower):
        times = (8, 12, 14, *range(15, 40))

        def start(self, data, setting, streams):
            server, clients = super().start(data, setting, streams)
            frame = Aligned(COMPONENTS).start(data, setting, streams)[0]["frame"]
            return {**server, "frame": frame}, clients

    method, oracle = Aligned(COMPONENTS), Halved(COMPONENTS, products=40)
    ours, theirs = (simulate(whole, one, rounds=6, seed=1).estimates for one in (method, oracle))
    np.testing.assert_allclose(ours @ ours.mT, theirs @ theirs.mT, atol=1e-12)
    plain = simulate(whole, LocalPower(COMPONENTS), rounds=6, seed=1).estimates
    assert np.abs(plain @ plain.mT - ours @ ours.mT).max() > 1e-3
