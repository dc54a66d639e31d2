"""One client's records from any file are the same moments, whatever the batches."""

import numpy as np
import pandas as pd
import pytest

from fedpca_core.errors import InvalidInput
from fedpca_core.problems.records import clip, on_grid
from fedpca_flower import own_records
from fedpca_flower.own_records import read_moments, read_whole_moments

NAMES = ["a", "b", "c", "d"]


def records(rows=50):
    return np.random.default_rng(0).standard_normal((rows, 4)) * [1, 10, 0.1, 1e5]


def moments(rows, clip_norm=None):
    block = rows.T if clip_norm is None else clip(rows.T, clip_norm)
    return block @ block.T / block.shape[1]


def write(path, rows):
    table = pd.DataFrame(rows, columns=NAMES)
    if path.suffix == ".npy":
        np.save(path, rows)
    elif path.suffix == ".csv":
        table.to_csv(path, index=False)
    else:
        table.to_parquet(path)
    return path


@pytest.mark.parametrize("clip_norm", [None, 5.0])
@pytest.mark.parametrize("suffix", ["npy", "csv", "parquet"])
def test_a_file_in_batches_is_the_file_at_once(suffix, clip_norm, tmp_path, monkeypatch):
    monkeypatch.setattr(own_records, "BATCH_BYTES", 8 * 4 * 7)
    monkeypatch.setattr(own_records, "_ROWS", 7)
    named = NAMES if suffix != "npy" else ()
    data = read_moments(write(tmp_path / f"r.{suffix}", records()), named, clip_norm)
    np.testing.assert_allclose(data.dense()[0], moments(records(), clip_norm), rtol=1e-12)
    assert data.samples.tolist() == [50]


def test_text_loses_no_digit(tmp_path):
    write(tmp_path / "r.csv", records())
    write(tmp_path / "r.npy", records())
    np.testing.assert_array_equal(
        read_moments(tmp_path / "r.csv").dense(), read_moments(tmp_path / "r.npy").dense()
    )


def test_a_folder_is_all_of_its_files(tmp_path):
    rows = records()
    write(tmp_path / "1.npy", rows[:20])
    write(tmp_path / "2.csv", rows[20:30])
    write(tmp_path / "3.parquet", rows[30:])
    (tmp_path / "notes.txt").write_text("not a table")
    data = read_moments(tmp_path)
    np.testing.assert_allclose(data.dense()[0], moments(rows), rtol=1e-12)


def test_chosen_columns_keep_their_order(tmp_path):
    write(tmp_path / "r.parquet", records())
    data = read_moments(tmp_path / "r.parquet", ("c", "a"))
    np.testing.assert_allclose(data.dense()[0], moments(records()[:, [2, 0]]), rtol=1e-12)


@pytest.mark.parametrize("rows", [1, 40, 59, 60, 61, 500])
def test_few_wide_records_are_kept_as_they_are(rows, tmp_path):
    """What is smaller is held; both answer the same."""
    wide = np.random.default_rng(1).standard_normal((rows, 120))
    np.save(tmp_path / "wide.npy", wide)
    data = read_moments(tmp_path / "wide.npy")
    assert (data.grams is None) == (2 * rows < 120)
    frame = np.eye(120)[:, :3]
    np.testing.assert_allclose(data.apply(frame)[0], wide.T @ (wide @ frame) / rows, atol=1e-12)


