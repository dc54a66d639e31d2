"""Synthetic problems whose pooled spectrum is known exactly (FAPS, section 5.1).

White shares W_i are the random part of every one, generated in bounded memory. Client i's data
become ``A_i(t) = M R_i D^(1/2) R_i^T W_i`` with the target spectrum D, a rotation
``R_i = exp(t K_i)`` of its own and one common map M that restores ``sum_i w_i S_i = D``: clients
differ while the pooled problem stays exactly the same. At t = 0 this is ``D^(1/2) W_i``: plain
random shares.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, reduce
from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dsygst

from fedpca_core.arrays import Array, IntArray
from fedpca_core.errors import InvalidInput, require
from fedpca_core.linalg.stiefel import orthonormalise
from fedpca_core.linalg.threads import one_thread
from fedpca_core.problems.client_data import ClientData, second_moment
from fedpca_core.problems.heterogeneity import check_heterogeneity, drop
from fedpca_core.problems.problem import Problem, client_weights
from fedpca_core.problems.splits import checked_sizes
from fedpca_core.remembered import Remembered
from fedpca_core.streams import Streams

#: Up to this size raw blocks are kept with the problem, and white shares remembered.
_KEPT_BYTES = 32 * 1024**2
#: Directions whose eigenvalue is below this share of the largest stay where they are: turned, they
#: would drown in the rounding errors of the leading ones.
_NEGLIGIBLE = 1e-8
#: Bases and moments of all clients below this are kept for many seeds, since the parameter moves,
#: they stay, and every visitor may have a seed; other moments for few.
_SMALL_BYTES = 1024**2
_known: Remembered[tuple[Array, ...]] = Remembered(64)
_many: Remembered[WhiteShares] = Remembered(64)
_few: Remembered[WhiteShares] = Remembered(4)
#: From so many records a feature on, raw entries of all clients have a condition number below 1.7,
#: so that a second pass improves nothing. Data smaller than these bytes make it all the same.
_WIDE, _LARGE_BYTES = 16, 32 * 1024**2
#: clients x features^3 up to which draws of the rotations are compared by measurement, and up to
#: which they are compared at many positions of the parameter.
_MEASURABLE = 5e7
_TINY = 2e5


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
    small = 8 * features * sum(sizes) <= _KEPT_BYTES
    keep = small if keep_blocks is None else keep_blocks
    # A product with S_i costs features^2 through the matrix, 2 m_i features through the block.
    moments = len(sizes) * features < 2 * sum(sizes)

    def made(blocks: bool) -> WhiteShares:
        remember = (small or not blocks) and 8 * len(sizes) * features**2 <= _KEPT_BYTES
        with one_thread(features):
            white = white_shares(
                features,
                sizes,
                seed,
                blocks=blocks,
                moments=moments,
                remember=remember,
                drawn=drawn,
            )
            turns = chosen_turns(white, roots, shares, seed, heterogeneity)
            pool_is_exact = share is None and (heterogeneity == 0 or turns.turning < 2)
            target = None if pool_is_exact else roots
            return coloured(white, turns.maps(heterogeneity), shares, target, keep=remember)

    blocks: Sequence[Array] | None = None
    found = made(blocks=not moments)
    if found.moments is not None:
        client_data = ClientData.from_grams(found.moments, np.array(sizes), share)
        if keep:
            blocks = _Later(len(sizes), lambda: made(blocks=True).blocks or [])
    else:
        assert found.blocks is not None
        factors = [
            np.divide(block, np.sqrt(block.shape[1]), out=None if keep else block)
            for block in found.blocks
        ]
        client_data = ClientData.from_factors(factors, share)
        blocks = tuple(found.blocks) if keep else None
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


# ---------------------------------------------------------------------- white shares
@dataclass
class WhiteShares:
    """Blocks W_i with ``sum_i W_i W_i^T = m I``: data without any principal direction."""

    samples: tuple[int, ...]
    #: list of (features, m_i) float64, or None.
    blocks: list[Array] | None
    #: (clients, features, features) float64, or None: W_i W_i^T / m_i.
    moments: Array | None


def white_shares(
    features: int,
    samples: tuple[int, ...],
    seed: int,
    *,
    blocks: bool,
    moments: bool,
    remember: bool,
    drawn: int = 0,
) -> WhiteShares:
    """Draw uniform [-1, 1] entries and orthonormalise them over all clients together.

    ``W_i = sqrt(m) V_i^T`` with V = [V_1; V_2; ...] of orthonormal columns: FAPS's V, found by two
    passes of Cholesky QR. Each pass over large data draws the entries anew from their stream, so
    only what is asked for is ever held. The pooled data do not depend on how they are split over
    clients. With ``remember`` the result is kept, as a move of a parameter wants it; ``drawn``
    says of how many features these are the leading ones, as a triangular division leaves them.
    """
    asked = features, samples, seed, blocks, moments, remember, max(drawn, features)

    def made() -> WhiteShares:
        entries = max(drawn, features), samples, seed, features
        records = sum(samples)
        large = 8 * features * records > _LARGE_BYTES
        if records >= _WIDE * features and large:
            return _made_at_once(_drawn(*entries), features, samples, blocks, moments)
        if large:
            first = cholesky(_summed(_drawn(*entries)), lower=True)
            second = cholesky(_summed(_divided(_drawn(*entries), first)), lower=True)
            stream = _divided(_divided(_drawn(*entries), first), second)
        else:  # held: drawing and dividing again costs twice as much
            held = list(_drawn(*entries))
            for _ in range(2):
                held = list(_divided(iter(held), cholesky(_summed(iter(held)), lower=True)))
            stream = iter(held)
        kept: list[Array] = []
        squares = np.empty((len(samples), features, features)) if moments else None
        for client, block in enumerate(stream):
            block *= np.sqrt(records)
            if squares is not None:
                np.matmul(block, block.T, out=squares[client])
                squares[client] /= samples[client]
            if blocks:
                kept.append(block)
        return WhiteShares(samples, kept if blocks else None, squares)

    if not remember:
        return made()
    small = not blocks and 8 * len(samples) * features**2 <= _SMALL_BYTES
    return (_many if small else _few).get(asked, made)


def _made_at_once(
    drawn: Iterator[Array], features: int, samples: tuple[int, ...], blocks: bool, moments: bool
) -> WhiteShares:
    """One pass over entries that are drawn once; moments are divided in place of the blocks."""
    total = np.zeros((features, features))
    kept: list[Array] = []
    squares = np.empty((len(samples), features, features)) if moments else None
    for client, block in enumerate(drawn):
        gram = block @ block.T
        total += gram
        if squares is not None:
            squares[client] = gram
        if blocks:
            kept.append(block)
    lower = np.asfortranarray(cholesky(total, lower=True))
    records = sum(samples)
    for client, size in enumerate(samples):
        if squares is not None:  # L^(-1) G L^(-T), of which LAPACK writes the lower triangle
            half = np.tril(dsygst(squares[client].T, lower, lower=1, overwrite_a=1)[0])
            np.fill_diagonal(half, 0.5 * half.diagonal())
            np.add(half, half.T, out=squares[client])
            squares[client] *= records / size
        if blocks:
            kept[client] = dtrsm(np.sqrt(records), lower, kept[client], lower=1, overwrite_b=1)
    return WhiteShares(samples, kept if blocks else None, squares)


def _drawn(features: int, samples: tuple[int, ...], seed: int, leading: int) -> Iterator[Array]:
    """One client's raw entries after the other, record by record, (leading, m_i)."""
    generator = Streams(seed).generator("data")
    for size in samples:
        yield np.ascontiguousarray(generator.uniform(-1.0, 1.0, (size, features))[:, :leading]).T


