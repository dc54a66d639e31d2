"""Fetching and converting, from a server of our own: right, cut, damaged, another, moved."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
import zipfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedpca_core.__main__ import main
from fedpca_core.errors import InvalidInput
from fedpca_core.problems import read_csv, traffic_table
from fedpca_core.problems.data_sets import DATA_SETS, find
from fedpca_core.problems.images import load_images
from fedpca_core.publishers import convert, fetch
from tests.publishers import originals
from tests.publishers.originals import ALL, EACH, TESTED


def digest(content):
    return hashlib.sha256(content).hexdigest()


class Publisher(http.server.ThreadingHTTPServer):
    """Serves contents by path; ``spoilt`` says what becomes of them, ``asked`` what was asked."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.contents, self.spoilt, self.asked = {}, "", []

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_address[1]}"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        name = self.path.removeprefix("/moved").strip("/")
        server.asked.append(self.path)
        content = server.contents.get(name)
        if content is None or server.spoilt == "gone":
            return self.send_error(404)
        if server.spoilt == "moved" and not self.path.startswith("/moved"):
            self.send_response(301)
            self.send_header("Location", f"/moved/{name}")
            self.send_header("Content-Length", "0")
            return self.end_headers()
        sent = content
        if server.spoilt == "cut":
            sent = content[: len(content) // 2]
        if server.spoilt == "damaged":
            sent = content[:40] + bytes([content[40] ^ 1]) + content[41:]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_):
        """Nobody reads it."""


