"""Who falls silent is absent by the method's own rule, loses nothing, and can come back."""

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_flower.job import FedJob
from fedpca_flower.records import opened
from fedpca_flower.server_app import run
from tests.engines.local_grid import LocalGrid
from tests.engines.small_federation import CLIENTS, grid, in_process, over_a_grid, written
from tests.engines.test_rounds import assert_same

LOST = {1: {2}, 2: {1}, 3: {1, 4}, 5: {0}}
METHODS = [
    fp.SSI(3),
    fp.LocalPower(3),
    fp.FAPS(3),
    fp.VariableSplitting(3),
    fp.BlockKrylov(3),
    fp.Centralized(3),
    fp.FedPE(3),
    fp.FedPG(3),
    fp.FedPG(3, sampling="round robin"),
    fp.PersonalizedPCA(3),
    fp.GlobalAveraging(3),
    fp.OneShot(3),
]


def losing(script, kind, action="step"):
    """Messages of some rounds to some clients are lost, "before" or "after" the client's step."""

    def lost(message):
        told, _ = opened(message.content)
        asked = message.metadata.message_type == f"query.{action}"
        index = told.get("round", told.get("counted"))
        client = message.metadata.dst_node_id - 1000
        return kind if asked and client in script.get(index, set()) else ""

    return lost


@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("absent", ["memory", "present"])
@pytest.mark.parametrize("algorithm", METHODS, ids=lambda one: one.title)
def test_a_lost_message_is_an_absent_client(algorithm, absent, kind, tmp_path):
    """Whether the question is lost or the answer: a step that did not count is forgotten."""
    problem = written(tmp_path)
    options = {"rounds": 6, "seed": 2, "absent": absent}
    expected = in_process(problem, algorithm, LOST, **options)
    trace = over_a_grid(tmp_path, algorithm, losing(LOST, kind), **options)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)
    for here, there in zip(trace.transcript.exchanges, expected.transcript.exchanges, strict=True):
        np.testing.assert_array_equal(here.participants, there.participants)


@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("algorithm", [fp.FedPE(3), fp.FedPG(3)], ids=lambda one: one.title)
def test_lost_feedback_reaches_its_client_with_the_next_message(algorithm, kind, tmp_path):
    """The dual step is made once, with the Z of its own round."""
    problem = written(tmp_path)
    options = {"rounds": 6, "seed": 2, "participation": 0.8}
    expected = fp.simulate(problem, algorithm, **options)
    trace = over_a_grid(tmp_path, algorithm, losing(LOST, kind, "settle"), **options)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)


def test_a_machine_that_all_are_aligned_to_is_waited_for(tmp_path):
    """FedPower cannot do without its reference machine, so the round is asked for again."""
    problem, algorithm = written(tmp_path), fp.FedPower(3)
    times = []

    def lost(message):
        told, _ = opened(message.content)
        if message.metadata.message_type != "query.step" or told["round"] != 2:
            return ""
        if message.metadata.dst_node_id != 1000 or len(times) == 2:
            return ""
        times.append(told)
        return "after"

    expected = fp.simulate(problem, algorithm, rounds=4, seed=0)
    trace = over_a_grid(tmp_path, algorithm, lost, rounds=4, seed=0)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)
    assert len(times) == 2
    again = losing({2: {0}}, "before")
    with pytest.raises(
        InvalidInput, match=r"Round 2 got too few answers .* not to be missed: \[0\]"
    ):
        over_a_grid(tmp_path, algorithm, again, rounds=4, timeout=0.01, patience=0.0)


def test_a_run_that_nobody_answers_ends_with_a_sentence(tmp_path):
    written(tmp_path)
    everybody = losing({3: set(range(CLIENTS))}, "before")
    with pytest.raises(InvalidInput, match="Round 3 got too few answers"):
        over_a_grid(tmp_path, fp.SSI(3), everybody, rounds=4, timeout=0.01, patience=0.0)


