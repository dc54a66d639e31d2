"""What a server reconstructs, as pictures: covariances, eigen-images, single records.

All need the private truth beside the reconstruction, so only a simulation has them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dct

from fedpca_core.arrays import AnyArray, Array
from fedpca_core.attacks import recover_samples, scores
from fedpca_core.problems import Problem
from fedpca_core.study.panels import Images, to_uint8

#: Matrices are averaged down to at most this many rows.
LARGEST = 72
#: Leading eigen-images that are shown.
EIGEN_IMAGES = 3


@dataclass(frozen=True, eq=False)
class Pictures:
    """A true picture, and what each of several sources makes of it."""

    #: {"covariance", "eigen-images", "record"}.
    kind: str
    #: (rows, columns) float32: Simulation only.
    truth: AnyArray
    #: mapping of source to (1 or rounds + 1, rows, columns) float32.
    found: Mapping[str, AnyArray]
    #: Values are shown from -top to top.
    top: float
    #: mapping of source to (rounds + 1,) float64: Relative errors; empty for eigen-images.
    errors: Mapping[str, Array]
    #: Which record it is.
    record: int = 0


def covariances(paths: Mapping[str, Array], truth: Array, problem: Problem) -> Pictures:
    """The true S_i and reconstructions of it, (rounds + 1, features, features) each.

    Synthetic spectra are shown in a cosine basis: all methods and attacks are rotation-equivariant,
    and in the generator's axes, the eigenvectors of S, every matrix would look diagonal.
    """
    synthetic = problem.image_shape is None and not problem.feature_names
    basis = np.asarray(dct(np.eye(problem.features), norm="ortho", axis=0).T) if synthetic else None

    def drawn(matrices: Array) -> AnyArray:
        return shrunk(matrices if basis is None else basis @ matrices @ basis.T)

    shown = drawn(truth[None])[0]
    return Pictures(
        "covariance",
        shown,
        {name: drawn(path) for name, path in paths.items()},
        float(np.quantile(np.abs(shown), 0.995)) or 1.0,
        {name: scores.relative_errors(path, truth) for name, path in paths.items()},
    )


def eigen_images(paths: Mapping[str, Array], truth: Array, shape: tuple[int, int]) -> Pictures:
    """The leading eigen-images of the true S_i and of reconstructions, side by side."""
    true = _leading(truth[None], None)
    found = {name: _strip(_leading(path, true[0]), shape) for name, path in paths.items()}
    return Pictures("eigen-images", _strip(true, shape)[0], found, 1.0, {})


def records(paths: Mapping[str, Array], block: Array, shape: tuple[int, int]) -> Pictures:
    """One record of the client and what each reconstruction shows of it, round by round.

    A client with fewer records than features is exposed record by record: S_i determines them up
    to a common rotation, and a single record up to its sign. The rotation and sign shown are those
    that suit the truth best; the record is the one that shows best.
    """
    off = [np.linalg.norm(_turned(path[-1], block) - block, axis=0) for path in paths.values()]
    sizes = np.maximum(np.linalg.norm(block, axis=0), 1e-300)
    shown = int(np.argmin(np.min(off, axis=0) / sizes))
    read = {
        name: np.stack([_turned(estimate, block)[:, shown] for estimate in path])
        for name, path in paths.items()
    }
    return record(block[:, shown], read, shape, shown)


def record(true: Array, read: Mapping[str, Array], shape: tuple[int, int], number: int) -> Pictures:
    """A record, (features,), and what is read of it after each round, (rounds + 1, features)."""
    size = float(np.linalg.norm(true)) or 1.0
    return Pictures(
        "record",
        _small(true.reshape(shape)),
        {name: _small(found.reshape(-1, *shape)) for name, found in read.items()},
        float(np.abs(true).max()) or 1.0,
        {name: np.linalg.norm(found - true, axis=1) / size for name, found in read.items()},
        number,
    )


def _turned(estimate: Array, block: Array) -> Array:
    return scores.aligned(recover_samples(estimate, block.shape[1]), block, rotate=True)


def shrunk(matrices: Array) -> AnyArray:
    """Average blocks of neighbouring entries until a matrix has at most `LARGEST` rows."""
    size = matrices.shape[-1]
    block = -(-size // LARGEST)
    if block > 1:
        padded = -(-size // block) * block - size
        whole = np.pad(matrices, ((0, 0), (0, padded), (0, padded)), mode="edge")
        rows = whole.shape[-1] // block
        matrices = whole.reshape(len(whole), rows, block, rows, block).mean(axis=(2, 4))
    return _small(matrices)


def _leading(matrices: Array, reference: Array | None) -> Array:
    """Leading eigenvectors, (matrices, features, EIGEN_IMAGES), signs as in the reference."""
    symmetric = 0.5 * (matrices + np.swapaxes(matrices, 1, 2))
    vectors = np.linalg.eigh(symmetric)[1][:, :, ::-1][:, :, :EIGEN_IMAGES]
    if reference is not None:
        signs = np.sign(np.einsum("rnk,nk->rk", vectors, reference))
        vectors = vectors * np.where(signs == 0, 1.0, signs)[:, None, :]
    return vectors


def _strip(vectors: Array, shape: tuple[int, int]) -> AnyArray:
    """Eigenvectors as images in a row, each with its own largest value at 1, gaps between them."""
    count, _, kept = vectors.shape
    tiles = vectors.transpose(0, 2, 1).reshape(count, kept, *shape)
    peak = np.abs(tiles).max(axis=(2, 3), keepdims=True)
    tiles = np.pad(tiles / np.where(peak == 0, 1.0, peak), ((0, 0), (0, 0), (0, 0), (0, 1)))
    row = tiles.transpose(0, 2, 1, 3).reshape(count, shape[0], -1)
    return _small(row[:, :, :-1])


def _small(pictures: Array) -> AnyArray:
    """Half the memory; a screen shows 256 shades."""
    return pictures.astype(np.float32)


# ---------------------------------------------------------------------- as images of the player
def row(
    pictures: Pictures,
    *,
    truth: str,
    caption: str,
    titles: Mapping[str, str],
    captions: Mapping[str, Sequence[str]],
) -> list[Images]:
    """The true picture beside those made of each source.

    ``truth``, ``caption``: Title and caption of the true picture.
    """
    top, heat = pictures.top, pictures.kind == "covariance"
    look: dict[str, Any] = {"palette": "diverging" if heat else "grey", "show_scale": heat}
    look |= {"size": 200} if pictures.kind == "record" else {}
    shows = {
        "covariance": "heat map of the attacked client's second-moment matrix",
        "eigen-images": "leading eigen-images of the attacked client's covariance",
        "record": "one record of the attacked client",
    }[pictures.kind]

    def image(title: str, frames: AnyArray, said: Sequence[str], **more: Any) -> Images:
        levels, description = to_uint8(frames, -top, top), f"{title}: {shows}."
        return Images(title, levels, -top, top, captions=said, description=description, **more)

    found = (
        image(titles[source], frames, captions.get(source, ()), **look)
        for source, frames in pictures.found.items()
    )
    return [image(truth, pictures.truth[None], [caption], simulation_only=True, **look), *found]


def lasting(row: Sequence[Images], rounds: int) -> list[Images]:
    """The same pictures for a whole run: those of a method that ends early keep their last."""

    def extended(shown: Images) -> Images:
        if not 1 < len(shown.frames) <= rounds:
            return shown
        at = np.minimum(range(rounds + 1), len(shown.frames) - 1)
        captions = [shown.captions[k] for k in at] if len(shown.captions) > 1 else shown.captions
        return replace(shown, frames=shown.frames[at], captions=captions)

    return [extended(shown) for shown in row]


def mosaic(pictures: AnyArray, columns: int | None = None) -> AnyArray:
    """Pictures (count, rows, columns) side by side, a line of grey between them."""
    count, rows, width = pictures.shape
    wanted = max(1.0, math.sqrt(1.5 * rows / width * count))
    # As near to the wanted shape as full rows allow.
    fits = range(1, count + 1)
    wide = columns or min(fits, key=lambda wide: (-count % wide) + 2 * abs(wide - wanted))
    high = math.ceil(count / wide)
    cells = np.full((high * wide, rows + 1, width + 1), 0.5)
    cells[:count, :rows, :width] = pictures
    whole = cells.reshape(high, wide, rows + 1, width + 1).swapaxes(1, 2)
    return whole.reshape(high * (rows + 1), wide * (width + 1))[:-1, :-1]


def frames(pictures: AnyArray, columns: int | None = None) -> NDArray[np.uint8]:
    """A sheet of pictures for every round; what stays the same is laid out once."""
    found: list[NDArray[np.uint8]] = []
    for k, picture in enumerate(pictures):
        same = k > 0 and np.array_equal(picture, pictures[k - 1])
        found.append(found[-1] if same else to_uint8(mosaic(picture, columns), 0.0, 1.0))
    return np.stack(found)


def sheet(
    title: str,
    pictures: AnyArray,
    captions: Sequence[str],
    description: str,
    columns: int | None = None,
    **look: Any,
) -> Images:
    """Pictures of every round side by side, in grey."""
    look = {"palette": "grey", "show_scale": False, "description": description, **look}
    return Images(title, frames(pictures, columns), captions=captions, **look)
