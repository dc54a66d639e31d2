"""Drawing what the server reconstructs: heat maps, eigen-images and errors on one round axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.fft import dct

from dashboard.player import Baseline, Curve, Images, Panel, to_uint8
from dashboard.views.convergence import ROUNDING
from fedpca_core.algorithms.registry import ATTACKABLE
from fedpca_core.arrays import Array, IntArray
from fedpca_core.attacks import recover_samples, scores
from fedpca_core.problems import Problem

#: Heat maps are averaged down to at most this many rows.
LARGEST = 72
EIGEN_IMAGES = 3


@dataclass(frozen=True)
class Recovery:
    """What an attack on one method's messages gave.

    Attributes
    ----------
    ranks : (rounds + 1,)
        Directions the server had probed after each round of the first start.
    table : pandas.DataFrame
        Metrics of the run itself, from the first start.
    errors : (starts, rounds + 1)
        Relative error of the reconstruction from every start (simulation only).
    angles : (rounds + 1,)
        Sine of the largest angle between the leading spaces of the reconstruction and of S_i,
        from the first start (simulation only).
    messages : pandas.DataFrame
        What crossed the wire, round by round.
    likeness : tuple of str
        For images: how alike the first eigen-images are, after each round.
    """

    ranks: IntArray
    table: pd.DataFrame
    errors: Array
    angles: Array
    messages: pd.DataFrame
    likeness: tuple[str, ...] = ()

    def joined(self, other: Recovery) -> Recovery:
        """The same with the errors of one more start."""
        return replace(self, errors=np.concatenate([self.errors, other.errors]))


def pictures(
    recoveries: Mapping[str, Recovery],
    paths: Mapping[str, Array],
    truth: Array,
    problem: Problem,
    client: int,
) -> list[list[Images]]:
    """All rows of replayed pictures: covariances, and for image data eigen-images and a record.

    Parameters
    ----------
    paths : mapping of method key to (rounds + 1, features, features)
        The server's S_i after each round of the first start.
    """
    rows = [_heat_maps(recoveries, paths, truth, problem)]
    if problem.image_shape is not None:
        rows.append(_eigen_images(recoveries, paths, truth, problem.image_shape))
        if problem.blocks is not None and problem.blocks[client].shape[1] < problem.features:
            rows.append(_records(paths, problem.blocks[client], problem.image_shape))
    return rows


def _heat_maps(
    recoveries: Mapping[str, Recovery],
    paths: Mapping[str, Array],
    truth: Array,
    problem: Problem,
) -> list[Images]:
    """The true S_i beside the server's, one picture for each method."""
    basis = _display_basis(problem)
    shown = _shrink(_rotate(truth[None], basis))
    top = float(np.quantile(np.abs(shown), 0.995)) or 1.0
    row = [
        Images(
            title="True covariance of the client",
            frames=to_uint8(shown, -top, top),
            low=-top,
            high=top,
            palette="diverging",
            simulation_only=True,
            captions=["what the server must not learn"],
            description="Heat map of the attacked client's true second-moment matrix.",
        )
    ]
    for method, path in paths.items():
        errors, ranks = recoveries[method].errors[0], recoveries[method].ranks
        row.append(
            Images(
                title=f"Server's reconstruction from {ATTACKABLE[method]}",
                frames=to_uint8(_shrink(_rotate(path, basis)), -top, top),
                low=-top,
                high=top,
                palette="diverging",
                captions=[
                    f"error {error:.1e}, {rank} of {problem.features} directions"
                    for error, rank in zip(errors, ranks, strict=True)
                ],
                description=f"Heat map of what the server reconstructs from {ATTACKABLE[method]}.",
            )
        )
    return row


def heat_row(named: Mapping[str, Array], truth: Array, problem: Problem) -> list[Images]:
    """Still heat maps side by side, on the colour scale of the true matrix."""
    basis = _display_basis(problem)
    top = float(np.quantile(np.abs(_shrink(_rotate(truth[None], basis))), 0.995)) or 1.0
    row = []
    for title, matrix in named.items():
        error = scores.relative_error(matrix, truth)
        row.append(
            Images(
                title=title,
                frames=to_uint8(_shrink(_rotate(matrix[None], basis)), -top, top),
                low=-top,
                high=top,
                palette="diverging",
                simulation_only=matrix is truth,
                captions=["simulation only" if matrix is truth else f"error {error:.1e}"],
                description=f"Heat map: {title.lower()}.",
            )
        )
    return row


