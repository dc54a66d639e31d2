"""A server that is stopped anywhere goes on from its journal; the run is the one it would be."""

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_flower.job import FedJob
from fedpca_flower.journal import Journal
from fedpca_flower.server_app import run
from tests.engines.local_grid import LocalGrid
from tests.engines.small_federation import CLIENTS, written

SECURE = fp.Channel(secure_aggregation=True)
METHODS = [fp.FAPS(3), fp.FedPG(3), fp.GlobalAveraging(3)]


class Stopped(Exception):
    """The server's process is gone."""


class Stopping(LocalGrid):
    """Counts the server's messages, and is stopped at one of them: before it leaves, or after."""

    def __init__(self, folder, memories, stop=None, kind="before"):
        nodes = [
            {"client": i, "data": str(folder / f"client-{i}.npy"), "memory": str(memories / str(i))}
            for i in range(CLIENTS)
        ]
        for node in nodes:
            node["secret"] = 4
        super().__init__(nodes, {})
        self.stop, self.kind, self.actions = stop, kind, []

    def push_messages(self, messages):
        for message in messages:
            last = len(self.actions) == self.stop
            self.actions.append(message.metadata.message_type)
            if last and self.kind == "before":
                raise Stopped
            yield from super().push_messages([message])
            if last:
                raise Stopped


def resumed(folder, job, stop, kind):
    """A run that is stopped at a message, and goes on in new processes everywhere."""
    memories, journal = folder / f"{kind}-{stop}", folder / f"journal-{kind}-{stop}"
    with pytest.raises(Stopped):
        run(Stopping(folder, memories, stop, kind), job, Journal(job, journal))
    again = Stopping(folder, memories)
    return run(again, job, Journal(job, journal, resume=True)), again


@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("algorithm", METHODS, ids=lambda one: one.title)
def test_a_server_that_is_stopped_in_any_phase_goes_on(algorithm, kind, tmp_path):
    written(tmp_path)
    job = FedJob(algorithm, CLIENTS, rounds=3, seed=4, timeout=0.01, patience=2.0)
    whole = Stopping(tmp_path, tmp_path / "whole")
    expected = run(whole, job)
    phases = [
        at
        for at in range(1, len(whole.actions))
        if whole.actions[at] != whole.actions[at - 1] or at % 13 == 2
    ]
    for at in phases:
        trace, again = resumed(tmp_path, job, at, kind)
        np.testing.assert_array_equal(trace.estimates, expected.estimates)
        np.testing.assert_array_equal(trace.bytes_up, expected.bytes_up)
        np.testing.assert_array_equal(trace.local_products, expected.local_products)
        for here, there in zip(
            trace.transcript.exchanges, expected.transcript.exchanges, strict=True
        ):
            for name, upload in there.uploads.items():
                np.testing.assert_array_equal(here.uploads[name], upload)
        steps = whole.actions[:at].count("query.step") // CLIENTS
        asked = again.actions.count("query.step") // CLIENTS
        assert asked <= 3 - steps + (kind == "after"), "rounds that were heard are not asked again"


@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("absent", ["memory", "present"])
def test_under_masks_too(absent, kind, tmp_path):
    """A sum that was not opened is asked for again; no mask is used twice."""
    written(tmp_path)
    options = {"rounds": 3, "seed": 4, "absent": absent, "channel": SECURE}
    job = FedJob(fp.FAPS(3), CLIENTS, timeout=0.01, patience=2.0, **options)
    whole = Stopping(tmp_path, tmp_path / "whole")
    expected = run(whole, job)
    for at in range(7, len(whole.actions), 6):
        trace, _ = resumed(tmp_path, job, at, kind)
        np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)


def test_a_journal_belongs_to_one_job(tmp_path):
    written(tmp_path)
    job = FedJob(fp.SSI(3), CLIENTS, rounds=3, timeout=0.01, patience=0.0)
    with pytest.raises(InvalidInput, match="There is no run to go on with"):
        Journal(job, tmp_path / "journal", resume=True)
    with pytest.raises(Stopped):
        run(Stopping(tmp_path, tmp_path / "m", 16), job, Journal(job, tmp_path / "journal"))
    other = FedJob(fp.SSI(2), CLIENTS, rounds=3)
    with pytest.raises(InvalidInput, match="was asked for with other settings"):
        Journal(other, tmp_path / "journal", resume=True)
    assert all(file.stat().st_mode & 0o077 == 0 for file in (tmp_path / "journal").iterdir())
    longer = FedJob(fp.SSI(3), CLIENTS, rounds=5, timeout=0.01, patience=0.0)
    journal = Journal(longer, tmp_path / "journal", resume=True)
    trace = run(Stopping(tmp_path, tmp_path / "m"), longer, journal)
    expected = run(Stopping(tmp_path, tmp_path / "n"), longer)
    np.testing.assert_array_equal(trace.estimates, expected.estimates)
    journal.close()
    assert not (tmp_path / "journal").exists()


@pytest.mark.parametrize("number", [None, 3, "", "../../etc/x", "a" * 15, "A" * 16, "a" * 17])
def test_a_client_takes_no_part_of_a_path_from_the_server(number, tmp_path):
    written(tmp_path)
    journal = Journal(FedJob(fp.SSI(3), CLIENTS, rounds=1, timeout=0.01, patience=0.0))
    journal.number = number
    with pytest.raises(InvalidInput, match="16 hexadecimal digits"):
        run(Stopping(tmp_path, tmp_path / "m"), FedJob(fp.SSI(3), CLIENTS, rounds=1), journal)
