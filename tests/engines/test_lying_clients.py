"""Nobody's answer is believed: a lie names its sender, and no run ends in a raw exception."""

import json
import random

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is optional: pip install -r requirements-flower.txt")

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, RecordDict

import fedpca_core as fp
from fedpca_core.errors import InvalidInput
from fedpca_core.protocol.trace_file import load_trace
from fedpca_core.study.pca_settings import ConvergeSettings
from fedpca_flower import secure
from fedpca_flower.job import FedJob
from fedpca_flower.records import BARE, opened, packed
from fedpca_flower.server_app import app as server_app
from fedpca_flower.server_app import run
from tests.engines.local_grid import LocalGrid
from tests.engines.small_federation import CLIENTS, grid, in_process, written
from tests.engines.test_lost_clients import METHODS
from tests.mutants import SEED, WRONG, places

LIAR = 1
SECURE = fp.Channel(secure_aggregation=True)
ALL = [*METHODS, fp.FedPower(3)]


class Lying(LocalGrid):
    """One node answers one kind of question with something else, from a round on."""

    def __init__(self, data, action, lie, since=2, keeps=False):
        nodes = [{"client": i, "data": str(data / f"client-{i}.npy")} for i in range(CLIENTS)]
        for node in nodes if keeps else ():
            node["memory"] = str(data / f"memory-{node['client']}")
        super().__init__(nodes, {})
        self.action, self.lie, self.since, self.lies = action, lie, since, 0

    def push_messages(self, messages):
        for message in messages:
            (identifier,) = super().push_messages([message])
            yield identifier
            action = message.metadata.message_type.removeprefix("query.")
            told, _ = opened(message.content)
            asked = action == self.action and _round(told, self.since) >= self.since
            if asked and message.metadata.dst_node_id == 1000 + LIAR:
                reply = self._replies.get(identifier)
                if reply is not None and "refused" not in opened(reply.content)[0]:
                    reply.content = self.lie(reply.content)
                    self.lies += 1


def _round(told, otherwise):
    return int(str(told.get("occasion", told.get("round", otherwise))).split("/")[0])


def say(**values):
    """The answer with other plain values."""

    def lie(content):
        told, groups = opened(content)
        return packed({**told, **values}, **groups)

    return lie


def text(written_):
    """The answer with this text for its plain values."""

    def lie(content):
        changed = {"told": ConfigRecord({"json": written_})}
        return RecordDict({**changed, **content.array_records})

    return lie


def without(name):
    def lie(content):
        told, groups = opened(content)
        told.pop(name)
        return packed(told, **groups)

    return lie


def upload(change):
    """The answer with every array of its upload changed."""

    def lie(content):
        told, groups = opened(content)
        groups["up"] = {name: change(array) for name, array in groups["up"].items()}
        return packed(told, **groups)

    return lie


def names(change):
    """The answer with other arrays."""

    def lie(content):
        told, groups = opened(content)
        return packed(told, **{**groups, "up": change(groups["up"])})

    return lie


def bare(dtype=None, shape=None, stype=BARE, data=None):
    """The answer with arrays that say something else of themselves."""

    def lie(content):
        record = {
            name: Array(
                dtype or array.dtype,
                array.shape if shape is None else shape,
                stype,
                array.data if data is None else data,
            )
            for name, array in content.array_records["up"].items()
        }
        return RecordDict({"told": content.config_records["told"], "up": ArrayRecord(record)})

    return lie


def filled(value):
    return upload(lambda array: np.full_like(array, value))