def _eigen_images(
    recoveries: Mapping[str, Recovery],
    paths: Mapping[str, Array],
    truth: Array,
    shape: tuple[int, int],
) -> list[Images]:
    """Leading eigen-images of the true S_i and of each reconstruction."""
    true = _leading(truth[None], None)[0]
    row = [_eigen_strip("True eigen-images", true[None], shape, simulation_only=True)]
    for method, path in paths.items():
        found, likeness = _leading(path, true), recoveries[method].likeness
        row.append(_eigen_strip(f"From {ATTACKABLE[method]}", found, shape, captions=likeness))
    return row


def _records(paths: Mapping[str, Array], block: Array, shape: tuple[int, int]) -> list[Images]:
    """One record of the client beside what each reconstruction shows of it, round by round.

    A client with fewer records than features is exposed record by record: S_i determines them up
    to a common rotation, and a single record up to its sign. The rotation and sign shown are those
    that suit the truth best (simulation only).
    """
    best = [_best_record(path[-1], block) for path in paths.values()]
    shown = min(best, key=lambda found: found[1])[0]
    true = block[:, shown]
    top = float(np.abs(true).max()) or 1.0

    row = [
        record_picture(
            "One record of the client", true[None], shape, top, [f"record {shown}"], True
        )
    ]
    for method, path in paths.items():
        frames = np.stack([_turned(estimate, block)[:, shown] for estimate in path])
        errors = np.linalg.norm(frames - true, axis=1) / np.linalg.norm(true)
        captions = [f"record error {error:.1e}, rotation fitted" for error in errors]
        title = f"Recovered from {ATTACKABLE[method]}"
        row.append(record_picture(title, frames, shape, top, captions, False))
    return row


def record_picture(
    title: str,
    records: Array,
    shape: tuple[int, int],
    top: float,
    captions: Sequence[str],
    simulation_only: bool,
) -> Images:
    """A record as an image, or what is read of it after each round, (rounds, features)."""
    return Images(
        title=title,
        frames=to_uint8(records.reshape(-1, *shape), -top, top),
        low=-top,
        high=top,
        palette="grey",
        show_scale=False,
        simulation_only=simulation_only,
        captions=captions,
        size=200,
        description=f"{title}: one record of the attacked client.",
    )


def _turned(estimate: Array, block: Array) -> Array:
    return scores.aligned(recover_samples(estimate, block.shape[1]), block, rotate=True)


def _best_record(estimate: Array, block: Array) -> tuple[int, float]:
    """The record that a reconstruction shows best, and its error."""
    turned = _turned(estimate, block)
    sizes = np.maximum(np.linalg.norm(block, axis=0), 1e-300)
    errors = np.linalg.norm(turned - block, axis=0) / sizes
    best = int(np.argmin(errors))
    return best, float(errors[best])


def error_panel(recoveries: Mapping[str, Recovery], baselines: Sequence[Baseline]) -> Panel:
    """Reconstruction error of every method with the baselines (simulation only)."""
    several = any(len(recovery.errors) > 1 for recovery in recoveries.values())
    curves = tuple(
        Curve(
            name=ATTACKABLE[method],
            x=np.arange(recovery.errors.shape[1]),
            y=np.maximum(np.median(recovery.errors, axis=0), ROUNDING),
            lower=np.maximum(recovery.errors.min(axis=0), ROUNDING) if several else None,
            upper=np.maximum(recovery.errors.max(axis=0), ROUNDING) if several else None,
            colour=method,
        )
        for method, recovery in recoveries.items()
    )
    return Panel(
        key="recovery",
        title="What the server knows of the client (simulation only)",
        x_title="communication round",
        y_title="relative error of the reconstructed Sᵢ",
        curves=curves,
        baselines=tuple(baselines),
        integer_x=True,
        description="Relative error of the server's reconstruction after each round, with the "
        "errors of guesses that need no message.",
    )