def test_what_cannot_be_read_is_said(tmp_path):
    cases = {
        "There is no file": tmp_path / "none.csv",
        "none of .csv": write_text(tmp_path / "a.xls", "x"),
        "holds no .csv": made(tmp_path / "empty"),
        "holds no records": write_text(tmp_path / "b.csv", "a,b\n"),
        "not numeric": write_text(tmp_path / "c.csv", "a,b\n1,x\n"),
        "1 missing or infinite": write_text(tmp_path / "d.csv", "a,b\n1,\n"),
        "cannot be read": write_text(tmp_path / "e.npy", "text"),
        "numeric matrix": saved(tmp_path / "f.npy", np.zeros(3)),
        "overflow": saved(tmp_path / "g.npy", np.full((2, 2), 1e70)),
    }
    for words, path in cases.items():
        with pytest.raises(InvalidInput, match=words):
            read_moments(path)
    with pytest.raises(InvalidInput, match="has no column z"):
        read_moments(write_text(tmp_path / "h.csv", "a,b\n1,2\n"), ("a", "z"))
    with pytest.raises(InvalidInput, match="have no names"):
        read_moments(saved(tmp_path / "i.npy", np.ones((2, 2))), ("a",))


def write_text(path, text):
    path.write_text(text)
    return path


def saved(path, array):
    np.save(path, array)
    return path


def made(folder):
    folder.mkdir()
    return folder


@pytest.mark.parametrize("suffix", ["npy", "csv", "parquet"])
def test_whole_moments_are_those_of_the_file_on_a_grid(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(own_records, "BATCH_BYTES", 8 * 4 * 7)
    monkeypatch.setattr(own_records, "_ROWS", 7)
    named = NAMES if suffix != "npy" else ()
    data = read_whole_moments(write(tmp_path / f"r.{suffix}", records()), named, 5.0)
    assert data.samples == 50
    whole = on_grid(records(), 5.0)
    np.testing.assert_array_equal(data.total, whole.T @ whole)


#: What one cell may hold, and what it counts as whatever stands around it.
CELLS = {"": 0.0, "x": 0.0, "inf": 0.0, "1e90": 0.0, " 3 ": 3.0, "True": 1.0, "-0.1": -0.1}


#: No cell of an array, which holds numbers only.
TEXTS = ("x", " 3 ", "True")


@pytest.mark.parametrize(
    ("suffix", "cell"),
    [(s, c) for s in ("npy", "csv", "parquet") for c in CELLS if s != "npy" or c not in TEXTS],
)
def test_under_an_epsilon_no_cell_changes_what_becomes_of_another(suffix, cell, tmp_path):
    """A column's type, an empty cell, a new extreme: one record's matter, refused or dropped by
    nobody, or the refusal would say that it is there."""
    texts = [["0.1", "2"], ["0.30000000000000004", "7"], [cell, "5"]]
    rows = np.array([[0.1, 2.0], [0.30000000000000004, 7.0], [CELLS[cell], 5.0]])
    if suffix == "npy":
        file = saved(tmp_path / "r.npy", np.array([[float(c or "nan") for c in r] for r in texts]))
    elif suffix == "csv":
        lines = [",".join(row) for row in texts]
        file = write_text(tmp_path / "r.csv", "\n".join(["a,b", *lines]) + "\n")
    else:
        file = tmp_path / "r.parquet"
        pd.DataFrame(texts, columns=["a", "b"]).to_parquet(file)
    named = () if suffix == "npy" else ("a", "b")
    found = read_whole_moments(file, named, 4.0)
    whole = on_grid(rows, 4.0)
    np.testing.assert_array_equal(found.total, whole.T @ whole)
    plain = read_moments(file, named, 4.0).dense()[0]
    np.testing.assert_allclose(plain, moments(rows, 4.0), rtol=1e-12)


def test_under_an_epsilon_columns_are_named(tmp_path):
    table = write(tmp_path / "r.csv", records())
    for read in (read_whole_moments, read_moments):
        with pytest.raises(InvalidInput, match="would look at its records, which no ε covers"):
            read(table, (), 1.0)


def test_files_of_different_width_are_refused(tmp_path):
    saved(tmp_path / "1.npy", np.ones((3, 2)))
    saved(tmp_path / "2.npy", np.ones((3, 4)))
    with pytest.raises(InvalidInput, match=r"2\.npy has 4 features and the records before it 2"):
        read_moments(tmp_path)