ANY = {  # lies that fit every answer
    "nothing at all": lambda content: RecordDict(),
    "no plain values": lambda content: RecordDict(dict(content.array_records)),
    "no JSON": text("{"),
    "a list": text("[]"),
    "a bare number": text("3"),
    "a NaN in JSON": text('{"products": NaN}'),
    "deep JSON": text("[" * 100_000),
    "a number of 5,000 digits": text('{"products": ' + "9" * 5000 + "}"),
    "a config that is no text": lambda content: RecordDict({"told": ConfigRecord({"json": 3})}),
    "no values": text("{}"),
    "a refusal that is none": say(refused=["\x1b[2J" * 999]),
}
COUNTS = {
    "negative products": say(products=-1),
    "half a product": say(products=1.5),
    "true products": say(products=True),
    "10^15 products": say(products=10**15),
    "products as text": say(products="1"),
    "shows what it may not": say(shows="yes"),
}
ARRAYS = {
    "no upload": names(lambda up: {}),
    "another name": names(lambda up: {f"x{name}": array for name, array in up.items()}),
    "one array more": names(lambda up: {**up, "more": np.zeros(3)}),
    "one array less": names(lambda up: dict(list(up.items())[1:])),
    "one row less": upload(lambda array: array[..., :-1] if array.ndim else array[None]),
    "one axis more": upload(lambda array: array[None]),
    "transposed and longer": upload(lambda array: np.zeros((*array.shape[::-1], 2))),
    "no entries": upload(lambda array: np.zeros((0,))),
    "another precision": upload(lambda array: array.astype(np.float32)),
    "whole numbers": upload(lambda array: array.astype(np.int64)),
    "flags": upload(lambda array: array.astype(bool)),
    "objects": bare(dtype="object"),
    "no type": bare(dtype="no such type"),
    "a structure": bare(dtype="i4,(1000,1000)f8"),
    "complex numbers": bare(dtype="complex128"),
    "a pickle": bare(stype="pickle"),
    "NumPy's own format": bare(stype="numpy.ndarray"),
    "too few bytes": bare(data=b"123"),
    "a gigantic shape": bare(shape=(10**9, 10**9)),
    "a negative shape": bare(shape=(-1, -8)),
}
VALUES = {
    "NaN": filled(np.nan),
    "infinity": filled(np.inf),
    "one NaN": upload(lambda array: np.where(array == array.max(), np.nan, array)),
    "10^300": filled(1e300),
}
HELLO = {
    "no number": without("client"),
    "client -1": say(client=-1),
    "client 1.5": say(client=1.5),
    "client true": say(client=True),
    "client as text": say(client="1"),
    "client 10^15": say(client=10**15),
    "another's number": say(client=0),
    "a number too high": say(client=CLIENTS),
    "-5 records": say(samples=-5),
    "no records": say(samples=0),
    "1.5 records": say(samples=1.5),
    "10^15 records": say(samples=10**15),
    "10^400 records": say(samples=10**400),
    "-5 features": say(features=-5),
    "10^15 features": say(features=10**15),
    "other features": say(features=13),
    "features as a list": say(features=[12]),
    "no columns": without("columns"),
    "columns as text": say(columns="abc"),
    "a column of numbers": say(columns=[[1, 2, 3]] * 12),
    "columns less": say(columns=[["", "", ""]] * 11),
    "no key": without("public"),
    "half a key": say(public="ab" * 16),
    "a key that is none": say(public="0" * 64),
    "a key as a number": say(public=5),
    "simulated, perhaps": say(simulated="perhaps"),
}
NORMS = {
    "no norm": without("spectral_norm"),
    "a negative norm": say(spectral_norm=-1.0),
    "a norm of 10^300": say(spectral_norm=1e300),
    "a norm as text": say(spectral_norm="1"),
}
OPENING = {
    "no shares": without("shares"),
    "half a share": say(shares=dict.fromkeys("01234", "ab" * 8)),
    "a share as a number": say(shares=dict.fromkeys("01234", 5)),
    "a share of nobody": say(shares=dict.fromkeys("012347", "ab" * 16)),
    "a share too few": say(shares=dict.fromkeys("0123", "ab" * 16)),
    "shares as a list": say(shares=[]),
    "other shares": say(shares=dict.fromkeys("01234", "ab" * 16)),
}
DEALING = {
    "no key": without("public"),
    "a key that is none": say(public="0" * 64),
    "another key": say(public=secure.key("ab" * 16)[1]),
    "another seal": say(seal="ab" * 32),
    "no boxes": without("boxes"),
    "boxes for some": say(boxes=dict.fromkeys("0123", "ab" * 92)),
    "boxes of noise": say(boxes=dict.fromkeys("01234", "ab" * 92)),
    "boxes too small": say(boxes=dict.fromkeys("01234", "ab" * 91)),
    "no marks": without("marks"),
    "other marks": say(marks=dict.fromkeys("01234", "ab" * 64)),
}


def lied(folder, algorithm, action, lie, caplog, **options):
    """A run with a liar: a finite trace or a sentence, and the liar is named wherever it lied."""
    if not (folder / "client-0.npy").exists():
        written(folder)
    since = 1 if algorithm.one_round or isinstance(algorithm, fp.Centralized) else 2
    federation = Lying(folder, action, lie, since, "budget" in options)
    options = {"rounds": 3, "seed": 2, "timeout": 0.01, "patience": 0.0, **options}
    job = FedJob(algorithm, CLIENTS, **options)
    caplog.clear()
    said, trace = "", None
    try:
        trace = run(federation, job)
    except InvalidInput as refusal:
        said = str(refusal)
    told = f"{caplog.text} {said}"
    assert federation.lies, "nothing was asked that could be lied about"
    assert f"Client {LIAR} is left out" in told or f"Node {1000 + LIAR} is left out" in told or said
    assert any(
        name in told for name in (f"lient {LIAR}", f"ode {1000 + LIAR}", "lient 0", "lient 5")
    )
    assert trace is None or np.isfinite(trace.estimates).all()
    assert all(letter.isprintable() for letter in told.replace("\n", ""))
    return trace, said