def _divided(blocks: Iterator[Array], lower: Array) -> Iterator[Array]:
    """L^(-1) times every block, in place."""
    triangle = np.asfortranarray(lower)
    for block in blocks:
        yield dtrsm(1.0, triangle, block, lower=1, overwrite_b=1)


def _summed(blocks: Iterator[Array]) -> Array:
    """Sum of B_i B_i^T."""
    return reduce(operator.iadd, (block @ block.T for block in blocks))


# ---------------------------------------------------------------------- rotations
@dataclass(frozen=True)
class Rotations:
    """One smooth family of rotations for each client, reproducible from a seed."""

    #: (features,) float64: D^(1/2), largest first.
    roots: Array
    clients: int
    seed: int
    #: Which draw of the stream ``"heterogeneity"``.
    attempt: int = 0
    #: {1, -1}: The sense in which all clients turn.
    sign: int = 1

    @property
    def turning(self) -> int:
        """Number of leading features that turn; a flat spectrum looks the same from everywhere."""
        squares = (self.roots / self.roots[0]) ** 2
        return 0 if squares[-1] == 1.0 else int((squares >= _NEGLIGIBLE).sum())

    def maps(self, value: float) -> Iterator[Array]:
        """``R_i D^(1/2) R_i^T`` client by client, each (features, features).

        Where nothing turns it is diagonal, and its diagonal (features,) is given instead.
        """
        turning = self.turning
        if turning < 2 or value == 0:
            yield from [self.roots] * self.clients
            return
        streams = Streams(self.seed)
        generators = (
            streams.generator("heterogeneity", self.attempt, client)
            for client in range(self.clients)
        )
        # The basis in which each client turns; kept where they are small.
        bases: Iterable[Array] = (
            orthonormalise(each.standard_normal((turning, turning))) for each in generators
        )
        if 8 * self.clients * turning**2 <= _SMALL_BYTES:
            asked = self.seed, self.attempt, self.clients, turning
            bases = _known.get(asked, lambda: tuple(bases))
        angles = self.sign * value * _angles(turning)
        for planes in bases:
            rotation = _turned(planes, angles) @ planes.T
            result = np.diag(self.roots)
            result[:turning, :turning] = (rotation * self.roots[:turning]) @ rotation.T
            yield result


