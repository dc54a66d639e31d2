"""Image data dealt to clients: pixels are features, images are records."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from fedpca_core.arrays import AnyArray, Array, IntArray
from fedpca_core.errors import require
from fedpca_core.problems.announced import PublicFacts, area_step
from fedpca_core.problems.heterogeneity import (
    DEALT,
    ExchangeOrder,
    check_heterogeneity,
    exchange,
    steady_way,
)
from fedpca_core.problems.image_files import SOURCES, described, file_stamp, load_images
from fedpca_core.problems.problem import Problem, from_blocks
from fedpca_core.problems.splits import samples_per_client
from fedpca_core.streams import Streams

#: Pixels along a side at which every method answers while a slider moves.
LIVE_RESOLUTION: Mapping[str, int] = {
    "digits": 8,
    "mnist": 14,
    "fashion_mnist": 14,
    "cifar10": 16,
    "olivetti": 16,
}
#: Pixels along a side at which one sees more, and few methods answer.
FINE_RESOLUTION: Mapping[str, int] = {
    "digits": 8,
    "mnist": 28,
    "fashion_mnist": 28,
    "cifar10": 32,
    "olivetti": 32,
}
#: What an epsilon takes as public of images: nothing else of them is decided by looking.
PUBLIC = ("the size of the pictures and the range of their pixels", DEALT)


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
    weights: str | Sequence[float] = "records",
    folder: str | os.PathLike[str] | None = None,
) -> Problem:
    """Problem whose records are images.

    ``name``, {"digits", "mnist", "fashion_mnist", "cifar10", "olivetti"}: Digits come with
        scikit-learn, a sample of Fashion-MNIST with this package, the others from the data folder.
    ``clients``: 10 by default; for the faces 40, one for each person.
    ``heterogeneity``: The parameter: 0 deals random shares, 1 sorts by class (digit, garment,
        object, person), so that each client holds classes of its own.
    ``seed``: Seed of the streams ``"data"`` (order and choice of images), ``"heterogeneity"`` and
        ``"split"``.
    ``centre``: Subtract the mean image of the pooled data; without it the mean is the first
        component.
    ``max_samples``: Use a random choice of at most so many images.
    ``resolution``: Pixels along a side after averaging over areas; by default as stored.
        `LIVE_RESOLUTION` suggests a size for each data set.
    ``split``, {"even", "uneven", "dirichlet"}: Sizes of the clients.
    ``nested``: Deal random shares (`heterogeneity` 0) in turn: with as many images a client and
        even sizes, more clients leave the images of the first as they are, until there are no more
        images. At other positions of the parameter that is not to be had: the pooled images are the
        same at all of them, and what a further client adds to them would be so too, sorted or not.
    ``weights``, {"records", "equal"} or sequence of float: How clients count in S.
    ``folder``: The folder of data files; by default the one that the environment variable
        FEDPCA_DATA names, else the user's own, where the data command puts them.

    Returns Problem: with ``image_shape`` set and pixels scaled to [0, 1].

    Raises InvalidInput: data that are not there, or sizes that do not fit.
    """
    check_heterogeneity(heterogeneity)
    if clients is None:
        clients = 40 if name == "olivetti" else 10
    place, stamp = "" if folder is None else os.fspath(folder), file_stamp(name, folder)
    dealt = _dealt(
        name, place, stamp, clients, seed, centre, max_samples, resolution, split, nested
    )
    held = exchange(dealt.home, dealt.sizes, heterogeneity, dealt.way)
    side = round(dealt.records.shape[1] ** 0.5)
    mean = (
        "centred on the pooled mean, which takes one secure sum over clients beforehand"
        if centre
        else "not centred"
    )
    told = described(name, folder)
    sample = f"{told}: " if told else ""
    return from_blocks(
        [dealt.records[own].T for own in held],
        weights=weights,
        name=SOURCES[name].title,
        image_shape=(side, side),
        note=f"{sample}{len(dealt.home):,} images of {side} × {side} pixels, {mean}.",
        own_mean=dealt.mean,
        public=PUBLIC,
        announced=PublicFacts(
            np.full(side**2, _step(name, side)),
            dealt.mean,
            len(dealt.home),
        ),
    )


@dataclass(frozen=True, eq=False)
class _Dealt:
    """Everything about the images that does not depend on the parameter."""

    records: Array
    mean: Array | None
    home: IntArray
    sizes: tuple[int, ...]
    way: ExchangeOrder


@lru_cache(maxsize=3)
def _dealt(
    name: str,
    folder: str,
    stamp: object,
    clients: int,
    seed: int,
    centre: bool,
    max_samples: int | None,
    resolution: int | None,
    split: str,
    nested: bool,
) -> _Dealt:
    """Prepare the images once for all positions; ``stamp`` notices a changed file."""
    pixels, classes = load_images(name, folder or None)
    require(
        max_samples is None or max_samples >= 2,
        f"At most {max_samples} images were asked for; choose at least 2.",
    )
    chosen = Streams(seed).generator("data").permutation(len(pixels))[:max_samples]
    sizes = samples_per_client(split, clients, len(chosen), seed=seed)
    records = _resampled(pixels[chosen], SOURCES[name].side, resolution)
    # Pixels are whole numbers that were kept as float32.
    step = _step(name, round(records.shape[1] ** 0.5))
    records = np.rint(records / step) * step
    centre_of = records.mean(axis=0) if centre else None
    if centre_of is not None:
        records -= centre_of
    # A stable sort of shuffled images: those of a class stay in random order.
    home = np.argsort(classes[chosen], kind="stable").astype(np.int64)
    shares = np.arange(len(chosen)) if nested else None
    return _Dealt(records, centre_of, home, sizes, steady_way(records, home, sizes, seed, shares))


def _step(name: str, side: int) -> float:
    """The grid of the pixels at this resolution."""
    return SOURCES[name].step * area_step(SOURCES[name].side, side)


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