@pytest.fixture
def publisher():
    server = Publisher()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Files of few records."""
    monkeypatch.setattr(convert, "MNIST_EACH", EACH - 1)
    monkeypatch.setattr(convert, "FASHION_KEPT", (20, 10))
    monkeypatch.setattr(convert, "CIFAR_EACH", (2, 1))
    monkeypatch.setattr(convert, "UNSW_NORMAL_TEST", 20)
    monkeypatch.setattr(convert, "TON_NORMAL_TEST", 30)
    monkeypatch.setattr(convert, "TON_ATTACKS_TEST", 40)
    rows = {"unsw": (60, 100), "ton": (220,), "nsl": (60, 30), "beijing": (144,)}
    monkeypatch.setattr(convert, "ROWS", rows)


def published(key, publisher, *, known=True):
    """A data set as this publisher has it, and what is in its files."""
    files, held = ALL[key]()
    publisher.contents = files
    here = tuple(
        replace(
            one,
            address=f"{publisher.address}/{one.name}",
            sha256=digest(files[one.name]) if known else "",
        )
        for one in DATA_SETS[key].originals
    )
    return replace(DATA_SETS[key], originals=here), held


# ---------------------------------------------------------------------- right
@pytest.mark.parametrize("key", ALL)
def test_what_was_fetched_is_found_and_noted(key, publisher, tmp_path):
    one, _ = published(key, publisher)
    made = fetch.provide(one, tmp_path)
    assert [path.name for path in made] == list(one.files)
    found = find(key, tmp_path)
    assert found is not None and found.files == tuple(made) and not found.bundled
    noted = json.loads((tmp_path / fetch.SOURCES).read_text())[key]
    for original in one.originals:
        assert noted["originals"][original.name] == {
            "address": original.address,
            "sha256": original.sha256,
        }
    assert noted["files"] == {path.name: digest(path.read_bytes()) for path in made}
    assert not (tmp_path / fetch.ORIGINALS / key).exists()


def test_mnist_keeps_the_first_of_each_digit_and_the_whole_test_set(publisher, tmp_path):
    one, held = published("mnist", publisher)
    (made,) = fetch.provide(one, tmp_path)
    images, classes = held["train"]
    with np.load(made) as stored:
        np.testing.assert_array_equal(stored["y_train"], np.repeat(np.arange(10), EACH - 1))
        for digit in range(10):
            kept = stored["X_train"][stored["y_train"] == digit]
            np.testing.assert_array_equal(kept, images[classes == digit][: EACH - 1])
        np.testing.assert_array_equal(stored["X_test"], held["t10k"][0])
        assert len(stored["y_test"]) == 10 * TESTED
    pixels, _ = load_images("mnist", tmp_path)
    assert pixels.shape == (10 * (EACH - 1), 784)


def test_fashion_mnist_keeps_the_first_images(publisher, tmp_path):
    one, held = published("fashion_mnist", publisher)
    (made,) = fetch.provide(one, tmp_path)
    with np.load(made) as stored:
        np.testing.assert_array_equal(stored["X_train"], held["train"][0][:20])
        np.testing.assert_array_equal(stored["y_test"], held["t10k"][1][:10])


def test_cifar_has_its_colours_beside_each_other(publisher, tmp_path):
    one, held = published("cifar10", publisher)
    (made,) = fetch.provide(one, tmp_path)
    with np.load(made) as stored:
        assert stored["X_train"].shape == (20, 3072) and stored["X_test"].shape == (10, 3072)
        for place, batch in enumerate(("data_batch_1.bin", "data_batch_2.bin")):
            colours = stored["X_train"][2 * 7 + place].reshape(32, 32, 3)  # class 7, sorted
            np.testing.assert_array_equal(colours.transpose(2, 0, 1).ravel(), held[batch][7])
    grey, _ = load_images("cifar10", tmp_path)
    expected = held["test_batch.bin"][3].reshape(3, -1).mean(axis=0) / 255
    with np.load(made) as stored:
        first = stored["X_test"][3].reshape(-1, 3).mean(axis=1) / 255
    np.testing.assert_allclose(first, expected, atol=1e-12)
    assert grey.shape == (20, 1024)


def test_faces_stand_upright(publisher, tmp_path):
    one, upright = published("olivetti", publisher)
    fetch.provide(one, tmp_path)
    pixels, people = load_images("olivetti", tmp_path)
    np.testing.assert_array_equal(np.rint(pixels * 255), upright)
    np.testing.assert_array_equal(people, np.repeat(np.arange(40), 10))


def test_unsw_is_told_apart_by_size_and_tested_as_in_the_paper(publisher, tmp_path):
    one, (train, test) = published("unsw", publisher)
    fetch.provide(one, tmp_path)
    found = traffic_table.load("unsw", tmp_path)
    normal = train[train["label"] == 0]
    np.testing.assert_allclose(found.normal, normal[list(found.feature_names)], rtol=1e-6)
    assert int((~found.attack).sum()) == 20 and int(found.attack.sum()) == 30
    np.testing.assert_allclose(
        found.test[~found.attack],
        test[test["label"] == 0][list(found.feature_names)][:20],
        rtol=1e-6,
    )


def test_ton_leaves_duplicates_out_and_draws_what_is_tested(publisher, tmp_path):
    one, table = published("ton", publisher)
    (made,) = fetch.provide(one, tmp_path)
    stored = pd.read_parquet(made)
    assert stored["split"].value_counts().to_dict() == {
        "dup": 20, "train": 70, "test": 70, "rest": 60,
    }  # fmt: skip
    assert len(stored) == len(table)
    found = traffic_table.load("ton", tmp_path)
    assert found.normal.shape == (70, 49) and int(found.attack.sum()) == 40
    flags = found.normal[:, found.feature_names.index("dns_AA")]
    assert set(flags) == {-1.0, 1.0}
    assert (found.normal[:, found.feature_names.index("service=none")] == 1).all()


def test_nsl_has_its_columns_named(publisher, tmp_path):
    one, held = published("nsl", publisher)
    fetch.provide(one, tmp_path)
    found = traffic_table.load("nsl", tmp_path)
    assert found.normal.shape == (30, 34) and int(found.attack.sum()) == 15
    first = held["KDDTrain+_20Percent.txt"]
    expected = first[first["attack"] == "normal"][list(found.feature_names)].astype(float)
    np.testing.assert_allclose(found.normal, expected)


def test_hours_become_days_and_half_a_day_none(publisher, tmp_path):
    one, names = published("beijing", publisher)
    (made,) = fetch.provide(one, tmp_path)
    days = read_csv(made.read_bytes())
    assert list(days.columns) == ["station", "date", *names]
    assert days["station"].tolist() == ["Aotizhongxin"] * 2 + ["Changping"] * 2
    assert days["date"].tolist() == ["2013-03-01", "2013-03-02"] * 2
    np.testing.assert_allclose(days["PM10"], [12.5, 36.5] * 2)


# ---------------------------------------------------------------------- wrong
@pytest.mark.parametrize("key", ALL)
@pytest.mark.parametrize("spoilt", ["cut", "damaged"])
def test_a_file_with_a_checksum_that_is_cut_or_damaged_is_refused(key, spoilt, publisher, tmp_path):
    one, _ = published(key, publisher)
    publisher.spoilt = spoilt
    with pytest.raises(InvalidInput, match=f"give the path: .* {one.name} --from PATH"):
        fetch.provide(one, tmp_path, retries=0)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("key", ALL)
def test_a_cut_file_without_a_checksum_is_refused_by_its_converter(key, publisher, tmp_path):
    """Also where the server says that it sends so little, as one does that was cut itself."""
    one, _ = published(key, publisher, known=False)
    publisher.contents = {
        name: content[: len(content) // 3] for name, content in publisher.contents.items()
    }
    if key in convert.ROWS:  # whole lines, which say nothing of those that are missing
        publisher.contents = {
            name: content[: content.rfind(b"\n") + 1]
            for name, content in publisher.contents.items()
        }
    with pytest.raises(InvalidInput):
        fetch.provide(one, tmp_path, retries=0)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("key", ALL)
def test_a_page_instead_of_a_file_is_refused(key, publisher, tmp_path):
    one, _ = published(key, publisher, known=False)
    publisher.contents = dict.fromkeys(publisher.contents, b"<html>Please log in.</html>")
    with pytest.raises(InvalidInput):
        fetch.provide(one, tmp_path, retries=0)
    assert find(key, tmp_path) is None or find(key, tmp_path).bundled


def test_another_file_than_the_one_with_this_checksum_is_refused(publisher, tmp_path):
    one, _ = published("mnist", publisher)
    publisher.contents, _ = originals.mnist()  # whole, of the right form, and not the one
    with pytest.raises(InvalidInput, match=r"SHA-256 differs from [0-9a-f]{64}, and nothing was"):
        fetch.provide(one, tmp_path, retries=0)
    assert find("mnist", tmp_path) is None


def test_a_failed_fetch_leaves_what_was_there(publisher, tmp_path):
    one, _ = published("mnist", publisher)
    (made,) = fetch.provide(one, tmp_path)
    before = made.read_bytes()
    publisher.spoilt = "damaged"
    with pytest.raises(InvalidInput):
        fetch.provide(one, tmp_path, retries=0)
    assert made.read_bytes() == before


def test_a_file_is_asked_for_again_and_one_that_is_here_is_not(publisher, tmp_path, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    one, _ = published("mnist", publisher)
    whole = publisher.contents.pop("t10k-labels-idx1-ubyte.gz")
    with pytest.raises(InvalidInput, match=r"t10k-labels-idx1-ubyte\.gz could not be fetched"):
        fetch.provide(one, tmp_path, retries=2)
    assert publisher.asked.count("/t10k-labels-idx1-ubyte.gz") == 3
    publisher.contents["t10k-labels-idx1-ubyte.gz"] = whole
    publisher.asked.clear()
    fetch.provide(one, tmp_path)
    assert publisher.asked == ["/t10k-labels-idx1-ubyte.gz"]


def test_a_moved_file_is_followed_and_one_that_is_gone_is_said(publisher, tmp_path):
    one, _ = published("olivetti", publisher)
    publisher.spoilt = "moved"
    fetch.provide(one, tmp_path / "moved")
    assert "/moved/olivettifaces.mat" in publisher.asked
    publisher.spoilt = "gone"
    with pytest.raises(
        InvalidInput, match=r"could not be fetched from .* \(404 .*open https://cam"
    ):
        fetch.provide(one, tmp_path / "gone", retries=0)


def test_nobody_at_the_address_is_a_sentence(publisher, tmp_path):
    one, _ = published("olivetti", publisher)
    nobody = replace(one.originals[0], address="http://127.0.0.1:9/olivettifaces.mat")
    with pytest.raises(InvalidInput, match="could not be fetched from http://127"):
        fetch.provide(replace(one, originals=(nobody,)), tmp_path, retries=0)


# ---------------------------------------------------------------------- by hand
@pytest.mark.parametrize("key", ["unsw", "ton", "nsl"])
def test_where_a_page_gives_it_out_the_page_is_named_and_a_path_is_taken(key, tmp_path, capsys):
    one = DATA_SETS[key]
    to = tmp_path / "data"
    assert main(["data", one.name, "--to", str(to)]) == 2
    told = capsys.readouterr().err
    assert one.page in told and f"data {one.name} --from PATH" in told
    files, _ = ALL[key]()
    archive = tmp_path / "as downloaded.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for name, content in files.items():
            packed.writestr(f"some folder/{name.upper()}", content)
    assert main(["data", one.name, "--from", str(archive), "--to", str(to)]) == 0
    assert all(str(to / name) in capsys.readouterr().out for name in one.files[:1])
    assert find(key, to) is not None


def test_files_and_folders_are_taken_too_and_checked(tmp_path, publisher):
    one, _ = published("mnist", publisher)
    folder = tmp_path / "downloads" / "deeper"
    folder.mkdir(parents=True)
    for name, content in publisher.contents.items():
        (folder / name).write_bytes(content)
    fetch.provide(one, tmp_path, [tmp_path / "downloads"])
    assert publisher.asked == [] and find("mnist", tmp_path) is not None
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(b"another")
    with pytest.raises(InvalidInput, match=r"is not t10k-labels-idx1-ubyte\.gz as its publisher"):
        fetch.provide(one, tmp_path, sorted(folder.iterdir()))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "There is no .*; give the path"),
        (lambda path: path.mkdir(), "KDDTrain.*txt is in none of"),
        (lambda path: path.write_bytes(b"PK\x03\x04 no archive"), "cannot be unpacked"),
    ],
)
def test_a_path_without_the_files_is_a_sentence(make, words, tmp_path):
    path = tmp_path / "NSL-KDD.zip"
    make(path)
    with pytest.raises(InvalidInput, match=words):
        fetch.provide(DATA_SETS["nsl"], tmp_path / "data", [path])


# ---------------------------------------------------------------------- the command
def test_the_list_says_of_each_what_it_is_and_where(tmp_path, capsys):
    assert main(["data", "--to", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for one in DATA_SETS.values():
        for words in (one.title, one.purpose, one.holds, one.licence, one.page, one.citation):
            assert words in told
    assert "here: a sample of 2,000 images comes along" in told
    assert "not here: “python -m fedpca_core data olivetti” fetches 4 MB" in told
    assert "data unsw” says where to get it" in told
    (tmp_path / "mnist.npz").touch()
    assert f"found in {tmp_path}" in fetch.listing(tmp_path)


def test_one_that_cannot_be_had_does_not_stop_the_others(tmp_path, monkeypatch, publisher, capsys):
    one, _ = published("mnist", publisher)
    monkeypatch.setattr(
        "fedpca_core.__main__.by_name",
        {"mnist": one, "nsl": DATA_SETS["nsl"], "heart": DATA_SETS["heart"]}.__getitem__,
    )
    assert main(["data", "nsl", "heart", "mnist", "--to", str(tmp_path)]) == 2
    answer = capsys.readouterr()
    assert "NSL-KDD" in answer.err and "Heart disease by hospital comes along" in answer.err
    assert f"MNIST: {tmp_path / 'mnist.npz'}" in answer.out


def test_an_unknown_name_is_refused_before_anything_is_fetched(capsys):
    assert main(["data", "mnist", "moons"]) == 2
    assert "There is no data set “moons”; choose one of digits, fashion-mnist" in (
        capsys.readouterr().err
    )
