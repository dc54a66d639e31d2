"""A SuperLink and three SuperNodes on the loopback, each with a file of its own.

Flower starts a process for every message, so a run takes a minute or more: these tests run where
FEDPCA_DEPLOYMENT is set.
"""

import os
import shlex
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")
if not os.environ.get("FEDPCA_DEPLOYMENT"):
    pytest.skip("takes minutes: set FEDPCA_DEPLOYMENT=1", allow_module_level=True)

import fedpca_core as fp
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.study.pca_settings import ConvergeSettings
from tests.engines.credentials import certificates, node_key
from tests.engines.deployment import LIMIT, ROOT, Deployment
from tests.engines.small_federation import CLIENTS, in_process, written
from tests.engines.test_rounds import assert_same
from tests.engines.test_shared_noise import handed_over

FEATURES = 12


@pytest.fixture(scope="module")
def blocks():
    generator = np.random.default_rng(0)
    shared = generator.standard_normal((FEATURES, FEATURES)) * 1.3 ** -np.arange(FEATURES)
    return [
        (shared + 0.3 * generator.standard_normal(shared.shape))
        @ generator.standard_normal((FEATURES, count))
        for count in (30, 50, 40)
    ]


@pytest.fixture(scope="module")
def data(blocks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    names = [f"feature {index}" for index in range(FEATURES)]
    # An ε asks for named columns, which NPY has not.
    files = [folder / name for name in ("first.csv", "second.csv", "third.parquet")]
    for block, file in zip(blocks, files, strict=True):
        table = pd.DataFrame(block.T, columns=names)
        table.to_csv(file, index=False) if file.suffix == ".csv" else table.to_parquet(file)
    return files


@pytest.fixture(scope="module")
def federation(data, tmp_path_factory):
    with Deployment(tmp_path_factory.mktemp("federation"), data) as running:
        yield running


def settings(federation, **changes):
    chosen = ConvergeSettings(clients=3, components=3, seed=0, **changes)
    path = federation.folder / f"settings-{federation.runs}.json"
    path.write_text(chosen.to_json())
    return path


def assert_in_process(trace, problem, tolerance=1e-10):
    """The same run in one process, with the same clients missing in the same rounds."""
    missing = {
        exchange.round: set(range(3)) - set(exchange.participants.tolist())
        for exchange in trace.transcript.exchanges
    }
    options = {"rounds": trace.rounds, "seed": 0, "channel": None}
    expected = in_process(problem, trace.algorithm, missing, **options)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=tolerance)
    return missing


@pytest.mark.parametrize("method", ["faps", "block_krylov"])
def test_three_nodes_give_the_result_of_one_process(method, federation, blocks):
    out = federation.submit(settings(federation), method=method, rounds=3)
    trace = federation.trace(out)
    missing = assert_in_process(trace, from_blocks(blocks))
    assert not any(missing.values())
    assert trace.bytes_up[-1] == trace.bytes_down[-1] == trace.rounds * 3 * FEATURES * 3 * 8


def test_a_private_run_is_one_on_what_the_nodes_released(federation, blocks):
    """Their noise is the system's: nobody can draw it again, but each node keeps its matrix."""
    chosen = settings(federation, epsilon=2.0, delta=1e-5, clip_norm=2.0)
    named = ",".join(f"feature {index}" for index in range(FEATURES))
    trace = federation.trace(federation.submit(chosen, method="faps", rounds=3, columns=named))
    kept = [next(federation.memory(node).glob("release-*.npy")) for node in range(3)]
    samples = np.array([block.shape[1] for block in blocks])
    data = ClientData.from_grams(np.stack([np.load(file) for file in kept]), samples)
    assert_in_process(trace, Problem("released", replace(data, indefinite=True)))
    assert trace.setting.guarantee.epsilon == pytest.approx(2.0)
    assert "discrete Gaussian" in trace.setting.guarantee.drawn


@pytest.mark.parametrize("secure", [False, True], ids=["open", "secure sums"])
def test_a_node_that_is_killed_stops_nothing_and_takes_part_again(secure, federation, blocks):
    chosen = settings(federation, secure_aggregation=secure)
    # Longer than a busy machine takes to answer, and than Flower lists a node that is gone.
    out = federation.submit(chosen, method="faps", rounds=8, timeout=LIMIT / 5)
    federation.wait(lambda: federation.reached(1) >= 2, "the node has worked on round 2")
    federation.kill(1)
    federation.wait(lambda: federation.reached(0) >= 4, "the others went on to round 4")
    federation.start(1)
    trace = federation.trace(out)
    missing = assert_in_process(trace, from_blocks(blocks), 1e-10)
    absent = [round_ for round_, gone in missing.items() if 1 in gone]
    assert absent, "the node was not missed"
    assert 1 not in missing[trace.rounds], "the node did not come back"


