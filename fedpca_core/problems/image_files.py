"""Image data sets as pixels and classes, wherever their files are found."""

import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from fedpca_core.arrays import AnyArray
from fedpca_core.errors import InvalidInput, require, require_known
from fedpca_core.problems.data_sets import DATA_SETS, files_of, find


@dataclass(frozen=True)
class ImageSource:
    """One data set of images, as its file holds it."""

    #: Its name on screen.
    title: str
    #: Pixels along each side of its square images.
    side: int
    #: Value of a white pixel.
    white: float = 255.0
    #: Names of the images and the classes in its file.
    arrays: tuple[str, str] = ("X_train", "y_train")
    #: 3 for colour images stored channel last in the file.
    channels: int = 1

    @property
    def step(self) -> float:
        """Step of a pixel from 0 to 1; a grey one is the mean of its colours."""
        return 1.0 / (self.white * self.channels)


SOURCES: Mapping[str, ImageSource] = {
    "digits": ImageSource("Digits", 8, white=16.0),
    "mnist": ImageSource("MNIST", 28),
    "fashion_mnist": ImageSource("Fashion-MNIST", 28),
    "cifar10": ImageSource("CIFAR-10 (grey)", 32, channels=3),
    "olivetti": ImageSource("Olivetti faces", 64, arrays=("X", "subject")),
}

#: Images (records, side^2) from black 0 to the source's white, and their classes (records,).
Images = tuple[AnyArray, AnyArray]


def file_stamp(name: str, folder: str | os.PathLike[str] | None = None) -> tuple[Path, int] | None:
    """The file of a data set and when it was changed, in nanoseconds; None without a file.

    Raises InvalidInput: an unknown name, or a data set that is not on this machine.
    """
    require_known("set of images", name, SOURCES)
    files = files_of(name, folder)
    return (files[0], files[0].stat().st_mtime_ns) if files else None


def described(name: str, folder: str | os.PathLike[str] | None = None) -> str:
    """What must be said of the images that are read: that they are a sample, where they are."""
    found = find(name, folder)
    sample = DATA_SETS[name].sample
    return f"From {sample} that comes along" if found and found.bundled and sample else ""


def load_images(name: str, folder: str | os.PathLike[str] | None = None) -> Images:
    """Grey images of a data set and their classes, float32 from 0 to 1.

    ``name``: A key of `SOURCES`.
    ``folder``: The folder of data files; see `data_folder`.

    Returns pixels (records, side * side) float32, in [0, 1], and classes (records,) int64.

    Raises InvalidInput: an unknown name, a file that is not there or not as expected.
    """
    stamp = file_stamp(name, folder)
    return _digits() if stamp is None else _from_file(name, *stamp)


@lru_cache(maxsize=1)
def _digits() -> Images:
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    return _checked("digits", images, classes, "scikit-learn")


@lru_cache(maxsize=2)
def _from_file(name: str, path: Path, changed: int) -> Images:
    """Read a file; ``changed`` (its time stamp) makes a replaced file be read again."""
    source = SOURCES[name]
    try:
        with np.load(path, allow_pickle=False) as arrays:
            images, classes = (arrays[key] for key in source.arrays)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InvalidInput(
            f"{path.name} cannot be read ({str(error).rstrip('.')}); it must be an .npz file with "
            f"the arrays {' and '.join(source.arrays)}."
        ) from None
    return _checked(name, images, classes, path.name)


def _checked(name: str, images: AnyArray, classes: AnyArray, origin: str) -> Images:
    """Scale to [0, 1], average colours, and make sure that the shapes are right."""
    source = SOURCES[name]
    expected = source.side**2 * source.channels
    images = np.asarray(images)
    classes = np.asarray(classes)
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
    _, labels = np.unique(classes, return_inverse=True)
    pixels.setflags(write=False)
    return pixels, labels.astype(np.int64)
