"""A trace survives its file to the last bit, and nothing else gets through."""

import io
import json

import numpy as np
import pytest

import fedpca_core as fp
from fedpca_core.algorithms.noisy import Noisy
from fedpca_core.algorithms.registry import METHODS
from fedpca_core.attacks import linear
from fedpca_core.errors import InvalidInput
from fedpca_core.protocol.described import describe, restore
from fedpca_core.protocol.trace_file import load_trace, save_trace
from fedpca_core.questions.catalogue import KINDS
from fedpca_core.streams import Streams


def problem():
    generator = np.random.default_rng(1)
    return fp.problems.from_blocks([generator.standard_normal((8, m)) for m in (30, 12, 50, 9)])


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
    with pytest.raises(InvalidInput, match="not the file of a trace"):
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