def test_an_app_of_the_server_that_is_killed_goes_on_where_it_stood(federation, blocks):
    """What was heard is in its journal, so the resumed run is one that was never stopped."""
    chosen, options = settings(federation), {"method": "faps", "rounds": 5}
    out = federation.submit(chosen, **options)
    federation.wait(lambda: federation.reached(0) >= 2, "the run has come to round 2")
    federation.kill_app()
    heard = list(out.with_suffix(".journal").glob("*.npz"))
    federation.resume(chosen, out, **options)
    trace = federation.trace(out)
    assert heard and trace.rounds == 5
    assert not any(assert_in_process(trace, from_blocks(blocks)).values())


def test_certificates_and_registered_keys(data, blocks, tmp_path):
    """Encrypted connections; a node whose key is not registered is not let in."""
    certificates(tmp_path)
    keys = [tmp_path / f"node-{node}" for node in range(4)]
    for key in keys:
        node_key(key)
    authority = str(tmp_path / "ca.crt")
    server = ["--ssl-certfile", str(tmp_path / "server.pem")]
    server += ["--ssl-keyfile", str(tmp_path / "server.key"), "--ssl-ca-certfile", authority]
    with Deployment(
        tmp_path / "federation",
        data,
        superlink=[*server, "--enable-supernode-auth"],
        supernode=["--root-certificates", authority, *server],
        connection=f'root-certificates = "{authority}"',
        keys=keys[:3],
    ) as secured:
        secured.kill(2)
        stranger = ["--auth-supernode-private-key", str(keys[3]), "--max-retries", "1"]
        secured.start(2, stranger)
        process = secured.processes.pop("node-2")
        secured.wait(lambda: process.poll() is not None, "the stranger is turned away")
        assert process.returncode != 0
        secured.start(2)
        chosen = settings(secured, secure_aggregation=True)
        trace = secured.trace(secured.submit(chosen, method="faps", rounds=2))
    assert_in_process(trace, from_blocks(blocks))


@pytest.mark.parametrize("participation", [1.0, 0.6])
def test_flowers_own_simulation_gives_the_result_of_one_process(participation, tmp_path):
    pytest.importorskip("ray", reason="Flower simulates with ray: flwr[simulation]")
    clients = tmp_path / "clients"
    clients.mkdir()
    problem = written(clients)
    chosen = ConvergeSettings(clients=CLIENTS, components=3, seed=0, participation=participation)
    path = tmp_path / "settings.json"
    path.write_text(chosen.to_json())
    with Deployment(
        tmp_path / "federation",
        [],
        superlink=["--insecure", "--simulation"],
        connection=f"insecure = true\noptions.num-supernodes = {CLIENTS}",
    ) as simulated:
        options = {"method": "faps", "rounds": 5, "data": str(clients), "reveal": True}
        trace = simulated.trace(simulated.submit(path, **options))
    expected = fp.simulate(problem, trace.algorithm, rounds=5, participation=participation)
    assert_same(trace, expected)


@pytest.mark.parametrize("mean", [0.0, 2.0])
def test_the_command_of_which_one_runs_in_flowers_simulation(mean, tmp_path):
    """The protocol as the page prints it, word for word, beside its settings and the files."""
    pytest.importorskip("ray", reason="Flower simulates with ray: flwr[simulation]")
    with Deployment(
        tmp_path,
        [],
        superlink=["--insecure", "--simulation"],
        connection=f"insecure = true\noptions.num-supernodes = {CLIENTS}",
    ) as simulated:
        (tmp_path / "engines").symlink_to(ROOT / "engines")
        lines = handed_over("block_krylov", tmp_path, mean).commands().splitlines()
        (command,) = (line for line in lines if line.startswith("flwr run engines/flower local"))
        simulated.flwr(*shlex.split(command)[1:])
        trace = simulated.trace(tmp_path / "trace.npz")
    assert trace.rounds == 4 and trace.setting.guarantee.epsilon == pytest.approx(20.0)
    assert "at least 4 of 5 clients are honest" in trace.setting.guarantee.sentence()