#: Choices made, so that a move of the parameter costs no measurement.
_chosen: Remembered[Rotations] = Remembered(64)


@lru_cache(maxsize=8)
def _angles(features: int) -> Array:
    """Angles of K_i, the largest pi/2: spread like those of a large Gaussian skew matrix.

    They follow Wigner's semicircle, so nothing has to be decomposed to draw such a matrix: a
    uniformly random basis and these angles are enough.
    """
    planes = features // 2
    grid = np.linspace(0.0, 1.0, 4001)
    below = (grid * np.sqrt(1.0 - grid**2) + np.arcsin(grid)) * 2.0 / np.pi
    return np.pi / 2.0 * np.interp(np.arange(1, planes + 1) / max(planes, 1), below, grid)


def _turned(planes: Array, angles: Array) -> Array:
    """The basis with its columns 2j and 2j + 1 turned by angle j."""
    pairs = 2 * len(angles)
    first, second = planes[:, :pairs:2], planes[:, 1:pairs:2]
    cosine, sine = np.cos(angles), np.sin(angles)
    result = planes.copy()
    result[:, :pairs:2] = first * cosine + second * sine
    result[:, 1:pairs:2] = second * cosine - first * sine
    return result


def balance(pooled: Array, roots: Array) -> Array:
    """The map M = D^(1/2) L^(-1), with L the Cholesky factor of the pooled moments G.

    ``M G M^T = D`` for any square root of G; this one keeps its accuracy when the spectrum spans
    many orders of magnitude, and is the identity when G = D.
    """
    try:
        lower = cholesky(pooled, lower=True, check_finite=False)
        inverse = solve_triangular(lower, np.eye(len(roots)), lower=True, check_finite=False)
    except LinAlgError:
        raise InvalidInput(
            f"A spectrum whose eigenvalues fall from {roots[0] ** 2:.3g} to {roots[-1] ** 2:.3g} "
            "is too steep to be rotated accurately; choose a decay or condition number closer "
            "to 1, fewer features, or heterogeneity 0."
        ) from None
    return roots[:, None] * inverse


