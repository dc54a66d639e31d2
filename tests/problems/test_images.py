"""Image data: scaling, centring, resolution, where files come from, and what is refused."""

import numpy as np
import pytest
import sklearn.datasets

from fedpca_core.errors import InvalidInput
from fedpca_core.problems import LIVE_RESOLUTION, images
from fedpca_core.problems.data_sets import MissingData
from fedpca_core.problems.images import SOURCES, load_images
from fedpca_core.questions.home.settings import SceneSettings
from fedpca_core.study.build import build_problem


def blocks(problem):
    """The raw blocks, which small problems keep."""
    assert problem.blocks is not None
    return problem.blocks


def pooled(problem):
    return np.concatenate(blocks(problem), axis=1)


def sorted_records(problem):
    records = pooled(problem).T
    return records[np.lexsort(records.T)]


def test_digits_are_bundled_scaled_and_centred():
    problem = images()
    assert (problem.features, problem.clients, problem.image_shape) == (64, 10, (8, 8))
    assert problem.client_data.samples.sum() == 1797
    np.testing.assert_allclose(pooled(problem).mean(axis=1), 0, atol=1e-7)
    raw, _ = sklearn.datasets.load_digits(return_X_y=True)
    expected = np.cov((raw / 16).T, bias=True)
    np.testing.assert_allclose(problem.covariance, expected, atol=1e-6)
    assert "1,797 images of 8 × 8 pixels" in problem.note
    assert "secure sum" in problem.note


def test_without_centring_pixels_stay_between_black_and_white():
    problem = images(centre=False)
    assert pooled(problem).min() == 0
    assert pooled(problem).max() == 1
    assert "not centred" in problem.note


def test_the_dial_moves_images_between_clients_and_nothing_else():
    plain, half, sorted_ = (images(heterogeneity=t, split="uneven") for t in (0.0, 0.5, 1.0))
    for moved in (half, sorted_):
        np.testing.assert_array_equal(moved.client_data.samples, plain.client_data.samples)
        np.testing.assert_array_equal(sorted_records(moved), sorted_records(plain))
        np.testing.assert_allclose(moved.covariance, plain.covariance, atol=1e-12)


@pytest.mark.parametrize(("clients", "more"), [(2, 8), (8, 12), (8, 40)])
def test_more_clients_leave_the_records_of_the_first_as_they_are(clients, more):
    def pixels(clients, heterogeneity=0.0):
        problem = images(
            clients=clients,
            max_samples=30 * clients,
            heterogeneity=heterogeneity,
            seed=3,
            nested=True,
        )
        # Records are centred on the mean of all, which further clients move.
        return np.rint([16 * (block.T + problem.own_mean) for block in problem.blocks])

    np.testing.assert_array_equal(pixels(more)[:clients], pixels(clients))
    # The parameter deals the same records otherwise.
    everywhere = (np.sort(pixels(more, t).reshape(30 * more, -1), axis=0) for t in (0.4, 1.0))
    for pooled in everywhere:
        np.testing.assert_array_equal(pooled, np.sort(pixels(more).reshape(30 * more, -1), axis=0))


def test_the_clients_dial_of_the_front_page_adds_clients():
    eight, twelve = (build_problem(SceneSettings(clients=clients)) for clients in (8, 12))
    for few, many in zip(eight.blocks, twelve.blocks, strict=False):
        there = many + (twelve.own_mean - eight.own_mean)[:, None]
        np.testing.assert_allclose(few, there, atol=1e-12)


def test_at_one_clients_hold_their_own_classes():
    raw, classes = sklearn.datasets.load_digits(return_X_y=True)
    known = {row.tobytes(): label for row, label in zip(raw, classes, strict=True)}

    def labels(problem):
        return [
            {known[np.round(record * 16).tobytes()] for record in block.T}
            for block in blocks(problem)
        ]

    own = labels(images(heterogeneity=1.0, centre=False))
    assert max(len(one) for one in own) <= 3  # ten clients, nearly ten equal classes
    assert all(len(one) == 10 for one in labels(images(heterogeneity=0.0, centre=False)))


def test_seeds_sizes_and_a_random_choice_of_images():
    assert images(seed=1).digest == images(seed=1).digest != images(seed=2).digest
    few = images(max_samples=100, clients=4, split="dirichlet", seed=3)
    assert few.client_data.samples.sum() == 100
    assert few.clients == 4
    assert images(max_samples=10_000).client_data.samples.sum() == 1797


def test_a_lower_resolution_averages_areas():
    full, halved, thirds = (
        images(centre=False, heterogeneity=1.0, resolution=side) for side in (None, 4, 3)
    )
    assert halved.image_shape == (4, 4)
    blocks = pooled(full).reshape(4, 2, 4, 2, -1).mean(axis=(1, 3)).reshape(16, -1)
    np.testing.assert_allclose(pooled(halved), blocks, atol=1e-12)
    # Three pixels do not divide eight: areas still keep the mean brightness.
    np.testing.assert_allclose(pooled(thirds).mean(axis=0), pooled(full).mean(axis=0), atol=1e-12)