def angle_panel(recoveries: Mapping[str, Recovery]) -> Panel:
    """How well the reconstruction shows the client's own leading directions."""
    curves = tuple(
        Curve(
            name=ATTACKABLE[method],
            x=np.arange(len(recovery.angles)),
            y=np.maximum(recovery.angles, ROUNDING),
            colour=method,
        )
        for method, recovery in recoveries.items()
    )
    return Panel(
        key="angles",
        title="The client's own leading space (simulation only)",
        x_title="communication round",
        y_title="sine of the largest principal angle to it",
        curves=curves,
        integer_x=True,
        description="Sine of the largest principal angle between the leading eigenspaces of the "
        "reconstructed and the true second-moment matrix after each round.",
    )


def progress_panel(recoveries: Mapping[str, Recovery]) -> Panel:
    """How far each method itself has converged, on the same round axis."""
    curves = tuple(
        Curve(
            name=ATTACKABLE[method],
            x=np.arange(len(recovery.table)),
            y=np.maximum(recovery.table["sin_theta"].to_numpy(), ROUNDING),
            colour=method,
        )
        for method, recovery in recoveries.items()
    )
    return Panel(
        key="progress",
        title="How far the method has come (simulation only)",
        x_title="communication round",
        y_title="sine of the largest principal angle",
        curves=curves,
        integer_x=True,
        description="Sine of the largest principal angle to the true subspace after each round.",
    )


def _display_basis(problem: Problem) -> Array | None:
    """A cosine basis for synthetic spectra, whose own axes are the eigenvectors of S.

    All methods and attacks are rotation-equivariant; in the generator's axes every matrix would
    look diagonal. Data with features of their own are shown in these.
    """
    if problem.image_shape is not None or problem.feature_names:
        return None
    basis: Array = dct(np.eye(problem.features), norm="ortho", axis=0).T
    return basis


def _rotate(matrices: Array, basis: Array | None) -> Array:
    return matrices if basis is None else basis @ matrices @ basis.T


def _shrink(matrices: Array) -> Array:
    """Average blocks of neighbouring entries until a matrix has at most `LARGEST` rows."""
    size = matrices.shape[-1]
    block = -(-size // LARGEST)
    if block == 1:
        return matrices
    padded = -(-size // block) * block - size
    whole = np.pad(matrices, ((0, 0), (0, padded), (0, padded)), mode="edge")
    rows = whole.shape[-1] // block
    return whole.reshape(len(whole), rows, block, rows, block).mean(axis=(2, 4))


def _leading(matrices: Array, reference: Array | None) -> Array:
    """Leading eigenvectors, (matrices, features, EIGEN_IMAGES), signs as in the reference."""
    symmetric = 0.5 * (matrices + np.swapaxes(matrices, 1, 2))
    vectors = np.linalg.eigh(symmetric)[1][:, :, ::-1][:, :, :EIGEN_IMAGES]
    if reference is not None:
        signs = np.sign(np.einsum("rnk,nk->rk", vectors, reference))
        vectors = vectors * np.where(signs == 0, 1.0, signs)[:, None, :]
    return np.ascontiguousarray(vectors)


def _eigen_strip(
    title: str,
    vectors: Array,
    shape: tuple[int, int],
    simulation_only: bool = False,
    captions: Sequence[str] = (),
) -> Images:
    count, _, kept = vectors.shape
    tiles = vectors.transpose(0, 2, 1).reshape(count, kept, *shape)
    peak = np.abs(tiles).max(axis=(2, 3), keepdims=True)
    tiles = tiles / np.where(peak == 0, 1.0, peak)
    gap = np.zeros((count, shape[0], 1))
    parts: list[Array] = []
    for position in range(kept):
        parts += [tiles[:, position], gap]
    return Images(
        title=title,
        frames=to_uint8(np.concatenate(parts[:-1], axis=2), -1.0, 1.0),
        low=-1.0,
        high=1.0,
        palette="grey",
        show_scale=False,
        simulation_only=simulation_only,
        captions=captions or [f"the {kept} leading ones"],
        description=f"{title}: the {kept} leading eigen-images of the covariance.",
    )
