"""Secure sums: the sum to the last digit, no single upload, nothing clipped, dropouts handled."""

from itertools import combinations

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

from flwr.app import Message

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_flower import secure
from fedpca_flower.job import FedJob
from fedpca_flower.journal import Journal
from fedpca_flower.records import opened, packed
from fedpca_flower.roster import Roster
from fedpca_flower.server_app import GridRun, run
from tests.engines.local_grid import LocalGrid
from tests.engines.small_federation import (
    CLIENTS,
    FEATURES,
    grid,
    in_process,
    over_a_grid,
    written,
)

SECURE = fp.Channel(secure_aggregation=True)
SHAPES = {"a": (3, 2), "b": ()}


def clients_and_uploads(count=4, size=1e5, bound=2.0**20):
    generator = np.random.default_rng(0)
    keys = {client: secure.key(secure.new_seed()) for client in range(count)}
    public = {client: key[1] for client, key in keys.items()}
    numbers = {
        c: {"a": size * generator.uniform(-1, 1, (3, 2)), "b": np.array(-size)} for c in keys
    }
    point = secure.FixedPoint(bound, count)
    uploads, own, pairs = {}, {}, {}
    for client, (private, _) in keys.items():
        own[client] = secure.new_seed()
        pairs[client] = secure.pair_seeds(private, public, client, "1/0")
        words = point.words(numbers[client])
        uploads[client] = secure.masked(words, client, own[client], pairs[client])
    return point, numbers, uploads, own, pairs


@pytest.mark.parametrize("size", [8.0, 2e5])
@pytest.mark.parametrize("lost", [set(), {2}, {0, 3}])
def test_masks_cancel_in_the_sum_of_those_who_arrived(size, lost):
    """Values far beyond 8, where Flower's own module clips, are summed to the resolution."""
    point, numbers, uploads, own, pairs = clients_and_uploads(size=size)
    arrived = {client: words for client, words in uploads.items() if client not in lost}
    openings = {
        client: (own[client], {one: pairs[client][one] for one in lost}) for client in arrived
    }
    opened = point.numbers(secure.open_sum(arrived, openings), SHAPES)
    for name in ("a", "b"):
        expected = sum(numbers[client][name] for client in arrived)
        np.testing.assert_allclose(opened[name], expected, 1e-15, len(arrived) / point.scale)


def test_an_upload_alone_is_uniform_noise():
    """Whatever the numbers, single words look the same; without the own seed even to the others."""
    _, _, uploads, _, pairs = clients_and_uploads()
    bits = np.unpackbits(uploads[0].view(np.uint8))
    assert 0.35 < bits.mean() < 0.65
    words = uploads[0] - secure.pair_masks(0, pairs[0], uploads[0].size)
    point, numbers, *_ = clients_and_uploads()
    # Seeds are the system's: one of six numbers may come near by chance, three may not.
    assert np.median(np.abs(point.numbers(words, SHAPES)["a"] - numbers[0]["a"])) > 1e3