def kinds(*tables):
    return [pytest.param(lie, id=name) for table in tables for name, lie in table.items()]


@pytest.mark.parametrize("lie", kinds(ANY, COUNTS, ARRAYS, VALUES))
def test_a_lie_in_a_round_ends_nobodys_run(lie, tmp_path, caplog):
    """Who sums or averages goes on without the liar; who waits for everybody says who it was."""
    trace, _ = lied(tmp_path, fp.SSI(3), "step", lie, caplog)
    assert trace.rounds == 3
    assert [LIAR in one.participants for one in trace.transcript.exchanges] == [True, False, False]
    trace, said = lied(tmp_path, fp.BlockKrylov(3), "step", lie, caplog)
    assert trace is None and f"Client {LIAR} is left out" in said


def anything(drawn):
    """The answer with an array or a plain value that nobody has thought of."""

    def lie(content):
        told, groups = opened(content)
        if groups.get("up") and drawn.random() < 0.5:
            numbers = any(array.dtype.kind == "f" for array in groups["up"].values())
            return drawn.choice([*ARRAYS.values(), *numbers * [*VALUES.values()]])(content)
        holder, key = drawn.choice(list(places(told)))
        holder[key] = drawn.choice(WRONG)
        return packed(told, **groups)

    return lie


@pytest.mark.parametrize("secure", [False, True], ids=["open", "secure sums"])
def test_whatever_is_answered_there_is_a_trace_or_a_sentence(secure, tmp_path, caplog):
    drawn = random.Random(SEED + secure)
    written(tmp_path)
    actions = ["hello", "start", "step", "settle", *["deal", "unmask"] * secure]
    for _ in range(38):
        algorithm = drawn.choice(
            [one for one in ALL if not (secure and one.needs_individual_uploads)]
        )
        federation = Lying(tmp_path, drawn.choice(actions), anything(drawn), since=1)
        channel = fp.Channel(secure_aggregation=secure)
        job = FedJob(algorithm, CLIENTS, rounds=2, channel=channel, timeout=0.01, patience=0.0)
        try:
            assert np.isfinite(run(federation, job).estimates).all()
        except InvalidInput as refusal:
            assert str(refusal).endswith(".") and str(refusal).isprintable()
    assert all(letter.isprintable() for letter in caplog.text.replace("\n", ""))


@pytest.mark.parametrize("algorithm", ALL, ids=lambda one: one.title)
def test_every_method_stands_every_kind_of_lie(algorithm, tmp_path, caplog):
    for lie in (ANY["no values"], ARRAYS["no upload"], VALUES["one NaN"], VALUES["10^300"]):
        lied(tmp_path, algorithm, "step", lie, caplog, rounds=2)
    lied(tmp_path, algorithm, "start", ANY["nothing at all"], caplog, rounds=2)


@pytest.mark.parametrize("lie", kinds(ANY, HELLO, NORMS))
def test_a_lie_before_the_run_stops_it_with_a_sentence(lie, tmp_path, caplog):
    _, said = lied(tmp_path, fp.FedPE(3), "hello", lie, caplog)
    assert said


@pytest.mark.parametrize("lie", kinds(ANY, ARRAYS, VALUES))
def test_a_lie_about_a_product_before_the_first_round(lie, tmp_path, caplog):
    _, said = lied(tmp_path, fp.GlobalAveraging(3), "product", lie, caplog)
    assert said


@pytest.mark.parametrize("lie", kinds(ANY, COUNTS))
def test_a_lie_after_the_feedback(lie, tmp_path, caplog):
    trace, _ = lied(tmp_path, fp.FedPG(3), "settle", lie, caplog)
    assert trace.rounds == 3


@pytest.mark.parametrize("lie", kinds(ANY, COUNTS, ARRAYS))
def test_a_lie_under_masks(lie, tmp_path, caplog):
    trace, _ = lied(tmp_path, fp.SSI(3), "step", lie, caplog, channel=SECURE)
    assert trace.rounds == 3


@pytest.mark.parametrize("lie", kinds(ANY, OPENING))
def test_a_lie_when_a_sum_is_opened(lie, tmp_path, caplog):
    """The others open it."""
    trace, _ = lied(tmp_path, fp.SSI(3), "unmask", lie, caplog, channel=SECURE)
    assert trace.rounds == 3
    assert f"Client {LIAR} is left out" in caplog.text


@pytest.mark.parametrize("lie", kinds(ANY, DEALING))
def test_a_lie_about_shares(lie, tmp_path, caplog):
    """The round is asked for again, without the liar."""
    trace, _ = lied(tmp_path, fp.SSI(3), "deal", lie, caplog, channel=SECURE, patience=1.0)
    assert trace.rounds == 3
    assert f"Client {LIAR} is left out" in caplog.text


