"""Records that a process of another user keeps: its limits hold whatever the app asks."""

import json
import os
import socket
import subprocess
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_flower.job import FedJob
from fedpca_flower.kept import Kept, Served, Service
from fedpca_flower.ledger import Ledger
from fedpca_flower.server_app import run
from tests.engines.local_grid import LocalGrid
from tests.engines.small_federation import CLIENTS, FEATURES, SAMPLES, written

BUDGET = {"epsilon": 1.0, "delta": 1e-5, "clip": 2.0}


def replace_terms(kept, **terms):
    """The same records under more terms."""
    return Kept(kept.client, kept.source, {**kept.node, **terms})


@contextmanager
def serving(folder, client, **terms):
    """A client's service, in a thread."""
    records = folder / f"client-{client}.npy"
    service = Service(folder / f"{client}.sock", Kept(client, records, terms))
    threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.01}).start()
    try:
        yield str(folder / f"{client}.sock")
    finally:
        service.shutdown()
        service.server_close()


@contextmanager
def federation(folder, **terms):
    """Nodes whose apps know a socket and no file."""
    with ExitStack() as stack:
        nodes = [
            {
                "client": client,
                "service": stack.enter_context(
                    serving(folder, client, memory=str(folder / f"kept-{client}"), **terms)
                ),
                "memory": str(folder / f"memory-{client}"),
            }
            for client in range(CLIENTS)
        ]
        yield lambda job: run(LocalGrid(nodes, {}), job)


@pytest.mark.parametrize("algorithm", [fp.FAPS(3), fp.FedPE(3)], ids=str)
def test_a_run_on_kept_records_is_the_run_in_one_process(algorithm, tmp_path):
    expected = fp.simulate(written(tmp_path), algorithm, rounds=3, seed=1)
    with federation(tmp_path) as ran:
        trace = ran(FedJob(algorithm, CLIENTS, rounds=3, seed=1))
    assert np.abs(trace.estimates[0] - expected.estimates[0]).max() < 1e-10
    assert Ledger(0, tmp_path / "kept-0").spent() == np.inf


def test_the_account_is_the_services(tmp_path):
    """The app's folder has no ledger, and a second release beyond the limit is refused."""
    written(tmp_path)
    with federation(tmp_path, epsilon=1.2, delta=1e-5) as ran:
        job = FedJob(fp.SSI(3), CLIENTS, rounds=2, budget=BUDGET)
        first, again = ran(job), ran(job)
        np.testing.assert_array_equal(first.estimates, again.estimates)
        other = FedJob(fp.SSI(3), CLIENTS, rounds=2, budget={**BUDGET, "clip": 3.0})
        with pytest.raises(InvalidInput, match=r"takes part up to ε = 1\.2 only .* 1 are spent"):
            ran(other)
        with pytest.raises(InvalidInput, match="the run adds no noise"):
            ran(FedJob(fp.SSI(3), CLIENTS, rounds=2))
    assert not (tmp_path / "memory-0" / "ledger.json").exists()
    assert Ledger(0, tmp_path / "kept-0", delta=1e-5).spent() == pytest.approx(1.0)


def asked(address, line):
    """What a replaced app gets for a line of its own."""
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(20)
        wire.connect(address)
        wire.sendall(line)
        wire.shutdown(socket.SHUT_WR)
        with wire.makefile("rb") as answer:
            return json.loads(answer.readline()), answer.read()