def test_masks_differ_by_occasion_and_take_the_whole_key():
    """One flipped bit anywhere in a seed changes the mask: keys are not shortened."""
    (first, public), (_, other) = secure.key(secure.new_seed()), secure.key(secure.new_seed())
    keys = {0: public, 1: other}
    seeds = [secure.pair_seeds(first, keys, 0, occasion)[1] for occasion in ("1/0", "1/1", "2/0")]
    assert len(set(seeds)) == 3
    for seed in (seeds[0], secure.new_seed()):
        whole, public = secure.mask(seed, 4), secure.key(seed)[1]
        for byte in range(len(seed) // 2):
            changed = bytearray.fromhex(seed)
            changed[byte] ^= 1
            assert (secure.mask(changed.hex(), 4) != whole).all()
            assert secure.key(changed.hex())[1] != public
        half = len(seed) // 2
        assert (secure.mask(seed[half:] + seed[:half], 4) != whole).all()


@pytest.mark.parametrize("clients", range(2, 40))
def test_no_list_of_arrivals_gives_both_seeds_of_a_client(clients):
    """A third of the clients may give the server both shares, and everybody else one of either."""
    least = secure.threshold(clients)
    assert least <= clients
    for colluding in range((clients + 2) // 3):
        assert 2 * least > clients + colluding


def dealers(count=5):
    keys = {client: secure.key(secure.new_seed()) for client in range(count)}
    public = {client: key for client, (_, key) in keys.items()}
    own, pairs = ([secure.new_seed() for _ in keys] for _ in "ab")
    dealt = [secure.dealt(own[c], pairs[c], c, keys[c][0], public, "1/0") for c in keys]
    return keys, own, pairs, dealt


def given(dealt, holder):
    return {
        "public": dealt["public"],
        "box": dealt["boxes"][holder],
        "marks": dealt["marks"][holder],
    }


def test_shares_are_read_by_their_holder_and_join_to_the_seed():
    """By any of so many as are needed, and by nobody with one less."""
    keys, own, pairs, dealt = dealers()
    held = {
        holder: secure.held(given(dealt[2], holder), 2, holder, keys[holder][0], keys[2][1], "1/0")
        for holder in keys
    }
    least = secure.threshold(len(keys))
    for some in combinations(keys, least):
        for which, seed in enumerate((own[2], pairs[2])):
            shares = {holder: held[holder][which] for holder in some}
            assert secure.joined(shares, keys) == seed
            shares.popitem()
            assert secure.joined(shares, keys) != seed
    assert secure.mark(own[2]) == dealt[2]["seal"]
    assert secure.key(pairs[2])[1] == dealt[2]["public"]


def test_a_box_is_for_one_holder_from_one_dealer_on_one_occasion():
    """And holds the key and the shares that everybody was told of, or is none."""
    keys, _, _, dealt = dealers()
    fine = given(dealt[2], 1)
    assert secure.held(fine, 2, 1, keys[1][0], keys[2][1], "1/0") is not None
    other = given(dealt[3], 1)
    for changed in (
        {"box": other["box"]},
        {"box": dealt[2]["boxes"][0]},
        {"box": dealt[1]["boxes"][2]},
        {"box": fine["box"][:-1] + ("0" if fine["box"][-1] != "0" else "1")},
        {"public": other["public"]},
        {"marks": other["marks"]},
    ):
        assert secure.held({**fine, **changed}, 2, 1, keys[1][0], keys[2][1], "1/0") is None
    assert secure.held(fine, 2, 1, keys[1][0], keys[2][1], "1/1") is None
    assert secure.held(fine, 2, 3, keys[3][0], keys[2][1], "1/0") is None


def test_numbers_that_could_overflow_are_refused_and_not_clipped():
    point = secure.FixedPoint(100.0, 4)
    words = point.words({"a": np.array([25.0, -25.0])})
    assert point.numbers(words, {"a": (2,)})["a"].tolist() == [25.0, -25.0]
    for bad in (25.1, np.inf, np.nan):
        with pytest.raises(InvalidInput, match="raise the bound"):
            point.words({"a": np.array([bad])})


class Server:
    """A server that asks five honest clients for what it likes, after they have been greeted."""

    def __init__(self, folder, **node):
        written(folder)
        nodes = [
            {"client": c, "data": str(folder / f"client-{c}.npy"), **node} for c in range(CLIENTS)
        ]
        self.grid = LocalGrid(nodes, {})
        job = FedJob(fp.SSI(3), CLIENTS, rounds=1, channel=SECURE, absent="present")
        GridRun(job, roster := Roster.gathered(self.grid, job, Journal(job))).begin()
        self.number, self.facts = roster.journal.number, roster.facts
        self.keys = {client: facts["public"] for client, facts in self.facts.items()}

    def ask(self, client, action, **told):
        """One client's answer."""
        content = packed({**told, "job": self.number}, down={"frame": np.eye(FEATURES)[:, :3]})
        message = Message(content, 1000 + client, f"query.{action}")
        (reply,) = self.grid.send_and_receive([message])
        return opened(reply.content)

    def deal(self, clients=range(CLIENTS), occasion="1/0"):
        keys = {client: self.keys[client] for client in clients}
        return {c: self.ask(c, "deal", keys=keys, occasion=occasion)[0] for c in clients}

    def step(self, client, dealt, occasion="1/0"):
        boxes = {
            dealer: {
                "public": said["public"],
                "box": said["boxes"][str(client)],
                "marks": said["marks"][str(client)],
            }
            for dealer, said in dealt.items()
        }
        terms = {"occasion": occasion, "bound": 2.0**20, "differences": False, "dealt": boxes}
        told = {"round": 1, "counted": 0, "local_steps": 1, "extra": {}, "weight": 0.2}
        return self.ask(client, "step", secure=terms, **told)

    def unmask(self, client, arrived, occasion="1/0"):
        return self.ask(client, "unmask", arrived=arrived, occasion=occasion)[0]


def test_a_client_gives_one_share_of_each_seed_and_only_once(tmp_path):
    """Asked for both shares of a client, in one list or in two, it refuses."""
    server = Server(tmp_path)
    dealt = server.deal()
    for client in dealt:
        server.step(client, dealt)
    everybody = list(range(CLIENTS))
    shares = server.unmask(0, everybody)["shares"]
    assert set(shares) == {str(client) for client in everybody}
    assert "over one list" in server.unmask(0, [0, 1, 2, 3])["refused"]
    assert server.unmask(0, everybody)["shares"] == shares, "a server that was stopped asks again"
    assert "over one list" in server.unmask(1, everybody, "1/1")["refused"]
    assert "contributed" in server.unmask(1, [0, 2, 3, 4])["refused"]
    assert "contributed" in server.unmask(1, [*everybody, 7])["refused"]
    assert "A sum over 3 of 5 clients is not opened" in server.unmask(1, [0, 1, 2])["refused"]
    assert "A sum over 3 of 5 clients" in server.unmask(1, [0, 1, 2, 2, 2])["refused"]
    lost = server.unmask(1, [0, 1, 2, 3])["shares"]
    for dealer in map(str, range(4)):
        assert secure.mark(lost[dealer]) == dealt[int(dealer)]["marks"]["1"][:64]
    assert secure.mark(lost["4"]) == dealt[4]["marks"]["1"][64:]


def test_two_lists_of_arrivals_open_neither_sum_nor_client(tmp_path):
    """Some hear that client 4 has arrived, others that it has not: four shares are of neither."""
    for told_lost in range(1, 4):
        server = Server(tmp_path)
        dealt = server.deal()
        for client in dealt:
            server.step(client, dealt)
        found = {True: {}, False: {}}
        for client in range(CLIENTS):
            lost = client < told_lost
            arrived = [0, 1, 2, 3] if lost else [0, 1, 2, 3, 4]
            found[lost][client] = server.unmask(client, arrived)["shares"]["4"]
        seals = {False: dealt[4]["seal"], True: dealt[4]["public"]}
        both = [
            len(shares) >= secure.threshold(CLIENTS)
            and seals[lost]
            == (secure.key if lost else lambda seed: (0, secure.mark(seed)))(
                secure.joined(shares, range(CLIENTS))
            )[1]
            for lost, shares in found.items()
        ]
        assert sum(both) <= 1


def test_an_occasion_that_comes_again_is_refused(tmp_path):
    """Old boxes under new masks would give the own seed today and the pairs' key tomorrow."""
    server = Server(tmp_path)
    dealt = server.deal()
    assert "refuses a second time" in server.deal()[2]["refused"]
    for client in dealt:
        server.step(client, dealt)
    assert "once under the masks" in server.step(1, dealt)[0]["refused"]
    again = server.deal(occasion="1/1")
    said, groups = server.step(1, {**again, 4: dealt[4]}, "1/1")
    assert said["unread"] == [4] and "up" not in groups
    assert "over one list" in server.unmask(1, [0, 1, 2, 3], "1/1")["refused"]


def test_a_client_deals_and_uploads_only_among_enough(tmp_path):
    server = Server(tmp_path, fewest=3)
    assert "under its own key" in server.ask(0, "deal", keys={"1": "a"}, occasion="1")[0]["refused"]
    forged = {**server.keys, 0: server.keys[1]}
    assert "under its own key" in server.ask(0, "deal", keys=forged, occasion="1")[0]["refused"]
    assert "A sum over 2 clients says too much" in server.deal([0, 1])[0]["refused"]
    dealt = server.deal(occasion="1/1")
    few = {client: dealt[client] for client in (0, 1, 2)}
    assert "Shares of 3 of 5 clients were dealt" in server.step(0, few, "1/1")[0]["refused"]
    others = {client: dealt[client] for client in (1, 2, 3, 4)}
    assert "this one included" in server.step(0, others, "1/1")[0]["refused"]


@pytest.mark.parametrize(
    ("participation", "absent"), [(1.0, "memory"), (0.6, "memory"), (0.6, "present")]
)
@pytest.mark.parametrize(
    "algorithm",
    [fp.SSI(3), fp.FAPS(3), fp.VariableSplitting(3), fp.FedPG(3)],
    ids=lambda a: a.title,
)
def test_a_run_under_secure_sums_is_the_run_in_one_process(
    algorithm, participation, absent, tmp_path
):
    problem = written(tmp_path)
    options = {
        "rounds": 5, "seed": 3, "participation": participation, "absent": absent, "channel": SECURE,
    }  # fmt: skip
    expected = fp.simulate(problem, algorithm, **options)
    trace = over_a_grid(tmp_path, algorithm, **options)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)
    np.testing.assert_array_equal(trace.bytes_up, expected.bytes_up)
    np.testing.assert_array_equal(trace.bytes_down, expected.bytes_down)
    assert all(exchange.uploads is None for exchange in trace.transcript.exchanges)
    for here, there in zip(trace.transcript.exchanges, expected.transcript.exchanges, strict=True):
        for name, total in there.sums.items():
            np.testing.assert_allclose(here.sums[name], total, rtol=0, atol=1e-9)


def silent(nodes, action, kind, rounds=(1, 2, 3, 4, 5)):
    """These nodes' answers to one kind of question are lost in some rounds."""

    def lost(message):
        told, _ = opened(message.content)
        round_ = int(str(told.get("occasion", told.get("round", 0))).split("/")[0])
        asked = message.metadata.message_type == f"query.{action}" and round_ in rounds
        return kind if asked and message.metadata.dst_node_id - 1000 in nodes else ""

    return lost


@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("action", ["deal", "step", "unmask"])
@pytest.mark.parametrize("absent", ["memory", "present"])
def test_a_client_lost_in_any_phase_costs_no_repetition(absent, action, kind, tmp_path):
    """The sum of the others is opened at once; who falls silent after its upload is in it."""
    problem, algorithm, asked = written(tmp_path), fp.FAPS(3), []
    gone = silent({3}, action, kind, rounds=(2, 4))

    def lost(message):
        asked.append(message.metadata.message_type)
        return gone(message)

    options = {"rounds": 5, "seed": 3, "absent": absent, "channel": SECURE}
    missing = {} if action == "unmask" else {2: {3}, 4: {3}}
    expected = in_process(problem, algorithm, missing, **options)
    trace = over_a_grid(tmp_path, algorithm, lost, **options)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)
    assert asked.count("query.deal") == 5 * CLIENTS


