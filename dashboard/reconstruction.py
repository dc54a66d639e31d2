"""Drawing what the server reconstructs: heat maps, eigen-images and errors on one round axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.fft import dct

from dashboard.convergence import COLOURS, ROUNDING
from dashboard.replay import Curve, Images, Panel, Yardstick, to_uint8
from fedpca_core.arrays import Array, IntArray
from fedpca_core.config import METHODS
from fedpca_core.problems import Problem

#: Heat maps are averaged down to at most this many rows.
LARGEST = 72
EIGEN_IMAGES = 3


@dataclass(frozen=True)
class Recovery:
    """What an attack on one method's messages gave.

    Attributes
    ----------
    estimates : (rounds + 1, features, features)
        The server's S_i after each round.
    ranks : (rounds + 1,)
        Directions the server had probed by then.
    table : pandas.DataFrame
        Metrics of the run itself.
    """

    estimates: Array
    ranks: IntArray
    table: pd.DataFrame

    def errors(self, truth: Array) -> Array:
        """Relative Frobenius error after each round, (rounds + 1,); simulation only."""
        distance = np.linalg.norm(self.estimates - truth, axis=(1, 2))
        return np.asarray(distance / np.linalg.norm(truth), dtype=float)


def heat_maps(
    recoveries: Mapping[str, Recovery], truth: Array, problem: Problem
) -> list[list[Images]]:
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
    for method, recovery in recoveries.items():
        errors = recovery.errors(truth)
        row.append(
            Images(
                title=f"Server's reconstruction from {METHODS[method]}",
                frames=to_uint8(_shrink(_rotate(recovery.estimates, basis)), -top, top),
                low=-top,
                high=top,
                palette="diverging",
                captions=[
                    f"error {error:.1e}, {rank} of {problem.features} directions"
                    for error, rank in zip(errors, recovery.ranks, strict=True)
                ],
                description=f"Heat map of what the server reconstructs from {METHODS[method]}.",
            )
        )
    return [row]


def eigen_images(
    recoveries: Mapping[str, Recovery], truth: Array, shape: tuple[int, int]
) -> list[list[Images]]:
    """Leading eigen-images of the true S_i and of each reconstruction, in rows."""
    true = _leading(truth[None], None)[0]
    rows = [[_eigen_strip("True eigen-images", true[None], shape, simulation_only=True)]]
    for method, recovery in recoveries.items():
        found = _leading(recovery.estimates, true)
        rows[0].append(_eigen_strip(f"From {METHODS[method]}", found, shape))
    return rows


def error_panel(
    recoveries: Mapping[str, Recovery],
    truth: Array,
    yardsticks: Sequence[Yardstick],
) -> Panel:
    """Reconstruction error of every method with the yardsticks."""
    curves = tuple(
        Curve(
            name=METHODS[method],
            x=np.arange(len(recovery.estimates)),
            y=np.maximum(recovery.errors(truth), ROUNDING),
            colour=COLOURS[method],
            simulation_only=True,
        )
        for method, recovery in recoveries.items()
    )
    return Panel(
        key="recovery",
        title="What the server knows of the client",
        x_title="communication round",
        y_title="relative error of the reconstructed Sᵢ",
        curves=curves,
        yardsticks=tuple(yardsticks),
        integer_x=True,
        description="Relative error of the server's reconstruction after each round, with the "
        "errors of guesses that need no message.",
    )


def progress_panel(recoveries: Mapping[str, Recovery]) -> Panel:
    """How far each method itself has converged, on the same round axis."""
    curves = tuple(
        Curve(
            name=METHODS[method],
            x=np.arange(len(recovery.table)),
            y=np.maximum(recovery.table["sin_theta"].to_numpy(), ROUNDING),
            colour=COLOURS[method],
            simulation_only=True,
        )
        for method, recovery in recoveries.items()
    )
    return Panel(
        key="progress",
        title="How far the method has come",
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
    title: str, vectors: Array, shape: tuple[int, int], simulation_only: bool = False
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
        captions=[f"the {kept} leading eigen-images"],
        description=f"{title}: the {kept} leading eigen-images of the covariance.",
    )
