"""How good a reconstruction is (simulation only: every score needs the private truth)."""

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from fedpca_core.arrays import Array
from fedpca_core.errors import require
from fedpca_core.linalg import stiefel


class ImageScore(NamedTuple):
    #: Peak signal-to-noise ratio in dB; infinite for identical pictures.
    psnr: float
    #: Structural similarity, 1 for identical pictures.
    ssim: float


def relative_error(estimate: Array, truth: Array) -> float:
    """``||S_hat - S_i||_F / ||S_i||_F``; 1 is what guessing zero achieves."""
    return float(np.linalg.norm(estimate - truth)) / _size(truth)


def relative_errors(estimates: Array, truth: Array) -> Array:
    """`relative_error` of a stack (rounds + 1, features, features): one number a round."""
    return np.asarray(np.linalg.norm(estimates - truth, axis=(1, 2)) / _size(truth), dtype=float)


def _size(truth: Array) -> float:
    size = float(np.linalg.norm(truth))
    require(
        size > 0, "The true matrix is zero, so no relative error exists; choose another client."
    )
    return size


def leading_eigenvectors(matrices: Array, components: int) -> Array:
    """Of the symmetric parts, (..., features, components)."""
    vectors = np.linalg.eigh(stiefel.symmetric_part(matrices))[1]
    return np.ascontiguousarray(vectors[..., ::-1][..., :components])


def top_space_sines(estimates: Array, truth: Array, components: int) -> Array:
    """Sines of the largest angles between leading eigenspaces, (rounds,); 0 is perfect."""
    target = leading_eigenvectors(truth, components)
    return stiefel.largest_sine(leading_eigenvectors(estimates, components), target)


def aligned(found: Array, target: Array, *, rotate: bool = False) -> Array:
    """Turn each column's sign (or, with ``rotate``, the whole basis) of ``found`` to ``target``.

    Eigenvectors have no sign, and recovered samples no basis, so pictures, (features, columns), are
    compared after the turn that suits them best.
    """
    require(
        found.shape == target.shape,
        f"Pictures of shape {found.shape} cannot be aligned with pictures of shape {target.shape}.",
    )
    if rotate:
        return np.asarray(found @ stiefel.procrustes(found, target))
    return np.asarray(found * np.where((found * target).sum(axis=0) < 0, -1.0, 1.0))


def image_score(found: Array, target: Array, shape: tuple[int, int]) -> ImageScore:
    """PSNR and SSIM of one picture against another, both flat (features,) vectors.

    The data range is that of the target; the window of SSIM shrinks with small pictures.
    """
    from skimage.metrics import peak_signal_noise_ratio, structural_similarity

    require(
        found.size == target.size == shape[0] * shape[1] and min(shape) >= 3,
        f"Pictures of {found.size} and {target.size} pixels do not fill {shape[0]} x {shape[1]}, "
        "or are smaller than 3 x 3.",
    )
    span = float(target.max() - target.min())
    require(span > 0, "The true picture is constant, so its likeness has no scale.")
    first, second = target.reshape(shape), found.reshape(shape)
    identical = bool(np.array_equal(first, second))
    window = min(7, min(shape) if min(shape) % 2 else min(shape) - 1)
    # scikit-image ships no types.
    likeness: Any = structural_similarity
    noise: Any = peak_signal_noise_ratio
    return ImageScore(
        psnr=float("inf") if identical else float(noise(first, second, data_range=span)),
        ssim=float(likeness(first, second, data_range=span, win_size=window)),
    )


def eigen_image_scores(
    estimate: Array, truth: Array, shape: tuple[int, int], count: int
) -> list[ImageScore]:
    """PSNR and SSIM of the leading eigen-images, after aligning their signs."""
    target = leading_eigenvectors(truth, count)
    found = aligned(leading_eigenvectors(estimate, count), target)
    return [image_score(found[:, k], target[:, k], shape) for k in range(count)]


def recovered_records(found: Array | None, truth: Array, grid: Array) -> int:
    """How many of the true records were found exactly, every entry of them, in any order.

    ``found``, ``truth``, (features, records): Before anything was subtracted; None counts as none.
    ``grid``, (features,): Equal means equal in whole steps of it.
    """
    if found is None:
        return 0
    steps = grid[:, None]
    sets = [
        Counter(map(tuple, np.rint(one / steps).astype(np.int64).T.tolist()))
        for one in (found, truth)
    ]
    return sum((sets[0] & sets[1]).values())


def above_least(records: Array) -> Array:
    return records - records.min(axis=1, keepdims=True)
