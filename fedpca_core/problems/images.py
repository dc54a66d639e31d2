"""Image data sets, wherever their files are found, dealt to clients: pixels are features."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from fedpca_core.arrays import AnyArray, Array, IntArray
from fedpca_core.errors import require, require_known
from fedpca_core.problems.announced import PublicFacts, area_step
from fedpca_core.problems.data_sets import DATA_SETS, Folder, files_of, find
from fedpca_core.problems.heterogeneity import (
    DEALT,
    ExchangeOrder,
    check_heterogeneity,
    exchange,
    steady_way,
)
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.problems.splits import samples_per_client
from fedpca_core.problems.table_file import readable
from fedpca_core.remembered import Remembered
from fedpca_core.streams import Streams

#: What an epsilon takes as public of images: nothing else of them is decided by looking.
PUBLIC = ("the size of the pictures and the range of their pixels", DEALT)


@dataclass(frozen=True)
class ImageSource:
    """One data set of square images, as its file holds it."""

    title: str
    #: Pixels along a side.
    side: int
    #: Value of a white pixel.
    white: float = 255.0
    #: Names of the images and the classes in its file.
    arrays: tuple[str, str] = ("X_train", "y_train")
    #: 3 for colour images stored channel last in the file.
    channels: int = 1

    def step(self, side: int) -> float:
        """Step of a pixel from 0 to 1 at this size; a grey one is the mean of its colours."""
        return 1.0 / (self.white * self.channels) * area_step(self.side, side)


SOURCES: Mapping[str, ImageSource] = {
    "digits": ImageSource("Digits", 8, white=16.0),
    "mnist": ImageSource("MNIST", 28),
    "fashion_mnist": ImageSource("Fashion-MNIST", 28),
    "cifar10": ImageSource("CIFAR-10 (grey)", 32, channels=3),
    "olivetti": ImageSource("Olivetti faces", 64, arrays=("X", "subject")),
}
#: Pixels along a side at which every method answers while a slider moves.
LIVE_RESOLUTION = {"digits": 8, "mnist": 14, "fashion_mnist": 14, "cifar10": 16, "olivetti": 16}
#: Pixels along a side at which one sees more, and few methods answer.
FINE_RESOLUTION = {name: min(source.side, 32) for name, source in SOURCES.items()}

_known: Remembered[Any] = Remembered(3)
#: Images (records, side^2) from black 0 to the source's white, and their classes (records,).
Images = tuple[AnyArray, AnyArray]


def file_stamp(name: str, folder: Folder = None) -> tuple[Path, int] | None:
    """The file of a data set and when it was changed, in nanoseconds; None without a file."""
    require_known("set of images", name, SOURCES)
    files = files_of(name, folder)
    return (files[0], files[0].stat().st_mtime_ns) if files else None


def load_images(name: str, folder: Folder = None) -> Images:
    """Grey images of a data set, (records, side^2) float32 in [0, 1], and their classes, int64."""
    return _read(name, file_stamp(name, folder))


@lru_cache(maxsize=3)
def _read(name: str, stamp: tuple[Path, int] | None) -> Images:
    """Whatever its time stamp says is another file is read again."""
    source = SOURCES[name]
    if stamp is None:
        from sklearn.datasets import load_digits

        origin, (images, classes) = "scikit-learn", load_digits(return_X_y=True)
    else:
        origin = stamp[0].name
        remedy = f"; it must be an .npz file with the arrays {' and '.join(source.arrays)}."
        with (
            readable(f"{origin} cannot be read", remedy),
            np.load(stamp[0], allow_pickle=False) as arrays,
        ):
            images, classes = (np.asarray(arrays[key]) for key in source.arrays)
    expected = source.side**2 * source.channels
    require(
        images.ndim == 2 and images.shape[1] == expected and classes.shape == images.shape[:1],
        f"{origin} holds images of shape {images.shape} and classes of shape {classes.shape}; "
        f"{source.title} needs one class and {expected} values for each image.",
    )
    pixels = images.astype(np.float32) / np.float32(source.white)
    require(
        bool(np.isfinite(pixels).all()),
        f"{origin} holds missing or infinite pixels; replace the file.",
    )
    if source.channels > 1:
        pixels = pixels.reshape(len(pixels), -1, source.channels).mean(axis=2)
    pixels.setflags(write=False)
    return pixels, np.unique(classes, return_inverse=True)[1].astype(np.int64)


def images(
    name: str = "digits",
    clients: int | None = None,
    *,
    heterogeneity: float = 0.0,
    seed: int = 0,
    centre: bool = True,
    max_samples: int | None = None,
    resolution: int | None = None,
    split: str = "even",
    nested: bool = False,
    folder: Folder = None,
) -> Problem:
    """Problem whose records are images, with ``image_shape`` set and pixels scaled to [0, 1].

    ``name``, {"digits", "mnist", "fashion_mnist", "cifar10", "olivetti"}: Digits come with
        scikit-learn, a sample of Fashion-MNIST with this package, the others from the data folder.
    ``clients``: 10 by default; for the faces 40, one for each person.
    ``heterogeneity``: 0 deals random shares, 1 sorts by class (digit, garment, object, person), so
        that each client holds classes of its own.
    ``seed``: Seed of the streams ``"data"`` (order and choice of images), ``"heterogeneity"`` and
        ``"split"``.
    ``centre``: Subtract the mean of the pooled images; without it that is the first component.
    ``max_samples``: Use a random choice of at most so many images.
    ``resolution``: Pixels along a side after averaging over areas; by default as stored.
    ``split``, {"even", "uneven", "dirichlet"}: Sizes of the clients.
    ``nested``: Deal random shares (`heterogeneity` 0) in turn: with as many images a client and
        even sizes, more clients leave the images of the first as they are, until there are no more
        images. At other positions of the parameter that is not to be had: the pooled images are the
        same at all of them, and what a further client adds to them would be so too, sorted or not.
    ``folder``: Of data files; see `data_sets.data_folder`.
    """
    check_heterogeneity(heterogeneity)
    many = clients if clients is not None else 40 if name == "olivetti" else 10
    stamp = file_stamp(name, folder)  # it notices a changed file
    source = SOURCES[name]

    def dealt() -> tuple[Array, Array | None, IntArray, tuple[int, ...], ExchangeOrder]:
        """All that does not depend on the parameter."""
        pixels, classes = load_images(name, folder)
        require(
            max_samples is None or max_samples >= 2,
            f"At most {max_samples} images were asked for; choose at least 2.",
        )
        chosen = Streams(seed).generator("data").permutation(len(pixels))[:max_samples]
        sizes = samples_per_client(split, many, len(chosen), seed=seed)
        records = _resampled(pixels[chosen], source.side, resolution)
        # Pixels are whole numbers that were kept as float32.
        step = source.step(round(records.shape[1] ** 0.5))
        records = np.rint(records / step) * step
        mean = records.mean(axis=0) if centre else None
        if mean is not None:
            records -= mean
        # A stable sort of shuffled images: those of a class stay in random order.
        home = np.argsort(classes[chosen], kind="stable").astype(np.int64)
        shares = np.arange(len(chosen)) if nested else None
        return records, mean, home, sizes, steady_way(records, home, sizes, seed, shares)

    asked = name, stamp, many, seed, centre, max_samples, resolution, split, nested
    records, mean, home, sizes, way = _known.get(asked, dealt)
    side = round(records.shape[1] ** 0.5)
    centred = "not centred"
    if centre:
        centred = "centred on the pooled mean, which takes one secure sum over clients beforehand"
    found, sample = find(name, folder), DATA_SETS[name].sample
    told = f"From {sample} that comes along: " if found and found.bundled and sample else ""
    return from_blocks(
        [records[own].T for own in exchange(home, sizes, heterogeneity, way)],
        name=source.title,
        image_shape=(side, side),
        note=f"{told}{len(home):,} images of {side} × {side} pixels, {centred}.",
        own_mean=mean,
        public=PUBLIC,
        announced=PublicFacts(np.full(side**2, source.step(side)), mean, len(home)),
    )


def _resampled(pixels: AnyArray, side: int, resolution: int | None) -> Array:
    """Images of ``resolution`` pixels a side, each the mean over the area it covers."""
    if resolution is None:
        return pixels.astype(float)
    require(
        2 <= resolution <= side,
        f"A resolution of {resolution} pixels a side does not fit images of {side}; "
        f"choose between 2 and {side}.",
    )
    # Row r of the averaging matrix covers the interval [r, r + 1] * side / resolution.
    edges = np.arange(resolution + 1) * side / resolution
    begin = np.maximum(edges[:-1, None], np.arange(side))
    end = np.minimum(edges[1:, None], np.arange(1, side + 1))
    average = np.clip(end - begin, 0.0, None) * resolution / side
    grid = pixels.reshape(-1, side, side).astype(float)
    return (average @ grid @ average.T).reshape(len(pixels), -1)