def coloured(
    white: WhiteShares, maps: Iterable[Array], weights: Array, target: Array | None, *, keep: bool
) -> WhiteShares:
    """Second moments and blocks of ``M T_i W_i``; W is overwritten unless it is to be kept.

    ``maps``, iterable of (features, features) or (features,) float64: T_i for each client; a vector
        stands for a diagonal matrix.
    ``target``, (features,) float64, or None: Square roots of the spectrum that M restores; None
        when the pool is exact without.
    """
    blocks, moments = white.blocks, white.moments
    if keep:
        blocks = None if blocks is None else list(blocks)
        moments = None if moments is None else moments.copy()
    result = WhiteShares(white.samples, blocks, moments)
    for client, own in enumerate(maps):
        _apply(own, result, client)
    if target is not None:
        mend = balance(_pooled(result, weights), target)
        for client in range(len(weights)):
            _apply(mend, result, client)
    return result


def _apply(left: Array, shares: WhiteShares, client: int) -> None:
    if shares.moments is not None:
        held = shares.moments[client]
        moved = left[:, None] * held * left if left.ndim == 1 else left @ held @ left.T
        shares.moments[client] = 0.5 * (moved + moved.T)
    if shares.blocks is not None:
        block = shares.blocks[client]
        shares.blocks[client] = left[:, None] * block if left.ndim == 1 else left @ block


def _pooled(shares: WhiteShares, weights: Array) -> Array:
    if shares.moments is not None:
        return np.tensordot(weights, shares.moments, axes=1)
    assert shares.blocks is not None
    features = shares.blocks[0].shape[0]
    total = np.zeros((features, features))
    for weight, block in zip(weights, shares.blocks, strict=True):
        total += weight * second_moment(block)
    return total


def chosen_turns(
    white: WhiteShares, roots: Array, weights: Array, seed: int, heterogeneity: float
) -> Rotations:
    """The draw and sense of rotation in which clients drift apart from the first moment on.

    Random shares of few records differ already, and a small rotation may happen to undo that:
    the parameter would first go down. Turning the other way then goes up, so both senses are
    measured; very small problems may need another draw as well. Large ones average such accidents
    out and take the first draw, as the parameter at 0 does, which needs none.
    """
    clients = len(white.samples)
    turns = Rotations(roots, clients, seed)
    cost = clients * len(roots) ** 3
    if heterogeneity == 0 or turns.turning < 2 or cost > _MEASURABLE:
        return turns

    def least_drop() -> Rotations:
        moments = white.moments
        if moments is None:
            assert white.blocks is not None
            moments = np.stack([second_moment(block) for block in white.blocks])
        measured = WhiteShares(white.samples, None, moments)
        tiny = cost <= _TINY
        positions = np.linspace(0.0, 1.0, 21).tolist() if tiny else [0, 0.05, 0.1, 0.2, 0.4, 0.7, 1]

        def eta(tried: Rotations, position: float) -> float:
            moved = coloured(measured, tried.maps(position), weights, roots, keep=True).moments
            assert moved is not None
            return float(np.abs(np.linalg.eigvalsh(moved - np.diag(roots**2))).max())

        best, smallest = turns, np.inf
        for attempt, sign in product(range(32 if tiny else 4), (1, -1)):
            candidate = replace(turns, attempt=attempt, sign=sign)
            etas = (eta(candidate, position) for position in positions)
            falls = drop(etas, smallest, relative=False)
            if falls < smallest:
                best, smallest = candidate, falls
            if smallest <= 1e-12:
                break
        return best

    return _chosen.get((white.samples, roots.tobytes(), weights.tobytes(), seed), least_drop)
