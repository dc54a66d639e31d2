"""A node's releases: one a state of its records and terms, paid for on a ledger of all its runs."""

import json
import secrets
import threading
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

import fedpca_core as fp
from fedpca_core.attacks.attack import unpacked
from fedpca_core.errors import InvalidInput
from fedpca_core.gaussian_privacy import epsilon_of
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.problem import Problem
from fedpca_core.protocol.trace_file import load_trace, save_trace
from fedpca_flower.job import FedJob
from fedpca_flower.journal import Journal
from fedpca_flower.ledger import Ledger, Offer
from fedpca_flower.on_grid import SLACK
from fedpca_flower.records import opened
from fedpca_flower.server_app import run
from tests.engines.local_grid import LocalGrid
from tests.engines.small_federation import CLIENTS, FEATURES, SAMPLES, blocks, written

BUDGET = {"epsilon": 1.0, "delta": 1e-6, "clip": 2.0}


def nodes(folder, **terms):
    """Nodes with files and folders of their own."""
    return [
        {
            "client": client,
            "data": str(folder / f"client-{client}.npy"),
            "memory": str(folder / f"memory-{client}"),
            **terms,
        }
        for client in range(CLIENTS)
    ]


def released(folder, number=1, run_config=None, budget=BUDGET, lost=lambda message: "", **terms):
    """What every client sends of itself in a run: its whole matrix."""
    job = FedJob(fp.Centralized(3), CLIENTS, rounds=1, budget=budget, timeout=0.01, patience=0.0)
    federation = LocalGrid(nodes(folder, **terms), run_config or {}, lost, number=number)
    sent = run(federation, job, numbered(job, number)).transcript.exchanges[0].uploads["covariance"]
    return [unpacked(one, FEATURES) for one in sent]


def numbered(job, number):
    """A journal of a job that has this number; the server draws one."""
    journal = Journal(job)
    journal.number = f"{number:016x}"
    return journal


def ledger(folder, client=0):
    return json.loads((folder / f"memory-{client}" / "ledger.json").read_text())


def with_one_more(folder, client=1):
    """The client's file with one more record, which is returned as a matrix x x^T."""
    path = folder / f"client-{client}.npy"
    record = np.full(FEATURES, 0.5)
    np.save(path, np.vstack([np.load(path), record]))
    return np.outer(record, record)


# ---------------------------------------------------------------------- one release a state
def test_a_record_that_is_added_during_a_run_does_not_leak(tmp_path):
    """The same noise on a changed file is (m + 1) M' - m M = x x^T, to the last digit."""
    written(tmp_path)
    before = released(tmp_path)[1]
    secret = with_one_more(tmp_path)
    with pytest.raises(InvalidInput, match=r"client 1 \(client-1\.npy\) have changed since it"):
        released(tmp_path)  # the same run goes on
    after = released(tmp_path, number=2)[1]
    found = (SAMPLES[1] + 1) * after - SAMPLES[1] * before
    off = np.linalg.norm(found - secret) / np.linalg.norm(secret)
    assert off > 1.0  # noise of two releases, and not the record
    assert len(ledger(tmp_path, 1)) == 2 and len(ledger(tmp_path, 0)) == 1
    assert Ledger(1, tmp_path / "memory-1").spent() == pytest.approx(1.45, abs=0.005)


def test_a_file_that_changes_between_two_rounds_is_refused_in_a_sentence(tmp_path, caplog):
    """The others go on by the method's rule; who refuses says why, and to whom it matters."""
    written(tmp_path)

    def lost(message):
        told, _ = opened(message.content)
        step = message.metadata.message_type == "query.step"
        if step and told["round"] == 3 and message.metadata.dst_node_id == 1001:
            with_one_more(tmp_path)
        return ""

    job = FedJob(fp.SSI(3), CLIENTS, rounds=5, budget=BUDGET, timeout=0.01, patience=0.0)
    trace = run(LocalGrid(nodes(tmp_path), {}, lost), job)
    there = [set(one.participants.tolist()) for one in trace.transcript.exchanges]
    assert [1 in some for some in there] == [True, True, False, False, False]
    assert "have changed since it entered the run" in caplog.text


def test_a_file_that_was_only_touched_is_the_same_file(tmp_path):
    written(tmp_path)
    first = released(tmp_path)
    (tmp_path / "client-1.npy").touch()
    np.testing.assert_array_equal(released(tmp_path)[1], first[1])
    (tmp_path / "client-1.npy").write_bytes((tmp_path / "client-1.npy").read_bytes() + b" ")
    with pytest.raises(InvalidInput, match="have changed"):
        released(tmp_path)


def test_the_same_records_on_the_same_terms_are_released_once(tmp_path):
    """Another run, another process: the same matrix, and nothing more is spent."""
    written(tmp_path)
    first = released(tmp_path, number=1, epsilon=1.0)
    second = released(tmp_path, number=2, epsilon=1.0)
    np.testing.assert_array_equal(first, second)
    assert [one["run"] for one in ledger(tmp_path)] == [f"{1:016x}"]


