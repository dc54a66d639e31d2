"""Three hospitals on the loopback as `deploy/hospital` starts them, and the signed app.

Flower starts a process for every message, so a run takes a minute or more: these tests run where
FEDPCA_DEPLOYMENT is set (`make deployment`).
"""

import functools
import json
import os
import shlex
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")
if not os.environ.get("FEDPCA_DEPLOYMENT"):
    pytest.skip("takes minutes: make deployment", allow_module_level=True)

import fedpca_core as fp
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_flower.records import load_arrays
from tests.engines.credentials import node_key
from tests.engines.deployment import APP, LIMIT, ROOT, Deployment
from tests.engines.hospitals import Hospitals
from tests.engines.small_federation import CLIENTS, in_process, written
from tests.engines.test_break_in import app, sent, visitors
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
    running = Hospitals(tmp_path_factory.mktemp("federation"), data)
    running.digest = running.sign(APP)
    with running:
        yield running


@pytest.fixture(scope="module")
def whole(federation):
    """Runs of three rounds that nothing interrupts, open and with secure sums."""

    def run(secure):
        chosen = settings(federation, secure_aggregation=secure)
        return federation.trace(federation.submit(chosen, method="faps", rounds=3))

    return functools.cache(run)


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


@pytest.mark.parametrize("secure", [False, True], ids=["open", "secure sums"])
def test_three_nodes_give_the_result_of_one_process(secure, whole, blocks):
    trace = whole(secure)
    missing = assert_in_process(trace, from_blocks(blocks))
    assert not any(missing.values())
    if not secure:
        numbers = trace.rounds * 3 * FEATURES * 3
        assert trace.bytes_up[-1] == trace.bytes_down[-1] == numbers * 8


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
    federation.back(1)
    trace = federation.trace(out)
    missing = assert_in_process(trace, from_blocks(blocks), 1e-10)
    absent = [round_ for round_, gone in missing.items() if 1 in gone]
    assert absent, "the node was not missed"
    assert 1 not in missing[trace.rounds], "the node did not come back"


def heard(out, kind):
    """How often the server has heard the answers to one kind of question."""
    files = sorted(out.with_suffix(".journal").glob("*.npz"))
    return sum(load_arrays(file)[0].get("kind") == kind for file in files)


@pytest.mark.parametrize(
    ("role", "phase"),
    [("server-app", "step"), ("server-app", "deal"), ("server-app", "unmask"), ("server", "step")],
)
def test_a_server_that_is_killed_goes_on_where_it_stood(role, phase, federation, whole):
    """What was heard is in its journal, so the resumed run is one that was never stopped."""
    secure = phase in ("deal", "unmask")
    chosen = settings(federation, secure_aggregation=secure)
    options = {"method": "faps", "rounds": 3}
    out = federation.submit(chosen, **options)
    federation.wait(lambda: heard(out, phase) == 2, f"“{phase}” of round 2 has been answered")
    if role == "server":
        federation.restart_server()
    else:
        federation.kill_app()
    federation.resume(chosen, out, **options)
    trace, expected = federation.trace(out), whole(secure)
    # Masks are drawn anew, so the last digit of a sum may be another one.
    tolerance = 1e-10 if secure else 0.0
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=tolerance)
    assert all(len(one.participants) == 3 for one in trace.transcript.exchanges)


@pytest.mark.parametrize(("phase", "lost"), [("deal", 2), ("step", 2), ("unmask", 3)])
def test_a_node_that_is_lost_after_a_phase_of_a_secure_sum(phase, lost, federation, blocks):
    """Before it hears the next question. Of three all must open, so a round may be repeated."""
    chosen = settings(federation, secure_aggregation=True)
    out = federation.submit(chosen, method="faps", rounds=lost, timeout=LIMIT / 5)
    federation.wait(lambda: heard(out, phase) == 2, f"“{phase}” of round 2 has been answered")
    federation.kill(1)
    try:
        trace = federation.trace(out)
    finally:
        federation.back(1)
    missing = assert_in_process(trace, from_blocks(blocks))
    assert missing == {round_: {1} if round_ == lost else set() for round_ in range(1, lost + 1)}


def test_a_liar_is_named_and_left_out(federation, blocks):
    """A hospital edits its own installed copy of the app, which no signature can prevent."""
    installed = federation.home(2) / "apps" / f"fedpca.fedpca-flower.0.2.0.{federation.digest[:8]}"
    client = installed / "fedpca_flower" / "client_app.py"
    honest = "return me.reply(upload, unread=[])"
    lie = "factor = np.nan if told['round'] >= 2 else 1.0\n    " + honest.replace(
        "upload,", "{name: up * factor for name, up in upload.items()},"
    )
    out = federation.submit(settings(federation), method="faps", rounds=3)
    # At its start the role that runs apps has emptied the folder; now the signed one is there.
    federation.wait(lambda: heard(out, "start") == 1, "the run has started")
    text = client.read_text()
    assert honest in text
    client.write_text(text.replace(honest, lie))
    try:
        trace = federation.trace(out)
    finally:
        shutil.rmtree(installed)  # the next message installs it anew
    told = json.loads(out.with_suffix(".result.json").read_text())
    assert list(told["left out"]) == ["2"] and "Client 2 is left out" in told["left out"]["2"]
    assert assert_in_process(trace, from_blocks(blocks)) == {1: set(), 2: {2}, 3: {2}}


def test_a_foreign_app_is_refused_by_all_three(federation, tmp_path):
    assert "could not be verified" in sent(federation, app(tmp_path, "unsigned"))
    federation.sign(app(tmp_path, "foreign"), "stranger")
    assert "could not be verified" in sent(federation, tmp_path / "foreign")
    assert not any(visitors(federation, node) for node in range(3))


def test_a_node_whose_key_is_not_registered_is_turned_away(federation):
    key = federation.home(2) / "node"
    kept = key.read_bytes()
    federation.kill(2)
    try:
        node_key(key)
        federation.role("node", 2)
        stranger = federation.processes.pop("node-2")
        federation.wait(lambda: stranger.poll() is not None, "the stranger is turned away")
        assert stranger.returncode != 0
    finally:
        key.write_bytes(kept)
        federation.back(2)


def test_limits_of_the_delivered_example_hold(federation):
    """A run without noise is refused by the service that has the records, whatever is asked."""
    file = federation.home(0) / "hospital.toml"
    own = file.read_text()
    file.write_text(own.replace("least = 20", "epsilon = 1.0\ndelta = 1e-6\nleast = 20"))
    federation.end("data-0")
    federation.role("data", 0)
    out = federation.submit(settings(federation), method="faps", rounds=2, patience=30.0)
    result = out.with_suffix(".result.json")
    federation.wait(result.exists, "the run has ended")
    file.write_text(own)
    federation.end("data-0")
    federation.role("data", 0)
    told = json.loads(result.read_text())
    assert not told["finished"] and "takes part up to ε = 1.0 only" in told["said"]


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
