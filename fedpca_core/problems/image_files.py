"""Where image data sets come from: scikit-learn itself, the data folder, or its fetchers."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from fedpca_core.arrays import AnyArray
from fedpca_core.errors import InvalidInput, require

#: The environment variable that names the folder of data files.
FOLDER_VARIABLE = "FEDPCA_DATA"


@dataclass(frozen=True)
class ImageSource:
    """One data set.

    Attributes
    ----------
    title : str
        Its name on screen.
    side : int
        Pixels along each side of its square images.
    white : float
        Value of a white pixel.
    file : str
        Name in the data folder; empty for the images bundled with scikit-learn.
    arrays : tuple of str
        Names of the images and the classes in that file.
    openml : str
        Name in the OpenML registry; empty where scikit-learn has a fetcher of its own.
    channels : int
        3 for colour images stored channel last in the file.
    """

    title: str
    side: int
    white: float = 255.0
    file: str = ""
    arrays: tuple[str, str] = ("X_train", "y_train")
    openml: str = ""
    channels: int = 1

    @property
    def step(self) -> float:
        """Step of a pixel from 0 to 1; a grey one is the mean of its colours."""
        return 1.0 / (self.white * self.channels)


SOURCES: Mapping[str, ImageSource] = {
    "digits": ImageSource("Digits", 8, white=16.0),
    "mnist": ImageSource("MNIST", 28, file="mnist.npz", openml="mnist_784"),
    "fashion_mnist": ImageSource(
        "Fashion-MNIST", 28, file="fashion_mnist.npz", openml="Fashion-MNIST"
    ),
    "cifar10": ImageSource(
        "CIFAR-10 (grey)", 32, file="cifar10_subset.npz", openml="CIFAR_10", channels=3
    ),
    "olivetti": ImageSource(
        "Olivetti faces", 64, file="olivetti_faces.npz", arrays=("X", "subject")
    ),
}

#: Images (records, side^2) from black 0 to the source's white, and their classes (records,).
Images = tuple[AnyArray, AnyArray]


def data_folder(folder: str | os.PathLike[str] | None = None) -> str:
    """The folder of data files: the one given, else the one FEDPCA_DATA names, else empty."""
    return os.environ.get(FOLDER_VARIABLE, "") if folder is None else os.fspath(folder)


def file_stamp(name: str, folder: str) -> int:
    """When the file of a data set was last changed, in nanoseconds; 0 if there is none."""
    path = _path(name, folder)
    return 0 if path is None else path.stat().st_mtime_ns


def _path(name: str, folder: str) -> Path | None:
    require(
        name in SOURCES,
        f"There are no images called {name!r}; choose one of {', '.join(SOURCES)}.",
    )
    path = Path(folder) / SOURCES[name].file
    return path if folder and path.is_file() else None


def load_images(name: str, folder: str, download: bool) -> Images:
    """Grey images of a data set and their classes, float32 from 0 to 1.

    Parameters
    ----------
    name : str
        A key of `SOURCES`.
    folder : str
        The folder of data files; empty for none.
    download : bool
        Whether scikit-learn may fetch (and keep) a data set that is not in the folder.

    Returns
    -------
    pixels : (records, side * side) float32, in [0, 1]
    classes : (records,) int64

    Raises
    ------
    InvalidInput
        An unknown name, a file that is not there or not as expected, a download that fails.
    """
    path = _path(name, folder)
    source = SOURCES[name]
    if not source.file:
        return _bundled()
    if path is not None:
        return _from_file(name, path, path.stat().st_mtime_ns)
    if not folder:
        where = f"are not here: {FOLDER_VARIABLE} names no folder"
    elif Path(folder).is_dir():
        where = f"are not in the folder “{folder}”"
    else:
        where = f"are not here: the folder “{folder}” does not exist"
    require(
        download,
        f"The {source.title} images {where}; set the environment variable {FOLDER_VARIABLE} to a "
        f"folder that holds {source.file}, allow the download, or choose the bundled digits.",
    )
    return _fetched(name)


@lru_cache(maxsize=1)
def _bundled() -> Images:
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


@lru_cache(maxsize=1)
def _fetched(name: str) -> Images:
    """Let scikit-learn download a data set, or find its own earlier copy."""
    from sklearn import datasets

    source = SOURCES[name]
    fetch: Callable[[], Images]
    if source.openml:

        def fetch() -> Images:
            return datasets.fetch_openml(
                source.openml, version=1, as_frame=False, return_X_y=True, parser="liac-arff"
            )
    else:

        def fetch() -> Images:
            images, classes = datasets.fetch_olivetti_faces(return_X_y=True)
            return images * source.white, classes

    try:
        images, classes = fetch()
    except (OSError, ValueError) as error:  # URLError and HTTPError are OSErrors
        raise InvalidInput(
            f"{source.title} could not be downloaded ({str(error).rstrip('.')}); check the "
            f"network, or put {source.file} into the folder that {FOLDER_VARIABLE} names."
        ) from None
    if source.channels > 1:  # OpenML stores one colour plane after the other
        planes = np.asarray(images).reshape(len(images), source.channels, -1)
        images = planes.swapaxes(1, 2).reshape(len(images), -1)
    return _checked(name, images, classes, "the download")


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