@pytest.mark.parametrize(
    "changes", [{"epsilon": 0.5}, {"delta": 1e-7}, {"clip": 1.0}], ids=lambda one: next(iter(one))
)
def test_other_terms_are_another_release(changes, tmp_path):
    written(tmp_path)
    first = released(tmp_path)
    second = released(tmp_path, number=2, budget=BUDGET | changes)
    assert len(ledger(tmp_path)) == 2
    assert np.linalg.norm(first[0] - second[0]) > 1e-3


def test_other_columns_are_another_release_and_a_run_cannot_change_them(tmp_path):
    """The same noise on permuted columns would give the difference of the two away."""
    written(tmp_path)
    names = [f"c{index}" for index in range(FEATURES)]
    for client, block in enumerate(blocks()):
        lines = [",".join(names), *(",".join(map(repr, map(float, row))) for row in block.T)]
        (tmp_path / f"client-{client}.csv").write_text("\n".join(lines) + "\n")
    files = [{**one, "data": one["data"].replace("npy", "csv")} for one in nodes(tmp_path)]
    job = FedJob(fp.Centralized(3), CLIENTS, rounds=1, budget=BUDGET, timeout=0.01, patience=0.0)

    def sent(columns, number):
        asked = LocalGrid(files, {"columns": ",".join(columns)}, number=number)
        return run(asked, job, numbered(job, number)).transcript.exchanges[0].uploads["covariance"]

    first = sent(names, 1)
    np.testing.assert_array_equal(sent(names[::-1], 1), first)  # what it was told first stays
    turned = [unpacked(one, FEATURES)[::-1, ::-1] for one in sent(names[::-1], 2)]
    assert np.linalg.norm(turned[0] - unpacked(first[0], FEATURES)) > 1e-2
    assert [one["columns"] for one in ledger(tmp_path)] == [names, names[::-1]]
    with pytest.raises(InvalidInput, match="name them"):
        run(LocalGrid(files, {}, number=3), job)


# ---------------------------------------------------------------------- the noise
def test_noise_comes_from_the_system_whatever_the_node_is_told(tmp_path, monkeypatch):
    """Neither the run's seed nor a stated secret draws it, and the method sees nothing else."""
    written(tmp_path)
    drawn = []
    system = secrets.randbelow
    monkeypatch.setattr(secrets, "randbelow", lambda size: drawn.append(size) or system(size))
    first = released(tmp_path, number=1, secret=0)
    assert len(drawn) > CLIENTS * FEATURES * (FEATURES + 1) / 2
    for client in range(CLIENTS):
        for file in (tmp_path / f"memory-{client}").iterdir():
            assert file.stat().st_mode & 0o077 == 0 or file.name == "ledger.lock"
            file.unlink()
    assert all(
        np.abs(one - other).max() > 1e-3
        for one, other in zip(first, released(tmp_path, number=1, secret=0), strict=True)
    )


def test_a_run_over_nodes_is_the_run_on_what_they_released(tmp_path):
    written(tmp_path)
    matrices = released(tmp_path, number=1)
    data = ClientData.from_grams(np.stack(matrices), np.array(SAMPLES))
    data = replace(data, indefinite=True)
    job = FedJob(fp.FAPS(3), CLIENTS, rounds=4, seed=5, budget=BUDGET)
    trace = run(LocalGrid(nodes(tmp_path), {}, number=2), job)
    expected = fp.simulate(Problem("released", data), fp.FAPS(3), rounds=4, seed=5)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-9)


def test_the_guarantee_says_where_the_noise_is_from_and_what_is_public(tmp_path):
    written(tmp_path)
    job = FedJob(fp.SSI(3), CLIENTS, rounds=2, budget=BUDGET, columns=("a", "b"))
    simulated = LocalGrid([{"partition-id": i} for i in range(CLIENTS)], {"data": str(tmp_path)})
    deployed = run(LocalGrid(nodes(tmp_path), {}), job).setting.guarantee
    assert "discrete Gaussian" in deployed.sentence() and "seed" not in deployed.sentence()
    for words in ("taken as public: how many records", "columns of their files (a, b)"):
        assert words in deployed.sentence()
    (tmp_path / "memory-0").rename(tmp_path.with_name(f"{tmp_path.name}-0"))
    for client in range(1, CLIENTS):
        for file in (tmp_path / f"memory-{client}").iterdir():
            file.unlink()
        (tmp_path / f"memory-{client}").rmdir()
    trace = run(simulated, job)
    assert "from the seed in the link" in trace.setting.guarantee.sentence()
    save_trace(trace, tmp_path / "trace.npz")
    assert load_trace(tmp_path / "trace.npz").setting.guarantee == trace.setting.guarantee


