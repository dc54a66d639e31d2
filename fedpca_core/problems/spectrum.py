"""Synthetic problems whose pooled spectrum is known exactly (FAPS, section 5.1)."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import require
from fedpca_core.linalg.threads import one_thread
from fedpca_core.problems.client_data import ClientData
from fedpca_core.problems.heterogeneity import check_heterogeneity
from fedpca_core.problems.problem import Problem, client_weights
from fedpca_core.problems.rotation import WhiteShares, chosen_turns, coloured, white_shares
from fedpca_core.problems.splits import checked_sizes

#: Up to this size raw blocks are kept with the problem, and white shares remembered.
_SMALL_BYTES = 32 * 1024**2


def decay_spectrum(
    features: int,
    samples: Sequence[int] | IntArray,
    decay: float | None = None,
    *,
    condition: float | None = None,
    heterogeneity: float = 0.0,
    seed: int = 0,
    weights: str | Sequence[float] = "records",
    keep_blocks: bool | None = None,
    leading: int | None = None,
) -> Problem:
    """Data ``[A_1 ... A_d] = sqrt(m) U Sigma V^T`` dealt to clients, in the basis U = I.

    Every method here commutes with rotations of the features, so a random U would change nothing
    but the time to generate. S = sum_i w_i S_i is the diagonal matrix Sigma^2 at every position of
    the parameter and for any weights.

    ``samples``: Records m_i of each client (at least two clients), together at least ``features``.
    ``decay``: Geometric spectrum: Sigma_jj = decay^(1-j), at least 1 (FAPS's xi); 1.01 by default,
        1 is exactly flat.
    ``condition``: Arithmetic spectrum instead: Sigma_jj falls evenly from 1 to 1/condition (FAPS's
        kappa).
    ``heterogeneity``: 0 deals random shares, 1 gives each client a rotated spectrum of its own.
    ``seed``: Of the streams ``"data"`` and ``"heterogeneity"``; the latter changes no other draw.
    ``weights``, {"records", "equal"} or sequence of float: How clients count in S.
    ``keep_blocks``: Whether the raw blocks stay with the problem; by default below 32 MiB.
    ``leading``: Make so many leading features only, with the data that they have among all.
    """
    require(features >= 2, f"There are {features} features; choose at least 2.")
    sizes = checked_sizes(samples)
    require(
        sum(sizes) >= features,
        f"{features} features need at least as many samples over all clients, not {sum(sizes)}; "
        "give more samples or choose fewer features.",
    )
    check_heterogeneity(heterogeneity)
    roots = singular_values(features, decay, condition)
    drawn, features = features, features if leading is None else leading
    require(
        2 <= features <= drawn,
        f"There are {drawn} features, so that {features} leading ones cannot be made; choose from "
        f"2 to {drawn}.",
    )
    roots = roots[:features]
    share = client_weights(weights, len(sizes))
    shares = np.array(sizes) / sum(sizes) if share is None else share
    small = 8 * features * sum(sizes) <= _SMALL_BYTES
    keep = small if keep_blocks is None else keep_blocks
    # A product with S_i costs features^2 through the matrix, 2 m_i features through the block.
    moments = len(sizes) * features < 2 * sum(sizes)

    def made(blocks: bool) -> WhiteShares:
        with one_thread(features):
            white = white_shares(
                features,
                sizes,
                seed,
                blocks=blocks,
                moments=moments,
                remember=(small or not blocks) and 8 * len(sizes) * features**2 <= _SMALL_BYTES,
                drawn=drawn,
            )
            turns = chosen_turns(white, roots, shares, seed, heterogeneity)
            pool_is_exact = share is None and (heterogeneity == 0 or turns.turning < 2)
            maps = turns.maps(heterogeneity)
            return coloured(white, maps, shares, None if pool_is_exact else roots)

    blocks: Sequence[Array] | None = None
    if moments:
        held = made(blocks=False).moments
        assert held is not None
        client_data = ClientData.from_grams(held, np.array(sizes), share)
        if keep:
            blocks = _Later(len(sizes), lambda: made(blocks=True).blocks or [])
    else:
        held_blocks = made(blocks=True).blocks
        assert held_blocks is not None
        factors = [
            np.divide(block, np.sqrt(block.shape[1]), out=None if keep else block)
            for block in held_blocks
        ]
        client_data = ClientData.from_factors(factors, share)
        blocks = tuple(held_blocks) if keep else None
    return Problem(
        name="geometric spectrum" if condition is None else "arithmetic spectrum",
        client_data=client_data,
        blocks=blocks,
        note=f"Synthetic: {sum(sizes):,} records whose pooled eigenvalues fall exactly from 1 to "
        f"{roots[-1] ** 2:.3g}.",
        spectrum=roots**2,
    )


def singular_values(features: int, decay: float | None, condition: float | None) -> Array:
    """Sigma_jj, (features,), largest first (always 1)."""
    require(
        decay is None or condition is None,
        f"A spectrum has either a decay ({decay}) or a condition number ({condition}), not both; "
        "leave one out.",
    )
    position = np.arange(features, dtype=float)
    if condition is not None:
        require(
            1 <= condition <= 1e8,
            f"The condition number must lie between 1 and 1e8, not {condition}; try 10.",
        )
        return 1.0 - position / (features - 1) * (1.0 - 1.0 / condition)
    ratio = 1.01 if decay is None else float(decay)
    steepest = 10.0 ** (100.0 / (features - 1))
    require(
        1 <= ratio <= steepest,
        f"The decay must lie between 1 and {steepest:.4g} for {features} features, not {ratio}; "
        "try 1.01.",
    )
    return np.asarray(ratio**-position)


class _Later(Sequence[Array]):
    """One block for each client, made at the first look: most studies read second moments only."""

    def __init__(self, clients: int, make: Callable[[], Sequence[Array]]) -> None:
        self._clients, self._make = clients, make

    @cached_property
    def _blocks(self) -> tuple[Array, ...]:
        return tuple(self._make())

    def __len__(self) -> int:
        return self._clients

    def __getitem__(self, index: Any) -> Any:
        return self._blocks[index]