def test_whatever_a_replaced_app_asks_it_gets_what_the_limits_allow(tmp_path):
    """No verb gives records; plain moments, other columns, more sharers, another state: refused."""
    written(tmp_path)
    memory = str(tmp_path / "kept")
    terms = {"epsilon": 1.0, "delta": 1e-5, "memory": memory, "sharers": 2}
    with serving(tmp_path, 3, **terms) as address:
        seen = Served(address).state()["digest"]
        question = {"ask": "release", "job": "a", "named": [], "seen": seen, "terms": BUDGET}

        def refused(**changes):
            return asked(address, json.dumps({**question, **changes}).encode() + b"\n")[0][
                "refused"
            ]

        assert "adds no noise" in refused(ask="plain")
        assert "There is no question" in refused(ask="records")
        assert "There is no question" in refused(ask="__class__")
        assert "relies on 2" in refused(terms={**BUDGET, "sharers": 3})
        assert "relies on 2" in refused(terms={**BUDGET, "sharers": 0.5})
        assert refused(seen="another")
        assert "takes part up to" in refused(terms={**BUDGET, "epsilon": 2.0})
        assert refused(terms={**BUDGET, "clip": float("nan")})
        for epsilon in (-1.0, 0.0, 1e-300, 1e16, 1e308, float("inf")):
            assert refused(terms={**BUDGET, "epsilon": epsilon})
        for clip in (-2.0, 0.0, 1e-308, 1e308, float("inf")):
            assert "The clip norm must be" in refused(terms={**BUDGET, "clip": clip})
        for line in (
            b"\n",
            b"[]\n",
            b"{\n",
            b"\xff\xfe\n",
            b'{"ask": ["release"]}\n',
            b"9" * 2**16,
        ):
            assert "refused" in asked(address, line)[0]
        assert not Ledger(3, tmp_path / "kept").releases(), "nothing was released"
        data = Served(address).release((), BUDGET, seen, "a")
        assert data.indefinite and data.samples.tolist() == [SAMPLES[3]]
        assert data.grams.shape == (1, FEATURES, FEATURES)
        assert "takes part up to" in refused(terms={**BUDGET, "clip": 1.0})
        mode = os.stat(address).st_mode & 0o777
    assert mode == 0o660, "the owner's group may ask, and nobody else"


def test_few_records_and_other_columns_are_kept_back(tmp_path):
    written(tmp_path)
    (tmp_path / "table.csv").write_text("a,b,c\n1,2,3\n4,5,6\n7,8,1\n")
    kept = Kept(0, tmp_path / "table.csv", {"features": "a,c", "least": 4})
    with pytest.raises(InvalidInput, match="3 records, and its operator asks for 4"):
        kept.plain(("a", "c"), "job")
    kept = replace_terms(kept, epsilon=1.0, delta=1e-5, memory=str(tmp_path / "kept"))
    with pytest.raises(InvalidInput, match="3 records, and its operator asks for 4"):
        kept.release(("a", "c"), BUDGET, kept.state()["digest"], "job")
    assert Ledger(0, tmp_path / "kept").releases() == [], "what is refused costs nothing"
    for named in ((), ("b",), ("a", "b")):
        with pytest.raises(InvalidInput, match="gives the columns a, c and no others"):
            kept.columns(named)


def test_a_service_that_does_not_run_is_said(tmp_path):
    with pytest.raises(InvalidInput, match="does not answer at"):
        Served(str(tmp_path / "none.sock")).state()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts processes of two users")
def test_the_apps_user_reads_no_record_and_still_takes_part():
    """Two users of the system: the file says no, the socket answers."""
    with ExitStack() as stack:
        # Not a folder of pytest's, into which no other user gets.
        folder = Path(stack.enter_context(TemporaryDirectory()))
        folder.chmod(0o711)
        written(folder)
        records = folder / "client-3.npy"
        records.chmod(0o600)
        terms = {"epsilon": 1.0, "delta": 1e-5, "memory": str(folder / "kept")}
        socket_ = stack.enter_context(serving(folder, 3, **terms))
        os.chown(socket_, 0, 65534)
        code = (
            "import socket, sys\n"
            "try:\n    open(sys.argv[1]); print('read')\n"
            "except PermissionError:\n    print('no')\n"
            "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[2])\n"
            's.sendall(b\'{"ask": "state"}\\n\'); print(s.makefile().readline())\n'
        )
        told = subprocess.run(
            ["/usr/bin/env", "python3", "-c", code, str(records), socket_],
            user=65534, group=65534, extra_groups=[], cwd="/",
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert told.stdout.startswith("no\n"), told.stderr
    assert '"digest"' in told.stdout