@pytest.mark.parametrize("algorithm", [fp.FAPS(3), fp.FedPG(3), fp.BlockKrylov(3)], ids=str)
def test_a_client_that_went_and_came_back_goes_on_from_its_folder(algorithm, tmp_path):
    """A new process, a new node number, an empty context: its own file has what it remembers."""
    problem = written(tmp_path)
    nodes = [
        {
            "client": client,
            "data": str(tmp_path / f"client-{client}.npy"),
            "memory": str(tmp_path / f"memory-{client}"),
            "secret": 4,
        }
        for client in range(CLIENTS)
    ]
    federation = Restarting(nodes, {})
    # It goes in round 3. Others go on, and it is back in round 6; block Krylov waits in round 4.
    gone = {3: {1}} if algorithm.waits else {3: {1}, 4: {1}, 5: {1}}
    expected = in_process(problem, algorithm, gone, rounds=7, seed=4)
    job = FedJob(algorithm, CLIENTS, rounds=7, seed=4, timeout=0.01, patience=2.0)
    trace = run(federation, job)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)
    for here, there in zip(trace.transcript.exchanges, expected.transcript.exchanges, strict=True):
        np.testing.assert_array_equal(here.participants, there.participants)


class Restarting(LocalGrid):
    """Client 1 goes in round 3 and comes back as another node at the third look after that."""

    looks, returns_as = 0, 77

    def push_messages(self, messages):
        messages = list(messages)
        for message in messages:
            told, _ = opened(message.content)
            if message.metadata.message_type == "query.step" and told["round"] == 3:
                self.contexts.pop(1001, None)
        return super().push_messages(messages)

    def get_node_ids(self):
        if 1001 not in self.contexts and self.returns_as not in self.contexts:
            self.looks += 1
            if self.looks == 3:
                self.join(self.returns_as, self.nodes[1])
        return super().get_node_ids()


def test_a_node_that_is_back_before_the_old_one_is_missed_is_let_in_later(tmp_path):
    """Flower lists a killed node for a minute; until then its client would be two."""
    problem = written(tmp_path)
    nodes = [{"client": i, "data": str(tmp_path / f"client-{i}.npy")} for i in range(CLIENTS)]
    job = FedJob(fp.SSI(3), CLIENTS, rounds=7, timeout=0.01, patience=2.0)
    trace = run(Believing(nodes, {}), job)
    expected = in_process(problem, fp.SSI(3), {3: {1}, 4: {1}, 5: {1}}, rounds=7, seed=0)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)


class Believing(Restarting):
    """Client 1 is back at once, and its old node is listed twice more."""

    def get_node_ids(self):
        if 1001 in self.contexts:
            return super().get_node_ids()
        if self.returns_as not in self.contexts:
            self.join(self.returns_as, self.nodes[1])
        self.looks += 1
        return [*super().get_node_ids(), *([1001] if self.looks <= 2 else [])]


@pytest.mark.parametrize("secure", [False, True], ids=["open", "secure sums"])
def test_a_node_that_comes_back_with_nothing_is_a_newcomer(secure, tmp_path):
    """A sum still holds its last upload; it cannot send the difference to that, so it refuses."""
    problem, channel = written(tmp_path), fp.Channel(secure_aggregation=secure)
    nodes = [{"client": i, "data": str(tmp_path / f"client-{i}.npy")} for i in range(CLIENTS)]
    federation = Restarting(nodes, {})
    federation.returns_as = 1001  # Flower may know it by its key
    options = {"rounds": 7, "seed": 4, "channel": channel}
    trace = run(federation, FedJob(fp.SSI(3), CLIENTS, timeout=0.01, patience=2.0, **options))
    gone = {round_: {1} for round_ in range(3, 8 if secure else 6)}
    expected = in_process(problem, fp.SSI(3), gone, **options)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)


def test_a_full_run_loses_no_bytes_to_bookkeeping(tmp_path):
    problem = written(tmp_path)
    expected = fp.simulate(problem, fp.FedPG(3), rounds=4, seed=0, participation=0.6)
    assert_same(over_a_grid(tmp_path, fp.FedPG(3), rounds=4, participation=0.6), expected)


def test_clients_that_do_not_fit_are_refused_in_a_sentence(tmp_path):
    written(tmp_path)
    job = FedJob(fp.SSI(3), CLIENTS + 1, rounds=2, timeout=0.01, patience=0.0)
    with pytest.raises(InvalidInput, match=r"Clients \[5\] of 6 have not come within 0 seconds"):
        run(grid(tmp_path), job)
    job = FedJob(fp.SSI(3), CLIENTS - 1, rounds=2, timeout=0.01, patience=0.0)
    with pytest.raises(InvalidInput, match="A node calls itself client 4"):
        run(grid(tmp_path), job)
    np.save(tmp_path / "client-2.npy", np.ones((4, 3)) * np.arange(3))
    with pytest.raises(InvalidInput, match="must agree on the same columns"):
        run(grid(tmp_path), FedJob(fp.SSI(3), CLIENTS, rounds=2))