def test_who_says_that_it_cannot_read_is_not_believed_against_the_others(tmp_path, caplog):
    """It does not take part in the round, and nobody is left out for its word."""
    lie = names(lambda up: {})

    def complains(content):
        return say(unread=[0, 2])(lie(content))

    written(tmp_path)
    federation = Lying(tmp_path, "step", complains)
    trace = run(federation, FedJob(fp.SSI(3), CLIENTS, rounds=3, channel=SECURE, timeout=0.01))
    assert [LIAR in one.participants for one in trace.transcript.exchanges] == [True, False, False]
    assert "left out" not in caplog.text


@pytest.mark.parametrize("value", [0.0, 1e-300, 1e30, -1e30])
@pytest.mark.parametrize("algorithm", ALL, ids=lambda one: one.title)
def test_numbers_that_could_be_true_end_no_run_in_an_exception(algorithm, value, tmp_path):
    """They count, and whatever they make of the estimate, it is one."""
    written(tmp_path)
    federation = Lying(tmp_path, "step", filled(value), since=1)
    job = FedJob(algorithm, CLIENTS, rounds=3, timeout=0.01, patience=0.0)
    assert np.isfinite(run(federation, job).estimates).all()


@pytest.mark.parametrize("algorithm", [fp.SSI(3), fp.FAPS(3), fp.FedPE(3)], ids=str)
def test_who_lied_is_an_absent_client(algorithm, tmp_path, caplog):
    problem = written(tmp_path)
    trace, _ = lied(tmp_path, algorithm, "step", VALUES["NaN"], caplog, rounds=5)
    gone = {round_: {LIAR} for round_ in range(2, 6)}
    expected = in_process(problem, algorithm, gone, rounds=5, seed=2)
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)


@pytest.mark.parametrize(
    "algorithm", [fp.SSI(3), fp.LocalPower(3), fp.FedPower(3), fp.BlockKrylov(3)], ids=str
)
def test_a_bound_that_was_agreed_finds_an_upload_a_million_times_too_large(
    algorithm, tmp_path, caplog
):
    """Without a bound it counts, and no check can help: it is what another matrix would give."""
    problem = written(tmp_path)
    honest = problem.client_data.spectral_norms().max()
    loud = upload(lambda array: 1e6 * array)
    options = {"rounds": 3, "channel": fp.Channel()}
    trace, said = lied(tmp_path, algorithm, "step", loud, caplog, norm_bound=honest, **options)
    assert f"Client {LIAR} is left out" in caplog.text + said
    assert "spectral norm" in caplog.text + said
    fine = upload(lambda array: array)
    expected = fp.simulate(problem, algorithm, rounds=3, seed=2)
    trace = run(
        Lying(tmp_path, "step", fine),
        FedJob(algorithm, CLIENTS, rounds=3, seed=2, norm_bound=honest),
    )
    np.testing.assert_allclose(trace.estimates, expected.estimates, rtol=0, atol=1e-10)


def test_a_clip_norm_is_a_bound(tmp_path, caplog):
    """Under an ε no product is longer than clip², and what its noise can add."""
    budget = {"epsilon": 1.0, "delta": 1e-5, "clip": 2.0}
    loud = upload(lambda array: 1e6 * array)
    lied(tmp_path, fp.SSI(3), "step", loud, caplog, budget=budget)
    assert "spectral norm" in caplog.text


def test_a_run_that_cannot_go_on_leaves_its_sentence_and_its_rounds(tmp_path, capsys):
    """The server app ends as one that has done its work: the refusal is the result."""
    written(tmp_path)
    out = tmp_path / "trace.npz"
    settings = ConvergeSettings(methods=("block_krylov",), clients=CLIENTS, components=3).to_json()
    run_config = {"settings": settings, "out": str(out), "patience": 0.0, "timeout": 0.1}
    federation = Lying(tmp_path, "step", VALUES["NaN"], since=3)
    server_app(federation, Context(1, 1, {}, RecordDict(), run_config))
    told = json.loads((tmp_path / "trace.result.json").read_text())
    assert not told["finished"] and told["rounds"] == 3
    assert told["said"].startswith("Round 4 of Block Krylov cannot be finished without client 1.")
    assert "holds nan" in told["left out"][str(LIAR)]
    assert capsys.readouterr().out.strip() == told["said"]
    assert load_trace(tmp_path / "trace.so-far.npz").rounds == 3
    assert not out.exists()
    server_app(grid(tmp_path), Context(1, 1, {}, RecordDict(), {**run_config, "rounds": 3}))
    assert load_trace(out).rounds == 3
    assert json.loads((tmp_path / "trace.result.json").read_text())["finished"]
    server_app(grid(tmp_path), Context(1, 1, {}, RecordDict(), {**run_config, "method": "none"}))
    said = json.loads((tmp_path / "trace.result.json").read_text())["said"]
    assert said.startswith("A run is of one method")