# ---------------------------------------------------------------------- the limit
def test_a_node_adds_its_runs_up_and_refuses_beyond_its_limit(tmp_path):
    written(tmp_path)
    limit = {"epsilon": 1.5}
    first = released(tmp_path, number=1, **limit)
    with_one_more(tmp_path)
    released(tmp_path, number=2, **limit)
    with_one_more(tmp_path)
    with pytest.raises(
        InvalidInput, match=r"up to ε = 1\.5 only \(δ = 1e-6, all its runs together\); 1\.45 are"
    ):
        released(tmp_path, number=3, **limit)
    assert len(ledger(tmp_path, 1)) == 2
    assert not list((tmp_path / "memory-1").glob("release-*.npy"))[2:]
    again = released(tmp_path, number=4, epsilon=9.0)  # its operator allows more
    np.testing.assert_array_equal(again[0], first[0])  # whose records never changed


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"epsilon": 0.9}, r"and the run would make it 1\.$"),
        ({"epsilon": 1.0, "delta": 1e-9}, r"the run would make it 1\.[2-9]"),
        ({"epsilon": 1.0, "delta": 0.5}, r"must be below 0\.\d+, one over its records"),
        ({"epsilon": -1.0}, "above 0 and a δ between 0 and 1"),
    ],
)
def test_a_limit_is_the_nodes_own(terms, words, tmp_path):
    """No word of the run moves it: a larger δ than the node's costs more at the node's."""
    written(tmp_path)
    with pytest.raises(InvalidInput, match=words):
        released(tmp_path, **terms)
    assert not (tmp_path / "memory-0" / "ledger.json").exists()


def test_a_run_without_noise_is_never_forgotten(tmp_path):
    written(tmp_path)
    job = FedJob(fp.SSI(3), CLIENTS, rounds=2)
    for _ in range(2):
        run(LocalGrid(nodes(tmp_path), {}), job, numbered(job, 7))
    assert [one["mu"] for one in ledger(tmp_path)] == [None]
    assert Ledger(0, tmp_path / "memory-0").spent() == np.inf
    with pytest.raises(InvalidInput, match="inf are spent"):
        released(tmp_path, number=8, epsilon=5.0)
    with pytest.raises(InvalidInput, match="and the run adds no noise"):
        run(LocalGrid(nodes(tmp_path, epsilon=5.0), {}, number=9), job)


# ---------------------------------------------------------------------- the disk
def offer(mu=0.2, draw=lambda: np.eye(2)):
    return Offer((mu, 1e-25), 100, {"run": 1}, draw)


def test_a_crash_before_the_ledger_is_written_releases_nothing(tmp_path, monkeypatch):
    """The matrix lies on the disk, nobody has seen it, and it is drawn anew."""
    kept = Ledger(0, tmp_path)
    with monkeypatch.context() as broken:
        broken.setattr(Ledger, "_write", lambda *_: (_ for _ in ()).throw(OSError("no power")))
        with pytest.raises(OSError):
            kept.release("a" * 64, offer)
    assert kept.releases() == [] and kept.spent() == 0.0
    matrix, samples = kept.release("a" * 64, lambda: offer(draw=lambda: 2 * np.eye(2)))
    assert samples == 100 and matrix[0, 0] == 2.0
    again, _ = Ledger(0, tmp_path).release("a" * 64, lambda: pytest.fail("drawn twice"))
    np.testing.assert_array_equal(again, matrix)
    assert not list(tmp_path.glob(".*.part"))


def test_what_is_lost_from_the_disk_is_not_drawn_again(tmp_path):
    kept = Ledger(0, tmp_path)
    kept.release("a" * 64, offer)
    next(tmp_path.glob("release-*.npy")).unlink()
    with pytest.raises(InvalidInput, match="would be another release"):
        kept.release("a" * 64, offer)
    for damaged in ('[{"key": "a', '[{"key": "a"}]', "{}x"):
        (tmp_path / "ledger.json").write_text(damaged)
        with pytest.raises(InvalidInput, match="cannot be read"):
            kept.release("b" * 64, offer)


def test_runs_at_the_same_time_do_not_spend_the_same_budget_twice(tmp_path):
    """Eight at once, of which the limit lets three pass."""
    refused, begin = [], threading.Barrier(8)
    three = float(epsilon_of(0.2 * np.sqrt(3), 1e-6 * (1 - SLACK)))

    def spend(number):
        begin.wait()
        try:
            Ledger(0, tmp_path, 1.001 * three, 1e-6).release(f"{number:064d}", offer)
        except InvalidInput as refusal:
            refused.append(str(refusal))

    threads = [threading.Thread(target=spend, args=(number,)) for number in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert len(Ledger(0, tmp_path).releases()) == 3 and len(refused) == 5
    assert Ledger(0, tmp_path).spent() == pytest.approx(three)
    assert len(list(tmp_path.glob("release-*.npy"))) == 3
