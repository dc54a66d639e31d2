"""A trace survives its file to the last bit, and nothing else gets through."""

import io
import json

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.__main__ import main
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.attacks import linear
from fedpca_core.errors import InvalidInput
from fedpca_core.protocol.described import describe, restore
from fedpca_core.protocol.trace_file import load_trace, save_trace
from fedpca_core.questions.catalogue import KINDS
from fedpca_core.questions.trace.opened import OpenedRun, OpenedSettings
from fedpca_core.steps import outcome
from fedpca_core.streams import Streams
from fedpca_core.study.own_data import OwnData
from tests.mutants import SEED, mutants, npy, packed, unpacked


def problem():
    generator = np.random.default_rng(1)
    return fp.problems.problem.from_blocks(
        [generator.standard_normal((8, m)) for m in (30, 12, 50, 9)]
    )


def there_and_back(trace):
    file = io.BytesIO()
    save_trace(trace, file)
    file.seek(0)
    return load_trace(file)


def assert_equal_arrays(here, there):
    assert (here is None) == (there is None)
    assert set(here or {}) == set(there or {})
    for name in here or {}:
        np.testing.assert_array_equal(here[name], there[name])
        assert here[name].dtype == there[name].dtype


RUNS = [
    (fp.FAPS(2), {"participation": 0.5}),
    (fp.FedPG(2), {"channel": fp.Channel(dtype="float32")}),
    (fp.BlockKrylov(2), {"channel": fp.Channel(secure_aggregation=True)}),
    (fp.SSI(2), {"channel": fp.Channel(record="estimates")}),
    (fp.PersonalizedPCA(2), {}),
    (fp.LocalTraining(2), {}),
    (Noisy(fp.SSI(2), noise=0.1, products=3), {}),
    (fp.FedPower(2, columns=3, noise=0.1), {}),
]


@pytest.mark.parametrize(("algorithm", "options"), RUNS, ids=lambda one: getattr(one, "title", ""))
def test_every_part_of_a_trace_comes_back(algorithm, options):
    trace = fp.simulate(problem(), algorithm, rounds=4, seed=7, **options)
    read = there_and_back(trace)
    assert read.algorithm == trace.algorithm
    assert read.seed == 7
    for name in ("estimates", "bytes_up", "bytes_down", "local_products", "seconds"):
        np.testing.assert_array_equal(getattr(read, name), getattr(trace, name))
    for here, there in zip(read.states, trace.states, strict=True):
        assert_equal_arrays(here, there)
    for name in ("features", "clients", "participation", "absent", "guarantee"):
        assert getattr(read.setting, name) == getattr(trace.setting, name)
    np.testing.assert_array_equal(read.setting.weights, trace.setting.weights)
    assert read.transcript.dtype == trace.transcript.dtype
    assert read.transcript.secure_aggregation == trace.transcript.secure_aggregation
    ours = (*read.transcript.before, *read.transcript.exchanges)
    theirs = (*trace.transcript.before, *trace.transcript.exchanges)
    assert len(read.transcript.before) == len(trace.transcript.before)
    for here, there in zip(ours, theirs, strict=True):
        for name in ("downlink", "uploads", "sums", "feedback"):
            assert_equal_arrays(getattr(here, name), getattr(there, name))
        for name in ("participants", "weights", "sum_weights"):
            np.testing.assert_array_equal(getattr(here, name), getattr(there, name))
        for name in ("round", "recorded", "bytes_up", "upload_bytes"):
            assert getattr(here, name) == getattr(there, name)


def test_a_guarantee_and_missing_states_come_back():
    private = problem().private(1.0, 1e-5, 3.0, Streams(0))
    trace = fp.simulate(private, fp.SSI(2), rounds=2)
    assert there_and_back(trace).setting.guarantee == trace.setting.guarantee
    from dataclasses import replace

    assert there_and_back(replace(trace, states=None)).states is None


def test_readers_without_private_data_read_a_file_as_they_read_the_run():
    trace = fp.simulate(problem(), fp.SSI(2), rounds=6)
    read = there_and_back(trace)
    np.testing.assert_array_equal(linear(read.transcript, 1), linear(trace.transcript, 1))