@pytest.mark.parametrize("action", ["deal", "step", "unmask"])
def test_with_too_few_the_round_is_asked_for_again_without_the_silent(action, tmp_path):
    """Two of five are more than the shares allow for; three deal shares among themselves."""
    problem, algorithm = written(tmp_path), fp.FAPS(3)
    options = {"rounds": 3, "seed": 3, "channel": SECURE}
    expected = in_process(problem, algorithm, {2: {1, 4}}, **options)
    gone = silent({1, 4}, action, "after", rounds=(2,))
    trace = over_a_grid(tmp_path, algorithm, gone, **options)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)
    with pytest.raises(InvalidInput, match="Round 2 got too few answers"):
        over_a_grid(tmp_path, algorithm, gone, timeout=0.01, patience=0.0, **options)


@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("algorithm", [fp.FAPS(3), fp.BlockKrylov(3)], ids=str)
def test_a_client_that_masks_and_never_opens_stops_nobody(algorithm, kind, tmp_path):
    """Even where everybody has to upload: its upload is in every sum."""
    problem = written(tmp_path)
    options = {"rounds": 3, "seed": 3, "channel": SECURE}
    expected = in_process(problem, algorithm, {}, **options)
    trace = over_a_grid(tmp_path, algorithm, silent({3}, "unmask", kind), **options)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)


