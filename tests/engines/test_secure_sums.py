"""Secure sums: the sum to the last digit, no single upload, nothing clipped, dropouts handled."""

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_flower import masks, secure
from fedpca_flower.job import Job
from fedpca_flower.server_app import run
from tests.engines.small_federation import CLIENTS, grid, in_process, over_a_grid, written
from tests.engines.test_lost_clients import losing

SECURE = fp.Channel(secure_aggregation=True)
SHAPES = {"a": (3, 2), "b": ()}


def clients_and_uploads(count=4, size=1e5, bound=2.0**20):
    generator = np.random.default_rng(0)
    keys = {client: secure.new_key() for client in range(count)}
    public = {client: key[1] for client, key in keys.items()}
    numbers = {
        c: {"a": size * generator.uniform(-1, 1, (3, 2)), "b": np.array(-size)} for c in keys
    }
    point = secure.FixedPoint(bound, count)
    uploads, own, pairs = {}, {}, {}
    for client, (private, _) in keys.items():
        own[client] = secure.own_seed()
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
    assert np.abs(point.numbers(words, SHAPES)["a"] - numbers[0]["a"]).min() > 1e3


def test_masks_differ_by_occasion_and_take_the_whole_key():
    """One flipped bit anywhere in a seed changes the mask: keys are not shortened."""
    (first, public), (_, other) = secure.new_key(), secure.new_key()
    keys = {0: public, 1: other}
    seeds = [secure.pair_seeds(first, keys, 0, occasion)[1] for occasion in ("1/0", "1/1", "2/0")]
    assert len(set(seeds)) == 3
    whole = secure.mask(seeds[0], 4)
    for byte in range(32):
        changed = bytearray.fromhex(seeds[0])
        changed[byte] ^= 1
        assert (secure.mask(changed.hex(), 4) != whole).all()
    swapped = bytes.fromhex(seeds[0])[16:] + bytes.fromhex(seeds[0])[:16]
    assert (secure.mask(swapped.hex(), 4) != whole).all()


def test_numbers_that_could_overflow_are_refused_and_not_clipped():
    point = secure.FixedPoint(100.0, 4)
    words = point.words({"a": np.array([25.0, -25.0])})
    assert point.numbers(words, {"a": (2,)})["a"].tolist() == [25.0, -25.0]
    for bad in (25.1, np.inf, np.nan):
        with pytest.raises(InvalidInput, match="raise the bound"):
            point.words({"a": np.array([bad])})


def test_a_client_opens_only_sums_it_is_in_and_not_of_one():
    masks.check_opening(1, [0, 1, 2], [1, 2], 2)
    for participants, arrived, words in [
        ([0, 1, 2], [0, 2], "contributed"),
        ([0, 1], [0, 1, 2], "contributed"),
        ([0, 1, 2], [1], "too much"),
    ]:
        with pytest.raises(InvalidInput, match=words):
            masks.check_opening(1, participants, arrived, 2)


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


@pytest.mark.parametrize("action", ["round", "unmask"])
@pytest.mark.parametrize("kind", ["before", "after"])
@pytest.mark.parametrize("absent", ["memory", "present"])
def test_clients_may_fall_silent_before_and_after_their_upload(absent, kind, action, tmp_path):
    """Between upload and opening the round is asked for again; the result is as without masks."""
    problem, algorithm = written(tmp_path), fp.FAPS(3)
    once = set()

    def lost(message):
        if action == "round":
            return losing({2: {1}, 3: {1, 4}}, kind)(message)
        node = message.metadata.dst_node_id
        if message.metadata.message_type == "query.unmask" and node == 1003 and node not in once:
            once.add(node)
            return kind
        return ""

    gone = {2: {1}, 3: {1, 4}} if action == "round" else {}
    options = {"rounds": 5, "seed": 3, "absent": absent, "channel": SECURE}
    expected = in_process(problem, algorithm, gone, **options)
    trace = over_a_grid(tmp_path, algorithm, lost, **options)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)


@pytest.mark.parametrize("kind", ["before", "after"])
def test_a_client_that_masks_and_never_opens_stops_nobody(kind, tmp_path, caplog):
    """Its round would be asked for again for ever; after two it goes on without that client."""
    problem, algorithm = written(tmp_path), fp.FAPS(3)

    def lost(message):
        opens = message.metadata.message_type == "query.unmask"
        return kind if opens and message.metadata.dst_node_id == 1003 else ""

    options = {"rounds": 3, "seed": 3, "channel": SECURE}
    expected = in_process(problem, algorithm, {r: {3} for r in range(1, 4)}, **options)
    trace = over_a_grid(tmp_path, algorithm, lost, **options)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)
    assert "Client 3 is left out: it masked its upload 2 times" in caplog.text


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
        Job(fp.BlockKrylov(3), CLIENTS, participation=0.6, channel=SECURE)


def test_one_participant_is_no_sum(tmp_path):
    written(tmp_path)
    job = Job(fp.SSI(3), CLIENTS, participation=0.2, channel=SECURE, timeout=0.1, patience=0.0)
    with pytest.raises(InvalidInput, match="A sum over 1 client says too much"):
        run(grid(tmp_path), job)


def test_methods_that_need_single_uploads_are_refused():
    with pytest.raises(InvalidInput, match="needs every client's own upload"):
        Job(fp.OneShot(3), CLIENTS, channel=SECURE)
    with pytest.raises(InvalidInput, match="choose float64"):
        Job(fp.SSI(3), CLIENTS, channel=fp.Channel(dtype="float32", secure_aggregation=True))