@pytest.mark.parametrize("key", METHODS)
def test_every_method_can_be_described_and_made_again(key):
    kind = "personalise" if key in ("personalized", "global_averaging") else "converge"
    algorithm = METHODS[key].make(KINDS[kind]())
    assert restore(json.loads(json.dumps(describe(algorithm)))) == algorithm


def test_only_algorithms_are_made():
    with pytest.raises(InvalidInput, match="“Channel” is not an algorithm known here"):
        restore({"algorithm": "Channel", "parameters": {}})
    with pytest.raises(InvalidInput, match="do not fit this version"):
        restore({"algorithm": "SSI", "parameters": {"columns": 3}})
    with pytest.raises(InvalidInput, match="whole number"):
        restore({"algorithm": "SSI", "parameters": {"components": 2.5}})


def test_other_files_are_refused_in_a_sentence(tmp_path):
    stranger = tmp_path / "a.npz"
    np.savez(stranger, header=np.frombuffer(b'{"format": "other"}', dtype=np.uint8))
    with pytest.raises(InvalidInput, match="holds arrays but no trace"):
        load_trace(stranger)
    (tmp_path / "b.npz").write_text("not a file of arrays")
    with pytest.raises(InvalidInput, match="not the file of a trace"):
        load_trace(tmp_path / "b.npz")
    np.savez(tmp_path / "c.npz", header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(InvalidInput, match="has the shape"):
        load_trace(tmp_path / "c.npz")
    trace = fp.simulate(problem(), fp.SSI(2), rounds=2)
    save_trace(trace, tmp_path / "d.npz")
    with np.load(tmp_path / "d.npz") as stored:
        entries = {name: stored[name] for name in stored.files if not name.endswith("product")}
    np.savez(tmp_path / "e.npz", **entries)
    with pytest.raises(InvalidInput, match="The trace is damaged"):
        load_trace(tmp_path / "e.npz")
    header = json.loads(bytes(entries["header"]).decode())
    newer = json.dumps({**header, "version": 99}).encode()
    np.savez(tmp_path / "f.npz", **{**entries, "header": np.frombuffer(newer, dtype=np.uint8)})
    with pytest.raises(InvalidInput, match="version 99"):
        load_trace(tmp_path / "f.npz")


def stored(algorithm=None, **options):
    """A small run as its file."""
    generator = np.random.default_rng(2)
    small = fp.problems.problem.from_blocks([generator.standard_normal((6, m)) for m in (5, 4, 3)])
    file = io.BytesIO()
    save_trace(fp.simulate(small, algorithm or fp.SSI(2), rounds=3, seed=3, **options), file)
    return file.getvalue()


#: Method by method: a run, and how many of its changed copies are read.
CHANGED = [
    (fp.SSI(2), {}, 300),
    (fp.FAPS(2), {}, 250),
    (fp.FedPG(2), {}, 200),
    (fp.BlockKrylov(2), {"channel": fp.Channel(secure_aggregation=True)}, 150),
    (Noisy(fp.SSI(2), noise=0.1, products=3), {}, 100),
]


@pytest.mark.parametrize(
    ("algorithm", "options", "count"), CHANGED, ids=lambda one: getattr(one, "title", "")
)
def test_a_thousand_changed_files_are_refused_in_a_sentence_or_read(algorithm, options, count):
    read, refused = [], 0
    for content in mutants(stored(algorithm, **options), seed=SEED, count=count):
        try:
            load_trace(io.BytesIO(content))
        except InvalidInput as sentence:
            assert str(sentence).endswith(".") and "\x1b" not in str(sentence)
            assert len(str(sentence)) < 600
            refused += 1
        else:
            read.append(content)
    assert refused > count / 2
    assert read  # where nothing that matters was changed
    for content in read[:4]:  # what is read can be attacked
        outcome(OpenedRun().run(OpenedSettings(), OwnData("changed.npz", content)))


@pytest.mark.parametrize(
    ("name", "array", "sentence"),
    [
        ("setting/samples", np.array([5, -4, 3]), "between 1 and 1e"),
        ("setting/weights", np.array([0.5, np.nan, 0.2]), "no numbers"),
        ("setting/samples", np.ones(10, dtype=np.int64), "damaged"),
        ("exchanges/1/participants", np.array([0, 1, 10**9]), "between 0 and 2"),
        ("exchanges/1/weights", np.array([0.5, -0.1, 0.2]), "between 0 and"),
        ("exchanges/0/uploads/product", np.zeros((3, 5, 2)), "in a run of 6 features"),
        ("exchanges/0/uploads/product", np.zeros((2, 6, 2)), "do not fit its other parts"),
        ("exchanges/0/uploads/product", np.zeros(()), "in a run of 6 features"),
        ("estimates", np.zeros((4, 6, 3)), "do not fit its other parts"),
        ("bytes_up", np.array([0, 1, -2, 3]), "between 0 and"),
        ("exchanges/0/participants", np.array([0, 1, 1]), "sent nothing yet"),
        ("more", np.zeros(3), "nothing belongs to"),
        ("exchanges/0/weights", np.array([{}, 1, 2], dtype=object), "do not fit"),
    ],
)
def test_arrays_that_contradict_the_counts_are_named(name, array, sentence):
    entries = unpacked(stored())
    entries[f"{name}.npy"] = npy(array)
    with pytest.raises(InvalidInput, match=sentence):
        load_trace(io.BytesIO(packed(entries)))


def test_a_billion_clients_are_refused_before_anything_is_allocated():
    entries = unpacked(stored())
    promise = b"{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000,), }\n"
    entries["setting/samples.npy"] = (
        b"\x93NUMPY\x01\x00" + len(promise).to_bytes(2, "little") + promise
    )
    with pytest.raises(InvalidInput, match="not as long as it says"):
        load_trace(io.BytesIO(packed(entries)))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"setting": {"clients": 10**9}}, "a whole number of at most|lists the records of 3"),
        ({"setting": {"features": "6"}}, "“features” must be a whole number"),
        ({"setting": {"participation": float("nan")}}, "“participation” must be a number"),
        ({"setting": {"public": [[]]}}, "“public” must be a text, not an empty list"),
        ({"setting": {"extra": 1}}, "“extra” is not known"),
        ({"algorithm": {"parameters": {"components": [2]}}}, "“components” must be a whole"),
        ({"algorithm": {"algorithm": []}}, "“an empty list” is not an algorithm"),
        ({"guarantee": {"epsilon": 1}}, "“delta” is missing"),
        ({"dtype": "float16"}, "secure_aggregation, dtype or seed"),
        ({"states": [["a" * 9999], [], [], []]}, r"“states/0/a{28}\.\.\.” is missing"),
        ({"seed": 1.5}, "secure_aggregation, dtype or seed"),
        ({"secure_aggregation": True}, "which its server did not see"),
    ],
)
def test_headers_of_the_wrong_kind_are_named(changes, sentence):
    entries = unpacked(stored())
    header = json.loads(np.load(io.BytesIO(entries["header.npy"])).tobytes())
    for name, value in changes.items():
        if isinstance(value, dict) and isinstance(header[name], dict):
            header[name] |= value
        else:
            header[name] = value
    entries["header.npy"] = npy(np.frombuffer(json.dumps(header).encode(), dtype=np.uint8))
    with pytest.raises(InvalidInput, match=sentence):
        load_trace(io.BytesIO(packed(entries)))


def test_methods_within_methods_within_methods_are_not_made():
    described = describe(fp.SSI(2))
    for _ in range(2000):
        described = {"algorithm": "Noisy", "parameters": {"method": described}}
    with pytest.raises(InvalidInput, match="more than 4 others"):
        restore(described)


def test_the_command_line_reads_a_changed_file_or_says_why_not(tmp_path, capsys):
    settings = tmp_path / "mine.json"
    settings.write_text(OpenedSettings().to_json())
    statuses = []
    for index, content in enumerate(mutants(stored(), seed=21, count=40)):
        (tmp_path / f"{index}.npz").write_bytes(content)
        table = str(tmp_path / f"{index}.npz")
        statuses.append(main(["run", str(settings), "--table", table]))
        said = capsys.readouterr()
        assert "Traceback" not in said.err and "\x1b" not in said.out + said.err
        assert (statuses[-1] == 2) == said.err.strip().endswith(".")
    assert set(statuses) == {0, 2}