def test_who_is_waited_for_is_not_asked_alone(tmp_path):
    """Block Krylov would ask the late client alone, and a sum of one is an upload."""
    problem, times = written(tmp_path), []

    def lost(message):
        late = message.metadata.message_type == "query.step" and len(times) < 2
        if late and message.metadata.dst_node_id == 1003:
            times.append(message)
            return "after"
        return ""

    expected = fp.simulate(problem, fp.BlockKrylov(3), rounds=4, seed=0, channel=SECURE)
    trace = over_a_grid(tmp_path, fp.BlockKrylov(3), lost, rounds=4, seed=0, channel=SECURE)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)
    with pytest.raises(InvalidInput, match="asks them alone, which no sum hides"):
        FedJob(fp.BlockKrylov(3), CLIENTS, participation=0.6, channel=SECURE)


def test_one_participant_is_no_sum(tmp_path):
    written(tmp_path)
    job = FedJob(fp.SSI(3), CLIENTS, participation=0.2, channel=SECURE, timeout=0.1, patience=0.0)
    with pytest.raises(InvalidInput, match="A sum over 1 client says too much"):
        run(grid(tmp_path), job)


def test_methods_that_need_single_uploads_are_refused():
    with pytest.raises(InvalidInput, match="needs every client's own upload"):
        FedJob(fp.OneShot(3), CLIENTS, channel=SECURE)
    with pytest.raises(InvalidInput, match="choose float64"):
        FedJob(fp.SSI(3), CLIENTS, channel=fp.Channel(dtype="float32", secure_aggregation=True))
