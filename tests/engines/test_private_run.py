"""Noise at the client's source: the run in one process, and a client that insists on its terms."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.streams import Streams
from fedpca_flower.job import FedJob
from fedpca_flower.kept import ClientStreams
from fedpca_flower.server_app import run
from tests.engines.local_grid import LocalGrid
from tests.engines.small_federation import CLIENTS, over_a_grid, written

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "clip": 2.0}


@pytest.mark.parametrize("secure", [False, True], ids=["open", "secure sums"])
@pytest.mark.parametrize(
    "algorithm", [fp.FAPS(3), fp.BlockKrylov(3), fp.FedPE(3), fp.OneShot(3)], ids=lambda a: a.title
)
def test_a_private_run_is_the_run_in_one_process(algorithm, secure, tmp_path):
    if secure and algorithm.needs_individual_uploads:
        pytest.skip("this method needs single uploads")
    problem = written(tmp_path).private(*BUDGET.values(), Streams(3))
    options = {"rounds": 5, "seed": 3, "channel": fp.Channel(secure_aggregation=secure)}
    expected = fp.simulate(problem, algorithm, **options)
    trace = over_a_grid(tmp_path, algorithm, budget=BUDGET, **options)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)
    found, stated = (replace(one.setting.guarantee, public=()) for one in (trace, expected))
    assert found == stated
    assert trace.setting.guarantee.epsilon == pytest.approx(1.0)


def nodes(folder, **more):
    return [
        {"client": client, "data": str(folder / f"client-{client}.npy"), **more}
        for client in range(CLIENTS)
    ]


def test_a_node_draws_its_own_noise_once_and_remembers_it(tmp_path):
    """Without a stated secret nobody can repeat the draws, and a restart does not draw again."""
    written(tmp_path)
    job = FedJob(fp.SSI(3), CLIENTS, rounds=2, seed=3, budget=BUDGET)
    with pytest.raises(InvalidInput, match="a second release"):
        run(LocalGrid(nodes(tmp_path), {}), job)
    with pytest.raises(InvalidInput, match="a second release"):
        run(LocalGrid(nodes(tmp_path), {}), FedJob(fp.FedPower(3, noise=0.1), CLIENTS, rounds=2))
    kept = nodes(tmp_path, memory=str(tmp_path / "memory"))
    for client, node in enumerate(kept):
        node["memory"] += str(client)
    first = run(LocalGrid(kept, {}), job)
    again = run(LocalGrid(kept, {}), job)  # new contexts, the same folders and the same run
    np.testing.assert_array_equal(first.estimates, again.estimates)
    simulated = over_a_grid(tmp_path, fp.SSI(3), rounds=2, seed=3, budget=BUDGET)
    assert np.abs(first.estimate - simulated.estimate).max() > 1e-6
    for secret in (tmp_path / "memory0").glob("run-*.npz"):
        assert secret.stat().st_mode & 0o077 == 0


def test_a_node_with_records_of_its_own_takes_no_orders_to_show_its_state(tmp_path):
    """“reveal” and the run's seed belong to simulations; the run's configuration cannot ask."""
    written(tmp_path)
    federation = LocalGrid(nodes(tmp_path), {"reveal": True, "data": str(tmp_path)})
    trace = run(federation, FedJob(fp.FAPS(3, private_start=True), CLIENTS, rounds=2, seed=3))
    assert trace.states is None


def test_secret_streams_need_the_secret():
    public, own = Streams(1), ClientStreams(1, secret=2, client=3)
    assert own.generator("start").integers(1 << 62) == public.generator("start").integers(1 << 62)
    for name in ("private", "noise", "upload noise", "source noise"):
        drawn = own.generator(name, 0, 0).integers(1 << 62)
        assert drawn != public.generator(name, 0, 0).integers(1 << 62)
    expected = Streams(2).generator("source noise", 0, 3).integers(1 << 62)
    assert own.generator("source noise", 0, 0).integers(1 << 62) == expected