def test_the_live_resolution_never_exceeds_the_stored_one():
    assert set(LIVE_RESOLUTION) == set(SOURCES)
    assert all(side <= SOURCES[name].side for name, side in LIVE_RESOLUTION.items())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"name": "cats"}, "no set of images “cats”; choose one of digits"),
        ({"clients": 1}, "number of clients is 1"),
        ({"clients": 2000}, r"more clients \(2000\) than samples \(1797\)"),
        ({"clients": 20, "max_samples": 10}, r"more clients \(20\) than samples \(10\)"),
        ({"max_samples": 1}, "At most 1 images .* at least 2"),
        ({"resolution": 9}, "9 pixels a side does not fit images of 8; choose between 2 and 8"),
        ({"heterogeneity": 2.0}, r"not 2\.0"),
        ({"split": "odd"}, "'odd'"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        images(**arguments)


# ---------------------------------------------------------------------- files
@pytest.mark.parametrize(
    ("name", "records", "classes"),
    [
        pytest.param(*row, marks=pytest.mark.data(row[0]))
        for row in (
            ("mnist", 5_000, 10),
            ("fashion_mnist", 10_000, 10),
            ("cifar10", 3_000, 10),
            ("olivetti", 400, 40),
        )
    ],
)
def test_files_of_the_data_folder(data_folder, name, records, classes):
    pixels, labels = load_images(name, data_folder)
    assert pixels.shape == (records, SOURCES[name].side ** 2)
    assert 0 <= pixels.min() < 0.1 < 0.9 < pixels.max() <= 1
    np.testing.assert_array_equal(np.unique(labels), np.arange(classes))
    problem = images(name, resolution=8, folder=data_folder)
    assert problem.features == 64
    assert problem.clients == (40 if name == "olivetti" else 10)
    # Files sorted by class are shuffled: shares are alike.
    assert problem.heterogeneity < images(name, resolution=8, heterogeneity=1.0).heterogeneity / 2


@pytest.mark.data("olivetti")
def test_every_person_is_a_client_at_one(data_folder):
    problem = images("olivetti", heterogeneity=1.0, centre=False, folder=data_folder)
    with np.load(data_folder / "olivetti_faces.npz") as stored:
        faces, people = stored["X"], stored["subject"]
    for person, block in enumerate(blocks(problem)):
        own = np.round(block.T * 255).astype(np.uint8)
        expected = faces[people == person]
        assert {row.tobytes() for row in own} == {row.tobytes() for row in expected}


@pytest.mark.data("cifar10")
def test_colour_becomes_grey(data_folder):
    with np.load(data_folder / "cifar10_subset.npz") as stored:
        grey = stored["X_train"][:50].reshape(50, 32, 32, 3).mean(axis=3) / 255
    pixels, _ = load_images("cifar10", data_folder)
    np.testing.assert_allclose(pixels[:50], grey.reshape(50, -1), atol=1e-6)


def test_missing_data_name_the_command_before_anything_is_done(monkeypatch, tmp_path):
    words = r"“MNIST” is not on this machine: “python -m fedpca_core data mnist” fetches it, or "
    with pytest.raises(MissingData, match=words) as refusal:
        images("mnist")
    assert refusal.value.key == "mnist"
    monkeypatch.setenv("FEDPCA_DATA", str(tmp_path))
    with pytest.raises(InvalidInput, match=words):
        images("mnist")
    with pytest.raises(InvalidInput, match="choose Fashion-MNIST, which is here"):
        images("olivetti", folder=tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match="no set of images “moons”"):
        images("moons")


def test_a_sample_comes_along_and_gives_way_to_the_file(tmp_path):
    assert images("fashion_mnist", 3, resolution=4).note.startswith(
        "From a sample of 2,000 images that comes along: 2,000 images of 4 × 4 pixels"
    )
    stored = np.random.default_rng(0).integers(0, 256, (30, 784), dtype=np.uint8)
    np.savez(tmp_path / "fashion_mnist.npz", X_train=stored, y_train=np.arange(30) % 3)
    assert images("fashion_mnist", 3, folder=tmp_path).note.startswith("30 images")


def test_broken_files_are_refused_and_replaced_ones_read_again(tmp_path):
    path = tmp_path / "mnist.npz"
    path.write_bytes(b"not a file of arrays")
    with pytest.raises(InvalidInput, match=r"mnist\.npz cannot be read .* X_train and y_train"):
        images("mnist", folder=tmp_path)
    np.savez(path, X=np.zeros(3))
    with pytest.raises(InvalidInput, match=r"mnist\.npz cannot be read"):
        images("mnist", folder=tmp_path)
    np.savez(path, X_train=np.zeros((5, 7)), y_train=np.zeros(5))
    with pytest.raises(InvalidInput, match=r"shape \(5, 7\) .* 784 values for each image"):
        images("mnist", folder=tmp_path)
    rng = np.random.default_rng(0)
    for size in (30, 31):
        stored = rng.integers(0, 256, (size, 784), dtype=np.uint8)
        np.savez(path, X_train=stored, y_train=np.arange(size) % 3)
        assert images("mnist", 3, folder=tmp_path).client_data.samples.sum() == size
